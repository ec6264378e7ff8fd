r"""Translate Oniguruma's regular expressions to the syntax of docs/patterns.md.

The syntaxes agree on most constructs of split patterns. In Oniguruma, unlike here:

- `^` and `$` match at every line, but `^` not after a line feed that ends the text, and `\Z` also
  matches before that line feed;
- `(?m)` means `(?s)`, and there is no multi-line option;
- `{n,m}+` repeats the repetition instead of being possessive; `{n}?` makes it optional;
- `\w` lacks two joiners, and outside sets includes six number signs of Latin-1; `\h` is a
  hexadecimal digit instead of a space;
- a set can contain sets and `&&` (intersection);
- the search continues elsewhere after an empty match;
- `(?i)` lets one character match two, such as ß and ss, and `i` match only `i` and `I`.

A construct that has no equivalent is rejected with its position. Oniguruma 6.9 and this engine
both have Unicode 16.0; tests compare them for every code point.
"""

from __future__ import annotations

from typing import Final

import regex

from bytepair_engine.errors import BytepairError

#: Escapes with the same meaning in both syntaxes, outside and inside a set.
_SAME_ESCAPES: Final = frozenset("nrtfvasSdD")
#: Escapes that may contain letters of one case only.
_CASED: Final = frozenset("pPwWhSD")
_PROPERTY: Final = regex.compile(r"\\[pP]\{(\^?)([A-Za-z_ -]+)\}")
_HEXADECIMAL: Final = regex.compile(r"\\x(?:\{([0-9A-Fa-f]{1,8})\}|([0-9A-Fa-f]{1,2}))")
_UNICODE: Final = regex.compile(r"\\u([0-9A-Fa-f]{4})")
_INTERVAL: Final = regex.compile(r"\{(\d+)(,?)(\d*)\}|\{,(\d+)\}")
_GROUP: Final = regex.compile(r"\(\?(?:([imx]*)(?:-([imx]*))?:|<?[=!]|>|<[A-Za-z_]\w*>)|\((?!\?)")
_ASSERTION: Final = regex.compile(r"\(\?<?[=!]|\\[AZ]")
#: A literal line feed would separate two patterns.
_NEWLINE: Final = {"\n": r"\n"}
_WORD_IN_SET: Final = r"\p{Alphabetic}\p{M}\p{Nd}\p{Pc}"
_WORD: Final = _WORD_IN_SET + r"\u00b2\u00b3\u00b9\u00bc-\u00be"


#: Characters that match a string of several under `(?i)` in Oniguruma; `ı`, which matches `I` here.
_SPECIAL_FOLDS: Final = [
    character
    for character in map(chr, [*range(0x80, 0xD800), *range(0xF900, 0x10000)])
    if len(character.casefold()) > 1 or character == "ı"
]
_FOLDS: Final = regex.compile(
    "|".join(sorted({regex.escape(character.casefold()) for character in _SPECIAL_FOLDS}))
)
#: Rejects the characters that match `i` or `I` under `(?i)` here, but not in Oniguruma.
_NO_TURKISH_I: Final = "(?-i:(?![İı]))"
#: Limit of docs/patterns.md for groups; here also for sets in sets.
_DEEPEST: Final = 50
#: More than the minimum length of any supported pattern.
_INFINITE: Final = 10**9


class PatternFault(BytepairError, ValueError):
    """A pattern that cannot be translated exactly.

    Attributes:
        position: Index of the first unsupported character.
        problem: The problem.
    """

    def __init__(self, position: int, problem: str) -> None:
        super().__init__(position, problem)
        self.position = position
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.problem} at character {self.position}"


def translate(pattern: str) -> str:
    r"""Translate a pattern of Oniguruma to the syntax of docs/patterns.md.

    Args:
        pattern: The regular expression, in Oniguruma's own syntax without options.
    Returns:
        A regular expression with the same matches, unchanged if the meaning is the same.
    Raises:
        PatternFault: A construct has no known equivalent, or the pattern does not compile.

    >>> translate(r"\p{N}{1,3}+|^\w")
    '(?:\\p{N}{1,3})+|(?:\\A|(?<=\\n)(?!\\Z))[\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\u00b2\\u00b3\\u00b9\\u00bc-\\u00be]'
    """
    written = _Translation(pattern).written()
    _compiled(written)
    return written


