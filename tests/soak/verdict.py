"""What must be true of the tables of a soak once all of its programs have ended."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, QueryBuilder

import tablefeed
from soak.memory import Memory
from soak.steps import JAR, OURS, TABLES, Rows, app_id, expected
from soak.writers import age_log, done
from tablefeed.delta.deletion_vectors import stored_at
from tablefeed.model.actions import DeletionVector

_MOST_GROWTH, _SLACK_MB = 1.15, 10


class WrongError(Exception):
    """What is wrong after a soak."""


def check(folder: Path, seed: int, jars: Path | None, memories: Iterable[Memory]) -> int:
    """Gives the number of commits. Raises WrongError."""
    model = expected(seed, lambda table, writer: done(folder / table, app_id(writer, table)))
    readers = {OURS: _by_tablefeed, "delta-rs": _by_delta_rs}
    if jars is not None:
        command = [sys.executable, "-m", "soak.writers", "read", str(folder), str(seed), str(jars)]
        subprocess.run(command, check=True)
        readers[JAR] = _by_the_jar
    for table, rows in model.items():
        for reader, read in readers.items():
            _same(rows, read(folder / table), f"{table}, read by {reader}")
        print(f"soak: {table} has its {rows.total()} rows, each once, read by {', '.join(readers)}", flush=True)
    for table in TABLES:
        left = orphans(folder / table)
        if left:
            raise WrongError(f"vacuum left {len(left)} files of {table} that no version names: {sorted(left)[:5]}")
    for memory in memories:
        for whose, first_mb, last_mb in memory.growth():
            print(f"soak: memory of {whose}: {first_mb:.0f} MB at first, {last_mb:.0f} MB at last", flush=True)
            if memory.is_long and last_mb > first_mb * _MOST_GROWTH + _SLACK_MB:
                raise WrongError(f"the memory of {whose} grew from {first_mb:.0f} MB to {last_mb:.0f} MB")
    return sum(newest_version(folder / table) + 1 for table in TABLES)


def newest_version(table: Path) -> int:
    """The newest version, by the names in the log."""
    return max(int(path.stem) for path in (table / "_delta_log").glob("*.json") if path.stem.isdigit())


def _same(model: Rows, found: Rows, what: str) -> None:
    if model != found:
        lost, more = model - found, found - model
        raise WrongError(
            f"{what}: {lost.total()} rows are lost, such as {[*lost][:3]}; "
            f"{more.total()} rows are too many, such as {[*more][:3]}"
        )


def _rows(found: pa.Table, table: Path) -> Rows:
    return Counter(zip(*found.select(TABLES[table.name][0].names).to_pydict().values(), strict=True))


def _by_tablefeed(table: Path) -> Rows:
    return _rows(tablefeed.open_table(table).to_arrow(), table)


def _by_delta_rs(table: Path) -> Rows:
    return _rows(pa.table(QueryBuilder().register("t", DeltaTable(table)).execute("SELECT * FROM t")), table)


def _by_the_jar(table: Path) -> Rows:
    with pa.ipc.open_file(table.with_suffix(".arrow")) as file:
        return _rows(file.read_all(), table)


def orphans(table: Path) -> set[str]:
    """The files that should be gone after a vacuum that keeps the newest version alone, and a cleanup of an old log.

    In the log, those are files of versions before its first commit, and what killed writers left half-written.
    """
    for consumer in tablefeed.consumers(table).list():
        tablefeed.consumers(table).remove(consumer.consumer_id)
    tablefeed.vacuum(table, retention_hours=0, allow_short_retention=True)
    age_log(table, older_than_s=0, young_versions=0)
    tablefeed.checkpoint(table, clean_up=True)
    log = table / "_delta_log"
    first = min(path.name for path in log.glob("*.json") if path.stem.isdigit())[:20]
    # delta-rs deletes log files without the checksum files that Hadoop wrote beside them.
    in_log = {path.name for path in log.iterdir() if path.name[:20] < first and not path.match(".*.crc")}
    there = {str(path.relative_to(table)) for path in table.rglob("*") if path.is_file() and log not in path.parents}
    named = _named(table)
    return in_log | (there - named - {_of_hadoop(name) for name in named})


def _of_hadoop(name: str) -> str:
    """The file of checksums that Hadoop writes beside a file on a local disk."""
    folder, slash, base = name.rpartition("/")
    return f"{folder}{slash}.{base}.crc"


def _named(table: Path) -> set[str]:
    """The files that the newest version names, by a plain replay of its newest checkpoint and the commits after it."""
    log = table / "_delta_log"
    start = max((int(path.name[:20]) for path in log.glob("*.checkpoint.parquet")), default=-1)
    actions: list[Mapping[str, Any]] = []
    if start >= 0:
        actions += pq.read_table(log / f"{start:020d}.checkpoint.parquet").to_pylist()
    for version in range(start + 1, newest_version(table) + 1):
        actions += map(json.loads, (log / f"{version:020d}.json").read_text().splitlines())
    files: dict[tuple[str, str], list[str]] = {}
    domains: dict[str, str] = {}
    for action in actions:
        if gone := action.get("remove"):
            files.pop(_identity(gone), None)
        if add := action.get("add"):
            files[_identity(add)] = [unquote(add["path"]), *_vector(add.get("deletionVector"))]
        if domain := action.get("domainMetadata"):
            domains[domain["domain"]] = domain["configuration"]
    states = {word for text in domains.values() for word in text.split('"') if word.startswith("_tablefeed/")}
    return {name for names in files.values() for name in names} | states


def _identity(file: Mapping[str, Any]) -> tuple[str, str]:
    """What names a logical file: its path and its deletion vector."""
    vector = file.get("deletionVector")
    return file[
        "path"
    ], "" if vector is None else f"{vector['storageType']}{vector['pathOrInlineDv']}@{vector.get('offset')}"


def _vector(given: Mapping[str, Any] | None) -> list[str]:
    if given is None:
        return []
    vector = DeletionVector(
        storage_type=given["storageType"],
        path_or_inline=given["pathOrInlineDv"],
        offset=given.get("offset"),
        size_bytes=given["sizeInBytes"],
        cardinality=given["cardinality"],
    )
    stored = stored_at(vector)
    return [] if stored is None else [stored.path]
