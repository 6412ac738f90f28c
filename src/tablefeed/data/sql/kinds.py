"""Spark's types: the name of each in SQL, its types in DuckDB and in Arrow, and what is common to two.

What is common follows Spark under ANSI (AnsiTypeCoercion, DecimalPrecision, TypeCoercion).

In terms, dates are days and timestamps are microseconds since 1970, as in Spark: DuckDB's own types hold fewer values,
and treat the extreme ones as infinity.
"""

from __future__ import annotations

import pyarrow as pa

from tablefeed.data.assignment import DIGITS
from tablefeed.model.schema import Array, DataType, Decimal, Field, Map, Primitive, Struct, plain

BOOLEAN, BYTE, SHORT, INT, LONG = (Primitive(n) for n in ("boolean", "byte", "short", "integer", "long"))
FLOAT, DOUBLE, STRING, BINARY = (Primitive(n) for n in ("float", "double", "string", "binary"))
DATE, TIMESTAMP, NTZ, VOID = (Primitive(n) for n in ("date", "timestamp", "timestamp_ntz", "void"))
INTEGRALS = (BYTE, SHORT, INT, LONG)
FLOATING = (FLOAT, DOUBLE)
TIMES = (DATE, NTZ, TIMESTAMP)
"""From the one that the others contain to the one to which the others are widened."""

_VARIANT = pa.struct({"metadata": pa.binary(), "value": pa.binary()})
"""The only variant that a term can have is null."""

_PRIMITIVES = {
    "boolean": ("boolean", "BOOLEAN", pa.bool_()),
    "byte": ("tinyint", "TINYINT", pa.int8()),
    "short": ("smallint", "SMALLINT", pa.int16()),
    "integer": ("int", "INTEGER", pa.int32()),
    "long": ("bigint", "BIGINT", pa.int64()),
    "float": ("float", "FLOAT", pa.float32()),
    "double": ("double", "DOUBLE", pa.float64()),
    "string": ("string", "VARCHAR", pa.string()),
    "binary": ("binary", "BLOB", pa.binary()),
    "date": ("date", "INTEGER", pa.date32()),
    "timestamp": ("timestamp", "BIGINT", pa.timestamp("us", tz="UTC")),
    "timestamp_ntz": ("timestamp_ntz", "BIGINT", pa.timestamp("us")),
    "void": ("void", "INTEGER", pa.null()),
    "variant": ("variant", "STRUCT(metadata BLOB, value BLOB)", _VARIANT),
}

MOST_DIGITS = 38
_LEAST_SCALE = 6
"""Digits after the point that a result keeps where it has too many (DecimalType.MINIMUM_ADJUSTED_SCALE)."""


def is_numeric(kind: DataType) -> bool:
    """Whether `kind` is a numeric type."""
    return kind in INTEGRALS or kind in FLOATING or isinstance(kind, Decimal)


def shape(kind: DataType) -> DataType:
    """The type with names alone: without column metadata, such as comments and column mapping, and all nullable."""
    return plain(Struct((Field("", kind, nullable=True),))).fields[0].type


def spelt(kind: DataType) -> str:
    """The type in SQL's words."""
    match kind:
        case Primitive(name=name):
            return _PRIMITIVES[name][0] if name in _PRIMITIVES else name
        case Decimal(precision=precision, scale=scale):
            return f"decimal({precision},{scale})"
        case Array(element=element):
            return f"array<{spelt(element)}>"
        case Map(key=key, value=value):
            return f"map<{spelt(key)},{spelt(value)}>"
        case Struct():
            return "struct"


def duck(kind: DataType) -> str:
    """DuckDB's type for values of `kind` as terms have them."""
    match kind:
        case Primitive(name=name):
            return _PRIMITIVES[name][1]
        case Decimal():
            return spelt(kind)
        case Array(element=element):
            return f"{duck(element)}[]"
        case Map(key=key, value=value):
            return f"MAP({duck(key)}, {duck(value)})"
        case Struct():
            quoted = [field.name.replace('"', '""') for field in kind]
            members = (f'"{name}" {duck(field.type)}' for name, field in zip(quoted, kind, strict=True))
            return f"STRUCT({', '.join(members)})"


