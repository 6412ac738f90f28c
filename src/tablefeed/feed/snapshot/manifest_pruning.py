"""Chooses the manifests of a state that a filter needs, by the partition bounds in the state.

A part of the filter that is not understood rules out no manifest. The comparison with the bounds is in
`tablefeed.indextables.log.bounds`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import compress
from typing import TYPE_CHECKING

import pyarrow as pa

from tablefeed.data.predicate import Atom, Comparison, In, Predicate, column_of
from tablefeed.feed.snapshot.verdicts import Verdict, rows_may_pass
from tablefeed.indextables.log.bounds import Operator, may_hold
from tablefeed.model.schema import DataType, Primitive

if TYPE_CHECKING:
    from tablefeed.indextables.log.avro_state import Manifest


def asked_manifests(
    manifests: Sequence[Manifest], asked: Predicate, *, types: Mapping[str, DataType]
) -> tuple[Manifest, ...]:
    """Gives those of `manifests`, in order, that may hold a file with a row that passes `asked`.

    `types` has the types of the partition columns.
    """
    every = pa.repeat(pa.scalar(value=True), len(manifests))

    def verdict(atom: Atom) -> Verdict | None:
        name, *members = column_of(atom).path
        kind = None if members else types.get(name)
        match atom:
            case Comparison(function=function, value=value) if function in _OPERATORS:
                operator, wanted = _OPERATORS[function], [_text(value, kind)]
            case In(values=values):
                operator, wanted = "=", [_text(value, kind) for value in values]
            case _:
                return None
        told = [(manifest.bounds or {}).get(name) for manifest in manifests]
        may = [any(text is None or may_hold(each, operator, text, kind=kind) for text in wanted) for each in told]
        return Verdict(pa.array(may, pa.bool_()), every)

    chosen = rows_may_pass(asked, verdict, file_count=len(manifests)).to_pylist()
    return tuple(compress(manifests, chosen))


_OPERATORS: Mapping[str, Operator] = {
    "equal": "=",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
}


def _text(value: pa.Scalar, kind: DataType | None) -> str | None:
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
