r"""Java's regular expressions, as far as Python's match the same texts: the language of the option `excludeRegex`.

A pattern is parsed by the rules that both languages share (java.util.regex.Pattern without flags) and written again in
Python's syntax, so that Python cannot read a part of it differently. A part that may differ is refused by name, and the
error says what to write instead. A pattern that Java would not compile is a syntax error.

The only question is whether a text has a match anywhere, never which one. Two differences are translated: in Java `.`
and `$` know six line terminators, and `\w`, `\d` and `\s` are ASCII.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tablefeed.errors import IllegalOptionError


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaRegex:
    """An un-anchored Java pattern, the value of `option`."""

    pattern: str
    option: str
    compiled: re.Pattern[str]
    has_word_bounds: bool

    def finds(self, text: str) -> bool:
        r"""Whether `text` has a match anywhere, as `Matcher.find` says.

        Raises IllegalOptionError where the pattern has `\b` or `\B` and `text` is not ASCII: Java versions differ
        there.
        """
        if self.has_word_bounds and not text.isascii():
            explain = rf"has \b or \B, which Javas read differently in {text!r}: write (?<![0-9A-Za-z_]) and the like"
            raise IllegalOptionError(option=self.option, value=self.pattern, explain=explain)
        return self.compiled.search(text) is not None


def java_regex(pattern: str, *, option: str) -> JavaRegex:
    """Compiles `pattern`, the value of `option`.

    Raises IllegalOptionError: of class DELTA_REGEX_OPT_SYNTAX_ERROR for what Java does not compile, of its own class
    for what Python would read differently.
    """
    parser = _Parser(pattern)
    try:
        compiled = re.compile(parser.whole(), re.ASCII)
    except _NotJavaError as error:
        raise IllegalOptionError(
            option=option, value=pattern, explain=str(error), error_class="DELTA_REGEX_OPT_SYNTAX_ERROR"
        ) from error
    except _UnlikeError as error:
        explain = f"{error}. Python would not read it as Java does"
        raise IllegalOptionError(option=option, value=pattern, explain=explain) from error
    except (re.error, OverflowError, RecursionError) as error:  # look-behind of no fixed width, for one
        explain = f"cannot be compiled by Python ({error}): write it without look-behind, or shorter"
        raise IllegalOptionError(option=option, value=pattern, explain=explain) from error
    return JavaRegex(pattern=pattern, option=option, compiled=compiled, has_word_bounds=parser.has_word_bounds)


class _NotJavaError(ValueError):
    """Java does not compile the pattern; the message says why."""


class _UnlikeError(ValueError):
    """Java compiles the pattern, but Python might match other texts; the message says what to write instead."""


_TERMINATORS = r"\n\r\u0085\u2028\u2029"
_ANY = f"[^{_TERMINATORS}]"
_END = r"(?=(?:\r\n|(?<!\r)\n|[\r\u0085\u2028\u2029])?\Z)"
"""Before the line terminator that ends the text, and at its end; never between the two of a \\r\\n."""

_CHARACTERS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
_CLASSES = "dDwWsS"
_HEX_DIGITS = {"x": 2, "u": 4}
_ZERO_WIDTH = {"b": r"\b", "B": r"\B", "A": r"\A", "z": r"\Z", "Z": _END}
_REWRITE = {
    "p": r"\p{...}: write the characters out, such as [A-Za-z]",
    "P": r"\P{...}: write the characters out, such as [^A-Za-z]",
    "Q": r"\Q...\E: put a backslash before each character that is not a letter or a digit",
    "h": r"\h: write [ \t]",
    "H": r"\H: write [^ \t]",
    "v": r"\v: write [\n\r]",
    "V": r"\V: write [^\n\r]",
    "R": r"\R: write (?:\r\n|[\n\r])",
    "X": r"\X: write the characters out",
    "N": r"\N: write the character itself",
    "G": r"\G: leave it out, a path is searched once",
    "k": r"\k<name>, a back reference: write the repeated text out",
    "c": r"\c, a control character: write \x and two digits",
}
_DIGITS = frozenset("0123456789")
_LARGEST_COUNT = 2**31 - 1
_QUANTIFIER = re.compile(r"[*+?]|\{([0-9]+)(,([0-9]*))?\}", re.ASCII)
_GROUP_NAME = re.compile(r"\(\?<([a-zA-Z][a-zA-Z0-9]*)>", re.ASCII)
_OPENINGS = ("(?:", "(?>", "(?=", "(?!", "(?<=", "(?<!", "(?i:")
_LOOKS_BEHIND = ("(?<=", "(?<!")
_LOOKS = ("(?=", "(?!", *_LOOKS_BEHIND)
_MOST_NESTED = 50
"""More than any pattern written by hand has. Parser and regex compiler both recurse into nested groups."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of the pattern in Python's syntax; whether it can match the empty text, and texts of any length."""

    text: str
    maybe_empty: bool = False
    maybe_endless: bool = False


