r"""Java's regular expressions, as far as Python's match the same texts: the language of the option `excludeRegex`.

A pattern is cut into parts that both java.util.regex.Pattern (without flags) and Python's `re` have, and each part is
written again in Python's syntax. Any other part is refused: by name, with what to write instead, where Java may have
it, else as a syntax error. So no part is read differently. `re.compile` decides whether the parts fit together.

The only question is whether a text has a match anywhere, never which one. Two differences are translated: in Java `.`
and `$` know six line terminators, and `\w`, `\d` and `\s` are ASCII.

A search takes as long as Java's. A pattern that can divide a text in many ways, such as `(a+)+b`, can take hours.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

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
    for what Python would read differently, or cannot compile.
    """
    try:
        parts = _in_python(pattern)
        compiled = re.compile("".join(parts), re.ASCII | (re.IGNORECASE if pattern.startswith(_IGNORE_CASE) else 0))
    except _UnlikeError as error:
        explain = f"{error}. Python would not read it as Java does"
        raise IllegalOptionError(option=option, value=pattern, explain=explain) from error
    except (re.error, OverflowError) as error:
        if "look-behind" in str(error):  # Java has some that Python has not
            explain = "looks behind for texts of different lengths: write it without look-behind"
            raise IllegalOptionError(option=option, value=pattern, explain=explain) from error
        explain, error_class = f"is no regular expression of Java: {error}", "DELTA_REGEX_OPT_SYNTAX_ERROR"
        raise IllegalOptionError(option=option, value=pattern, explain=explain, error_class=error_class) from error
    has_word_bounds = not {r"\b", r"\B"}.isdisjoint(parts)
    return JavaRegex(pattern=pattern, option=option, compiled=compiled, has_word_bounds=has_word_bounds)


class _UnlikeError(ValueError):
    """Java compiles the pattern, but Python might match other texts; the message says what to write instead."""


_IGNORE_CASE = "(?i)"
_ANY = r"[^\n\r\u0085\u2028\u2029]"
_END = r"(?=(?:\r\n|(?<!\r)\n|[\r\u0085\u2028\u2029])?\Z)"
"""Before the line terminator that ends the text, and at its end; never between the two of a \\r\\n."""

_BOUNDS = {"^": r"\A", "$": _END, r"\A": r"\A", r"\z": r"\Z", r"\Z": _END, r"\b": r"\b", r"\B": r"\B"}
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
_LOOKS = ("(?=", "(?!", "(?<=", "(?<!")
_MOST_NESTED = 50
"""More than any pattern written by hand has. Python's compiler recurses into nested groups."""

_ESCAPE = r"\\[tnrfae]|\\x[0-9a-fA-F]{2}|\\u(?![dD][89a-fA-F])[0-9a-fA-F]{4}|\\[^0-9A-Za-z]"
_TOKEN = re.compile(
    rf"""
    (?P<branch> \| )
    | (?P<open> \( (?!\?) | \(\? (?: [:>=!] | <[=!] | i: | <[a-zA-Z][a-zA-Z0-9]*> ) )
    | (?P<close> \) )
    | (?P<bound> [$^] | \\[AzZbB] )
    | (?P<any> \. )
    | (?P<set> \\[dDwWsS] )
    | (?P<brackets> \[\^?+ (?: - | (?!\]) ) )
    | (?P<character> {_ESCAPE} | [^\\\[({{*+?] )
    """,
    re.VERBOSE,
)
_COUNT = re.compile(r"(?:[*+?]|\{[0-9]{1,9}(?:,[0-9]{0,9})?\})[?+]?")
_MAY_BE_NONE = re.compile(r"[*?]|\{0+[,}]")
_MEMBER = rf"{_ESCAPE}|[^\\\[\]&-]|&(?!&)"
_ITEM = re.compile(rf"(?P<set>\\[dDwWsS])|(?P<low>{_MEMBER})(?:(?<!\\-)-(?P<high>{_MEMBER}))?")

