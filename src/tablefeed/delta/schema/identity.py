"""Reads identity columns from a schema's column metadata (PROTOCOL.md, "Identity Columns"). Makes no values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tablefeed.delta import names
from tablefeed.errors import TABLE, UnsupportedFeatureError
from tablefeed.model.rules import IdentityColumn
from tablefeed.model.schema import Field, Primitive, Struct

_LEAST, _MOST = -(2**63), 2**63 - 1


def identity_columns(schema: Struct, *, partition_columns: Sequence[str]) -> tuple[IdentityColumn, ...]:
    """Returns the identity columns of a table. Raises UnsupportedFeatureError for one that no writer could fill."""
    found = [field for field in schema if any(key in field.metadata for key in (_START, _STEP, _TAKES_GIVEN))]
    return tuple(_identity_column(field, partition_columns) for field in found)


def with_high_water_marks(schema: Struct, marks: Mapping[str, int]) -> Struct:
    """Returns `schema` with the high-water marks of the columns in `marks` set to these values."""

    def marked(field: Field) -> Field:
        return replace(field, metadata={**field.metadata, _MARK: marks[field.name]}) if field.name in marks else field

    return Struct(tuple(marked(field) for field in schema))


def differ_in_marks_alone(one: Struct, other: Struct) -> bool:
    """Whether two schemas are the same but for the high-water marks of their identity columns."""
    return one == other or _without_marks(one) == _without_marks(other)  # copying every column is slow


def _without_marks(schema: Struct) -> Struct:
    kept = ({key: value for key, value in field.metadata.items() if key != _MARK} for field in schema)
    return Struct(tuple(replace(field, metadata=metadata) for field, metadata in zip(schema, kept, strict=True)))


_START, _STEP, _MARK = names.IDENTITY_START, names.IDENTITY_STEP, names.IDENTITY_MARK
_TAKES_GIVEN = names.IDENTITY_TAKES_GIVEN


def _identity_column(field: Field, partition_columns: Sequence[str]) -> IdentityColumn:
    start, step, mark = (_long(field.metadata.get(key)) for key in (_START, _STEP, _MARK))
    takes_given = field.metadata.get(_TAKES_GIVEN)
    if start is None or step is None or not isinstance(takes_given, bool) or (mark is None and _MARK in field.metadata):
        raise _refused(field, "its metadata is incomplete", "DELTA_IDENTITY_COLUMN_INCONSISTENT_METADATA")
    if step == 0:
        raise _refused(field, "its step is 0", "DELTA_IDENTITY_COLUMNS_ILLEGAL_STEP")
    if field.type != Primitive("long"):
        raise _refused(field, "it is not a BIGINT", "DELTA_IDENTITY_COLUMNS_UNSUPPORTED_DATA_TYPE")
    if field.name in partition_columns:
        raise _refused(field, "it partitions the table", "DELTA_IDENTITY_COLUMNS_PARTITION_NOT_SUPPORTED")
    if not {names.GENERATION_EXPRESSION, names.CURRENT_DEFAULT}.isdisjoint(field.metadata):
        raise _refused(field, "it has an expression too", "DELTA_IDENTITY_COLUMNS_WITH_GENERATED_EXPRESSION")
    if mark is not None and (mark - start) % step:
        why = "its high-water mark is none of its values; ALTER TABLE ... ALTER COLUMN ... SYNC IDENTITY corrects it"
        raise _refused(field, why, "DELTA_IDENTITY_COLUMN_INCONSISTENT_METADATA")
    return IdentityColumn(name=field.name, start=start, step=step, high_water_mark=mark, takes_given=takes_given)


def _long(written: object) -> int | None:
    is_long = isinstance(written, int) and not isinstance(written, bool) and _LEAST <= written <= _MOST
    return written if is_long else None  # type: ignore[return-value]  # an int, as was just asked


def _refused(field: Field, why: str, error_class: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        f"{TABLE} cannot be written, because no value can be made for its identity column {field.name!r}: {why}.",
        features=("identityColumns",),
        error_class=error_class,
    )
