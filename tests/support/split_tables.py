"""IndexTables tables of real splits, in memory: each append is a state with a manifest of its own.

Splits are ours; the log around them is as the writer by rows leaves it (partition columns are in the documents, too).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
import pytest

from support import actions
from support.index_log import PROTOCOL, SYNC, a_state, manifest_bytes
from tablefeed.data.split_writer import SplitLayout, WrittenSplit, write_splits
from tablefeed.data.write import NewFile
from tablefeed.delta.schema.arrow_schema import from_arrow
from tablefeed.delta.schema.schema_string import format_schema
from tablefeed.feed.snapshot.index_log import IndexTablesLog
from tablefeed.indextables import names
from tablefeed.indextables.log import state_writer, version_file
from tablefeed.indextables.log.avro_state import Manifest, TextBounds
from tablefeed.indextables.log.version_file import Writer
from tablefeed.model.actions import AddFile, Commit, Metadata, Version
from tablefeed.store import Store
from tablefeed.store.memory import MemoryStore

BoundsOf = Callable[[Sequence[Mapping[str, str | None]]], Mapping[str, TextBounds] | None]
"""The bounds of a manifest by the partition values of its entries."""


def split_table(
    *appends: pa.Table, partition_by: Sequence[str] = (), bounds_of: BoundsOf = lambda _: None, most_rows: int = 100_000
) -> MemoryStore:
    """A table of which version 1 appends the first rows, and so on."""
    pytest.importorskip("fastavro")
    pytest.importorskip("tantivy")
    store, manifests = MemoryStore("splits"), list[Manifest]()
    schema = appends[0].schema
    layout = SplitLayout(schema=schema, partition_by=tuple(partition_by), most_rows=most_rows)
    _put(store, names.commit_name(0), _commit_0(schema, partition_by))
    file_count = 0
    for version, rows in enumerate(appends, 1):

        def open_file(values: Mapping[str, pa.Scalar], number: int, version: int = version) -> NewFile:
            folder = "".join(f"{name}={_text(value)}/" for name, value in values.items())
            path = f"{folder}part-{version:05}-{number:05}.split"
            return NewFile(path=path, opened=store.create(path))

        adds = [_add(split) for split in write_splits(rows.to_batches(), layout, open_file)]
        file_count += len(adds)
        manifests.append(_manifest(store, version, adds, bounds_of))
        state = a_state(version, manifests, file_count=file_count)
        data = state_writer.encode_state(state, writer=Writer.SCALA, sync=SYNC, url=store.url)
        _put(store, names.state_name(version), data)
    return store


def log_of(store: Store) -> IndexTablesLog:
    """The log of the table in `store`."""
    return IndexTablesLog(store, location=store.url, storage_options={})


def numeric_or_text(partitions: Sequence[Mapping[str, str | None]]) -> Mapping[str, TextBounds]:
    """TextBounds as IndexTables computes them since 0.5.2: numbers in their order, what is none in that of text."""

    def number(text: str) -> tuple[int, float, str]:
        try:
            return 0, float(text), ""
        except ValueError:
            return 1, 0.0, text

    columns = {name: [text for row in partitions if (text := row[name])] for name in partitions[0]}
    return {
        name: TextBounds(low=min(texts, key=number, default=None), high=max(texts, key=number, default=None))
        for name, texts in columns.items()
    }


def _commit_0(schema: pa.Schema, partition_by: Sequence[str]) -> bytes:
    metadata = Metadata(
        table_id="t",
        schema_string=format_schema(from_arrow(schema)),
        partition_columns=tuple(partition_by),
        format_provider="indextables",
    )
    commit = Commit(version=Version(0), files=(), protocol=PROTOCOL, metadata=metadata, committed_at_ms=1)
    return version_file.encode_commit(commit, writer=Writer.SCALA)


def _add(split: WrittenSplit) -> AddFile:
    values = {name: _text(value) for name, value in split.partition_values.items()}
    return actions.add(split.path, partition_values=values, size_bytes=split.size_bytes, split=split.split)


def _text(value: pa.Scalar) -> str:
    """As the writer by rows has it in the log, and in the names of directories."""
    text = names.HIVE_DEFAULT_PARTITION if value.as_py() in (None, "") else str(value.as_py())
    return text.replace("/", "%2F").replace(":", "%3A").replace("?", "%3F").replace(" ", "%20")


def _manifest(store: MemoryStore, version: int, adds: Sequence[AddFile], bounds_of: BoundsOf) -> Manifest:
    # The Scala log keeps the mapping apart; here it stays where it is told.
    data = manifest_bytes(adds, writer=Writer.NATIVE)
    name = names.shared_manifest_name(f"{version:08x}")
    _put(store, name, data)
    bounds = bounds_of([add.partition_values for add in adds])
    return Manifest(name=name, path=name, entry_count=len(adds), bounds=bounds)


def _put(store: MemoryStore, name: str, data: bytes) -> None:
    store.put_if_absent(f"{names.LOG_DIR}/{name}", data)
