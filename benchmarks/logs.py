"""Logs of many files or many commits, without data: the same bytes in every run, and as large writers leave them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

COLUMNS = 8
ADDS_PER_COMMIT, ADD_COMMITS = 60_000, 5
CHECKPOINT_FILES = 1_000_000
COMMITS, CHECKPOINT_AT = 10_000, 9_990


def adds_in_json(table: Path) -> Path:
    """A table whose files are all in JSON commits."""
    _begin(table)
    for version in range(1, ADD_COMMITS + 1):
        first = (version - 1) * ADDS_PER_COMMIT
        _commit(table, version, (_add(n) for n in range(first, first + ADDS_PER_COMMIT)))
    return table


def large_checkpoint(table: Path) -> Path:
    """A table whose files are all in one classic checkpoint, with one commit after it."""
    _begin(table)
    _commit(table, 1, [_add(CHECKPOINT_FILES)])
    _checkpoint(table, version=1, files=CHECKPOINT_FILES)
    _commit(table, 2, [_add(CHECKPOINT_FILES + 1)])
    return table


def many_commits(table: Path) -> Path:
    """A table of many commits of one file each, with a checkpoint ten commits before the newest."""
    _begin(table)
    for version in range(1, COMMITS + 1):
        _commit(table, version, [_add(version)])
    _checkpoint(table, version=CHECKPOINT_AT, files=CHECKPOINT_AT)
    return table


LOGS: Mapping[str, Callable[[Path], Path]] = {
    "adds in JSON": adds_in_json,
    "one checkpoint": large_checkpoint,
    "many commits": many_commits,
}
DESCRIPTIONS = {
    "adds in JSON": f"adds in JSON: {ADDS_PER_COMMIT * ADD_COMMITS:,} files in {ADD_COMMITS} commits, statistics of "
    f"{COLUMNS} columns each",
    "one checkpoint": f"one checkpoint: {CHECKPOINT_FILES:,} files in one Parquet file, the same statistics as JSON, "
    "one commit after it",
    "300k-add-files-100-col-partitioned": "300k-add-files-100-col-partitioned: delta-kernel-rs's own table of 300,000 "
    "adds in three JSON commits, without statistics, of 100 columns",
    "many commits": f"many commits: {COMMITS:,} commits of one file each, a checkpoint at {CHECKPOINT_AT:,}",
}


def of_corpus() -> dict[str, Path]:
    """The corpus's own large log, where the corpus is (CONTRIBUTING.md)."""
    corpus = Path(os.environ.get("TABLEFEED_CORPUS", Path(__file__).parents[2] / "shared" / "corpus"))
    table = corpus / "delta" / "kernelrs-data-tar" / "300k-add-files-100-col-partitioned"
    return {table.name: table} if table.is_dir() else {}


def _begin(table: Path) -> None:
    fields = [{"name": f"c{n}", "type": "long", "nullable": True, "metadata": {}} for n in range(COLUMNS)]
    fields.append({"name": "day", "type": "string", "nullable": True, "metadata": {}})
    metadata = {
        "id": "5fba94ed-9794-4965-ba6e-6ee3c0d22af9",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": ["day"],
        "configuration": {},
        "createdTime": 1_700_000_000_000,
    }
    (table / "_delta_log").mkdir(parents=True)
    _commit(table, 0, [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, {"metaData": metadata}])


def _commit(table: Path, version: int, actions: Iterator[dict[str, object]] | list[dict[str, object]]) -> None:
    with (table / "_delta_log" / f"{version:020d}.json").open("w") as log_file:
        log_file.writelines(json.dumps(action, separators=(",", ":")) + "\n" for action in actions)


def _add(n: int) -> dict[str, object]:
    return {
        "add": {
            "path": _path(n),
            "partitionValues": {"day": _day(n)},
            "size": 10_000 + n,
            "modificationTime": 1_700_000_000_000 + n,
            "dataChange": True,
            "stats": _stats(n),
        }
    }


def _day(n: int) -> str:
    return f"2026-{n % 12 + 1:02d}-{n % 28 + 1:02d}"


def _path(n: int) -> str:
    return f"day={_day(n)}/part-{n % 200:05d}-{n:08x}-52a4-4c3e-8d3f-{n:012x}.c000.snappy.parquet"


def _stats(n: int) -> str:
    names = [f"c{column}" for column in range(COLUMNS)]
    bounds = {"minValues": dict.fromkeys(names, n), "maxValues": dict.fromkeys(names, n + 1_000)}
    text = {"numRecords": 1_000, **bounds, "nullCount": dict.fromkeys(names, 0)}
    return json.dumps(text, separators=(",", ":"))


_STRINGS = pa.map_(pa.string(), pa.string())
_ADD = pa.struct(
    [
        ("path", pa.string()),
        ("partitionValues", _STRINGS),
        ("size", pa.int64()),
        ("modificationTime", pa.int64()),
        ("dataChange", pa.bool_()),
        ("stats", pa.string()),
    ]
)
_STEP = 50_000


def _checkpoint(table: Path, *, version: int, files: int) -> None:
    """The checkpoint of `version`, as Delta-Spark's are: facts first, then adds; statistics as JSON."""
    log = table / "_delta_log"
    facts = [json.loads(line) for line in (log / f"{0:020d}.json").read_text().splitlines()]
    metadata = next(fact["metaData"] for fact in facts if "metaData" in fact)
    kinds = pa.schema(
        [
            ("protocol", pa.struct([("minReaderVersion", pa.int32()), ("minWriterVersion", pa.int32())])),
            (
                "metaData",
                pa.struct(
                    [
                        ("id", pa.string()),
                        ("format", pa.struct([("provider", pa.string()), ("options", _STRINGS)])),
                        ("schemaString", pa.string()),
                        ("partitionColumns", pa.list_(pa.string())),
                        ("configuration", _STRINGS),
                        ("createdTime", pa.int64()),
                    ]
                ),
            ),
            ("add", _ADD),
        ]
    )
    metadata |= {"configuration": [], "format": {"provider": "parquet", "options": []}}
    rows: list[dict[str, object]] = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {"metaData": metadata},
    ]
    with pq.ParquetWriter(log / f"{version:020d}.checkpoint.parquet", kinds, compression="snappy") as writer:
        writer.write_table(pa.Table.from_pylist(rows, kinds))
        for first in range(1, files + 1, _STEP):
            adds = [_add(n)["add"] for n in range(first, min(first + _STEP, files + 1))]
            column = pa.array(adds, _ADD)
            nulls = [pa.nulls(len(column), kind) for kind in kinds.types[:2]]
            writer.write_batch(pa.record_batch([*nulls, column], schema=kinds))
    (log / "_last_checkpoint").write_text(json.dumps({"version": version, "size": files + 2}))


if __name__ == "__main__":
    import sys

    large_checkpoint(Path(sys.argv[1]))
