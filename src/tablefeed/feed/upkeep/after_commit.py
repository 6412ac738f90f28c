"""What a log needs after a commit: its checksum at once; checkpoint, cleanup and compaction in the background.

A batch must not wait for a checkpoint, so a thread does that work (background.py). Where Spark kills the worker before
it is done, no half of a checkpoint is visible. The next commit of any process then finds that a checkpoint is due,
because the newest one is a whole interval back.

The commit is in the log before this begins. So nothing here raises a TablefeedError: a failure is logged as a warning,
and the work is tried again after a later commit.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from tablefeed.errors import TablefeedError
from tablefeed.feed.commit.transaction import Surroundings
from tablefeed.feed.snapshot.delta_log import DeltaSnapshot
from tablefeed.feed.snapshot.table_log import Snapshot
from tablefeed.feed.upkeep.background import ask, make_way
from tablefeed.feed.upkeep.checksums import begin_checksums, put_checksum
from tablefeed.log.segment import LogSegment
from tablefeed.model.actions import Commit, Version

if TYPE_CHECKING:
    from tablefeed.delta.checkpoint.checksum_writer import FileCounts
    from tablefeed.delta.checkpoint.last_checkpoint import Hint

logger = logging.getLogger(__name__)

KEPT_TABLES = 64
"""For how many tables this process remembers which version it has looked after; others are looked at again."""


MOST_COMMITS = 100
"""The most commits that a reader finds after the newest checkpoint where the table sets no interval: delta-rs's own
interval. Each of them is a request of the reader."""

SHARE = 16
"""A checkpoint is written again when the commits after it have this share of its bytes, one of so many. So readers have
at most that much more to read, and a commit's part in the next checkpoint costs the same however large the table is."""

SHORT_LOG = 10
"""Below this version the log is read as a whole to make one checksum: by the usual interval it has no checkpoint yet.
In a longer log checksums begin with the next checkpoint, which counts the files anyway."""


def now_ms() -> int:
    """Gives the time in ms since 1970 UTC."""
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class UpkeepOptions:
    """What is done and how. `part_actions`: see `delta_checkpoint.write_checkpoint`.

    `compact_every`: each time so many versions are complete, counted from version 0, their commits are also written as
    one log compaction file. None or 1: never, because few readers use such a file, and no reader needs it.

    `index_interval` and `index_part_actions` apply to the JSON checkpoints of IndexTables tables. The first is the
    number of versions between two checkpoints (None: none is written), the second the most actions in one file (None:
    no limit). The defaults are IndexTables'.

    `ask` gets the work that is done later, as `background.ask` does; `now_ms` is the clock of that work.
    """

    checkpoint: bool = True
    clean_up: bool = True
    part_actions: int | None = None
    compact_every: int | None = None
    index_interval: int | None = 10
    index_part_actions: int | None = 100_000
    ask: Callable[[tuple[str, ...], Callable[[], None]], None] = ask
    now_ms: Callable[[], int] = now_ms


USUAL = UpkeepOptions()
"""What is done by default."""


def surroundings(upkeep: UpkeepOptions = USUAL) -> Surroundings:
    """Gives what `loop.commit` needs: this machine's clock, and what is due after the commit."""
    return Surroundings(now_ms=upkeep.now_ms, sleep=time.sleep, on_committed=partial(after_commit, options=upkeep))


def after_commit(
    snapshot: Snapshot,
    commit: Commit,
    also_removed: FileCounts | None = None,
    *,
    options: UpkeepOptions = USUAL,
) -> None:
    """Does what is due after our `commit`, which made `snapshot`; returns as soon as its checksum is put.

    `also_removed`: see `transaction.Surroundings.on_committed`. Until it returns, one checksum is read and one is put,
    however long the log is. The rest is done in the background.
    """
    if isinstance(snapshot, DeltaSnapshot):  # IndexTables has no checksums
        _unless_it_fails("checksum", snapshot, lambda: _put_checksum(snapshot, commit, also_removed, options))
    look_after(snapshot, options)


def _put_checksum(
    snapshot: DeltaSnapshot, commit: Commit, also_removed: FileCounts | None, options: UpkeepOptions
) -> None:
    if not put_checksum(snapshot, commit, also_removed) and snapshot.version < SHORT_LOG:
        behind(snapshot, "checksum", lambda: begin_checksums(snapshot), options)


def look_after(snapshot: Snapshot, options: UpkeepOptions = USUAL) -> None:
    """Writes the checkpoint and the compaction that are due for the table seen as `snapshot`, in the background."""
    key, also = table_key(snapshot), False
    interval: int | None
    if isinstance(snapshot, DeltaSnapshot):
        interval, work = snapshot.properties.checkpoint_interval, partial(_look_after_delta, snapshot, options)
        also = _ends_compaction(snapshot.version, options)
    else:
        interval, work = options.index_interval, partial(_look_after_index, snapshot, options)
    due = options.checkpoint and interval is not None and is_due(snapshot.version, _asked.get(key), interval)
    if due:
        keep(_asked, key, snapshot.version)
    if due or also:
        options.ask(key, lambda: _unless_replaced(snapshot, work))


def behind(snapshot: Snapshot, what: str, work: Callable[[], object], options: UpkeepOptions = USUAL) -> None:
    """Does `work` on the table in the background, in place of work on it with the same `what` that has not begun.

    A failure is only logged as a warning.
    """
    options.ask((*table_key(snapshot), what), lambda: _unless_it_fails(what, snapshot, work))


