"""Translates the files of an IndexTables log to the values and columns that the feed uses for a Delta log's files.

An IndexTables log has paths as on disk; they are percent-encoded here. split_statistics.py translates the statistics.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import orjson

from tablefeed.delta.paths import encode_path
from tablefeed.feed.snapshot.split_statistics import Told, statistics
from tablefeed.indextables import names
from tablefeed.indextables.log import schema_registry
from tablefeed.model.actions import AddFile, Commit, Metadata, RemoveFile
from tablefeed.model.schema import Struct

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """What is needed to interpret a table's file actions: its schema, and its log's doc mappings by their hashes."""

    schema: Struct
    doc_mappings: Mapping[str, str]

    def plain_texts(self, doc_mapping: str | None, doc_mapping_ref: str | None) -> Mapping[str, bool] | None:
        """Gives `schema_registry.plain_texts` of a split's doc mapping, given as text or by its hash; None: unknown."""
        known = self.doc_mappings.get(doc_mapping_ref or "") if doc_mapping is None else doc_mapping
        return None if known is None else schema_registry.plain_texts(known)


def described_metadata(metadata: Metadata) -> Metadata:
    """Gives `metadata` with IndexTables as its format provider, which not every writer sets."""
    return replace(metadata, format_provider=names.PROVIDER)


def described_commit(commit: Commit, vocabulary: Vocabulary) -> Commit:
    """Gives `commit` with its metadata and files as a Delta log would have them."""
    if commit.metadata is not None:
        own = schema_registry.registry_of_configuration(commit.metadata.configuration)
        vocabulary = replace(vocabulary, doc_mappings={**vocabulary.doc_mappings, **own})
    return replace(
        commit,
        metadata=None if commit.metadata is None else described_metadata(commit.metadata),
        files=tuple(_described(file, vocabulary) for file in commit.files if isinstance(file, AddFile | RemoveFile)),
    )


def described_files(batch: pa.RecordBatch, vocabulary: Vocabulary | None) -> pa.RecordBatch:
    """Gives live files (`tablefeed.indextables.log.columns.FILE_COLUMNS`) as those of `tablefeed.delta.columns`.

    Without a vocabulary the statistics have only the number of rows.
    """
    import pyarrow as pa

    from tablefeed.delta.columns import FILE_COLUMNS

    values = [None if each is None else list(_values(each).items()) for each in batch["partition_values"].to_pylist()]
    stats = _counts(batch) if vocabulary is None else _statistics(batch, vocabulary)
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


def _counts(batch: pa.RecordBatch) -> list[str | None]:
    counts = batch["num_records"].to_pylist()
    return [None if count is None else orjson.dumps({"numRecords": count}).decode() for count in counts]


def _statistics(batch: pa.RecordBatch, vocabulary: Vocabulary) -> list[str | None]:
    told = ("num_records", "min_values", "max_values", "partition_values", "doc_mapping", "doc_mapping_ref")
    return [
        statistics(
            Told(
                row_count=count,
                lows=dict(low or ()),
                highs=dict(high or ()),
                partition_values=dict(values or ()),
                plain_texts=vocabulary.plain_texts(mapping, ref),
            ),
            vocabulary.schema,
        )
        for count, low, high, values, mapping, ref in zip(*(batch[name].to_pylist() for name in told), strict=True)
    ]


def _described(file: AddFile | RemoveFile, vocabulary: Vocabulary) -> AddFile | RemoveFile:
    values = None if file.partition_values is None else _values(file.partition_values.items())
    if isinstance(file, RemoveFile):
        return replace(file, log_path=encode_path(file.path), partition_values=values)
    split, told = file.split, None
    if split is not None:
        told = Told(
            row_count=split.num_records,
            lows=split.min_values or {},
            highs=split.max_values or {},
            partition_values=file.partition_values,
            plain_texts=vocabulary.plain_texts(split.doc_mapping, split.doc_mapping_ref),
        )
    stats = None if told is None else statistics(told, vocabulary.schema)
    return replace(file, log_path=encode_path(file.path), partition_values=values or {}, stats=stats)


def _values(pairs: Iterable[tuple[str, str | None]]) -> dict[str, str | None]:
    return {name: None if text == names.HIVE_DEFAULT_PARTITION else text for name, text in pairs}
