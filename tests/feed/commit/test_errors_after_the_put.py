"""An error right after the put of a commit succeeded: whatever it is, every file that the commit names stays."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pytest

import tablefeed
from support.commits import commit_files, still, written
from support.faulty_store import Fault, FaultyStore
from support.logs import a_log, add, commit_path, live_paths, metadata, protocol
from support.maintained import ids
from tablefeed.errors import LogError, StoreError, TablefeedError
from tablefeed.feed.commit.loop import commit
from tablefeed.feed.snapshot.delta_log import DeltaLog
from tablefeed.feed.snapshot.index_log import IndexTablesLog
from tablefeed.feed.write.write_rules import WriteRules
from tablefeed.indextables import names
from tablefeed.log.conflicts import WriteKind
from tablefeed.store import LocalStore

SPLITS = f"{names.LOG_DIR}/"
RECORDS_CHANGES = {"delta.enableChangeDataFeed": "true"}

# The log file of our commit, the predicate of an overwrite (None: an append), the rows and the changes after it.
WRITES: Mapping[str, tuple[str, str | None, list[int], list[int]]] = {
    "append": (commit_path(1), None, [1, 2, 3, 4], [4]),
    "overwrite of whole files": (commit_path(1), "id > 0", [4], [1, 2, 3, 4]),
    "overwrite of some rows of a file": (commit_path(1), "id > 2", [1, 2, 4], [3, 4]),
    "append of splits": (SPLITS + names.commit_name(2), None, [1, 2, 3, 4], [4]),
    "append of splits to a log of states": (SPLITS + names.state_name(2), None, [1, 2, 3, 4], [4]),
}


class Damage:
    """Raises `error` at the look number `at` after the log file `put` is there, as a damaged log does; once."""

    def __init__(self, put: Path, at: int, error: type[LogError | StoreError]) -> None:
        self._put, self._error, self.looks_left = put, error, at

    def __call__(self) -> None:
        if self._put.exists():
            self.looks_left -= 1
            if self.looks_left == 0:
                raise self._error("damaged on purpose", url=str(self._put))

    def store(self, table: Path) -> FaultyStore:
        looks: tuple[Literal["list", "read", "stat", "exists"], ...] = ("list", "read", "stat", "exists")
        return FaultyStore(
            LocalStore(str(table)), faults=[Fault(operation=op, at=n, hook=self) for op in looks for n in range(1, 40)]
        )


def a_table_of_three_rows(table: Path, put: str) -> type[DeltaLog | IndexTablesLog]:
    rows = pa.table({"id": [1, 2, 3]})
    if put == commit_path(1):
        tablefeed.append(table, rows, properties=RECORDS_CHANGES)
        return DeltaLog
    tablefeed.append(table, rows, table_format="indextables")
    for version in range(2 if put.endswith(names.state_name(2)) else 0):
        (table / names.LOG_DIR / names.commit_name(version)).unlink()
    return IndexTablesLog


@pytest.mark.parametrize("error", [LogError, StoreError])
@pytest.mark.parametrize("write", WRITES)
def test_no_file_is_deleted_whichever_look_at_the_store_after_the_put_fails(
    tmp_path: Path, write: str, error: type[LogError | StoreError]
) -> None:
    put, predicate, rows, changed = WRITES[write]
    for at in count(1):
        table = tmp_path / str(at)
        kind_of_log, damage = a_table_of_three_rows(table, put), Damage(table / put, at, error)
        log = kind_of_log(damage.store(table), location=str(table), storage_options={})
        kind, rules = (
            WriteKind.APPEND if predicate is None else WriteKind.OVERWRITE,
            WriteRules(replace_where=predicate),
        )
        state, ours = log.load(), written(log, pa.table({"id": [4]}), kind=kind, rules=rules)

        with contextlib.suppress(TablefeedError):
            commit(log, state, ours, still())

        assert ids(table) == rows
        changes = tablefeed.changes(table, start_version=state.version + 1).read_all()
        assert sorted(changes["id"].to_pylist()) == changed
        if damage.looks_left > 0:
            assert at > 1
            break


def test_no_file_is_deleted_where_what_follows_the_commit_fails() -> None:
    log = a_log(v0=[protocol(), metadata(), add("old")])

    def fails(*_: object) -> None:
        raise LogError("damaged on purpose", url=log.url)

    with pytest.raises(LogError):
        commit_files(log, "ours", kind=WriteKind.OVERWRITE, around=replace(still(), on_committed=fails))

    assert live_paths(log) == ["ours"]
    assert log.store.exists("ours")
