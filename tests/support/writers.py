"""Writers at one table that are processes, and what must be true of the table when all of them are done.

Each writes rows of its own, one a commit, and says at which versions: so nothing is lost or there twice unseen.
"""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures.process import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError

import tablefeed
from tablefeed.feed.upkeep.background import wait_until_done

PATIENCE_S = 300

Writer = Callable[[str, Sequence[int]], list[int]]


def by_tablefeed(location: str, rows: Sequence[int], storage_options: Mapping[str, str] | None = None) -> list[int]:
    """Appends each row in a commit of its own; gives the versions. What fails, fails the test."""
    versions: list[int] = [
        tablefeed.append(location, pa.table({"id": [row]}), storage_options=storage_options).version for row in rows
    ]
    wait_until_done()
    return versions


def by_delta_rs(location: str, rows: Sequence[int]) -> list[int]:
    """Does the same by delta-rs, which gives up after some races and is then asked again. It tells no versions."""
    for row in rows:
        while True:
            try:
                write_deltalake(location, pa.table({"id": [row]}), mode="append")
            except CommitFailedError:
                continue
            break
    return []


def all_at_once(location: str, writers: Sequence[tuple[Writer, Sequence[int]]]) -> list[int]:
    """Runs each writer in a process of its own, from the same moment on; gives the versions that they tell."""
    spawn = multiprocessing.get_context("spawn")
    together = spawn.Barrier(len(writers))
    with ProcessPoolExecutor(len(writers), spawn, initializer=together.wait, initargs=(PATIENCE_S,)) as pool:
        futures = [pool.submit(writer, location, rows) for writer, rows in writers]
        return [version for future in futures for version in future.result(timeout=PATIENCE_S)]


def rows_by_delta_rs(location: str) -> list[int]:
    """The table's rows, as delta-rs reads them."""
    return sorted(DeltaTable(location).to_pyarrow_table()["id"].to_pylist())


def versions_in_log(location: str) -> list[int]:
    """The versions whose commits are there."""
    return sorted(int(path.stem) for path in _log(location).glob("*.json") if path.stem.isdigit())


def checkpoint_versions(location: str) -> list[int]:
    """The versions with a checkpoint in one file."""
    return sorted(int(path.name[:20]) for path in _log(location).glob("*.checkpoint.parquet"))


def wrong_checksums(location: str) -> Mapping[int, str]:
    """What the checksums of a table that only adds, and whose log is whole, say wrong, by version."""
    files = size_bytes = 0
    wrong: dict[int, str] = {}
    for version in versions_in_log(location):
        adds = [action["add"] for action in _actions(location, version) if "add" in action]
        files += len(adds)
        size_bytes += sum(add["size"] for add in adds)
        path = _log(location) / f"{version:020d}.crc"
        if path.exists():
            told = json.loads(path.read_text())
            if (told["numFiles"], told["tableSizeBytes"]) != (files, size_bytes):
                wrong[version] = f"{told['numFiles']} files of {told['tableSizeBytes']}, not {files} of {size_bytes}"
    return wrong


def checksum_count(location: str) -> int:
    """How many versions have a checksum."""
    return len(list(_log(location).glob("[0-9]*.crc")))


def forget_commits_before(location: str, version: int) -> None:
    """Removes commits, so that a reader needs the checkpoint of `version`."""
    for older in versions_in_log(location):
        if older <= version:
            (_log(location) / f"{older:020d}.json").unlink()


def _actions(location: str, version: int) -> list[dict[str, Any]]:  # Any: JSON
    return [json.loads(line) for line in (_log(location) / f"{version:020d}.json").read_text().splitlines()]


def _log(location: str) -> Path:
    return Path(location) / "_delta_log"
