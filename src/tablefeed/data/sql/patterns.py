"""LIKE and RLIKE with literal patterns, as far as these mean the same in DuckDB as in Java."""

from __future__ import annotations

import re

from tablefeed.data.sql.casts import cast
from tablefeed.data.sql.terms import BOOLEAN, STRING, Scope, Term, strict, text_sql

_TERMINATORS = r"\n\r\x{85}\x{2028}\x{2029}"
_ITEM = r"[A-Za-z0-9_ @%#,;:=<>/~!'\"-]"
_TOKEN = re.compile(
    rf"(?P<class>\[\^?(?:[A-Za-z0-9]-[A-Za-z0-9]|[A-Za-z0-9_ @%#,;:=<>/~!.+*?()|$-])+\])|(?P<any>\.)"
    rf"|(?P<group>\((?:\?:)?)|(?P<close>\))|(?P<or>\|)"
    rf"|(?P<count>[*+?]|\{{[0-9]{{1,3}}(?:,[0-9]{{0,3}})?\}})|(?P<start>\^)|(?P<end>\$)|(?P<plain>{_ITEM})"
)


def like(scope: Scope, part: str, term: Term, pattern: Term) -> Term:
    """LIKE: % is any text and _ any character."""
    if not isinstance(pattern.literal, str):
        raise scope.refuse(part, "its pattern must be a literal")
    return strict(scope, BOOLEAN, [cast(scope, term, STRING)], f"({{}} LIKE {_braced(pattern.literal)})")


def regex(scope: Scope, part: str, term: Term, pattern: Term) -> Term:
    """RLIKE: whether the pattern has a match anywhere."""
    if not isinstance(pattern.literal, str):
        raise scope.refuse(part, "its pattern must be a literal")
    translated = _translated(pattern.literal)
    if translated is None:
        reason = "patterns are evaluated of ASCII characters, classes, groups, counts, . and |, ^ first and $ last"
        raise scope.refuse(part, reason)
    sql = f"regexp_matches({{}}, {_braced(translated)})"
    return strict(scope, BOOLEAN, [cast(scope, term, STRING)], sql)


def _braced(text: str) -> str:
    return text_sql(text).replace("{", "{{").replace("}", "}}")


def _translated(pattern: str) -> str | None:
    """The pattern in RE2's syntax, None where RE2 and Java may differ."""
    words: list[str] = []
    at, depth, kind = 0, 0, "start"
    while at < len(pattern):
        token = _TOKEN.match(pattern, at)
        if token is None:
            return None
        found, word = str(token.lastgroup), token[0]
        if not _may_follow(found, kind, at=at, is_last=token.end() == len(pattern)):
            return None
        depth += {"group": 1, "close": -1}.get(found, 0)
        if depth < 0:
            return None
        if found == "any":
            word = f"[^{_TERMINATORS}]"
        elif found == "end":
            # Java's $ also matches before a line terminator at the end of the text; a part that could match it would
            # differ.
            if _takes_line_ends(words, kind):
                return None
            word = rf"(?:\r\n|[{_TERMINATORS}])?\z"
        words.append(word)
        at, kind = token.end(), found
    if kind == "end" and pattern.startswith("^") and "|" in pattern and depth == 0 and not _is_grouped(pattern):
        return None
    return "".join(words) if depth == 0 else None


def _may_follow(found: str, before: str, *, at: int, is_last: bool) -> bool:
    if found == "start":
        return at == 0
    if found == "end":
        return is_last
    if found == "count":
        return before in ("class", "any", "close", "plain")
    return True


def _takes_line_ends(words: list[str], kind: str) -> bool:
    negated = [i for i, word in enumerate(words) if word.startswith("[^") and _TERMINATORS not in word]
    return any(i + 1 >= len(words) or words[i + 1] not in ("*", "+") for i in negated) or (
        bool(negated) and kind == "close"
    )


def _is_grouped(pattern: str) -> bool:
    """Whether no alternative is outside of all groups."""
    depth = 0
    for character in pattern:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "|" and depth == 0:
            return False
    return True
