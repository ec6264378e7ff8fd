"""The script of a character, by Unicode's property Script (UAX #24)."""

from __future__ import annotations

from functools import cache
from typing import Final

import regex

#: Characters without a script: digits, punctuation, symbols, white space, and unassigned ones.
COMMON: Final = "Common"
#: Marks that inherit the script of their base character.
INHERITED: Final = "Inherited"

#: Scripts without spaces between words, for which words are not counted.
WITHOUT_SPACES: Final = (
    "Han", "Hiragana", "Katakana", "Bopomofo", "Yi", "Thai", "Lao", "Khmer", "Myanmar", "Tibetan",
    "Tai Le", "New Tai Lue", "Tai Tham", "Tai Viet", "Javanese", "Balinese",
)  # fmt: skip

#: All scripts, the most common ones first: they are tested in this order.
_NAMES: Final = (
    COMMON, "Latin", "Han", "Cyrillic", "Hangul", "Hiragana", "Katakana", "Arabic", "Greek",
    "Hebrew", "Devanagari", "Thai", INHERITED, "Bengali", "Tamil", "Telugu", "Gujarati", "Kannada",
    "Malayalam", "Gurmukhi", "Sinhala", "Oriya", "Armenian", "Georgian", "Ethiopic", "Khmer",
    "Lao", "Myanmar", "Tibetan", "Mongolian", "Thaana", "Syriac", "Bopomofo", "Yi", "Cherokee",
    "Canadian Aboriginal", "Tifinagh", "Nko", "Vai", "Adlam", "Javanese", "Balinese", "Sundanese",
    "Batak", "Buginese", "Tagalog", "Hanunoo", "Buhid", "Tagbanwa", "Tai Le", "New Tai Lue",
    "Tai Tham", "Tai Viet", "Lisu", "Miao", "Limbu", "Lepcha", "Ol Chiki", "Meetei Mayek",
    "Chakma", "Cham", "Saurashtra", "Kayah Li", "Rejang", "Bamum", "Coptic", "Gothic", "Glagolitic",
    "Runic", "Ogham", "Braille", "Samaritan", "Mandaic", "Syloti Nagri", "Phags Pa", "Linear A",
    "Linear B", "Lycian", "Carian", "Lydian", "Old Italic", "Old Permic", "Old Persian",
    "Ugaritic", "Cuneiform", "Deseret", "Shavian", "Osmanya", "Osage", "Elbasan",
    "Caucasian Albanian", "Vithkuqi", "Todhri", "Cypriot", "Cypro Minoan", "Imperial Aramaic",
    "Palmyrene", "Nabataean", "Hatran", "Phoenician", "Meroitic Hieroglyphs", "Meroitic Cursive",
    "Kharoshthi", "Old South Arabian", "Old North Arabian", "Manichaean", "Avestan",
    "Inscriptional Parthian", "Inscriptional Pahlavi", "Psalter Pahlavi", "Old Turkic",
    "Old Hungarian", "Hanifi Rohingya", "Garay", "Yezidi", "Old Sogdian", "Sogdian", "Old Uyghur",
    "Chorasmian", "Elymaic", "Brahmi", "Kaithi", "Sora Sompeng", "Mahajani", "Sharada", "Khojki",
    "Multani", "Khudawadi", "Grantha", "Tulu Tigalari", "Newa", "Tirhuta", "Siddham", "Modi",
    "Takri", "Ahom", "Dogra", "Warang Citi", "Dives Akuru", "Nandinagari", "Zanabazar Square",
    "Soyombo", "Pau Cin Hau", "Sunuwar", "Bhaiksuki", "Marchen", "Masaram Gondi",
    "Gunjala Gondi", "Makasar", "Kawi", "Egyptian Hieroglyphs", "Anatolian Hieroglyphs",
    "Gurung Khema", "Mro", "Tangsa", "Bassa Vah", "Pahawh Hmong", "Kirat Rai", "Medefaidrin",
    "Tangut", "Nushu", "Khitan Small Script", "Duployan", "SignWriting", "Nyiakeng Puachue Hmong",
    "Toto", "Wancho", "Nag Mundari", "Ol Onal", "Mende Kikakui",
)  # fmt: skip


def script_of(character: str) -> str:
    """Return the script of a character; COMMON for an unassigned one.

    >>> script_of("é"), script_of("界"), script_of("7")
    ('Latin', 'Han', 'Common')
    """
    return next((name for name in _NAMES if _is_of(name).match(character)), COMMON)


class ScriptLetters(dict[int, str]):
    """A table for `str.translate` from characters to one letter per script, and `SPACE` for the
    space. It is filled on demand, and not thread-safe.

    Attributes:
        names: Letter to script.
    """

    SPACE: Final = "S"
    _LETTERS: Final = {COMMON: "C", INHERITED: "I"}

    def __init__(self) -> None:
        super().__init__({ord(" "): self.SPACE})
        self.names: Final = {"S": COMMON, "C": COMMON, "I": COMMON}

    def __missing__(self, code: int) -> str:
        script = script_of(chr(code))
        # Unique, and different from the three letters above.
        letter = self._LETTERS.get(script) or chr(0x100 + _NAMES.index(script))
        self.names.setdefault(letter, script)
        self[code] = letter
        return letter


@cache
def _is_of(script: str) -> regex.Pattern[str]:
    return regex.compile(rf"\p{{Script={script}}}")
