"""Builds the commitInfo of our commits, in Delta-Spark's form (PROTOCOL.md, "Commit Provenance Information").

The protocol leaves the fields free. These names follow Delta-Spark's `DESCRIBE HISTORY` and its tests. Values of
operationMetrics are strings; values of operationParameters are strings, except flags. engineInfo names tablefeed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from tablefeed.delta import names
from tablefeed.model.actions import AddFile, RemoveFile, Version


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamingUpdate:
    """A micro-batch of a streaming query; `epoch_id` is its batch id."""

    output_mode: Literal["Append", "Complete"]
    query_id: str
    epoch_id: int

    @property
    def operation(self) -> tuple[str, dict[str, object]]:
        """Delta-Spark's name of the operation, and its parameters."""
        parameters: dict[str, object] = {
            "outputMode": self.output_mode,
            "queryId": self.query_id,
            "epochId": str(self.epoch_id),
        }
        return "STREAMING UPDATE", parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """A batch write; `mode` is a Spark SaveMode's name.

    `predicate` is the text of an overwrite's replaceWhere. `is_dynamic`: it overwrote only the partitions of its rows.
    `can_merge_schema` and `can_overwrite_schema` are what the write asked for, whether or not the schema changed.
    """

    mode: Literal["Append", "Overwrite", "ErrorIfExists"]
    partition_by: tuple[str, ...] = ()
    predicate: str | None = None
    is_dynamic: bool = False
    can_overwrite_schema: bool = False
    can_merge_schema: bool = False

    @property
    def operation(self) -> tuple[str, dict[str, object]]:
        """Delta-Spark's name of the operation, and its parameters."""
        parameters: dict[str, object] = {"mode": self.mode, "partitionBy": _json(self.partition_by)}
        if self.predicate is not None:
            parameters["predicate"] = self.predicate
        flags = {
            "isDynamicPartitionOverwrite": self.is_dynamic,
            "canOverwriteSchema": self.can_overwrite_schema,
            "canMergeSchema": self.can_merge_schema,
        }
        return "WRITE", parameters | {name: True for name, is_set in flags.items() if is_set}


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimize:
    """Small files rewritten as larger ones, in the partitions of `predicate`; `auto`: a write started it, no user."""

    predicate: tuple[str, ...] = ()
    auto: bool = False

    @property
    def operation(self) -> tuple[str, dict[str, str]]:
        """Delta-Spark's name of the operation, and its parameters."""
        auto = "true" if self.auto else "false"
        return "OPTIMIZE", {"predicate": _json(self.predicate), "zOrderBy": "[]", "clusterBy": "[]", "auto": auto}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableChange:
    """A commit that creates, alters or restores a table, or changes rows, with Delta-Spark's names for all facts.

    Lists and mappings among the parameters are written as JSON.
    """

    name: str
    parameters: Mapping[str, object]
    metrics: Mapping[str, int] = field(default_factory=dict)

    @property
    def operation(self) -> tuple[str, dict[str, object]]:
        """Delta-Spark's name of the operation, and its parameters."""
        nested = (list, tuple, dict)
        return self.name, {name: _json(v) if isinstance(v, nested) else v for name, v in self.parameters.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """The fields that every commit has, whatever its operation.

    `txn_id` is unique to one commit: a writer that lost the store's answer finds its own commit by it. `read_version`
    is None where no version was read, because the commit creates the table. `engine` is engineInfo, such as
    "tablefeed/0.1.0". `in_commit_timestamp_ms` is None where the table has no in-commit timestamps. `bad_records` are
    the files of rows that were taken out.
    """

    timestamp_ms: int
    txn_id: str
    engine: str
    read_version: Version | None = None
    user_metadata: str | None = None
    in_commit_timestamp_ms: int | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    bad_records: Mapping[str, object] | None = None


def in_commit_timestamp(*, now_ms: int, previous_ms: int | None) -> int:
    """The in-commit timestamp of a commit tried at `now_ms`; `previous_ms` is the commit before's, None without one.

    "Writer Requirements for In-Commit Timestamps": each is greater than the one before, whatever the clocks say.
    """
    return now_ms if previous_ms is None else max(now_ms, previous_ms + 1)


def commit_info(
    operation: StreamingUpdate | Write | Optimize | TableChange,
    provenance: Provenance,
    *,
    is_blind_append: bool,
    metrics: Mapping[str, int],
) -> dict[str, object]:
    """The fields of commitInfo in Delta-Spark's order.

    `is_blind_append`: only files are added and nothing of the table was read. `metrics`: by Delta-Spark's names,
    such as numAddedFiles, numRemovedFiles, numOutputRows and numOutputBytes of a STREAMING UPDATE, or numFiles,
    numOutputRows and numOutputBytes of a WRITE. What is None is left out.
    """
    name, parameters = operation.operation
    fields: dict[str, object] = {
        names.IN_COMMIT_TIMESTAMP: provenance.in_commit_timestamp_ms,
        "timestamp": provenance.timestamp_ms,
        "operation": name,
        "operationParameters": parameters,
        "readVersion": provenance.read_version,
        # Open-source Delta accepts only Serializable, and we follow its conflict rules. For a commit that changes no
        # data it writes SnapshotIsolation.
        "isolationLevel": "SnapshotIsolation" if isinstance(operation, Optimize) else "Serializable",
        "isBlindAppend": is_blind_append,
        "operationMetrics": {metric: str(value) for metric, value in metrics.items()},
        "userMetadata": provenance.user_metadata,
        "tags": dict(provenance.tags) or None,
        "engineInfo": provenance.engine,
        names.TXN_ID: provenance.txn_id,
        names.BAD_RECORDS: provenance.bad_records,
    }
    return {field: value for field, value in fields.items() if value is not None}


def optimize_metrics(added: Sequence[AddFile], removed: Sequence[RemoveFile]) -> dict[str, int]:
    """The operationMetrics of an OPTIMIZE: the numbers and sizes in bytes of the files added and removed."""
    sizes = sorted(add.size_bytes for add in added)
    vectors = [remove.deletion_vector for remove in removed if remove.deletion_vector is not None]
    at = {"minFileSize": 0, "p25FileSize": len(sizes) // 4, "p50FileSize": len(sizes) // 2}
    at |= {"p75FileSize": len(sizes) * 3 // 4, "maxFileSize": len(sizes) - 1}
    return {
        "numAddedFiles": len(added),
        "numRemovedFiles": len(removed),
        "numAddedBytes": sum(sizes),
        "numRemovedBytes": sum(remove.size_bytes or 0 for remove in removed),
        **{name: sizes[index] if sizes else 0 for name, index in at.items()},
        "numDeletionVectorsRemoved": len(vectors),
        "numDeletionVectorRowsRemoved": sum(vector.cardinality for vector in vectors),
        "numDeletionVectorBytesRemoved": sum(vector.size_bytes for vector in vectors),
    }


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
