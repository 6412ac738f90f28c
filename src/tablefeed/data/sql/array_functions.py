"""Functions of arrays, and the sizes of maps."""

from __future__ import annotations

from tablefeed.data.sql.calls import Call, Known, Maker
from tablefeed.data.sql.kinds import BOOLEAN, INT, TIMES, is_nested
from tablefeed.data.sql.terms import Term
from tablefeed.model.schema import Array, Map

_NOT_NULL = "list_filter({0}, lambda x: x IS NOT NULL)"


def _size(c: Call) -> Term:
    if isinstance(c.arguments[0].type, Map):
        return c.strict(INT, [c.arguments[0]], "cardinality({})::INTEGER")
    return c.strict(INT, [_array(c)], "len({})::INTEGER")


def _contains(c: Call) -> Term:
    found, unknown = "list_contains({0}, {1})", f"len({{0}}) > len({_NOT_NULL})"
    sql = f"CASE WHEN {{1}} IS NULL OR (NOT {found} AND {unknown}) THEN NULL ELSE {found} END"
    return c.strict(BOOLEAN, [_array(c), _element(c, 1)], sql)


def _compact(c: Call) -> Term:
    return c.strict(_array(c).type, [_array(c)], _NOT_NULL)


def _put(sql: str) -> Maker:
    """Adds one element, which may be null, at an end."""

    def make(c: Call) -> Term:
        array, value = c.scope.bound(_array(c)), _element(c, -1)
        if value.fails is not None:
            # Whether Spark evaluates the element where the array is null depends on how it runs the expression.
            raise c.refuse("it is evaluated only with an element that cannot fail")
        if len(c.arguments) == 3 and c.arguments[1].literal != 1:
            raise c.refuse("it is evaluated only at the literal position 1: use array_append for the end")
        put = sql.format(array.sql, value.sql)
        return Term(type=array.type, sql=f"CASE WHEN {array.sql} IS NOT NULL THEN {put} END", fails=array.fails)

    return make


def _array(c: Call) -> Term:
    if not isinstance(c.arguments[0].type, Array):
        raise c.refuse("it is evaluated for arrays")
    return c.arguments[0]


def _element(c: Call, index: int) -> Term:
    """An argument of the array's element type."""
    array, value = _array(c), c.arguments[index]
    if not isinstance(array.type, Array) or array.type.element != value.type or is_nested(value.type):
        raise c.refuse("it is evaluated for an array and a value of its element type")
    if value.type in TIMES:
        raise c.refuse("it is not evaluated for arrays of dates and times")
    return value


ARRAY_FUNCTIONS: Known = {
    "size": ((1,), _size),
    "cardinality": ((1,), _size),
    "array_size": ((1,), lambda c: c.strict(INT, [_array(c)], "len({})::INTEGER")),
    "array_contains": ((2,), _contains),
    "array_compact": ((1,), _compact),
    "array_append": ((2,), _put("list_append({0}, {1})")),
    "array_prepend": ((2,), _put("list_prepend({1}, {0})")),
    "array_insert": ((3,), _put("list_prepend({1}, {0})")),
}
