"""How far a stream is behind its table: what the table has beyond the offset where a batch ends.

A query's progress reports it as the source's latest offset (docs/how-to/monitoring.md). Only this module writes and
reads its JSON. It is measured at every trigger, so it uses what `Tail` has just read. A stream that is not behind costs
no request to the store.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tablefeed.errors import TablefeedError
from tablefeed.feed.snapshot.table_log import TableLog
from tablefeed.feed.snapshot.tail import Tail
from tablefeed.feed.stream.batch_span import last_version
from tablefeed.feed.stream.offset_json import offset_to_json
from tablefeed.model.actions import Commit, Version
from tablefeed.model.offset import Offset

READ_AHEAD = 8
"""The most commits that one answer reads ahead of the stream. `Tail` keeps them, so each is still read only once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lag:
    """What a stream of the table at `url` has still to deliver. None means not known or not applicable.

    `versions_behind` counts the versions that are not fully delivered; an initial snapshot counts as one.
    `seconds_behind` is the age of the oldest of these versions. Only files that the stream would deliver count.
    `snapshot_percent` is how much of the initial snapshot's bytes is delivered; after the snapshot it is 100.
    """

    url: str
    versions_behind: int
    seconds_behind: float | None
    files_outstanding: int | None
    bytes_outstanding: int | None
    snapshot_percent: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotLeft:
    """What is still to be delivered of an initial snapshot of `total_bytes`."""

    files: int
    size_bytes: int
    total_bytes: int


_WIRE = {
    "versions_behind": "versionsBehind",
    "seconds_behind": "secondsBehind",
    "files_outstanding": "numFilesOutstanding",
    "bytes_outstanding": "numBytesOutstanding",
    "snapshot_percent": "snapshotPercent",
}
"""The fields of a `Lag` beside its url, as the progress has them."""


def lag_to_json(lag: Lag, end: Offset) -> dict[str, object]:
    """Gives the report to Spark for a batch that ends at `end`: the offset after the newest version, and the lag."""
    behind_newest = Offset(table_id=end.table_id, version=Version(end.version + lag.versions_behind))
    return {
        **offset_to_json(behind_newest),
        "table": lag.url,
        "lag": {on_wire: getattr(lag, name) for name, on_wire in _WIRE.items()},
    }


def lag_from_json(text: str | None) -> Lag | None:
    """Gives the lag in the text of a source's latest offset; None where the text has none, such as another source's."""
    try:
        report = json.loads(text or "null")
    except ValueError:
        return None
    match report:
        case {"table": str(url), "lag": {"versionsBehind": int(versions)}} if not isinstance(versions, bool):
            found = ((name, report["lag"].get(on_wire)) for name, on_wire in _WIRE.items())
            numbers: dict[str, Any] = {name: n if type(n) in (int, float) else None for name, n in found}  # JSON
            return Lag(url=url, **numbers)
    return None


