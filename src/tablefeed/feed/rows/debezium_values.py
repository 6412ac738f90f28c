"""Values of Debezium's JSON as values of a table's columns: exactly, or not at all.

Kafka Connect's JSON may describe its values (`schemas.enable`): the type and the name of each field say what a number
or a text means ("Data type mappings" in Debezium's pages on its connectors). Without a description a value is read only
if it has the same meaning under every setting of a connector.
"""

from __future__ import annotations

import base64
import hashlib
import math
import re
import struct
import uuid
from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.data.retype import is_bytes, is_text
from tablefeed.feed.rows.columns import flags, how_many, is_true
from tablefeed.feed.rows.debezium_order import refused
from tablefeed.model.spark_texts import exact_decimal, read_decimal

Read = Callable[[Any], Any]
"""Gives what `pyarrow.array` takes as a value of the column. Raises TypeError, ValueError and ArithmeticError."""

_TIME, _CONNECT = "io.debezium.time.", "org.apache.kafka.connect.data."
_DATES = (f"{_TIME}Date", f"{_CONNECT}Date")
_UNITS_IN_NS = {
    f"{_TIME}Timestamp": 10**6,
    f"{_CONNECT}Timestamp": 10**6,
    f"{_TIME}MicroTimestamp": 10**3,
    f"{_TIME}NanoTimestamp": 1,
}
_MOST_DIGITS_OF_A_FLOAT = 9
"""A float is written with the fewest digits that distinguish it from all others; nine are always enough."""
_MOST_EXACT_IN_A_FLOAT, _MOST_EXACT_IN_A_DOUBLE = 2**24, 2**53
_SCALE = re.compile(r"-?\d{1,4}")
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,6})0*)?(Z|[+-]\d\d:\d\d)")


class Declared(NamedTuple):
    """The description of a field in the JSON: Kafka Connect's type, the semantic name, and the scale of a decimal."""

    type: str | None = None
    name: str | None = None
    scale: str | None = None

    @staticmethod
    def of(field: Mapping[str, Any]) -> Declared:
        """Reads an entry of `fields`."""
        parameters = field.get("parameters")
        said = (field.get("type"), field.get("name"), parameters.get("scale") if type(parameters) is dict else None)
        return Declared(*(None if each is None else str(each) for each in said))


_PLACEHOLDER = "__debezium_unavailable_value"
_BYTES = _PLACEHOLDER.encode()
UNAVAILABLE_TEXTS = (
    _PLACEHOLDER,
    base64.b64encode(_BYTES).decode(),
    _BYTES.hex(),
    f'{{"{_PLACEHOLDER}":"{_PLACEHOLDER}"}}',  # of an hstore
)
"""The placeholder of a value that the database did not give: a large value that an update did not set (Postgres)."""
_UNAVAILABLE_LISTS: tuple[list[Any], ...] = (
    [_PLACEHOLDER],
    [str(uuid.UUID(bytes=hashlib.md5(_BYTES, usedforsecurity=False).digest(), version=3))],
    [_BYTES],
    [*_BYTES],
)


def unavailable(values: pa.Array) -> pa.Array | None:
    """Says which values of a column the database did not give; None for a type without a placeholder."""
    kind, is_a = values.type, pa.types
    if is_text(kind):
        return pc.is_in(values, value_set=pa.array(UNAVAILABLE_TEXTS, kind))
    if is_bytes(kind) and not is_a.is_fixed_size_binary(kind):
        return is_true(pc.equal(values, pa.scalar(_BYTES, kind)))
    if is_a.is_map(kind) and kind.key_type == kind.item_type == pa.string():
        found = pc.map_lookup(values, query_key=pa.scalar(_PLACEHOLDER), occurrence="first")
        return is_true(pc.equal(found, _PLACEHOLDER))
    if not (is_a.is_list(kind) or is_a.is_large_list(kind)):
        return None
    if is_a.is_date32(kind.value_type):
        values = values.cast(pa.list_(pa.int32()))  # the placeholder of a list of dates is one of days
    lengths = pa.array([len(each) for each in _UNAVAILABLE_LISTS])
    may_be = pc.is_in(pc.list_value_length(values).cast(lengths.type), value_set=lengths)
    said = [each in _UNAVAILABLE_LISTS for each in values.filter(may_be).to_pylist()]
    return pc.replace_with_mask(flags(len(values), value=False), may_be, pa.array(said, pa.bool_()))