def arrow_type(kind: DataType) -> pa.DataType:
    """The Arrow type for a type of Spark."""
    match kind:
        case Primitive(name=name):
            return _PRIMITIVES[name][2]
        case Decimal(precision=precision, scale=scale):
            return pa.decimal128(precision, scale)
        case Array(element=element):
            return pa.list_(arrow_type(element))
        case Map(key=key, value=value):
            return pa.map_(arrow_type(key), arrow_type(value))
        case Struct():
            return pa.struct([pa.field(f.name, arrow_type(f.type)) for f in kind])


def taken(array: pa.Array) -> pa.Array:
    """A column in the form that terms take."""
    if pa.types.is_timestamp(array.type):
        array = array.cast(pa.timestamp("us", tz=array.type.tz))
    kind = _in_terms(array.type)
    return array if kind == array.type else array.cast(kind)


def term_arrow(kind: DataType) -> pa.DataType:
    """The Arrow type of values of `kind` as terms have them."""
    return _in_terms(arrow_type(kind))


def _in_terms(kind: pa.DataType) -> pa.DataType:
    """The Arrow type with numbers in place of dates and timestamps, at every depth."""
    is_a = pa.types
    if is_a.is_date32(kind) or is_a.is_timestamp(kind):
        return pa.int32() if is_a.is_date32(kind) else pa.int64()
    if is_a.is_struct(kind):
        return pa.struct([(member.name, _in_terms(member.type)) for member in kind])
    if is_a.is_map(kind):
        return pa.map_(_in_terms(kind.key_type), _in_terms(kind.item_type))
    return pa.list_(_in_terms(kind.value_type)) if is_a.is_list(kind) else kind


def terms_value(array: pa.Array, kind: DataType) -> pa.Array:
    """The values of a term of type `kind`, in its Arrow type."""
    return array.cast(term_arrow(kind)).cast(arrow_type(kind))


# --- two types ------------------------------------------------------------------------------------------------------


def decimal_of(kind: DataType, literal: object = None) -> Decimal | None:
    """The decimal type of a whole number beside a decimal in Spark: a literal has its own digits, else its type's."""
    if isinstance(kind, Decimal):
        return kind
    if not isinstance(kind, Primitive) or kind.name not in DIGITS:
        return None
    return Decimal(len(str(abs(literal))) if isinstance(literal, int) else DIGITS[kind.name], 0)


def wider_decimal(left: Decimal, right: Decimal) -> Decimal | None:
    """The decimal that holds both exactly, None where none does."""
    scale = max(left.scale, right.scale)
    digits = max(left.precision - left.scale, right.precision - right.scale) + scale
    return Decimal(digits, scale) if digits <= MOST_DIGITS else None


def bounded(precision: int, scale: int) -> Decimal:
    """A result's type, with fewer digits after the point where it has too many (DecimalType.adjustPrecisionScale)."""
    if precision <= MOST_DIGITS:
        return Decimal(precision, scale)
    whole = precision - scale
    return Decimal(MOST_DIGITS, max(MOST_DIGITS - whole, min(scale, _LEAST_SCALE)))


def common_type(left: DataType, right: DataType) -> DataType | None:
    """The type in which values of both are compared or returned; None where Spark has none, or none is exact."""
    if left == right or right == VOID:
        return left
    if left == VOID:
        return right
    if is_numeric(left) and is_numeric(right):
        return _numeric(left, right)
    if STRING in (left, right):
        return _with_string(right if left == STRING else left)
    if left in TIMES and right in TIMES:
        return max(left, right, key=TIMES.index)
    return None


def _numeric(left: DataType, right: DataType) -> DataType | None:
    if isinstance(left, Decimal) or isinstance(right, Decimal):
        if left in FLOATING or right in FLOATING:
            return DOUBLE
        of_left, of_right = decimal_of(left), decimal_of(right)
        return wider_decimal(of_left, of_right) if of_left and of_right else None
    if left in INTEGRALS and right in INTEGRALS:
        return max(left, right, key=INTEGRALS.index)
    return FLOAT if left == right == FLOAT else DOUBLE


def _with_string(other: DataType) -> DataType | None:
    if other in INTEGRALS:
        return LONG
    if other in FLOATING or isinstance(other, Decimal):
        return DOUBLE
    return other if other in (BOOLEAN, BINARY, DATE, TIMESTAMP, NTZ) else None
