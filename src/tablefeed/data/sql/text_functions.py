"""Functions of texts, which Spark counts in characters and compares by bytes (UTF8String).

UPPER and LOWER follow Unicode's full mappings, for no particular language. Python has the same mappings, in the version
of Unicode that it was built with. A text with a character that this version does not know gives null here.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

from tablefeed.data.sql import kinds
from tablefeed.data.sql.calls import ANY, Call, Known, Maker, simple
from tablefeed.data.sql.kinds import BINARY, BOOLEAN, INT, STRING
from tablefeed.data.sql.terms import Failure, Term, by_value, loose
from tablefeed.model.schema import DataType


def _length(c: Call) -> Term:
    if c.arguments[0].type == BINARY:
        return c.strict(INT, [c.arguments[0]], "octet_length({})::INTEGER")
    return c.strict(INT, [c.argument(0, "s")], "length({})::INTEGER")


def _cased(one: Callable[[str], str]) -> Maker:
    def mapped(text: str) -> str:
        if not _is_known(text):
            raise ValueError
        return one(text)

    function = by_value(f"java {one.__name__}", STRING, STRING, mapped)
    return lambda c: c.strict(STRING, [c.argument(0, "s")], f"{c.scope.python(function)}({{}})", Failure.RANGE)


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
    if any(kinds.is_nested(t.type) or t.type == BINARY for t in c.arguments):
        raise c.refuse("it is evaluated for texts")
    return [c.argument(i, "s") for i in range(len(c.arguments))]


def _concat(c: Call) -> Term:
    return c.strict(STRING, _texts(c), f"({' || '.join('{}' for _ in c.arguments)})")


def _concat_ws(c: Call) -> Term:
    return loose(STRING, _texts(c), f"concat_ws({', '.join('{}' for _ in c.arguments)})")


def _utf_8(takes: str, gives: DataType, sql: str, failure: Failure | None = None) -> Maker:
    def make(c: Call) -> Term:
        if c.literal(1).lower() != "utf-8":
            raise c.refuse("it is evaluated only for utf-8")
        return c.strict(gives, [c.argument(0, takes)], sql, failure)

    return make


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
    "concat": (ANY, _concat),
    "concat_ws": (ANY[1:], _concat_ws),
    "startswith": simple("ss", BOOLEAN, "starts_with({}, {})"),
    "endswith": simple("ss", BOOLEAN, "ends_with({}, {})"),
    "contains": simple("ss", BOOLEAN, "contains({}, {})"),
    "instr": simple("ss", INT, "instr({}, {})::INTEGER"),
    "locate": simple("ss", INT, "instr({1}, {0})::INTEGER"),
    "replace": simple("sss", STRING, "CASE WHEN {1} = '' AND {2} IS NOT NULL THEN {0} ELSE replace({0}, {1}, {2}) END"),
    "encode": ((2,), _utf_8("s", BINARY, "encode({})")),
    "decode": ((2,), _utf_8("b", STRING, "TRY(decode({}))", Failure.RANGE)),
}