def _compiled(pattern: str, position: int = 0) -> regex.Pattern[str]:
    try:
        return regex.compile(pattern)
    except Exception as error:  # not only `regex.error`
        raise PatternFault(position, f"it does not compile: {error}") from None


class _Translation:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._ignoring_case = [False]  # for each open group
        self._literal = ""  # literal characters under (?i) that may be adjacent
        self._out: list[str] = []
        self._last = 0  # start of the last item in `_out`
        self._groups: list[tuple[int, bool]] = []  # start of each open group; if it consumes text
        self._starts: list[int] = []  # start of each open group in `_out`
        # Minimum lengths for each open group: of the shortest earlier branch, of this branch, and
        # of the last item of this branch.
        self._minimums: list[list[int]] = [[_INFINITE, 0, 0]]

    def written(self) -> str:
        pattern = self._pattern
        if pattern.startswith("(?i)"):
            self._ignoring_case = [True]
            self._emit("(?i)", 4, 0)
        while self._at < len(pattern):
            self._item(pattern[self._at])
        if self._groups:
            self._at = self._groups[-1][0]
            raise self._fault("an unclosed group")
        if min(self._minimums[0][:2]) == 0:
            self._at = 0
            raise self._fault("a match may be empty")
        return "".join(self._out)

    def _fault(self, problem: str) -> PatternFault:
        return PatternFault(self._at, problem)

    def _emit(self, written: str, length: int, minimum: int = 1) -> None:
        self._last = len(self._out)
        self._minimums[-1][1:] = self._minimums[-1][1] + minimum, minimum
        self._out.append(written)
        self._at += length

    def _item(self, character: str) -> None:
        if character == "\\":
            written, length, literal = self._escape(inside=False)
            if literal:
                self._emit_literal(literal, written, length)
            else:
                self._literal = ""
                self._emit(written, length, 0 if self._pattern[self._at + 1] in "AzZ" else 1)
        elif character == "[":
            self._literal = ""
            self._emit(*self._set())
        elif character == "(":
            self._open()
        elif character == ")":
            self._close()
        elif character in "*+?" or character == "{":
            self._repeat()
        elif character == "|":
            self._literal = ""
            self._emit("|", 1, 0)
            minimum = self._minimums[-1]
            minimum[:] = min(minimum[:2]), 0, 0
        elif character == "^":
            self._emit(r"(?:\A|(?<=\n)(?!\Z))", 1, 0)
        elif character == "$":
            self._emit(r"(?:(?![^\n]))", 1, 0)
        elif character == ".":
            self._literal = ""
            self._emit(".", 1)
        else:
            self._emit_literal(character, _NEWLINE.get(character, character), 1)

    def _emit_literal(self, character: str, written: str, length: int) -> None:
        if self._ignoring_case[-1]:
            self._literal += character
            if found := _FOLDS.search(self._literal.casefold()):
                raise self._fault(
                    f"{found.group()!r} under (?i), which Oniguruma matches otherwise"
                )
            if character in "iI":
                written = f"(?:{_NO_TURKISH_I}{character})"
        self._emit(written, length)

    def _escape(self, *, inside: bool) -> tuple[str, int, str]:
        """Return the translation of an escape, the length of the original, and the character that
        it stands for: "" for a class or an anchor."""
        rest = self._pattern[self._at :]
        mark = rest[1:2]
        if self._ignoring_case[-1] and mark in _CASED:
            raise self._fault(f"\\{mark} under (?i), which has no effect on it in Oniguruma")
        if mark in _SAME_ESCAPES:
            return rest[:2], 2, ""
        if found := _PROPERTY.match(rest):
            negated = (rest[1] == "P") != bool(found[1])
            return rf"\{'P' if negated else 'p'}{{{found[2]}}}", found.end(), ""
        if found := _HEXADECIMAL.match(rest):
            code = int(found[1] or found[2], 16)
            if code >= 0x80 and found[2]:
                raise self._fault("a single byte of a character")
            if code > 0x10FFFF:
                raise self._fault("not a code point")
            return f"\\U{code:08x}", found.end(), chr(code)
        if found := _UNICODE.match(rest):
            return found.group(), found.end(), chr(int(found[1], 16))
        if mark == "w":
            return (_WORD_IN_SET if inside else f"[{_WORD}]"), 2, ""
        if mark == "h":
            return ("0-9A-Fa-f" if inside else "[0-9A-Fa-f]"), 2, ""
        if mark == "e":
            return r"\x1b", 2, ""
        if not inside:
            if mark == "A":
                return rest[:2], 2, ""
            if mark == "z":
                return r"\Z", 2, ""
            if mark == "Z":
                return r"(?:\Z|(?=\n\Z))", 2, ""
            if mark == "W":
                return f"[^{_WORD}]", 2, ""
        if mark and mark.isascii() and not mark.isalnum():
            return rest[:2], 2, mark
        if mark and not mark.isascii():
            return mark, 2, mark
        raise self._fault(f"\\{mark}" if mark else "a backslash at the end")

    def _set(self) -> tuple[str, int]:
        """Return the translation of a set, and the length of the original."""
        start = self._at
        _, written = self._operands()
        length, self._at = self._at - start, start
        if self._ignoring_case[-1]:
            members = _compiled(written, start)
            for character in filter(members.match, _SPECIAL_FOLDS):
                raise self._fault(
                    f"a set with {character!r} under (?i), which Oniguruma matches otherwise"
                )
            if members.search("iI"):
                written = f"(?:{_NO_TURKISH_I}{written})"
        return written, length

    def _operands(self, depth: int = 0) -> tuple[str | None, str]:
        """Parse a set.

        Returns:
            The content if the set can be written as one positive set, else None; and an expression
            that matches the same characters. Nested sets are united, operands of `&&` intersected.
        """
        pattern, start = self._pattern, self._at
        self._at += 1
        negated = pattern.startswith("^", self._at)
        if negated and self._ignoring_case[-1]:
            raise self._fault("a negated set under (?i)")
        self._at += negated
        operands = [self._members(depth)]
        while pattern.startswith("&&", self._at):
            self._at += 2
            operands.append(self._members(depth))
        if self._at == len(pattern):
            self._at = start
            raise self._fault("an unclosed set")
        self._at += 1
        content, others = operands[0]
        if len(operands) == 1 and not others:
            return (None, f"[^{content}]") if negated else (content, f"[{content}]")
        if self._ignoring_case[-1]:
            self._at = start
            raise self._fault("nested sets under (?i)")
        either = ["|".join([f"[{plain}]"] * bool(plain) + rest) for plain, rest in operands]
        looks = "".join(f"(?={operand})" for operand in either[1:])
        written = f"(?:{looks}(?:{either[0]}))" if looks else f"(?:{either[0]})"
        return None, f"(?:(?!{written})(?s:.))" if negated else written

    def _members(self, depth: int) -> tuple[str, list[str]]:
        """Parse the members of a set up to its end or `&&`: the content of one set, and
        expressions for the members that a set cannot contain."""
        pattern, first = self._pattern, self._at
        content, others = "", list[str]()
        after_set = False
        while self._at < len(pattern):
            character = pattern[self._at]
            if character == "]" or pattern.startswith("&&", self._at):
                if self._at == first:
                    raise self._fault(r"an empty set; write \]")
                break
            if character == "[":
                if pattern.startswith("[:", self._at):
                    raise self._fault(r"a POSIX bracket or a nested set; write \[: for these")
                if content.endswith("-") and not content.endswith(r"\-"):
                    raise self._fault("a range that ends with a set")
                if depth == _DEEPEST:
                    raise self._fault(f"sets nested more than {_DEEPEST} deep")
                inner, written = self._operands(depth + 1)
                if inner is None or {inner[0], inner[-1]} & set("-&~|"):
                    others.append(written)
                else:
                    content += inner
                after_set = True
                continue
            if after_set and character == "-" and not pattern.startswith("]", self._at + 1):
                raise self._fault("a range that starts with a set")
            after_set = False
            if character == "\\":
                written, length, _ = self._escape(inside=True)
                content += written
                self._at += length
                continue
            if character in "-~|&" and pattern[self._at + 1 : self._at + 2] == character:
                raise self._fault(f"{character * 2} in a set; write \\{character}")
            content += _NEWLINE.get(character, character)
            self._at += 1
        return content, others

    def _open(self) -> None:
        found = _GROUP.match(self._pattern, self._at)
        if not found:
            raise self._fault("an unsupported kind of group")
        if len(self._groups) == _DEEPEST:
            raise self._fault(f"groups nested more than {_DEEPEST} deep")
        on, off = found[1] or "", found[2] or ""
        if "x" in on + off:
            raise self._fault("the option x")
        ignoring = (self._ignoring_case[-1] or "i" in on) and "i" not in off
        written = found.group()
        looks = written.startswith(("(?=", "(?!", "(?<=", "(?<!"))
        self._groups.append((self._at, not looks))
        start = len(self._out)
        if on or off:
            flags = on.replace("m", "s") + ("-" + off.replace("m", "s") if off else "")
            written = f"(?{flags}:"
        elif written.startswith("(?<") and written[3] not in "=!":
            written = "(?:"
        elif written == "(" and any(
            self._pattern.startswith("(?<!", start) for start, _ in self._groups
        ):
            raise self._fault("a capture in a negative lookbehind")
        self._emit(written, found.end() - self._at, 0)
        self._starts.append(start)
        self._minimums.append([_INFINITE, 0, 0])
        self._ignoring_case.append(ignoring)

    def _close(self) -> None:
        if not self._groups:
            raise self._fault("an unmatched closing parenthesis")
        self._ignoring_case.pop()
        _, consumes = self._groups.pop()
        minimum = min(self._minimums.pop()[:2]) * consumes
        self._emit(")", 1, minimum)
        self._last = self._starts.pop()

    def _repeat(self) -> None:
        pattern = self._pattern
        last = self._out[self._last :] if self._minimums[-1][2] == 0 else []
        if any(map(_ASSERTION.search, last)):
            raise self._fault("a repeat of what may be an assertion only")
        if pattern[self._at] != "{":
            length = 2 if pattern[self._at + 1 : self._at + 2] in ("?", "+") else 1
            if pattern[self._at] != "+":
                self._repeat_minimum(0)
            self._out.append(pattern[self._at : self._at + length])
            self._at += length
            return
        found = _INTERVAL.match(pattern, self._at)
        if not found:
            raise self._fault("a brace that starts no repetition; write \\{")
        after = pattern[found.end() : found.end() + 1]
        interval = f"{{0,{found[4]}}}" if found[4] else found.group()
        fixed = not found[4] and not found[2]
        if after == "?" and fixed:
            raise self._fault("{n}?, which makes the repetition optional in Oniguruma")
        self._repeat_minimum(int(found[1] or 0))
        self._out.append(interval)
        self._at = found.end()
        if after == "?":
            self._out.append("?")
            self._at += 1
        elif after in ("+", "*"):
            self._repeat_minimum(1 if after == "+" else 0)
            self._out[self._last :] = ["(?:", *self._out[self._last :], ")", after]
            self._at += 1

    def _repeat_minimum(self, times: int) -> None:
        """Update the minimum length: the last item is repeated at least `times` times."""
        minimum = self._minimums[-1]
        minimum[1:] = minimum[1] + (times - 1) * minimum[2], times * minimum[2]