def refuse_unknown(name: str, begins: pa.Array) -> None:
    """Raises InvalidEventsError where an event begins a row without the value of column `name`."""
    if (count := how_many(begins)) > 0:
        raise refused(
            f"{count} events begin a row, created or with another key, whose value of column {name} the database did "
            "not give. Filter these events, and read the rows again, as with an incremental snapshot. In Postgres, "
            "REPLICA IDENTITY FULL gives all values."
        )


def reader(kind: pa.DataType, declared: Declared | None) -> Read | None:
    """Gives the function that reads a column of the type `kind` from a field; None if it would not be exact.

    `declared` is None where the JSON does not describe its values.
    """
    said, is_a = declared or Declared(), pa.types
    if is_a.is_decimal(kind):
        return _decimal(kind, said)
    if is_a.is_timestamp(kind) and kind.tz is None:
        return _local(_UNITS_IN_NS[said.name]) if said.name in _UNITS_IN_NS else None
    rules: tuple[tuple[bool, bool, Read], ...] = (
        (is_a.is_boolean(kind), True, _only(bool)),
        (is_a.is_integer(kind), True, _only(int)),
        (kind == pa.float64(), said.name is None, _float_as_double if said.type == "float" else _double),
        (kind == pa.float32(), said.name is None and said.type != "double", _float),
        (is_a.is_string(kind), said.type in (None, "string"), _only(str)),
        (is_a.is_binary(kind), said.type == "bytes" and said.name is None, _bytes),
        (is_a.is_date(kind), declared is None or said.name in _DATES, _only(int)),
        (is_a.is_timestamp(kind), said.name in (None, f"{_TIME}ZonedTimestamp"), _moment),
    )
    return next((read for is_kind, is_exact, read in rules if is_kind and is_exact), None)


def _only(kind: type) -> Read:
    def read(value: Any) -> Any:
        if type(value) is not kind:
            raise TypeError
        return value

    return read


def _double(value: Any) -> float:
    if type(value) not in (int, float, Decimal) and value not in ("NaN", "Infinity", "-Infinity"):
        raise TypeError
    found = float(value)
    if (type(value) is int and abs(value) > _MOST_EXACT_IN_A_DOUBLE) or (type(value) is Decimal and math.isinf(found)):
        raise ValueError
    return found


def _float_as_double(value: Any) -> float:
    # The value of the float, which has fewer digits in JSON.
    return _nearest_float(_float(value))


def _nearest_float(value: float) -> float:
    (found,) = struct.unpack("f", struct.pack("f", value))
    return float(found)


def _float(value: Any) -> float:
    if type(value) is int and abs(value) > _MOST_EXACT_IN_A_FLOAT:
        raise ValueError
    if type(value) in (int, Decimal) and len(Decimal(value).normalize().as_tuple().digits) > _MOST_DIGITS_OF_A_FLOAT:
        raise ValueError
    found = _double(value)
    nearest = _nearest_float(found)
    if math.isinf(nearest) != math.isinf(found) or (nearest == 0) != (found == 0):
        raise ValueError
    return found


def _bytes(value: Any) -> bytes:
    return base64.b64decode(_only(str)(value), validate=True)


def _decimal(kind: pa.DataType, said: Declared) -> Read | None:
    def number(value: Any) -> Decimal:
        if type(value) not in ((str,) if said.type == "string" else (int, Decimal)):
            raise TypeError
        return exact_decimal(read_decimal(value) if type(value) is str else Decimal(value), kind.precision, kind.scale)

    def unscaled(value: Any, scale: int) -> Decimal:
        digits = Decimal(int.from_bytes(_bytes(value), "big", signed=True)).as_tuple()
        return exact_decimal(Decimal((digits.sign, digits.digits, -scale)), kind.precision, kind.scale)

    if said.name == f"{_CONNECT}Decimal" and _SCALE.fullmatch(said.scale or ""):
        scale = int(said.scale or "")
        return lambda value: unscaled(value, scale) if type(value) is str else number(value)
    if said.name == "io.debezium.data.VariableScaleDecimal":
        return lambda value: unscaled(value["value"], _only(int)(value["scale"]))
    return number if said.name is None and said.type != "bytes" else None


def _local(unit_in_ns: int) -> Read:
    def read(value: Any) -> int:
        found, rest = divmod(_only(int)(value) * unit_in_ns, 1000)
        if rest:
            raise ValueError
        return int(found)

    return read


def _moment(value: Any) -> datetime:
    found = _MOMENT.fullmatch(_only(str)(value))
    if found is None:
        raise ValueError
    second, fraction, zone = found.groups()
    return datetime.fromisoformat(f"{second}.{fraction or '0':0<6}{zone}")
