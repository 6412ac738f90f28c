"""What an IndexTables log says of files, in the words and columns that the feed has for files of a Delta log.

Paths are names on disk there, never escaped; extremes are texts by column. Of what cannot be certain nothing is said:
statistics bound, they never decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import orjson

from tablefeed.delta.paths import encode_path
from tablefeed.indextables import names
from tablefeed.model.actions import AddFile, Commit, Metadata, RemoveFile
from tablefeed.model.schema import Primitive, Struct

if TYPE_CHECKING:
    import pyarrow as pa

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_SURROGATE = "\ud800"
_Texts = Mapping[str, str]


def described_metadata(metadata: Metadata) -> Metadata:
    """Gives `metadata` as what tells that it is of an IndexTables table, which not all of its writers say."""
    return replace(metadata, format_provider=names.PROVIDER)


def described_commit(commit: Commit, schema: Struct) -> Commit:
    """Gives `commit` of a table of `schema` with its files as Delta's log would tell of them."""
    return replace(
        commit,
        metadata=None if commit.metadata is None else described_metadata(commit.metadata),
        files=tuple(_described(file, schema) for file in commit.files if isinstance(file, AddFile | RemoveFile)),
    )


def described_files(batch: pa.RecordBatch, schema: Struct) -> pa.RecordBatch:
    """Gives live files (`tablefeed.indextables.columns.FILE_COLUMNS`) as those of `tablefeed.delta.columns`."""
    import pyarrow as pa

    from tablefeed.delta.columns import FILE_COLUMNS

    counts, lows, highs = (batch[name].to_pylist() for name in ("num_records", "min_values", "max_values"))
    stats = [
        statistics(count, dict(low or ()), dict(high or ()), schema)
        for count, low, high in zip(counts, lows, highs, strict=True)
    ]
    values = [None if each is None else list(_values(each).items()) for each in batch["partition_values"].to_pylist()]
    made = {
        "log_path": pa.array([encode_path(path) for path in batch["log_path"].to_pylist()], pa.string()),
        "partition_values": pa.array(values, FILE_COLUMNS.field("partition_values").type),
        "stats": pa.array(stats, pa.string()),
    }
    columns = [
        made[field.name]
        if field.name in made
        else batch[field.name]
        if field.name in batch.schema.names
        else pa.nulls(batch.num_rows, field.type)
        for field in FILE_COLUMNS
    ]
    return pa.RecordBatch.from_arrays(columns, schema=FILE_COLUMNS)


def statistics(row_count: int | None, lows: _Texts, highs: _Texts, schema: Struct) -> str | None:
    """Gives as the text of Delta's statistics what is certain of a split's rows; None where nothing is."""
    told: dict[str, object] = {} if row_count is None else {"numRecords": row_count}
    bounds = {
        group: {f.name: value for f in schema if f.name in texts and (value := read(texts[f.name], f.type)) is not None}
        for group, texts, read in (("minValues", lows, _low), ("maxValues", highs, _high))
    }
    told |= {group: values for group, values in bounds.items() if values}
    return orjson.dumps(told).decode() if told else None


def _described(file: AddFile | RemoveFile, schema: Struct) -> AddFile | RemoveFile:
    values = None if file.partition_values is None else _values(file.partition_values.items())
    if isinstance(file, RemoveFile):
        return replace(file, log_path=encode_path(file.path), partition_values=values)
    split = file.split
    told = (
        None if split is None else statistics(split.num_records, split.min_values or {}, split.max_values or {}, schema)
    )
    return replace(file, log_path=encode_path(file.path), partition_values=values or {}, stats=told)


def _values(pairs: Iterable[tuple[str, str | None]]) -> dict[str, str | None]:
    return {name: None if text == names.HIVE_DEFAULT_PARTITION else text for name, text in pairs}


_AFTER_ALL = "\U0010ffff" * 16
"""Behind a text that may have been cut, however short, it is above all that begin with that."""


def _low(text: str, kind: object) -> object | None:
    if kind == Primitive("string"):
        # Java's order is of UTF-16, ours of code points: beyond the surrogates the two part. And the value of a
        # partition column may stand there as its directory spells it.
        return text if "%" not in text and all(c < _FIRST_SURROGATE for c in text) else None
    return _plain(text, kind)


def _high(text: str, kind: object) -> object | None:
    if kind in (Primitive("double"), Primitive("float")):
        return None  # a NaN, greater than all to Spark, need not be in it
    low = _low(text, kind)
    return low + _AFTER_ALL if isinstance(low, str) and kind == Primitive("string") else low


def _plain(text: str, kind: object) -> Any | None:  # Any: as JSON has it
    """The value that `text` spells as Delta's statistics have it; None for what has no order here.

    Decimals, short numbers and times without a zone are texts to the index, whose extremes are those of texts.
    """
    try:
        match kind:
            case Primitive(name="long" | "integer"):
                return int(text)
            case Primitive(name="double" | "float"):
                return float(text)  # what is infinite or NaN bounds nothing, which its reader knows
            case Primitive(name="date"):
                return text
            case Primitive(name="timestamp"):
                return (_EPOCH + timedelta(microseconds=int(text))).isoformat().replace("+00:00", "Z")
    except (ValueError, OverflowError):
        return None
    return None
