"""Splits beside those of a table of another writer: what a writer is told of it, and splits written and read."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from support.index_log import IndexLog
from support.recordings import index_table
from tablefeed.data.read import ReadPlan
from tablefeed.data.split_writer import SplitLayout, WrittenSplit, write_splits
from tablefeed.data.splits import SplitFile, read_split_batches
from tablefeed.data.write import NewFile
from tablefeed.delta.schema.arrow_schema import to_arrow
from tablefeed.delta.schema.schema_string import parse_schema
from tablefeed.indextables.log import schema_registry
from tablefeed.indextables.split.indexing import Indexing
from tablefeed.indextables.split.split_file import read_index
from tablefeed.indextables.split.table_indexing import indexing_of

URL = "memory://t"


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """What a writer is told of a table of another writer."""

    schema: pa.Schema
    partition_by: tuple[str, ...]
    doc_mappings: list[str]
    split: bytes
    """One of its live ones."""

    @property
    def index(self) -> list[dict[str, Any]]:
        """The fields of that split's index."""
        return index_of(self.split)

    def indexing(self) -> Indexing:
        """How its splits index its columns, as it is found out."""
        return indexing_of(self.doc_mappings, self.schema, partition_by=self.partition_by, index=self.index, url=URL)


def table(index_tables: Path, name: str) -> Table:
    """A table of the recordings or the corpus."""
    folder = index_table(index_tables, name)
    found = IndexLog.of_folder(folder)
    snapshot = found.snapshot()
    assert snapshot.facts.metadata is not None
    registry = schema_registry.registry_of_configuration(snapshot.facts.metadata.configuration)
    for state in found.log.states.values():
        registry |= found.state(state).registry
    told = [add.split for add in snapshot.files.values() if add.split is not None]
    mappings = {split.doc_mapping or registry[split.doc_mapping_ref or ""] for split in told}
    return Table(
        schema=to_arrow(parse_schema(snapshot.facts.metadata.schema_string)),
        partition_by=snapshot.facts.metadata.partition_columns,
        doc_mappings=sorted(mappings),
        split=(folder / min(snapshot.files)).read_bytes(),
    )


def index_of(split: bytes) -> list[dict[str, Any]]:
    """The fields of a split's index."""
    return read_index(lambda at, n: split[at : at + n], size_bytes=len(split), footer=None)


class Kept:
    """Splits as they were written, by their paths, and the paths that were opened."""

    def __init__(self) -> None:
        self.splits: dict[str, bytes] = {}
        self.opened: list[str] = []

    def open(self, values: Mapping[str, pa.Scalar], number: int) -> NewFile:
        path = "/".join([*(f"{name}={value.as_py()}" for name, value in values.items()), f"part-{number:05}.split"])
        return NewFile(path=path, opened=self._opened(path))

    @contextmanager
    def _opened(self, path: str) -> Iterator[BinaryIO]:
        self.opened.append(path)
        stream = io.BytesIO()
        yield stream
        self.splits[path] = stream.getvalue()


def all_written(rows: pa.Table, **layout: Any) -> list[tuple[WrittenSplit, bytes]]:
    """The splits of `rows` with their bytes."""
    kept = Kept()
    splits = write_splits(rows.to_batches(), SplitLayout(schema=rows.schema, **layout), kept.open)
    return [(split, kept.splits[split.path]) for split in splits]


def written(rows: pa.Table, **layout: Any) -> tuple[WrittenSplit, bytes]:
    """The one split of `rows` with its bytes."""
    (split,) = all_written(rows, **layout)
    return split


def read(split: bytes, schema: pa.Schema, **told: Any) -> pa.Table:
    """The rows of a split; `told` is what the log says of it, such as the constants that it has not stored."""
    file = SplitFile(**{"path": "part-0.split", "size_bytes": len(split), "num_records": None, **told})
    plan = ReadPlan(schema=schema, batch_rows=10_000)
    rows = pa.Table.from_batches(list(read_split_batches(lambda at, n: split[at : at + n], plan, file)), schema)
    rows.validate(full=True)
    return rows
