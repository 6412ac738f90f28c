"""A digest of a table's rows that ignores their order, to compare tables with recorded rows.

Each row is written as one JSON object in a canonical form. The digest is the sum of the rows' SHA-256 modulo 2**256, so
the digest of a version is that of the version before, plus its inserts, minus its deletes. Names and values of columns
count; their order, the width of integers and the flag of a time zone do not.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable
from decimal import Decimal
from itertools import repeat
from typing import Any

import pyarrow as pa
import pyarrow.types as kind

MODULUS = 1 << 256

_PER_UNIT_US = {"s": 1_000_000, "ms": 1000, "us": 1}


def table_digest(table: pa.Table) -> tuple[int, str]:
    """Gives the number of rows of a table and their digest."""
    columns = [_members(name, _canonical(table.column(name).combine_chunks())) for name in sorted(table.column_names)]
    rows: Iterable[tuple[str, ...]] = zip(*columns, strict=True) if columns else repeat((), table.num_rows)
    texts = (f"{{{','.join(members)}}}" for members in rows)
    digests = (hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest() for text in texts)
    return table.num_rows, as_text(sum(int.from_bytes(digest, "big") for digest in digests))


def as_text(digest: int) -> str:
    """Writes a sum of digests as they are recorded: 64 digits of hex."""
    return f"{digest % MODULUS:064x}"


def _members(name: str, values: list[Any]) -> list[str]:  # Any: JSON
    """Gives the member of a row's object for each value. A text is written once."""
    if any(isinstance(value, dict | list) for value in values):
        return [f"{_json(name)}:{_json(value)}" for value in values]
    members = {value: f"{_json(name)}:{_json(value)}" for value in set(values)}
    return [members[value] for value in values]


def _canonical(array: pa.Array) -> list[Any]:  # Any: what JSON holds
    """Gives an array's values as the JSON that is digested."""
    if isinstance(array, pa.ExtensionArray):
        return _canonical(array.storage)
    if kind.is_dictionary(array.type):
        return _canonical(array.dictionary_decode())
    if kind.is_null(array.type) or kind.is_boolean(array.type) or kind.is_integer(array.type):
        return _written(array, lambda value: value)
    if kind.is_map(array.type):
        maps = _lists(array, _pairs(array))
        return [None if pairs is None else {"m": sorted(pairs, key=_json)} for pairs in maps]
    if kind.is_list(array.type) or kind.is_large_list(array.type):
        return _lists(array, _canonical(array.values))
    if kind.is_struct(array.type):
        fields = {field.name: _canonical(array.field(number)) for number, field in enumerate(array.type)}
        valid = array.is_valid().to_pylist()
        return [{name: of[row] for name, of in fields.items()} if valid[row] else None for row in range(len(array))]
    return _scalars(array)


def _scalars(array: pa.Array) -> list[str | None]:
    if kind.is_floating(array.type):
        return _written(array, lambda value: "f:nan" if math.isnan(value) else f"f:{float(value).hex()}")
    if kind.is_decimal(array.type):
        return _written(array, _plain)
    if kind.is_string(array.type) or kind.is_large_string(array.type):
        return _written(array, lambda value: f"s:{value}")
    if kind.is_binary(array.type) or kind.is_large_binary(array.type) or kind.is_fixed_size_binary(array.type):
        return _written(array, lambda value: f"b:{value.hex()}")
    if kind.is_date32(array.type):
        return _written(array.cast(pa.int32()), lambda days: f"d:{days}")
    if kind.is_timestamp(array.type):
        per_unit_us = _PER_UNIT_US.get(array.type.unit)
        return _written(array.cast(pa.int64()), lambda t: f"t:{t * per_unit_us if per_unit_us else t // 1000}")
    raise TypeError(f"no canonical form for {array.type}")


def _written(array: pa.Array, write: Callable[[Any], Any]) -> list[Any]:  # Any: values of each type, and their JSON
    if kind.is_floating(array.type):  # 0.0 and -0.0 are equal, and are written differently
        return [None if value is None else write(value) for value in array.to_pylist()]
    encoded = array.dictionary_encode()
    written = [None if value is None else write(value) for value in encoded.dictionary.to_pylist()]
    return [None if index is None else written[index] for index in encoded.indices.to_pylist()]


def _plain(value: Decimal) -> str:
    text = format(value, "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "n:0" if text in {"-0", ""} else f"n:{text}"


def _pairs(array: pa.MapArray) -> list[list[Any]]:
    return [list(pair) for pair in zip(_canonical(array.keys), _canonical(array.items), strict=True)]


def _lists(array: pa.Array, values: list[Any]) -> list[Any]:
    """Cuts the values of an array of lists or maps by its offsets; null is null."""
    ends, valid = array.offsets.to_pylist(), array.is_valid().to_pylist()
    return [values[ends[row] : ends[row + 1]] if valid[row] else None for row in range(len(array))]


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
