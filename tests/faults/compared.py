"""What is compared of tables after a process was killed: what readers see, and what is left on the disk."""

from __future__ import annotations

import contextlib
import re
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

import tablefeed
from tablefeed.errors import LogError, TableNotFoundError
from tablefeed.feed.snapshot.delta_log import DeltaLog
from tablefeed.feed.snapshot.open_log import open_log
from tablefeed.feed.upkeep.checkpoint import checkpointed
from tablefeed.feed.upkeep.vacuum import vacuumed

DAY_MS = 86_400_000

APPLICATIONS = ("job", "query", "rival", "tablefeed.replicate")


def tables_in(root: Path) -> list[Path]:
    return sorted(path.parent for name in ("_delta_log", "_transaction_log") for path in root.rglob(name))


def observed(root: Path) -> dict[str, Any]:
    """What is seen of each table: its rows, which delta-rs must see too, its version, properties and transactions."""
    found = {}
    for path in tables_in(root):
        try:
            table = tablefeed.open_table(path)
        except TableNotFoundError:
            continue
        rows = table.to_arrow()
        if (path / "_delta_log").exists():
            read_by_delta_rs(path, rows)
        found[path.name] = {
            "version": table.version,
            "rows": in_order(rows),
            "txns": {each: table.txn_version(each) for each in APPLICATIONS},
            "properties": dict(sorted(table.metadata.configuration.items())),
            "consumers": [each.consumer_id for each in tablefeed.consumers(path).list()],
        }
    return found


def history(before: Path, after: Path) -> dict[str, Any]:
    """The rows of each table in each version that a step made, from that before the step on; -1: no table yet."""
    found = {}
    for path in tables_in(after):
        try:
            first = tablefeed.open_table(before / path.relative_to(after)).version
        except TableNotFoundError:
            first = -1
        last = tablefeed.open_table(path).version
        versions = {
            str(v): in_order(tablefeed.open_table(path, version=v).to_arrow()) for v in range(max(first, 0), last)
        }
        now = tablefeed.open_table(path).to_arrow()
        found[path.name] = {"first": first, "last": last, **versions, str(last): in_order(now), "-1": []}
    return found


def check_history(root: Path, histories: dict[str, Any], *, is_done: bool) -> None:
    """Checks that readers see each table as in one of the versions that the step makes; the last, where it ended."""
    state = observed(root)
    for name, known in histories.items():
        version = state[name]["version"] if name in state else -1
        assert known["last" if is_done else "first"] <= version <= known["last"], f"{name} is at version {version}"
        rows = state[name]["rows"] if name in state else []
        assert rows == known[str(version)], (
            f"version {version} of {name} has the rows {rows}, not {known[str(version)]}"
        )


def in_order(rows: pa.Table) -> list[str]:
    return sorted(map(repr, rows.to_pylist()))


def read_by_delta_rs(path: Path, rows: pa.Table) -> None:
    table = DeltaTable(str(path))
    protocol = table.protocol()
    # It knows no column mapping (reader version 2), and no features of readers that these tables have.
    if protocol.min_reader_version == 1:
        assert in_order(table.to_pyarrow_table().select(rows.column_names)) == in_order(rows)


def finished(root: Path) -> dict[str, Any]:
    """What `observed` gives, and the files outside of the log that are left after upkeep, by the kind of their name."""
    files = dict[str, Any]()
    later_ms = time.time_ns() // 1_000_000 + 3 * DAY_MS
    for path in tables_in(root):
        log = open_log(str(path))
        if isinstance(log, DeltaLog):
            vacuumed(log, retention_ms=0, allow_short=True, dry_run=False, now_ms=later_ms)
        with contextlib.suppress(LogError):  # an IndexTables table of version 0
            checkpointed(log, clean_up=True, now_ms=later_ms)
        left = sorted(each.relative_to(path).as_posix() for each in path.rglob("*") if each.is_file())
        temporary = [name for name in left if name.endswith(".tmp")]
        assert not temporary, f"temporary files are left: {temporary}"
        if isinstance(log, DeltaLog):
            outside = (name for name in left if not name.startswith("_delta_log/"))
            files[path.name] = dict(sorted(Counter(map(without_ids, outside)).items()))
    return {"state": observed(root), "files": files}


def without_ids(name: str) -> str:
    return re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|part-\d+", "*", name)
