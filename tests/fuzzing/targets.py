"""The targets, one for each kind of bytes and text that the package reads: `make fuzz`, and test_targets.py in CI."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from typer import BadParameter

from fuzzing import data_files, feed_decoders, feed_seeds, incoming_rows, log_decoders, log_seeds
from fuzzing.target import Target
from tablefeed.delta.deletion_vectors import BadVectorError
from tablefeed.model.action_fields import BadActionError

_LOG = "delta/**/_delta_log"
_INDEX_LOG = "indextables/**/_transaction_log"

_PACKED = 2048
"""Deflate packs up to 1032 bytes into one, and no more is taken of zstandard; text and values are there at once."""
_PARQUET = 4096
"""Pages are packed, and a few bytes can be a run of values, each of them a text of the dictionary."""

_ALL = (
    Target(
        name="commit",
        decode=log_decoders.commit,
        seeds=log_seeds.commits,
        corpus=(f"{_LOG}/*.json",),
    ),
    Target(
        name="table", decode=log_decoders.table, seeds=log_seeds.tables, corpus=(f"{_LOG}/00000000000000000000.json",)
    ),
    Target(
        name="compaction",
        decode=log_decoders.log_compaction,
        seeds=log_seeds.compactions,
    ),
    Target(
        name="checkpoint-json",
        decode=log_decoders.checkpoint_json,
        seeds=log_seeds.json_checkpoints,
        corpus=(f"{_LOG}/*.checkpoint.*.json",),
    ),
    Target(
        name="checkpoint-parquet",
        decode=log_decoders.checkpoint_parquet,
        seeds=log_seeds.parquet_checkpoints,
        factor=_PARQUET,
        corpus=(f"{_LOG}/*.parquet", f"{_LOG}/_sidecars/*.parquet"),
    ),
    Target(
        name="last-checkpoint",
        decode=log_decoders.last_checkpoint_hint,
        seeds=log_seeds.last_checkpoints,
        refusals=(),
        corpus=(f"{_LOG}/_last_checkpoint",),
    ),
    Target(
        name="checksum",
        decode=log_decoders.version_checksum,
        seeds=log_seeds.checksums,
        refusals=(),
        corpus=(f"{_LOG}/*.crc",),
    ),
    Target(
        name="vector-in-log",
        decode=log_decoders.vector_in_log,
        seeds=log_seeds.vectors_in_log,
        refusals=(BadVectorError, BadActionError, ValueError),
    ),
    Target(
        name="vector-in-file",
        decode=log_decoders.vector_in_file,
        seeds=log_seeds.vectors_in_file,
        refusals=(BadVectorError,),
    ),
    Target(
        name="partition-value",
        decode=log_decoders.partition_value,
        seeds=log_seeds.partition_values,
    ),
    Target(
        name="schema",
        decode=log_decoders.schema_string,
        seeds=log_seeds.schemas,
    ),
    Target(
        name="statistics",
        decode=log_decoders.statistics,
        seeds=log_seeds.statistics,
        refusals=(),
    ),
    Target(
        name="domain",
        decode=log_decoders.domain,
        seeds=log_seeds.domains,
    ),
    Target(
        name="tracked-schema",
        decode=log_decoders.tracked_schema,
        seeds=log_seeds.tracked_schemas,
    ),
    Target(
        name="index-hint",
        decode=log_decoders.index_hint,
        seeds=log_seeds.index_hints,
        refusals=(),
        corpus=(f"{_INDEX_LOG}/_last_checkpoint",),
    ),
    Target(
        name="index-commit",
        decode=log_decoders.index_commit,
        seeds=log_seeds.index_commits,
        factor=_PACKED,
        corpus=(f"{_INDEX_LOG}/*.json",),
    ),
    Target(
        name="index-checkpoint",
        decode=log_decoders.index_checkpoint,
        seeds=log_seeds.index_checkpoints,
        factor=_PACKED,
        corpus=(f"{_INDEX_LOG}/*.checkpoint*.json",),
    ),
    Target(
        name="index-state",
        decode=log_decoders.index_state,
        seeds=log_seeds.index_states,
        factor=_PACKED,
        corpus=(f"{_INDEX_LOG}/state-*/_manifest.avro",),
    ),
    Target(
        name="index-manifest",
        decode=log_decoders.index_manifest,
        seeds=log_seeds.index_manifests,
        factor=_PACKED,
        corpus=(f"{_INDEX_LOG}/manifests/*.avro",),
    ),
    Target(
        name="data-file",
        decode=data_files.decode,
        seeds=data_files.seeds,
        factor=_PARQUET,
        corpus=("delta/*/*.parquet",),
    ),
    Target(
        name="split",
        decode=log_decoders.split,
        seeds=log_seeds.splits,
        factor=_PACKED,
        corpus=("indextables/**/*.split",),
    ),
    Target(
        name="doc-mapping",
        decode=log_decoders.doc_mapping,
        seeds=log_seeds.doc_mappings,
    ),
    Target(
        name="where",
        decode=feed_decoders.where,
        seeds=feed_seeds.predicates,
        factor=256,  # each character may be a token
    ),
    Target(
        name="rule",
        decode=feed_decoders.rule,
        seeds=feed_seeds.rules,
    ),
    Target(
        name="timestamp",
        decode=feed_decoders.timestamp_text,
        seeds=feed_seeds.timestamps,
        refusals=(),
    ),
    Target(
        name="regex",
        decode=feed_decoders.regex,
        seeds=feed_seeds.patterns,
    ),
    Target(
        name="offset",
        decode=feed_decoders.offset,
        seeds=feed_seeds.offsets,
    ),
    Target(
        name="debezium",
        decode=feed_decoders.debezium,
        seeds=feed_seeds.messages,
    ),
    Target(
        name="row-state",
        decode=feed_decoders.row_state,
        seeds=partial(feed_seeds.row_states, feed_decoders.ROW_STATE),
        factor=_PARQUET,
    ),
    Target(
        name="consumer",
        decode=feed_decoders.consumer,
        seeds=feed_seeds.consumers,
    ),
    Target(
        name="app-id",
        decode=feed_decoders.app_id,
        seeds=feed_seeds.app_ids,
    ),
    Target(
        name="append-json",
        decode=incoming_rows.json_lines,
        seeds=incoming_rows.json_lines_seeds,
        refusals=(BadParameter,),
    ),
    Target(
        name="append-csv",
        decode=incoming_rows.csv,
        seeds=incoming_rows.csv_seeds,
        refusals=(BadParameter,),
    ),
)
TARGETS: Mapping[str, Target] = {target.name: target for target in _ALL}
