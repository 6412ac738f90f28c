"""Functions of arrays, and the sizes of maps."""

from __future__ import annotations

from typing import Literal

from tablefeed.data.sql.calls import Call, Known, Maker
from tablefeed.data.sql.terms import BOOLEAN, DATE, INT, NTZ, TIMESTAMP, Term, is_nested
from tablefeed.model.schema import Array, Map


def _size(c: Call) -> Term:
    term = c.arguments[0]
    if not isinstance(term.type, Array | Map):
        raise c.refuse("it is evaluated for arrays and maps")
    sql = "cardinality({})" if isinstance(term.type, Map) else "len({})"
    return c.strict(INT, [term], f"{sql}::INTEGER")


def _array_size(c: Call) -> Term:
    return c.strict(INT, [_array(c)], "len({})::INTEGER")


def _contains(c: Call) -> Term:
    array, value = _array(c), _element(c, 1)
    found = "list_contains({0}, {1})"
    unknown = "len({0}) > len(list_filter({0}, lambda x: x IS NOT NULL))"
    return c.strict(
        BOOLEAN,
        [array, value],
        f"CASE WHEN {{1}} IS NULL THEN NULL WHEN {found} THEN true WHEN {unknown} THEN NULL ELSE {found} END",
    )


def _compact(c: Call) -> Term:
    array = _array(c)
    return c.strict(array.type, [array], "list_filter({}, lambda x: x IS NOT NULL)")


def _put(where: Literal["first", "last"]) -> Maker:
    """Adds one element, which may be null, at an end."""

    def make(c: Call) -> Term:
        array, value = c.scope.bound(_array(c)), _element(c, len(c.arguments) - 1)
        if value.fails is not None:
            # Whether Spark evaluates the element where the array is null depends on how it runs the expression.
            raise c.refuse("it is evaluated only with an element that cannot fail")
        ends = {"first": f"list_prepend({value.sql}, {array.sql})", "last": f"list_append({array.sql}, {value.sql})"}
        sql = f"CASE WHEN {array.sql} IS NOT NULL THEN {ends[where]} END"
        return Term(type=array.type, sql=sql, fails=array.fails, stage=max(array.stage, value.stage))

    return make


def _insert(c: Call) -> Term:
    match c.arguments[1].literal:
        case 1:
            return _put("first")(c)
        case -1:
            return _put("last")(c)
    raise c.refuse("it is evaluated only at the literal positions 1 and -1")


def _array(c: Call) -> Term:
    if not isinstance(c.arguments[0].type, Array):
        raise c.refuse("it is evaluated for arrays")
    return c.arguments[0]


def _element(c: Call, index: int) -> Term:
    """An argument of the array's element type."""
    array, value = c.arguments[0], c.arguments[index]
    if not isinstance(array.type, Array) or array.type.element != value.type or is_nested(value.type):
        raise c.refuse("it is evaluated for an array and a value of its element type")
    if value.type in (DATE, TIMESTAMP, NTZ):
        raise c.refuse("it is not evaluated for arrays of dates and times")
    return value


ARRAY_FUNCTIONS: Known = {
    "size": ((1,), _size),
    "cardinality": ((1,), _size),
    "array_size": ((1,), _array_size),
    "array_contains": ((2,), _contains),
    "array_compact": ((1,), _compact),
    "array_append": ((2,), _put("last")),
    "array_prepend": ((2,), _put("first")),
    "array_insert": ((3,), _insert),
}