class _Parser:
    """Recursive descent over the grammar that both languages share: alternatives of quantified atoms."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._names: set[str] = set()
        self.has_word_bounds = False

    def whole(self) -> str:
        flag = ""
        if self._pattern.startswith("(?i)"):
            flag, self._at = "(?i)", 4
        piece = self._alternatives(depth=0)
        if self._at < len(self._pattern):
            raise _NotJavaError("has a ')' that closes nothing")
        return flag + piece.text

    def _alternatives(self, depth: int) -> _Piece:
        if depth > _MOST_NESTED:
            raise _UnlikeError(f"has groups nested deeper than {_MOST_NESTED}: write it with fewer")
        branches = [self._sequence(depth)]
        while self._next() == "|":
            self._at += 1
            branches.append(self._sequence(depth))
        return _Piece(
            "|".join(b.text for b in branches),
            maybe_empty=any(b.maybe_empty for b in branches),
            maybe_endless=any(b.maybe_endless for b in branches),
        )

    def _sequence(self, depth: int) -> _Piece:
        pieces = []
        while (character := self._next()) and character not in "|)":
            pieces.append(self._quantified(depth))
        return _Piece(
            "".join(p.text for p in pieces),
            maybe_empty=all(p.maybe_empty for p in pieces),
            maybe_endless=any(p.maybe_endless for p in pieces),
        )

    def _quantified(self, depth: int) -> _Piece:
        if self._next() in "*+?":
            raise _NotJavaError(f"has a {self._next()!r} that follows nothing that it could repeat")
        if self._next() == "{":
            if _QUANTIFIER.match(self._pattern, self._at):
                raise _UnlikeError("has a count in braces that follows nothing: leave it out, or write \\{")
            raise _NotJavaError("has a '{' that begins no count: write \\{")
        atom = self._atom(depth)
        quantifier = _QUANTIFIER.match(self._pattern, self._at)
        if quantifier is None:
            return atom
        if atom.maybe_empty:
            raise _UnlikeError(
                f"repeats with {quantifier[0]!r} a part that can match the empty text: make that part match something"
            )
        self._at = quantifier.end()
        least, comma, most = quantifier.groups()
        if least is not None:
            self._check_count(least, most or ("" if comma else least))
        greed = self._next() if self._next() in ("?", "+") else ""
        self._at += len(greed)
        return _Piece(
            atom.text + quantifier[0] + greed,
            maybe_empty=quantifier[0] in ("*", "?") or (least or "1").strip("0") == "",
            maybe_endless=atom.maybe_endless or quantifier[0] in ("*", "+") or (comma is not None and not most),
        )

    def _check_count(self, least: str, most: str) -> None:
        is_long = max(len(least), len(most)) > len(str(_LARGEST_COUNT))  # more digits than Python would convert, even
        if is_long or not int(least) <= int(most or _LARGEST_COUNT) <= _LARGEST_COUNT:
            raise _NotJavaError("has a count in braces that no number satisfies")

    def _atom(self, depth: int) -> _Piece:
        character = self._next()
        match character:
            case "(":
                return self._group(depth)
            case "[":
                return _Piece(self._class())
            case "\\":
                return self._escape()
        self._at += 1
        match character:
            case ".":
                return _Piece(_ANY)
            case "^":
                return _Piece(r"\A", maybe_empty=True)
            case "$":
                return _Piece(_END, maybe_empty=True)
        return _Piece(re.escape(character))

    def _group(self, depth: int) -> _Piece:
        opening = self._opening()
        inside = self._alternatives(depth + 1)
        if self._next() != ")":
            raise _NotJavaError("has a '(' that is not closed")
        self._at += 1
        is_look = opening in _LOOKS
        if opening in _LOOKS_BEHIND and inside.maybe_endless:
            raise _NotJavaError("looks behind for a text of any length")
        return _Piece(
            f"{opening}{inside.text})",
            maybe_empty=inside.maybe_empty or is_look,
            maybe_endless=inside.maybe_endless and not is_look,
        )

    def _opening(self) -> str:
        rest = self._pattern[self._at :]
        if not rest.startswith("(?"):
            self._at += 1
            return "("
        for opening in _OPENINGS:
            if rest.startswith(opening):
                self._at += len(opening)
                return opening
        named = _GROUP_NAME.match(rest)
        if named is not None:
            if named[1] in self._names:
                raise _NotJavaError(f"has two groups of the name {named[1]!r}")
            self._names.add(named[1])
            self._at += named.end()
            return f"(?P<{named[1]}>"
        if re.match(r"\(\?[idmsuxU-]+[:)]", rest, re.ASCII):
            raise _UnlikeError("has a flag other than (?i), or one after the beginning: write (?i) first, or none")
        raise _NotJavaError(f"has a group that begins with {rest[:4]!r}, which Java does not know")

    def _escape(self) -> _Piece:
        letter = self._letter()
        if letter in _ZERO_WIDTH:
            self._at += 2
            self.has_word_bounds |= letter in "bB"
            return _Piece(_ZERO_WIDTH[letter], maybe_empty=True)
        return _Piece(self._character_or_class()[0])

    def _letter(self) -> str:
        letter = self._pattern[self._at + 1 : self._at + 2]
        if not letter:
            raise _NotJavaError("ends with a backslash")
        return letter

    def _character_or_class(self) -> tuple[str, str | None]:
        """Python's syntax for an escape, and the character that it is, None for several."""
        letter = self._letter()
        self._at += 2
        if letter in _CLASSES:
            return f"\\{letter}", None
        if letter in _REWRITE:
            raise _UnlikeError(f"has {_REWRITE[letter]}")
        if letter in _DIGITS:
            what = "an octal character: write \\x and two digits" if letter == "0" else "a back reference: write it out"
            raise _UnlikeError(f"has \\{letter}, {what}")
        character = _CHARACTERS.get(letter, letter)
        if letter in _HEX_DIGITS:
            character = self._hexadecimal(letter)
        elif letter.isascii() and letter.isalpha() and letter not in _CHARACTERS:
            raise _NotJavaError(f"has \\{letter}, which Java does not know")
        return re.escape(character), character

    def _hexadecimal(self, letter: str) -> str:
        count = _HEX_DIGITS[letter]
        digits = self._pattern[self._at : self._at + count]
        if letter == "x" and digits.startswith("{"):
            raise _UnlikeError(r"has \x{...}: write the character itself")
        if len(digits) < count or not all(d in "0123456789abcdefABCDEF" for d in digits):
            raise _NotJavaError(f"has \\{letter} without {count} hexadecimal digits")
        self._at += count
        if 0xD800 <= int(digits, 16) <= 0xDFFF:
            raise _UnlikeError("has one half of a surrogate pair: write the character itself")
        return chr(int(digits, 16))

    def _class(self) -> str:
        self._at += 1
        negation = "^" if self._next() == "^" else ""
        self._at += len(negation)
        if self._next() == "]":
            raise _UnlikeError("has a ']' first in brackets: write \\]")
        items: list[str] = []
        while (character := self._next()) != "]":
            if not character:
                raise _NotJavaError("has a '[' that is not closed")
            items.append(self._item(is_first=not items))
        self._at += 1
        return f"[{negation}{''.join(items)}]"

    def _item(self, *, is_first: bool) -> str:
        text, low = self._member(may_be_dash=is_first)
        follows = self._pattern[self._at : self._at + 2]
        if not follows.startswith("-") or follows == "-]":
            return text
        if low is None or low == "-" or len(follows) < 2:
            raise _UnlikeError("has a '-' in brackets that is neither first nor last: write \\-")
        self._at += 1
        text, high = self._member(may_be_dash=False)
        if high is None:
            raise _UnlikeError("has a range in brackets that ends with a class: write \\- for the character")
        if high < low:
            raise _NotJavaError(f"has the range {low}-{high} in brackets, which is empty")
        if not high.isascii() and "(?i" in self._pattern:
            raise _UnlikeError("has a range beyond ASCII with (?i): write the characters out")
        return f"{re.escape(low)}-{text}"

    def _member(self, *, may_be_dash: bool) -> tuple[str, str | None]:
        character = self._next()
        if character == "\\":
            if self._letter() in _ZERO_WIDTH:
                raise _NotJavaError(f"has \\{self._letter()} in brackets")
            return self._character_or_class()
        if character == "[":
            raise _UnlikeError("has brackets within brackets: write all characters in one pair, or \\[")
        if self._pattern.startswith("&&", self._at):
            raise _UnlikeError("has && in brackets: write the characters out, or \\&")
        if character == "-" and not may_be_dash and self._pattern[self._at + 1 : self._at + 2] != "]":
            raise _UnlikeError("has a '-' in brackets that is neither first nor last: write \\-")
        self._at += 1
        return re.escape(character), character

    def _next(self) -> str:
        """The next character, "" at the end."""
        return self._pattern[self._at : self._at + 1]
