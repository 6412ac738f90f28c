"""A table on the local disk, asked for its rows, its files and what its commits say; and another writer's deletes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tablefeed
from support.logs import Action, put, said
from support.recorded import vector
from tablefeed.feed.snapshot.open_log import open_log

Rows = list[dict[str, Any]]


def in_order(rows: Sequence[dict[str, Any]]) -> Rows:
    return sorted(rows, key=repr)


def rows_of(table: Path) -> Rows:
    return in_order(tablefeed.open_table(table).to_arrow().to_pylist())


def ids(table: Path | str, version: int | None = None) -> list[int]:
    return sorted(tablefeed.open_table(table, version=version).to_arrow()["id"].to_pylist())


def live(table: Path) -> list[str]:
    return sorted(path for batch in tablefeed.open_table(table).files() for path in batch["path"].to_pylist())


def delete_rows(table: Path, path: str, *positions: int, before: Action | None = None) -> Action:
    """Another writer's delete by vector; gives the add that it leaves."""
    log = open_log(str(table))
    version = log.load().version
    adds = [each for n in range(version + 1) for each in said(log, n, "add")]
    (found,) = [each for each in adds if each["path"] == path and "deletionVector" not in each]
    gone = {key: found[key] for key in ("path", "partitionValues", "size")} | {"dataChange": True}
    then = {} if before is None else {"deletionVector": before["deletionVector"]}
    after: Action = {**found, "dataChange": True, "deletionVector": vector(*positions)}
    put(log.store, version + 1, [{"remove": {**gone, "deletionTimestamp": 1, **then}}, {"add": after}])
    return after
