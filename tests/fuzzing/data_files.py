"""The target of data files: what it decodes with, and its seeds."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
from pyroaring import BitMap64

from tablefeed.data.read import FileColumns, ReadPlan, RowSelection, read_batches, row_group_places
from tablefeed.errors import DataFileError

_LIST = pa.list_(pa.field("element", pa.int64()))
_VARIANT = pa.struct(
    [
        pa.field("metadata", pa.binary(), nullable=False, metadata={"variant": "true"}),
        pa.field("value", pa.binary(), nullable=False),
    ]
)
_SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("s", pa.string()),
        pa.field("n", pa.decimal128(9, 2)),
        pa.field("at", pa.timestamp("us", "UTC")),
        pa.field("deep", pa.struct([pa.field("x", pa.int64()), pa.field("l", _LIST)])),
        pa.field("m", pa.map_(pa.string(), pa.float64())),
        pa.field("v", _VARIANT),
    ]
)
_PLAN = ReadPlan(schema=_SCHEMA, batch_rows=1000)
_WAYS = (
    FileColumns(path="a.parquet"),
    FileColumns(path="a.parquet", share=(0, 1 << 40)),
    FileColumns(path="a.parquet", selection=RowSelection(without=BitMap64([1])), positions="_position"),
)
"""As a whole, as the part from its first byte on, and with a deleted row and each row's position."""


def decode(data: bytes) -> None:
    """A data file, in each way in which it is read. All of them must refuse the file if one does."""
    refusals = [_refusal(data, file) for file in _WAYS[:2]]
    assert not any(refusals) or all(refusals), refusals
    _refusal(data, _WAYS[2])
    for refusal in filter(None, refusals):
        raise refusal


def _refusal(data: bytes, file: FileColumns) -> DataFileError | None:
    schema = _SCHEMA if file.positions is None else _SCHEMA.append(pa.field(file.positions, pa.int64()))
    plan = ReadPlan(schema=schema, batch_rows=_PLAN.batch_rows)
    try:
        for batch in read_batches(io.BytesIO(data), plan, file):
            batch.validate()  # in full it refuses texts that are not UTF-8, which every reader passes on
    except DataFileError as error:
        return error
    row_group_places(io.BytesIO(data))
    return None


def seeds() -> list[bytes]:
    """Data files as other writers write them: by codec, encoding and size, and with an encrypted column."""
    rows = _rows()
    many = pa.table({"id": pa.array([0] * 200_000), "s": pa.nulls(200_000, pa.string())})
    return [
        _written(rows, compression="none", write_page_checksum=True),
        _written(rows, compression="snappy", row_group_size=1),
        _written(rows, compression="gzip", use_dictionary=False, data_page_version="2.0"),
        _written(rows, compression="zstd", use_deprecated_int96_timestamps=True, store_schema=False),
        _written(rows.select(["id", "s"]), compression="none", column_encoding="PLAIN", use_dictionary=False),
        _written(many, compression="zstd", use_dictionary=False),
        _written(pa.table({"id": [1, 2, 3], "v": _shredded()}), compression="none", use_dictionary=False),
        _written(pa.table({"id": [1, 2, 3], "v": _shredded()}), compression="none", row_group_size=2),
        with_an_encrypted_column(),
    ]


def with_an_encrypted_column() -> bytes:
    """A data file with a column `id` that every reader can read, and `s` that none can."""
    return _written(_rows().select(["id", "s"]), encryption_properties=_encryption())


def _rows() -> pa.Table:
    row: dict[str, Any] = {
        "id": 1,
        "s": "ä",
        "n": Decimal("1.50"),
        "at": datetime(2026, 1, 2, tzinfo=UTC),
        "deep": {"x": 5, "l": [1, None]},
        "m": {"k": 0.5},
        "v": {"metadata": b"\x01\x01\x00\x01a", "value": b"\x02\x01\x00\x00\x02\x0c\x05"},
    }
    return pa.Table.from_pylist([row, dict.fromkeys(row), {**row, "id": 3}], _SCHEMA)


def _shredded() -> pa.Array:
    """Variants in parts: objects with a number and a list of texts, one that has another key, and one that is none."""

    def parts(typed: pa.DataType) -> pa.StructType:
        return pa.struct([("value", pa.binary()), ("typed_value", typed)])

    fields = pa.struct([("a", parts(pa.int32())), ("l", parts(pa.list_(parts(pa.string()))))])
    texts = [{"typed_value": "x"}, {"value": b"\x00"}]
    rows: list[dict[str, Any]] = [
        {"typed_value": {"a": {"typed_value": 5}, "l": {"typed_value": texts}}},
        {"value": b"\x02\x01\x02\x00\x02\x0c\x05", "typed_value": {"a": {"value": b"\x0c\x07"}, "l": {}}},
        {"value": b"\x0c\x05"},
    ]
    keys = b"\x01\x03\x00\x01\x02\x03alz"
    kind = pa.struct([("metadata", pa.binary()), *parts(fields)])
    return pa.array([{"metadata": keys, **row} for row in rows], kind)


def _written(rows: pa.Table, **options: Any) -> bytes:
    file = io.BytesIO()
    pq.write_table(rows, file, **options)
    return file.getvalue()


def _encryption() -> Any:
    """Encrypts column `s` with a key that no reader has; the footer is readable."""
    factory = pe.CryptoFactory(_Kms)
    wanted = pe.EncryptionConfiguration(footer_key="f", column_keys={"s": ["s"]}, plaintext_footer=True)
    return factory.file_encryption_properties(pe.KmsConnectionConfig(), wanted)


class _Kms(pe.KmsClient):  # type: ignore[misc]  # pyarrow has no types
    """Wraps no key: only the shape of the file counts."""

    def __init__(self, _config: pe.KmsConnectionConfig) -> None:
        super().__init__()

    def wrap_key(self, key_bytes: bytes, _master_key: str) -> bytes:
        return key_bytes.hex().encode()

    def unwrap_key(self, wrapped_key: bytes, _master_key: str) -> bytes:
        return bytes.fromhex(wrapped_key.decode())
