"""Logs of many files or many commits, without data: the same bytes in every run, and as large writers leave them."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

COLUMNS = 8
ADDS_PER_COMMIT, ADD_COMMITS = 60_000, 5
CHECKPOINT_FILES = 1_000_000
COMMITS, CHECKPOINT_AT = 10_000, 9_990
_SIZE, _MODIFIED_MS = 10_000, 1_700_000_000_000


class Form(StrEnum):
    """How a checkpoint is kept: in one file, in parts of a million adds, or in the V2 spec with such sidecars."""

    ONE_FILE = "one-file"
    PARTS = "parts"
    SIDECARS = "sidecars"


def adds_in_json(table: Path) -> Path:
    """A table whose files are all in JSON commits."""
    begin(table)
    for version in range(1, ADD_COMMITS + 1):
        first = (version - 1) * ADDS_PER_COMMIT
        _commit(table, version, (_add(n) for n in range(first, first + ADDS_PER_COMMIT)))
    return table


def large_checkpoint(table: Path, *, files: int = CHECKPOINT_FILES, form: Form = Form.ONE_FILE) -> Path:
    """A table whose `files` files are all in one checkpoint, with one commit of one more file after it."""
    begin(table, features=("v2Checkpoint",) if form is Form.SIDECARS else ())
    _commit(table, 1, [_add(files)])
    _checkpoint(table, version=1, files=files, form=form)
    _commit(table, 2, [_add(files + 1)])
    return table


def file_count(table: Path) -> int:
    """How many files a table of `large_checkpoint` has."""
    hint = json.loads((table / "_delta_log" / "_last_checkpoint").read_text())
    return int(hint["numOfAddFiles"]) + 1


def many_commits(table: Path) -> Path:
    """A table of many commits of one file each, with a checkpoint ten commits before the newest."""
    begin(table)
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


def commits(table: Path, versions: range, *, files: int) -> None:
    """Commits `versions` of so many files each."""
    for version in versions:
        _commit(table, version, (_add(n) for n in range(version * files, (version + 1) * files)))


def begin(table: Path, features: Sequence[str] = ()) -> None:
    """Makes a table without files."""
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
    protocol: dict[str, object] = {"minReaderVersion": 1, "minWriterVersion": 2}
    if features:
        named = {"readerFeatures": list(features), "writerFeatures": list(features)}
        protocol = {"minReaderVersion": 3, "minWriterVersion": 7, **named}
    _commit(table, 0, [{"protocol": protocol}, {"metaData": metadata}])


def _commit(table: Path, version: int, actions: Iterator[dict[str, object]] | list[dict[str, object]]) -> None:
    with (table / "_delta_log" / f"{version:020d}.json").open("w") as log_file:
        log_file.writelines(json.dumps(action, separators=(",", ":")) + "\n" for action in actions)


def _add(n: int) -> dict[str, object]:
    return {
        "add": {
            "path": _path(n),
            "partitionValues": {"day": _day(n)},
            "size": _SIZE + n,
            "modificationTime": _MODIFIED_MS + n,
            "dataChange": True,
            "stats": _stats(n),
        }
    }


def _day(n: int) -> str:
    return f"2026-{n % 12 + 1:02d}-{n % 28 + 1:02d}"


def _path(n: int) -> str:
    return f"day={_day(n)}/part-{n % 200:05d}-{n:08x}-52a4-4c3e-8d3f-{n:012x}.c000.snappy.parquet"


def _stats(n: int) -> str:
    return _STATS.replace("LEAST", str(n)).replace("MOST", str(n + 1_000))


def _statistics() -> str:
    names = [f"c{column}" for column in range(COLUMNS)]
    bounds = {"minValues": dict.fromkeys(names, "LEAST"), "maxValues": dict.fromkeys(names, "MOST")}
    text = {"numRecords": 1_000, **bounds, "nullCount": dict.fromkeys(names, 0)}
    return json.dumps(text, separators=(",", ":")).replace('"LEAST"', "LEAST").replace('"MOST"', "MOST")


_STATS = _statistics()


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
_PER_FILE = 1_000_000


def _checkpoint(table: Path, *, version: int, files: int, form: Form = Form.ONE_FILE) -> None:
    """The checkpoint of `version`, as Delta-Spark's are: facts first, then adds; statistics as JSON."""
    log = table / "_delta_log"
    actions = [json.loads(line) for line in (log / f"{0:020d}.json").read_text().splitlines()]
    named = {kind: values for action in actions for kind, values in action.items()}
    metadata = named["metaData"] | {"configuration": [], "format": {"provider": "parquet", "options": []}}
    facts: list[dict[str, object]] = [{"protocol": named["protocol"]}, {"metaData": metadata}]
    firsts = range(1, files + 1, _PER_FILE if form is not Form.ONE_FILE else files)
    spans = [range(first, min(first + firsts.step, files + 1)) for first in firsts]
    if form is Form.SIDECARS:
        (log / "_sidecars").mkdir()
        sidecars = []
        for number, span in enumerate(spans):
            path = log / "_sidecars" / f"{_uuid(number)}.parquet"
            _write_adds(path, span)
            size = path.stat().st_size
            sidecars.append({"path": path.name, "sizeInBytes": size, "modificationTime": 1_700_000_000_000})
        facts += [{"checkpointMetadata": {"version": version}}]
        facts += [{"sidecar": sidecar} for sidecar in sidecars]
        pq.write_table(pa.Table.from_pylist(facts, _TOP_LEVEL), log / f"{version:020d}.checkpoint.{_uuid(0)}.parquet")
    elif form is Form.PARTS:
        for part, span in enumerate(spans, 1):
            name = f"{version:020d}.checkpoint.{part:010d}.{len(spans):010d}.parquet"
            _write_adds(log / name, span, facts if part == 1 else ())
    else:
        _write_adds(log / f"{version:020d}.checkpoint.parquet", spans[0], facts)
    hint = {"version": version, "size": files + len(facts), "numOfAddFiles": files}
    if form is Form.PARTS:
        hint["parts"] = len(spans)
    (log / "_last_checkpoint").write_text(json.dumps(hint))


