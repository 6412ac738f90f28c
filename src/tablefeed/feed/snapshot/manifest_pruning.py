"""Chooses the manifests of a state that a filter needs, by the partition bounds in the state.

The filter is split into parts. A part that is not understood rules out no manifest. The comparison with the bounds is
in `tablefeed.indextables.log.bounds`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from tablefeed.data.condition import Call, Column, Literal, Node, tree
from tablefeed.feed.snapshot.verdicts import FLIPPED, value_set
from tablefeed.indextables.log.bounds import Comparison, Operator, manifests_that_may_hold
from tablefeed.model.schema import DataType, Primitive

if TYPE_CHECKING:
    import pyarrow.compute as pc

    from tablefeed.indextables.log.avro_state import Manifest

Manifests = tuple["Manifest", ...]


def asked_manifests(
    manifests: Sequence[Manifest], condition: pc.Expression, *, types: Mapping[str, DataType]
) -> Manifests:
    """Gives those of `manifests`, in order, that may hold a file with a row for which `condition` is true.

    `types` has the types of the partition columns.
    """
    node = tree(condition)
    try:
        return tuple(manifests) if node is None else _asked(node, tuple(manifests), types)
    except RecursionError:  # nested too deeply for Python's stack
        return tuple(manifests)


def _asked(node: Node, manifests: Manifests, types: Mapping[str, DataType]) -> Manifests:
    match node:
        case Call(function="and" | "and_kleene", arguments=parts):
            for part in parts:
                manifests = _asked(part, manifests, types)
            return manifests
        case Call(function="or" | "or_kleene", arguments=parts):
            return _any_of([_asked(part, manifests, types) for part in parts], manifests)
        case Call(function="is_in", arguments=(Column(path=(name,)),)):
            wanted = value_set(node)
            if wanted is None or wanted.null_count:
                return manifests
            return _any_of([_compared(name, "=", value, manifests, types) for value in wanted], manifests)
        case Call(function=function, arguments=(Column(path=(name,)), Literal(value=value))) if function in _OPERATORS:
            return _compared(name, _OPERATORS[function], value, manifests, types)
        case Call(function=function, arguments=(Literal(value=value), Column(path=(name,)))) if function in _OPERATORS:
            return _compared(name, _OPERATORS[FLIPPED[function]], value, manifests, types)
        case _:
            return manifests


_OPERATORS: Mapping[str, Operator] = {
    "equal": "=",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
}


def _any_of(parts: Sequence[Manifests], manifests: Manifests) -> Manifests:
    kept = {manifest.name for part in parts for manifest in part}
    return tuple(manifest for manifest in manifests if manifest.name in kept)


def _compared(
    name: str, operator: Operator, value: pa.Scalar, manifests: Manifests, types: Mapping[str, DataType]
) -> Manifests:
    kind = types.get(name)
    text = None if kind is None else _text(value, kind)
    if text is None:
        return manifests
    asked = Comparison(column=name, operator=operator, value=text)
    return manifests_that_may_hold(manifests, [asked], types=types)


def _text(value: pa.Scalar, kind: DataType) -> str | None:
    """The value spelled as a partition value; None if it is null, not finite, or of a type that is not compared."""
    if not value.is_valid or not isinstance(kind, Primitive):
        return None
    is_a = pa.types
    match kind.name:
        case "long" | "integer" | "short" | "byte" if is_a.is_integer(value.type):
            return str(value.as_py())
        case "double" if is_a.is_float64(value.type):
            return repr(value.as_py()) if math.isfinite(value.as_py()) else None
        case "date" if is_a.is_date32(value.type):
            try:
                return str(value.as_py())
            except (ValueError, OverflowError):  # a day that Python does not have
                return None
    return None