# --- what is due ---------------------------------------------------------------------------------------------------

_asked: OrderedDict[tuple[str, str], int] = OrderedDict()
"""The newest version of each table that this process looked after, so that a failure is not repeated at each commit."""

_cleaned: OrderedDict[tuple[str, str], int] = OrderedDict()
"""The cutoff in ms up to which this process has cleaned up the log of each table. It moves once a day."""


def is_due(version: int, newest_checkpoint: int | None, interval: int) -> bool:
    """Whether a checkpoint of `version` is due where the newest one is `newest_checkpoint`.

    One is due at each multiple of the interval, as in Delta-Spark, and wherever the newest is an interval back: so a
    checkpoint that was never finished is replaced soon.
    """
    newest = newest_checkpoint or 0
    return version > newest and (version % interval == 0 or version - newest >= interval)


def is_worthwhile(segment: LogSegment, hint: Hint | None) -> bool:
    """Whether readers of `segment` have so much to read after its checkpoint that writing another one pays.

    A checkpoint is written whole. At a fixed interval its cost for each commit grows with the table. `hint` is what
    `_last_checkpoint` says: only there are the bytes of sidecars, which the listing of the log does not have.
    """
    if len(segment.commits) >= MOST_COMMITS:
        return True
    tail_bytes = sum(commit.size_bytes for commit in segment.commits)
    checkpoint_bytes = sum(part.size_bytes for part in segment.checkpoint)
    if hint is not None and {part.version for part in segment.checkpoint} == {hint.version}:
        checkpoint_bytes = max(checkpoint_bytes, hint.size_bytes or 0)
    return tail_bytes * SHARE >= checkpoint_bytes


def _ends_compaction(version: int, options: UpkeepOptions) -> bool:
    return (
        options.compact_every is not None and options.compact_every > 1 and (version + 1) % options.compact_every == 0
    )


def table_key(snapshot: Snapshot) -> tuple[str, str]:
    """Gives what identifies a table in this process, also after it was made anew."""
    return snapshot.log.url, snapshot.metadata.table_id


def _unless_replaced(snapshot: Snapshot, work: Callable[[], None]) -> None:
    # Where the table was made anew, or the store does not say, the next commit asks again.
    if snapshot.head is not None and snapshot.log.head(snapshot.version) == snapshot.head:
        work()


def _look_after_index(snapshot: Snapshot, options: UpkeepOptions) -> None:
    from tablefeed.feed.upkeep.index_checkpoint import checkpoint_if_due

    if options.checkpoint and options.index_interval is not None:
        make_way()
        most = options.index_part_actions
        checkpoint_if_due(snapshot, options.index_interval, part_actions=most, now_ms=options.now_ms())


def _look_after_delta(snapshot: DeltaSnapshot, options: UpkeepOptions) -> None:
    if options.compact_every and _ends_compaction(snapshot.version, options):
        from tablefeed.feed.upkeep.delta_checkpoint import write_compaction

        first = Version(snapshot.version + 1 - options.compact_every)
        _unless_it_fails("compaction", snapshot, lambda: write_compaction(snapshot, first))
    if options.checkpoint:
        make_way()
        segment = snapshot.log.segment(without=snapshot.unreadable)  # also of later versions, by other writers
        newest = max((part.version for part in segment.checkpoint), default=None)
        interval = snapshot.properties.checkpoint_interval
        if is_due(snapshot.version, newest, interval) and (
            snapshot.properties.sets_checkpoint_interval or is_worthwhile(segment, snapshot.log.last_hint)
        ):
            _checkpoint(snapshot, options)


def _checkpoint(snapshot: DeltaSnapshot, options: UpkeepOptions) -> None:
    # Imported here: what a commit needs does not have to wait for it.
    from tablefeed.feed.upkeep.checksums import put_checksums_from
    from tablefeed.feed.upkeep.delta_checkpoint import write_checkpoint
    from tablefeed.feed.upkeep.delta_cleanup import clean_up

    counts = write_checkpoint(snapshot, part_actions=options.part_actions, before_step=make_way)
    make_way()
    _unless_it_fails("checksum", snapshot, lambda: put_checksums_from(snapshot, counts))
    cutoff_ms = snapshot.properties.log_cutoff_ms(now_ms=options.now_ms())
    if options.clean_up and _cleaned.get(table_key(snapshot)) != cutoff_ms:
        keep(_cleaned, table_key(snapshot), cutoff_ms)
        _unless_it_fails("cleanup", snapshot, lambda: clean_up(snapshot, now_ms=options.now_ms(), before_step=make_way))


def keep(kept: OrderedDict[tuple[str, str], int], key: tuple[str, str], number: int) -> None:
    """Keeps `number` in `kept`, and drops the tables that were kept the longest ago.

    Several threads may call it at once: between any two of its steps another thread may drop a table, also this one.
    """
    kept.pop(key, None)
    kept[key] = number
    while len(kept) > KEPT_TABLES:
        kept.popitem(last=False)


def _unless_it_fails(what: str, snapshot: Snapshot, work: Callable[[], object]) -> None:
    try:
        work()
    except TablefeedError as error:
        logger.warning("%s failed table=%s version=%d: %s", what, snapshot.log.url, snapshot.version, error)
