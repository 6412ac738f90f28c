"""Functions of texts, which Spark counts in characters and compares by bytes (UTF8String)."""

from __future__ import annotations

from collections.abc import Callable

from tablefeed.data.sql.calls import ANY, Call, Known, Maker
from tablefeed.data.sql.letters import lower, upper
from tablefeed.data.sql.terms import (
    BINARY,
    BOOLEAN,
    INT,
    STRING,
    Failure,
    PythonFunction,
    Term,
    first,
    is_nested,
)
from tablefeed.model.schema import DataType


def _of_texts(kind: DataType, sql: str) -> Maker:
    return lambda c: c.strict(kind, [c.text(i) for i in range(len(c.arguments))], sql)


def _length(c: Call) -> Term:
    if c.arguments[0].type == BINARY:
        return c.strict(INT, [c.arguments[0]], "octet_length({})::INTEGER")
    return c.strict(INT, [c.text(0)], "length({})::INTEGER")


def _cased(name: str, function: Callable[..., object]) -> Maker:
    def make(c: Call) -> Term:
        python = PythonFunction(name=f"java_{name}", takes=("VARCHAR",), gives="VARCHAR", function=function)
        c.scope.python(python)
        return c.strict(STRING, [c.text(0)], f"java_{name}({{}})", Failure.RANGE)

    return make


def _trimmed(name: str) -> Maker:
    return lambda c: c.strict(STRING, [c.text(0)], f"{name}({{}}, ' ')")


def _substring(c: Call) -> Term:
    """Positions count from 1, or from the end where negative; 0 means 1. Positions before the text use up length."""
    text, begin = c.text(0), c.whole(1)
    size = c.whole(2) if len(c.arguments) > 2 else Term(type=INT, sql="2147483647")
    start = "CASE WHEN {1} > 0 THEN {1}::BIGINT - 1 WHEN {1} < 0 THEN length({0}) + {1} ELSE 0 END"
    until = f"least(({start}) + {{2}}, 2147483647)"
    inside = f"greatest({until} - greatest({start}, 0), 0)"
    null = "{1} IS NULL OR {2} IS NULL OR {0} IS NULL"
    some = f"substring({{0}}, greatest({start}, 0) + 1, {inside})"
    sql = f"CASE WHEN {null} THEN NULL WHEN {{2}} <= 0 THEN '' ELSE {some} END"
    return c.strict(STRING, [text, begin, size], sql)


def _left(c: Call) -> Term:
    return c.strict(
        STRING, [c.text(0), c.whole(1)], "CASE WHEN {1} <= 0 AND {0} IS NOT NULL THEN '' ELSE left({0}, {1}) END"
    )


def _right(c: Call) -> Term:
    return c.strict(
        STRING, [c.text(0), c.whole(1)], "CASE WHEN {1} <= 0 AND {0} IS NOT NULL THEN '' ELSE right({0}, {1}) END"
    )


def _concat(c: Call) -> Term:
    if any(is_nested(t.type) or t.type == BINARY for t in c.arguments):
        raise c.refuse("it is evaluated for texts")
    terms = [c.text(i) for i in range(len(c.arguments))]
    return c.strict(STRING, terms, f"({' || '.join('{}' for _ in terms)})")


def _concat_ws(c: Call) -> Term:
    if any(is_nested(t.type) or t.type == BINARY for t in c.arguments):
        raise c.refuse("it is evaluated for texts")
    terms = [c.text(i) for i in range(len(c.arguments))]
    sql = f"concat_ws({', '.join(t.sql for t in terms)})"
    return Term(type=STRING, sql=sql, fails=first(*(t.fails for t in terms)), stage=max(t.stage for t in terms))


def _instr(c: Call) -> Term:
    return c.strict(INT, [c.text(0), c.text(1)], "instr({}, {})::INTEGER")


def _locate(c: Call) -> Term:
    return c.strict(INT, [c.text(1), c.text(0)], "instr({}, {})::INTEGER")


def _replace(c: Call) -> Term:
    return c.strict(
        STRING,
        [c.text(0), c.text(1), c.text(2)],
        "CASE WHEN {1} = '' AND {2} IS NOT NULL THEN {0} ELSE replace({0}, {1}, {2}) END",
    )


def _encode(c: Call) -> Term:
    _check_utf_8(c)
    return c.strict(BINARY, [c.text(0)], "encode({})")


def _decode(c: Call) -> Term:
    _check_utf_8(c)
    if c.arguments[0].type != BINARY:
        raise c.refuse("it is evaluated only for bytes")
    return c.strict(STRING, [c.arguments[0]], "TRY(decode({}))", Failure.RANGE)


def _check_utf_8(c: Call) -> None:
    if c.literal(1).lower() != "utf-8":
        raise c.refuse("it is evaluated only for utf-8")


TEXT_FUNCTIONS: Known = {
    "length": ((1,), _length),
    "len": ((1,), _length),
    "upper": ((1,), _cased("upper", upper)),
    "lower": ((1,), _cased("lower", lower)),
    "trim": ((1,), _trimmed("trim")),
    "ltrim": ((1,), _trimmed("ltrim")),
    "rtrim": ((1,), _trimmed("rtrim")),
    "substring": ((2, 3), _substring),
    "substr": ((2, 3), _substring),
    "left": ((2,), _left),
    "right": ((2,), _right),
    "concat": (ANY, _concat),
    "concat_ws": (range(2, 1000), _concat_ws),
    "startswith": ((2,), _of_texts(BOOLEAN, "starts_with({}, {})")),
    "endswith": ((2,), _of_texts(BOOLEAN, "ends_with({}, {})")),
    "contains": ((2,), _of_texts(BOOLEAN, "contains({}, {})")),
    "instr": ((2,), _instr),
    "locate": ((2,), _locate),
    "replace": ((3,), _replace),
    "encode": ((2,), _encode),
    "decode": ((2,), _decode),
}
