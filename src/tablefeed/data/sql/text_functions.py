"""Functions of texts, which Spark counts in characters and compares by bytes (UTF8String).

UPPER and LOWER follow Unicode's full mappings, for no particular language. Python has the same mappings, in the version
of Unicode that it was built with. A text with a character that this version does not know gives null here.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

from tablefeed.data.sql.calls import ANY, Call, Known, Maker, simple
from tablefeed.data.sql.kinds import BINARY, BOOLEAN, INT, STRING
from tablefeed.data.sql.terms import Failure, Term, loose, mapped, text_sql
from tablefeed.model.schema import DataType


def _length(c: Call) -> Term:
    if c.arguments[0].type == BINARY:
        return c.strict(INT, [c.arguments[0]], "octet_length({})::INTEGER")
    return c.strict(INT, [c.argument(0, "s")], "length({})::INTEGER")


def _cased(one: Callable[[str], str]) -> Maker:
    def cased(text: str) -> str:
        if not _is_known(text):
            raise ValueError
        return one(text)

    return lambda c: mapped(c.scope, f"java {one.__name__}", c.argument(0, "s"), STRING, cased, Failure.RANGE)


_LATE = frozenset("\u019b\u0264\ua7d3\ua7d5")
"""Old small letters whose capitals came only with Unicode 16: versions of Python and of Spark differ for them."""


def _is_known(text: str) -> bool:
    return text.isascii() or (
        _LATE.isdisjoint(text) and all(unicodedata.category(c) != "Cn" or _is_never_one(ord(c)) for c in text)
    )


def _is_never_one(code: int) -> bool:
    """Whether Unicode promises that a code is and stays no character."""
    return 0xFDD0 <= code <= 0xFDEF or code & 0xFFFE == 0xFFFE


def _substring(c: Call) -> Term:
    """Positions count from 1, or from the end where negative; 0 means 1. Positions before the text use up length."""
    text, begin = c.argument(0, "s"), c.argument(1, "i")
    size = c.argument(2, "i") if len(c.arguments) > 2 else Term(type=INT, sql="2147483647")
    start = "CASE WHEN {1} > 0 THEN {1}::BIGINT - 1 WHEN {1} < 0 THEN length({0}) + {1} ELSE 0 END"
    until = f"least(({start}) + {{2}}, 2147483647)"
    inside = f"greatest({until} - greatest({start}, 0), 0)"
    null = "{1} IS NULL OR {2} IS NULL OR {0} IS NULL"
    some = f"substring({{0}}, greatest({start}, 0) + 1, {inside})"
    sql = f"CASE WHEN {null} THEN NULL WHEN {{2}} <= 0 THEN '' ELSE {some} END"
    return c.strict(STRING, [text, begin, size], sql)


def _end(name: str) -> str:
    return f"CASE WHEN {{1}} <= 0 AND {{0}} IS NOT NULL THEN '' ELSE {name}({{0}}, {{1}}) END"


def _texts(c: Call) -> list[Term]:
    return [c.argument(i, "s") for i in range(len(c.arguments))]


def _utf_8(takes: str, gives: DataType, sql: str, failure: Failure | None = None) -> Maker:
    def make(c: Call) -> Term:
        if c.literal(1).lower() != "utf-8":
            raise c.refuse("it is evaluated only for utf-8")
        return c.strict(gives, [c.argument(0, takes)], sql, failure)

    return make


# --- patterns --------------------------------------------------------------------------------------------------------

_TERMINATORS = r"\n\r\x{85}\x{2028}\x{2029}"
_PLAIN = r"[A-Za-z0-9_ @%#,;:=<>/~!'\"-]"
_IN_CLASS = r"(?:[A-Za-z0-9](?:-[A-Za-z0-9])?|[_ @%#,;:=<>/~!.+*?()|$])+-?"
_COUNT = r"(?:[*+?]|\{[0-9]{1,3}(?:,[0-9]{0,3})?\})"
_ITEM = rf"(?:{_PLAIN}|\.|\[{_IN_CLASS}\]){_COUNT}?"
_GROUP = rf"\((?:\?:)?(?:{_ITEM})+(?:\|(?:{_ITEM})+)*\){_COUNT}?"
# Java's $ also matches before a line end. A negated class may take that line end, so it must be able to take all of it.
_SIMPLE = re.compile(rf"\^?(?:{_ITEM}|{_GROUP}|\[\^{_IN_CLASS}\][*+])*\$?")
_TOKEN = re.compile(rf"\[\^?{_IN_CLASS}\]|.")
_AS_RE2 = {".": f"[^{_TERMINATORS}]", "$": rf"(?:\r\n|[{_TERMINATORS}])?\z"}


def like(c: Call) -> Term:
    """LIKE a literal pattern: % is any text and _ any character."""
    return c.strict(BOOLEAN, [c.argument(0, "s")], f"({{}} LIKE {_braced(c.literal(1))})")


def rlike(c: Call) -> Term:
    """RLIKE a literal pattern that means the same in DuckDB as in Java: whether it has a match anywhere."""
    pattern = c.literal(1)
    if _SIMPLE.fullmatch(pattern) is None:
        raise c.refuse("patterns are evaluated of ASCII characters, classes, counts, . and (a|b), ^ first and $ last")
    translated = "".join(_AS_RE2.get(token, token) for token in _TOKEN.findall(pattern))
    return c.strict(BOOLEAN, [c.argument(0, "s")], f"regexp_matches({{}}, {_braced(translated)})")


def _braced(text: str) -> str:
    return text_sql(text).replace("{", "{{").replace("}", "}}")


TEXT_FUNCTIONS: Known = {
    "length": ((1,), _length),
    "len": ((1,), _length),
    "upper": ((1,), _cased(str.upper)),
    "lower": ((1,), _cased(str.lower)),
    "trim": simple("s", STRING, "trim({}, ' ')"),
    "ltrim": simple("s", STRING, "ltrim({}, ' ')"),
    "rtrim": simple("s", STRING, "rtrim({}, ' ')"),
    "substring": ((2, 3), _substring),
    "substr": ((2, 3), _substring),
    "left": simple("si", STRING, _end("left")),
    "right": simple("si", STRING, _end("right")),
    "concat": (ANY, lambda c: loose(STRING, _texts(c), f"({' || '.join('{}' for _ in c.arguments)})")),
    "concat_ws": (ANY[1:], lambda c: loose(STRING, _texts(c), f"concat_ws({', '.join('{}' for _ in c.arguments)})")),
    "startswith": simple("ss", BOOLEAN, "starts_with({}, {})"),
    "endswith": simple("ss", BOOLEAN, "ends_with({}, {})"),
    "contains": simple("ss", BOOLEAN, "contains({}, {})"),
    "instr": simple("ss", INT, "instr({}, {})::INTEGER"),
    "locate": simple("ss", INT, "instr({1}, {0})::INTEGER"),
    "replace": simple("sss", STRING, "CASE WHEN {1} = '' AND {2} IS NOT NULL THEN {0} ELSE replace({0}, {1}, {2}) END"),
    "encode": ((2,), _utf_8("s", BINARY, "encode({})")),
    "decode": ((2,), _utf_8("b", STRING, "TRY(decode({}))", Failure.RANGE)),
}