def _write_adds(path: Path, numbers: range, facts: Sequence[dict[str, object]] = ()) -> None:
    kinds = pa.schema([*(_TOP_LEVEL.field(name) for name in ("protocol", "metaData")), ("add", _ADD)])
    with pq.ParquetWriter(path, kinds, compression="snappy") as writer:
        if facts:
            writer.write_table(pa.Table.from_pylist(list(facts), kinds))
        for first in range(0, len(numbers), _STEP):
            adds = _adds(numbers[first : first + _STEP])
            nulls = [pa.nulls(len(adds), kind) for kind in kinds.types[:2]]
            writer.write_batch(pa.record_batch([*nulls, adds], schema=kinds))


def _adds(numbers: range) -> pa.StructArray:
    days = pa.MapArray.from_arrays(
        pa.array(range(len(numbers) + 1), pa.int32()), pa.repeat("day", len(numbers)), pa.array(map(_day, numbers))
    )
    size, modified = (pa.array([first + n for n in numbers], pa.int64()) for first in (_SIZE, _MODIFIED_MS))
    paths, stats = pa.array(map(_path, numbers)), pa.array(map(_stats, numbers))
    columns = [paths, days, size, modified, pa.repeat(pa.scalar(value=True), len(numbers)), stats]
    return pa.StructArray.from_arrays(columns, fields=list(_ADD))


def _uuid(number: int) -> str:
    return f"8a01e4f2-7c2b-4b4c-9d51-{number:012x}"


_TOP_LEVEL = pa.schema(
    [
        (
            "protocol",
            pa.struct(
                [
                    ("minReaderVersion", pa.int32()),
                    ("minWriterVersion", pa.int32()),
                    ("readerFeatures", pa.list_(pa.string())),
                    ("writerFeatures", pa.list_(pa.string())),
                ]
            ),
        ),
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
        ("checkpointMetadata", pa.struct([("version", pa.int64())])),
        (
            "sidecar",
            pa.struct([("path", pa.string()), ("sizeInBytes", pa.int64()), ("modificationTime", pa.int64())]),
        ),
    ]
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the size and the form of `large_checkpoint` to what a command line may name."""
    parser.add_argument("--files", type=int, default=CHECKPOINT_FILES, help=f"of a checkpoint ({CHECKPOINT_FILES:,})")
    parser.add_argument("--form", type=Form, choices=list(Form), default=Form.ONE_FILE, help="of that checkpoint")


def main() -> None:
    """Makes a table of one checkpoint."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.logs", description=main.__doc__)
    parser.add_argument("table", type=Path)
    add_arguments(parser)
    given = parser.parse_args()
    large_checkpoint(given.table, files=given.files, form=given.form)


if __name__ == "__main__":
    main()
