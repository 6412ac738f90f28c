"""What must hold of the tables of a schedule, from the bytes of their commits and plain Python alone."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal
from urllib.parse import unquote

import orjson
import pyarrow as pa

from simulation import plain_index
from simulation.world import COMMIT, FIRST_ROWS, Disk, World
from tablefeed.feed.snapshot.delta_log import DeltaLog
from tablefeed.model.actions import Txn
from tablefeed.model.offset import Offset
from tablefeed.model.outcome import AlreadyApplied, Committed

Event = tuple[int, str, int, str]
"""A key, a value, a sequence, and "u" or "d"."""


How = Literal["apply", "merge", "delete", "update", "append", "overwrite", "restore"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What one commit does to the rows of a table.

    apply and merge: each event writes or deletes its row, by the sequences or in the order of the commits. delete: the
    rows up to the key of the first event are deleted. update: they get its value. append: the keys of the events are
    new rows. overwrite: they are all rows. restore: the table is as of the version that is the key of the event.
    """

    how: How
    events: Sequence[Event]


class BrokenLawError(AssertionError):
    """What must hold does not."""


def require(holds: bool, *said: object) -> None:  # noqa: FBT001 - as `assert`
    if not holds:
        raise BrokenLawError(" ".join(map(str, said)))


def holds(law: Callable[[], None]) -> bool:
    """Whether a law holds."""
    try:
        law()
    except BrokenLawError:
        return False
    return True


