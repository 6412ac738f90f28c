"""`tablefeed.spark.history`: the commits of a table as a DataFrame, with the columns of Delta's DESCRIBE HISTORY."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from tablefeed.feed.api.table import open_table
from tablefeed.wording.words import json_value

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tablefeed.model.actions import CommitInfo

_TEXTS = pa.map_(pa.string(), pa.string())
_SCHEMA = pa.schema(
    {
        "version": pa.int64(),
        "timestamp": pa.timestamp("us", tz="UTC"),
        "userId": pa.string(),
        "userName": pa.string(),
        "operation": pa.string(),
        "operationParameters": _TEXTS,
        "readVersion": pa.int64(),
        "isolationLevel": pa.string(),
        "isBlindAppend": pa.bool_(),
        "operationMetrics": _TEXTS,
        "userMetadata": pa.string(),
        "engineInfo": pa.string(),
    }
)


def history(
    spark: SparkSession, url: str, limit: int | None = None, *, storage_options: Mapping[str, str] | None = None
) -> DataFrame:
    """Gives a row for each commit that the log of the table at `url` still has, the newest first, at most `limit`.

    The columns are those of Delta's DESCRIBE HISTORY that tell of the commit. A field that the writer left out, or
    wrote with another type, beyond its range or not as Unicode, is null; `tablefeed.open_table(url).history()` has all
    fields as they are. The process that calls reads the log. Raises as `open_table`.
    """
    rows = [_row(each) for each in open_table(url, storage_options=storage_options).history(limit)]
    return spark.createDataFrame(pa.Table.from_pylist(rows, schema=_SCHEMA))


def _row(info: CommitInfo) -> dict[str, object]:
    at_us = 1000 * info.committed_at_ms
    row: dict[str, object] = {"version": info.version, "timestamp": at_us if _fits(at_us, pa.int64()) else None}
    for field in _SCHEMA:
        value = info.fields.get(field.name)
        if field.name not in row and _fits(value, field.type):
            row[field.name] = _texts(value) if isinstance(value, Mapping) else value
    return row


def _fits(value: object, kind: pa.DataType) -> bool:
    match value:
        case bool():
            return bool(kind == pa.bool_())
        case int():
            return bool(kind == pa.int64()) and abs(value) < 2**63
        case str():
            return bool(kind == pa.string()) and _is_unicode(value)
        case Mapping():
            return bool(kind == _TEXTS) and all(_is_unicode(text) for pair in _texts(value) for text in pair)
        case _:
            return False


def _is_unicode(text: str) -> bool:
    """Whether `text` has no half of a surrogate pair. JSON can escape one, and Arrow cannot hold it."""
    return not any("\ud800" <= char <= "\udfff" for char in text)


def _texts(values: Mapping[str, object]) -> list[tuple[str, str]]:
    return [
        (name, value if isinstance(value, str) else json.dumps(json_value(value))) for name, value in values.items()
    ]
