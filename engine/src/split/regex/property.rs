//! Named sets of characters, with the meaning that the package `regex` gives their names.

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, HirKind};

/// The names of properties that a pattern may use, in this spelling. Each holds the same characters
/// in `regex` and here (a test compares every code point). Other properties differ under one name.
const CATEGORIES: &str = "\
    L Lu Ll Lt Lm Lo LC M Mn Mc Me N Nd Nl No P Pc Pd Ps Pe Pi Pf Po S Sm Sc Sk So Z Zs Zl Zp C \
    Cc Cf Co Cn Letter Uppercase_Letter Lowercase_Letter Mark Number Punctuation Symbol \
    Separator Other Alphabetic Uppercase Lowercase White_Space";

const SCRIPTS: &str = "\
    Adlam Ahom Anatolian_Hieroglyphs Arabic Armenian Avestan Balinese Bamum Bassa_Vah Batak \
    Bengali Bhaiksuki Bopomofo Brahmi Braille Buginese Buhid Canadian_Aboriginal Carian \
    Caucasian_Albanian Chakma Cham Cherokee Chorasmian Common Coptic Cuneiform Cypriot \
    Cypro_Minoan Cyrillic Deseret Devanagari Dives_Akuru Dogra Duployan Egyptian_Hieroglyphs \
    Elbasan Elymaic Ethiopic Garay Georgian Glagolitic Gothic Grantha Greek Gujarati \
    Gunjala_Gondi Gurmukhi Gurung_Khema Han Hangul Hanifi_Rohingya Hanunoo Hatran Hebrew \
    Hiragana Imperial_Aramaic Inherited Inscriptional_Pahlavi Inscriptional_Parthian Javanese \
    Kaithi Kannada Katakana Kawi Kayah_Li Kharoshthi Khitan_Small_Script Khmer Khojki Khudawadi \
    Kirat_Rai Lao Latin Lepcha Limbu Linear_A Linear_B Lisu Lycian Lydian Mahajani Makasar \
    Malayalam Mandaic Manichaean Marchen Masaram_Gondi Medefaidrin Meetei_Mayek Mende_Kikakui \
    Meroitic_Cursive Meroitic_Hieroglyphs Miao Modi Mongolian Mro Multani Myanmar Nabataean \
    Nag_Mundari Nandinagari New_Tai_Lue Newa Nko Nushu Nyiakeng_Puachue_Hmong Ogham Ol_Chiki \
    Ol_Onal Old_Hungarian Old_Italic Old_North_Arabian Old_Permic Old_Persian Old_Sogdian \
    Old_South_Arabian Old_Turkic Old_Uyghur Oriya Osage Osmanya Pahawh_Hmong Palmyrene \
    Pau_Cin_Hau Phags_Pa Phoenician Psalter_Pahlavi Rejang Runic Samaritan Saurashtra Sharada \
    Shavian Siddham SignWriting Sinhala Sogdian Sora_Sompeng Soyombo Sundanese Sunuwar \
    Syloti_Nagri Syriac Tagalog Tagbanwa Tai_Le Tai_Tham Tai_Viet Takri Tamil Tangsa Tangut \
    Telugu Thaana Thai Tibetan Tifinagh Tirhuta Todhri Toto Tulu_Tigalari Ugaritic Vai Vithkuqi \
    Wancho Warang_Citi Yezidi Yi Zanabazar_Square";

/// The properties that `(?i)` widens.
const CASED: &str = "Lu Ll Lt LC Uppercase_Letter Lowercase_Letter Uppercase Lowercase";

/// Returns the set of `\p{name}`; None if the name is not supported.
pub fn property(name: &str) -> Option<ClassUnicode> {
    let is_known = has(CATEGORIES, name) || has(SCRIPTS, name);
    is_known.then(|| parsed(&format!(r"\p{{{name}}}")))
}

/// Returns whether `\p{name}` matches more under `(?i)`.
pub fn is_cased(name: &str) -> bool {
    has(CASED, name)
}

/// Returns whether the name is one of several that are separated by spaces.
fn has(names: &str, name: &str) -> bool {
    names.split(' ').any(|one| one == name)
}

/// Returns the set of `\s`, `\d` or `\w`.
pub fn perl(letter: char) -> ClassUnicode {
    parsed(&format!("\\{letter}"))
}

/// Returns the set that a class of `regex-syntax` stands for.
pub fn parsed(class: &str) -> ClassUnicode {
    let hir = regex_syntax::parse(class).expect("a class that regex-syntax knows");
    match hir.kind() {
        HirKind::Class(Class::Unicode(set)) => set.clone(),
        // A set of one character.
        HirKind::Literal(literal) => {
            let text = String::from_utf8_lossy(&literal.0);
            ClassUnicode::new(text.chars().map(|c| ClassUnicodeRange::new(c, c)))
        }
        _ => unreachable!("a class that is no set of characters"),
    }
}

pub fn single(character: char) -> ClassUnicode {
    ClassUnicode::new([ClassUnicodeRange::new(character, character)])
}

/// Returns the characters that match a member of `set` under `(?i)`: the members and their simple
/// case variants.
///
/// In `regex`, besides Unicode's simple folding, i and İ match each other, and so do I and ı; but
/// not ı and İ, nor i and ı.
pub fn case_closure(set: &ClassUnicode) -> ClassUnicode {
    let mut closure = set.clone();
    closure
        .try_case_fold_simple()
        .expect("regex-syntax was built with its case tables");
    for (from, to) in [('i', 'İ'), ('İ', 'i'), ('I', 'ı'), ('ı', 'I')] {
        if contains(set, from) {
            closure.union(&single(to));
        }
    }
    closure
}

pub fn contains(set: &ClassUnicode, character: char) -> bool {
    let mut ranges = set.iter();
    ranges.any(|range| (range.start()..=range.end()).contains(&character))
}