class Oracle:
    """Knows from the commits of each table, as they were put, which rows each version has."""

    def __init__(self, world: World, batches: Mapping[Txn, Batch]) -> None:
        self._world, self._batches = world, batches

    def txns(self, table: str) -> list[Txn]:
        """The transactions of the table's commits, in their order."""
        return [txn for _, data in sorted(self._world.disk(table).history.items()) for txn in self._txns(table, data)]

    def _txns(self, table: str, data: bytes) -> list[Txn]:
        """The transactions of a commit. An IndexTables log has them in the names of splits, whatever form it has."""
        if self._world.disk(table).form == "delta":
            return _txns(data)
        adds = [action["add"] for action in _parsed(data) if action.get("add", {}).get("dataChange")]
        return list(dict.fromkeys([*(txn for add in adds if (txn := self._world.txns.get(add["path"]))), *_txns(data)]))

    def appended(self, table: str, history: Mapping[int, bytes] | None = None) -> dict[int, list[int]]:
        """The rows that each version appended, in the order of its files; of a `history`, by default the table's."""
        found: dict[int, list[int]] = {}
        history = self._world.disk(table).history if history is None else history
        for version, data in sorted(history.items()):
            adds = [a["add"] for a in _parsed(data) if a.get("add", {}).get("dataChange")]
            found[version] = [row for add in adds for row in self._world.rows[add["path"]]]
        return found

    def rows(
        self, table: str, version: int | None = None, history: Mapping[int, bytes] | None = None
    ) -> list[tuple[Any, ...]]:
        """The rows of the commits up to `version`, sorted; of a `history`, by default the table's."""
        if table in ("changed", "merged"):
            return sorted(folded(self._commits(table, version, history)))
        there = self.appended(table, history).items()
        if table == "overwritten":
            begun = (row for at, rows in there for row in rows if row >= FIRST_ROWS[table])
            return sorted((row,) for row, *_ in folded(self._commits(table, version, history), begun))
        return sorted((row,) for at, rows in there if version is None or at <= version for row in rows)

    def _commits(
        self, table: str, version: int | None, history: Mapping[int, bytes] | None
    ) -> Iterator[tuple[int, list[Batch]]]:
        """What each commit up to `version` does to the rows."""
        history = self._world.disk(table).history if history is None else history
        for at, data in sorted(history.items()):
            if version is None or at <= version:
                infos = [action["commitInfo"] for action in _parsed(data) if "commitInfo" in action]
                wanted = [int(i["operationParameters"]["version"]) for i in infos if i.get("operation") == "RESTORE"]
                back = [Batch(how="restore", events=[(to, "", 0, "u")]) for to in wanted]
                yield at, [*back, *(self._batches[txn] for txn in self._txns(table, data))]

    def check_rows(self, table: str, version: int, rows: pa.Table) -> None:
        """Every reader sees the rows of the commits up to its version."""
        found, expected = sorted(tuple(row.values()) for row in rows.to_pylist()), self.rows(table, version)
        require(found == expected, f"{table} at version {version} has {found}, not {expected}")

    def acknowledges(
        self, table: str, txn: Txn | None, rows: Collection[int] = (), *, replaces: bool = False
    ) -> Callable[[Committed | AlreadyApplied], None]:
        """Gives the check that what is acknowledged is in the log, unless the table was replaced since now.

        That is `txn`; or `rows`, where there is none. An IndexTables table records no txn of an append without rows.
        """
        disk = self._world.disk(table)
        epoch, is_nothing = len(disk.past), disk.form != "delta" and not rows and not replaces

        def acknowledge(outcome: Committed | AlreadyApplied) -> None:
            if len(disk.past) != epoch or is_nothing:
                return
            said = outcome.version if isinstance(outcome, Committed) else None
            if txn is None:
                there = {row for at, of in self.appended(table).items() if at == said for row in of}
                require(there.issuperset(rows), f"{table} acknowledged {rows} as {outcome}, which has {there}")
            else:
                txns = self.txns(table) if said is None else self._txns(table, disk.history.get(said, b""))
                require(txn in txns, f"{table} acknowledged {txn} as {outcome}, and its commits do not have it")

        return acknowledge

    def check_once(self, table: str) -> None:
        """No transaction is in the table twice, and no row that an appender wrote."""
        written: list[object] = [*self.txns(table)]
        if table == "source":
            written += [row for rows in self.appended(table).values() for row in rows]
        twice = [each for each, count in Counter(written).items() if count > 1]
        require(not twice, f"{table} has {twice} twice")

    def live(self, table: str, version: int | None = None) -> set[str]:
        """The live files of the newest or another version, each with its deletion vector."""
        found: set[str] = set()
        for action in self._actions(table, version):
            if "remove" in action:
                found.discard(_key(action["remove"]))
            elif "add" in action:
                found.add(_key(action["add"]))
        return found

    def check_log(self, table: str) -> None:
        """Live files are there; whichever checkpoint a reader begins with, it finds them; and checksums are right."""
        disk = self._world.disk(table)
        if not disk.history:
            there = disk.names() if disk.form == "delta" else plain_index.log_files(disk)
            require(not there, f"{table} was deleted and has {there}")
            return
        require(sorted(disk.history) == list(range(len(disk.history))), f"{table} has versions {sorted(disk.history)}")
        gone = {key for key in self.live(table) if not disk.exists(unquote(key.partition(" ")[0]))}
        require(not gone, f"{table} names the files {gone}, which are gone")
        if disk.form != "delta":
            self._check_index_log(table, disk)
            return
        for name in disk.names():
            if ".checkpoint." in name and "_sidecars" not in name and name not in disk.damaged:
                self._check_checkpoint(table, disk, name)
            if name.endswith(".crc"):
                self._check_checksum(table, disk, name)

    def _check_index_log(self, table: str, disk: Disk) -> None:
        """Each state and checkpoint has the files of its version, and a plain reader finds those of the newest."""
        for name in plain_index.log_files(disk):
            version = plain_index.version_in(name)
            require(version in disk.history, f"{table} has {name}, and never had that version")
            if name not in disk.damaged and version and not name.endswith(f"{version:020d}.json"):
                found, expected = plain_index.live_at_base(disk, name), self.live(table, version)
                require(found == expected, f"{table} by {name} has the files {found}, not {expected}")
        newest, read = (max(disk.history), self.live(table)), plain_index.newest(disk, without=disk.damaged)
        require(read == newest, f"{table} is {read} for a plain reader, not {newest}")

    def _check_checksum(self, table: str, disk: Disk, name: str) -> None:
        version, said = int(name.removeprefix("_delta_log/")[:20]), json.loads(disk.read(name))
        found = version, said["numFiles"], said["metadata"]["id"]
        require(version in disk.history, f"{table} has {name}, and never had that version")
        ids = [a["metaData"]["id"] for a in self._actions(table, version) if "metaData" in a]
        require(found == (version, len(self.live(table, version)), ids[-1]), f"{table} has {name} that says {found}")

    def _check_checkpoint(self, table: str, disk: Disk, name: str) -> None:
        version = int(name.removeprefix("_delta_log/")[:20])
        alone = disk.copy_of()
        for other in disk.names():
            after = (commit := COMMIT.match(other)) and int(commit[1]) > version
            if other != name and not after and "_sidecars" not in other:
                del alone._objects[other]
        snapshot = DeltaLog(alone, location=alone.url, storage_options={}).load_for_files()
        ids = {a["metaData"]["id"] for a in self._actions(table, None) if "metaData" in a}
        require(snapshot.version == max(disk.history), f"{table} by {name} is at version {snapshot.version}")
        require(snapshot.metadata.table_id in ids, f"{table} by {name} is another table")
        found = {key for batch in snapshot.live_files() for key in batch["log_path"].to_pylist()}
        expected = {key.partition(" ")[0] for key in self.live(table)}
        require(found == expected, f"{table} by {name} has the files {found}, not {expected}")

    def _actions(self, table: str, version: int | None) -> Iterator[dict[str, Any]]:
        history = self._world.disk(table).history
        for each in sorted(history):
            if version is None or each <= version:
                yield from _parsed(history[each])


