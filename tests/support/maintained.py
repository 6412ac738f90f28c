"""A table on the local disk, asked for its rows, its files and what its commits say; and another writer's deletes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import tablefeed
from support.faulty_store import Fault, FaultyStore
from support.logs import Action, actions_of, log_of, put
from support.recorded import vector
from tablefeed.feed.snapshot.delta_log import DeltaLog
from tablefeed.feed.snapshot.open_log import open_log
from tablefeed.store import LocalStore

Rows = list[dict[str, Any]]


def in_order(rows: Sequence[dict[str, Any]]) -> Rows:
    return sorted(rows, key=repr)


def rows_of(table: Path) -> Rows:
    return in_order(tablefeed.open_table(table).to_arrow().to_pylist())


def ids(table: Path) -> list[int]:
    return sorted(row["id"] for row in rows_of(table))


def live(table: Path) -> list[str]:
    return sorted(path for batch in tablefeed.open_table(table).files() for path in batch["path"].to_pylist())


def said(table: Path, version: int, action: str) -> list[dict[str, Any]]:
    actions = actions_of(open_log(str(table)), version)
    return [each[action] for each in actions if action in each]


def delete_rows(table: Path, path: str, *positions: int, before: Action | None = None) -> Action:
    """Another writer's delete by vector; gives the add that it leaves."""
    log = open_log(str(table))
    version = log.load().version
    (found,) = [
        each["add"]
        for n in range(version + 1)
        for each in actions_of(log, n)
        if "add" in each and each["add"]["path"] == path and "deletionVector" not in each["add"]
    ]
    gone = {key: found[key] for key in ("path", "partitionValues", "size")} | {"dataChange": True}
    then = {} if before is None else {"deletionVector": before["deletionVector"]}
    after: Action = {**found, "dataChange": True, "deletionVector": vector(*positions)}
    put(log.store, version + 1, [{"remove": {**gone, "deletionTimestamp": 1, **then}}, {"add": after}])
    return after


def raced(table: Path, *rivals: Callable[[], object]) -> DeltaLog:
    """A log whose first puts of a commit are each preceded by a rival."""
    faults = [
        Fault(operation="put_if_absent", name="_delta_log", at=n, hook=lambda rival=rival: rival())  # type: ignore[misc]
        for n, rival in enumerate(rivals, start=1)
    ]
    return log_of(FaultyStore(LocalStore(str(table)), faults=faults))
