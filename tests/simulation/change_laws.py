"""What must hold of the change feed and of the row ids of a table that records and tracks its rows' changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pyarrow as pa

import tablefeed
from simulation.laws import BrokenLawError, require
from simulation.world import COMMIT, Disk
from tablefeed.delta.columns import to_add_files
from tablefeed.delta.row_tracking import high_water_mark, id_columns
from tablefeed.errors import DataFileError
from tablefeed.feed.scan.delta_task import DeltaTask, delta_columns
from tablefeed.feed.scan.row_ids import read_with_ids
from tablefeed.feed.snapshot.delta_log import DeltaLog
from tablefeed.store import memory

RECORDS = {"delta.enableChangeDataFeed": "true", "delta.enableRowTracking": "true"}

URL = "mem://simulated"

Row = tuple[Any, ...]


def check_changes(disk: Disk, rows_at: Callable[[int], Sequence[Row]], *, is_vacuumed: bool) -> None:
    """The change feed of each version turns the rows of the version before into its own rows.

    This holds for the recorded changes, and for those that are found by row ids. Both name the same rows as updated.
    Only a vacuum may have deleted the files of changes.
    """
    memory.at(URL)._objects = dict(disk._objects)
    there = sorted(int(found[1]) for name in disk.names() if (found := COMMIT.match(name)))
    first = there[0] + (there[0] > 0)
    if first > there[-1]:
        return
    try:
        recorded = _rows(tablefeed.changes(URL, start_version=first))
        by_id = _rows(
            tablefeed.changes(URL, start_version=first, deduplication_mode="dropCarryovers", compute_updates=True)
        )
    except DataFileError:
        require(is_vacuumed, "a file of changes is gone, and no vacuum ran")
        return
    before = rows_at(first - 1) if first else ()
    for changes in (recorded, by_id):
        check_followed(changes, before, rows_at, range(first, there[-1] + 1))
    restores = {version for version, data in disk.history.items() if b'"RESTORE"' in data}  # they record no updates
    one, other = ({u for u in _updates(each) if u[0] not in restores} for each in (recorded, by_id))
    require(one == other, f"updates are {one}, and by row ids {other}")


def _rows(changes: pa.RecordBatchReader) -> list[Row]:
    return [tuple(row.values())[:-1] for row in changes.read_all().to_pylist()]


def check_followed(
    changes: Iterable[Row], before: Iterable[Row], rows_at: Callable[[int], Iterable[Row]], versions: range
) -> None:
    """The changes of each of the `versions` turn the rows of the version before into its own.

    `before` has the rows before the first of them. A change is a row with its kind and version behind it. Changes of
    other versions are left out.
    """
    found: dict[int, tuple[Counter[Row], Counter[Row]]] = {version: (Counter(), Counter()) for version in versions}
    for *row, change, version in changes:
        if version in found:
            found[version][change in ("insert", "update_postimage")][tuple(row)] += 1
    rows = Counter(before)
    for version, (removed, added) in found.items():
        after = Counter(rows_at(version))
        is_right = removed <= rows and rows - removed + added == after
        require(is_right, f"version {version} has {after}, not {rows} without {removed} and with {added}")
        rows = after


def _updates(changes: Iterable[Row]) -> set[tuple[int, int]]:
    """The version and the key of each row that got other values."""
    images: dict[tuple[int, int], set[Row]] = {}
    for key, *row, change, version in changes:
        if change.startswith("update"):
            images.setdefault((version, key), set()).add(tuple(row))
    return {key for key, rows in images.items() if len(rows) > 1}


def check_row_ids(disk: Disk) -> None:
    """No two rows have one id, and the next ids are greater than all."""
    snapshot = DeltaLog(disk, location=disk.url, storage_options={}).load_for_files()
    columns = id_columns(snapshot.properties, snapshot.schema)
    if columns is None:
        raise BrokenLawError(f"the rows of {disk.url} have no ids")
    scan = DeltaTask(url=disk.url, storage_options={}, columns=delta_columns(snapshot.schema, snapshot.metadata))
    files = [(add, scan.file(add)) for batch in snapshot.live_files() for add in to_add_files(batch)]
    rows = read_with_ids(scan, files, pa.schema([]), columns, store=disk)
    ids = sorted(found for batch in rows for found in batch[columns.row_id].to_pylist())
    mark = high_water_mark(snapshot.facts.domains)
    require(len({*ids}) == len(ids) and max(ids, default=-1) <= mark, f"the rows have the ids {ids}, marked {mark}")