def check_stream(
    source: Mapping[int, list[int]], target: Mapping[int, list[int]], begin: Offset, *, whole: bool
) -> None:
    """Each row of each source commit is in the target once, in the order of the commits; both are rows by version.

    The rows of an initial snapshot come first, in any order. Not `whole`: the target has a prefix of the commits.
    """
    first = -1 if begin.in_snapshot else begin.version
    order = {row: max(version, begin.version) for version, rows in source.items() if version >= first for row in rows}
    found = [row for rows in target.values() for row in rows]
    said = f"{dict(target)} of {dict(source)} from {begin}"
    twice = [row for row, count in Counter(found).items() if count > 1]
    require(not twice, f"the target has {twice} twice: {said}")
    require(set(found) <= set(order), f"the target has {set(found) - set(order)}, which are not due: {said}")
    reached = -1
    for rows in target.values():
        require(not rows or min(order[row] for row in rows) >= reached, f"the target has {rows} out of order: {said}")
        reached = max([reached, *(order[row] for row in rows)])
    due = {row for row, at in order.items() if whole or at < reached}
    require(due <= set(found), f"the target lacks {due - set(found)}: {said}")


def folded(
    commits: Iterable[tuple[int, Sequence[Batch]]], begun: Iterable[int] = ()
) -> Collection[tuple[int, str, int]]:
    """The rows that the batches of commits leave, in a table that begins with the keys in `begun`."""
    rows: dict[int, tuple[int, str, int]] = {key: (key, "", 0) for key in begun}
    newest: dict[int, int] = {}
    past: dict[int, tuple[dict[int, tuple[int, str, int]], dict[int, int]]] = {}
    for version, batches in commits:
        for batch in batches:
            if batch.how == "restore":
                then, of_then = past[batch.events[0][0]]
                rows, newest = dict(then), dict(of_then)
            else:
                rows = _after(batch, rows, newest)
        past[version] = dict(rows), dict(newest)
    return rows.values()


def _after(
    batch: Batch, rows: dict[int, tuple[int, str, int]], newest: dict[int, int]
) -> dict[int, tuple[int, str, int]]:
    """The rows after a batch. `newest` has the newest sequence of each key."""
    if batch.how in ("append", "overwrite"):
        kept = {} if batch.how == "overwrite" else rows
        return kept | {key: (key, value, at) for key, value, at, _ in batch.events}
    up_to, value, *_ = batch.events[0]
    for key in [key for key in rows if key <= up_to]:
        if batch.how == "delete":
            del rows[key]
        elif batch.how == "update":
            rows[key] = (key, value, rows[key][2])
    for key, value, at, kind in batch.events if batch.how in ("apply", "merge") else ():
        if batch.how == "merge" or at > newest.get(key, 0):
            newest[key] = at
            rows.pop(key, None)
            if kind == "u":
                rows[key] = (key, value, at)
    return rows


@lru_cache(maxsize=100)
def _parsed(commit: bytes) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in commit.splitlines()]


def _txns(data: bytes) -> list[Txn]:
    found = [action["txn"] for action in _parsed(data) if "txn" in action]
    return [Txn(app_id=each["appId"], txn_version=each["version"]) for each in found]


def _key(action: dict[str, Any]) -> str:
    vector = action.get("deletionVector")
    return f"{action['path']} {vector['pathOrInlineDv']}{vector.get('offset')}" if vector else action["path"]