class LagMeter:
    """Measures the lag of one reader of `log`, which reads commits through `tail`.

    `sizes` gives the sizes in bytes of the files that a commit delivers. The meter remembers what it found beyond the
    reader's position: the newest version, the sizes of each commit, and when the oldest undelivered one was committed.
    """

    def __init__(
        self, log: TableLog, tail: Tail, *, sizes: Callable[[Commit], Sequence[int]], begins_with_snapshot: bool
    ) -> None:
        self._log = log
        self._tail = tail
        self._sizes_of = sizes
        self._begins_with_snapshot = begins_with_snapshot
        self._newest = Version(-1)
        self._sizes: dict[Version, Sequence[int]] = {}
        self._timed: tuple[Version, int | None] | None = None

    def behind(
        self, end: Offset, *, known: Version, snapshot: SnapshotLeft | None, now_ms: int, last: Version | None = None
    ) -> Lag:
        """Gives the lag at `end`. To be called right after the tail was read to `end`.

        `known` is a version that the log has. `last` is the last version that the stream delivers, None
        where none is known. `snapshot` is the rest of the initial snapshot, None where `end` is not in it. A stream at
        the end of the log costs no request. One that is behind costs a search for the newest version (about twice the
        logarithm of the number of new versions, in requests), at most one request for the time of the oldest
        undelivered version, and at most READ_AHEAD commits read. Files and bytes are None where more commits than these
        are unread, where there is no room to keep them, or where one cannot be read or delivered. Raises StoreError.
        """
        self._newest = self._newest_version(max(known, self._newest, last_version(end)))
        if last is not None:
            self._newest = min(self._newest, last)
        versions_behind = max(self._newest + 1 - end.version, 0)
        outstanding = self._outstanding(end, snapshot)
        return Lag(
            url=self._log.url,
            versions_behind=versions_behind,
            seconds_behind=self._age_s(end.version, now_ms) if versions_behind else 0.0,
            files_outstanding=None if outstanding is None else outstanding[0],
            bytes_outstanding=None if outstanding is None else outstanding[1],
            snapshot_percent=self._percent(snapshot),
        )

    def _newest_version(self, known: Version) -> Version:
        """The newest version of a log that has `known`, found by steps that double and then by binary search."""
        if self._tail.take_missed() == known + 1:
            return known
        newest, step = known, 1
        while self._is_there(newest + step):
            newest, step = Version(newest + step), step * 2
        missing = newest + step
        while missing - newest > 1:
            middle = Version((newest + missing) // 2)
            newest, missing = (middle, missing) if self._is_there(middle) else (newest, middle)
        return newest

    def _is_there(self, version: int) -> bool:
        return self._log.head(Version(version)) is not None

    def _outstanding(self, end: Offset, snapshot: SnapshotLeft | None) -> tuple[int, int] | None:
        """The files beyond `end` and their bytes."""
        for version in [v for v in self._sizes if v < end.version]:
            del self._sizes[version]
        try:
            commits = self._delivered_sizes(end.version if snapshot is None else Version(end.version + 1))
        except TablefeedError:
            return None  # the stream raises this error when it reaches that commit
        if commits is None:
            return None
        files, size_bytes = sum(len(sizes) for sizes in commits), sum(sum(sizes) for sizes in commits)
        if snapshot is not None:
            return files + snapshot.files, size_bytes + snapshot.size_bytes
        taken = commits[0][: end.file_index] if commits else ()
        return files - len(taken), size_bytes - sum(taken)

    def _delivered_sizes(self, first: Version) -> list[Sequence[int]] | None:
        """The sizes of the files that each commit from `first` to the newest delivers; None where one is not known."""
        may_read = READ_AHEAD
        versions = [Version(version) for version in range(first, self._newest + 1)]
        for version in versions:
            if version in self._sizes:
                continue
            commit = self._tail.kept(version)
            if commit is None and may_read and self._tail.has_room:
                commit = self._tail.commit(version, ahead=min(may_read, self._newest - version + 1))
                may_read -= 1
            if commit is None:
                return None
            self._sizes[version] = self._sizes_of(commit)
        return [self._sizes[version] for version in versions]

    def _age_s(self, version: Version, now_ms: int) -> float | None:
        """Seconds from the commit of `version`, by its writer's or the store's clock, to `now_ms`; None: not known."""
        if self._timed is None or self._timed[0] != version:
            self._timed = (version, self._committed_at_ms(version))
        committed_at_ms = self._timed[1]
        return None if committed_at_ms is None else max(now_ms - committed_at_ms, 0) / 1000

    def _committed_at_ms(self, version: Version) -> int | None:
        commit = self._tail.kept(version)
        if commit is not None and commit.committed_at_ms is not None:
            return commit.committed_at_ms
        log_file = self._log.head(version)
        return None if log_file is None else log_file.modified_ms

    def _percent(self, snapshot: SnapshotLeft | None) -> float | None:
        if snapshot is None:
            return 100.0 if self._begins_with_snapshot else None
        delivered, total = snapshot.total_bytes - snapshot.size_bytes, snapshot.total_bytes
        # Rounded down: 100 is reported only when all is delivered.
        return math.floor(1000 * delivered / total) / 10 if total else 0.0
