"""LIKE and RLIKE with literal patterns, as far as these mean the same in DuckDB as in Java."""

from __future__ import annotations

import re

from tablefeed.data.sql.casts import cast
from tablefeed.data.sql.kinds import BOOLEAN, STRING
from tablefeed.data.sql.terms import Scope, Term, strict, text_sql

_TERMINATORS = r"\n\r\x{85}\x{2028}\x{2029}"
_PLAIN = r"[A-Za-z0-9_ @%#,;:=<>/~!'\"-]"
_IN_CLASS = r"(?:[A-Za-z0-9]-[A-Za-z0-9]|[A-Za-z0-9_ @%#,;:=<>/~!.+*?()|$-])+"
_COUNT = r"(?:[*+?]|\{[0-9]{1,3}(?:,[0-9]{0,3})?\})"
_ITEM = rf"(?:{_PLAIN}|\.|\[{_IN_CLASS}\]){_COUNT}?"
_GROUP = rf"\((?:\?:)?(?:{_ITEM})+(?:\|(?:{_ITEM})+)*\){_COUNT}?"
# Java's $ also matches before a line end. A negated class may take that line end, so it must be able to take all of it.
_SIMPLE = re.compile(rf"\^?(?:{_ITEM}|{_GROUP}|\[\^{_IN_CLASS}\][*+])*\$?")
_TOKEN = re.compile(rf"\[\^?{_IN_CLASS}\]|.")
_AS_RE2 = {".": f"[^{_TERMINATORS}]", "$": rf"(?:\r\n|[{_TERMINATORS}])?\z"}


def like(scope: Scope, part: str, term: Term, pattern: Term) -> Term:
    """LIKE: % is any text and _ any character."""
    if not isinstance(pattern.literal, str):
        raise scope.refuse(part, "its pattern must be a literal")
    return strict(scope, BOOLEAN, [cast(scope, term, STRING)], f"({{}} LIKE {_braced(pattern.literal)})")


def regex(scope: Scope, part: str, term: Term, pattern: Term) -> Term:
    """RLIKE: whether the pattern has a match anywhere."""
    if not isinstance(pattern.literal, str):
        raise scope.refuse(part, "its pattern must be a literal")
    if _SIMPLE.fullmatch(pattern.literal) is None:
        reason = "patterns are evaluated of ASCII characters, classes, counts, . and (a|b), with ^ first and $ last"
        raise scope.refuse(part, reason)
    translated = "".join(_AS_RE2.get(token, token) for token in _TOKEN.findall(pattern.literal))
    return strict(scope, BOOLEAN, [cast(scope, term, STRING)], f"regexp_matches({{}}, {_braced(translated)})")


def _braced(text: str) -> str:
    return text_sql(text).replace("{", "{{").replace("}", "}}")