_UNLIKE = {
    r"\\[pPhHvVRXN]": "write the characters out, such as [A-Za-z] or [ \\t]",
    r"\\Q": "put a backslash before each character that is not a letter or a digit",
    r"\\G": "leave it out, a path is searched once",
    r"\\[k1-9]": "write the repeated text out instead of a back reference",
    r"\\0|\\c|\\x\{": "write \\x and two digits",
    r"\\u[dD]": "write the character itself instead of its surrogate pair",
    r"\(\?[idmsuxU-]+[:)]": "the only flag is (?i), and it must come first",
    r"\[\^?\]": "write \\] where it comes first in brackets",
    r"\[": "write all characters in one pair of brackets, or \\[",
    r"&&": "write the characters out, or \\&",
    r"-": "write \\- where it is neither first nor last in brackets",
    r"\{[0-9]{1,9}(,[0-9]{0,9})?\}": "write \\{ where a count follows nothing that it could repeat",
}
"""The beginnings of what Java has and Python reads differently or not at all, and what to write instead."""


def _in_python(pattern: str) -> list[str]:
    """The parts of `pattern` in Python's syntax. Raises _UnlikeError, and re.error for what Java does not compile."""
    parts: list[str] = []
    groups = [[True]]  # of each open group, for each of its branches: whether it can match the empty text
    at = len(_IGNORE_CASE) if pattern.startswith(_IGNORE_CASE) else 0
    while at < len(pattern):
        token = _TOKEN.match(pattern, at) or _refuse(pattern, at)
        text, at, is_empty = token[0], token.end(), False
        match token.lastgroup:
            case "branch":
                groups[-1].append(True)
            case "open":
                groups.append([True, True] if text in _LOOKS else [True])  # a look takes no characters
                text = re.sub(r"\(\?<(?=[a-zA-Z])", "(?P<", text)
            case "close":
                is_empty = any(groups.pop())
            case "bound":
                text, is_empty = _BOUNDS[text], True
            case "any":
                text = _ANY
            case "brackets":
                text, at = _brackets(pattern, at, opening=text)
            case "character":
                text = re.escape(_character(text))
        parts.append(text)
        if not groups:
            raise re.error("it has a ')' that closes nothing")
        if len(groups) > _MOST_NESTED:
            raise _UnlikeError(f"has groups nested deeper than {_MOST_NESTED}: write it with fewer")
        if token.lastgroup in ("branch", "open"):
            continue
        count = _COUNT.match(pattern, at)
        if count is not None:
            if is_empty:
                raise _UnlikeError(f"repeats with {count[0]!r} what can match the empty text: make it match something")
            parts.append(count[0])
            at, is_empty = count.end(), _MAY_BE_NONE.match(count[0]) is not None
        groups[-1][-1] &= is_empty
    return parts


def _brackets(pattern: str, at: int, *, opening: str) -> tuple[str, int]:
    """What begins with `opening`, which ends at `at`, in Python's syntax; and where it ends."""
    parts = [opening.replace("-", r"\-")]
    while pattern[at : at + 1] != "]":
        if pattern.startswith("-]", at):
            return "".join([*parts, r"\-]"]), at + 2
        item = _ITEM.match(pattern, at) or _refuse(pattern, at)
        ends = [re.escape(_character(end)) for end in item.group("low", "high") if end]
        if len(ends) == 2 and not ends[1].isascii() and "(?i" in pattern:
            raise _UnlikeError("has a range beyond ASCII with (?i): write the characters out")
        parts.append("-".join(ends) or item[0])
        at = item.end()
    return "".join([*parts, "]"]), at + 1


def _character(text: str) -> str:
    """The character that `text` is, with a backslash or without."""
    if text[1:2] in ("x", "u"):
        return chr(int(text[2:], 16))
    return _CONTROLS.get(text[1:], text[-1])


def _refuse(pattern: str, at: int) -> NoReturn:
    """Raises the error for the text at `at`, which does not begin with a part that both languages have."""
    for begin, instead in _UNLIKE.items():
        found = re.compile(begin).match(pattern, at)
        if found is not None:
            raise _UnlikeError(f"has {found[0]}: {instead}")
    raise re.error(
        f"it has {pattern[at : at + 4]!r}, which is unknown or out of place"
        if at < len(pattern)
        else "it ends within brackets"
    )
