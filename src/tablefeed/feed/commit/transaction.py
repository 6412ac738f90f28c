"""What is to be committed, and the clock, sleep and chance that a commit needs."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from tablefeed.delta.checkpoint.checksum_writer import FileCounts
from tablefeed.feed.commit.operations import Operation
from tablefeed.feed.commit.replays import OnCollision
from tablefeed.feed.snapshot.table_log import Snapshot
from tablefeed.feed.write.row_replacement import Rewriting
from tablefeed.feed.write.write_plan import WritePlan
from tablefeed.log.transaction import WriteKind
from tablefeed.model.actions import AddFile, Commit, Txn


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """What is to be committed: files written under `plan`, and what the log records about the write.

    `operation` is commitInfo's. `txn` makes the write once-only; `on_collision` applies where the table records a later
    version of the application. `folded` are the live files whose rows an optimize has written to `files`. `rewriting`
    are the files that `loop.commit` writes for a replaceWhere on other than partition columns; None: none yet.
    """

    plan: WritePlan
    files: tuple[AddFile, ...]
    kind: WriteKind
    operation: Operation
    txn: Txn | None = None
    user_metadata: str | None = None
    folded: tuple[AddFile, ...] = ()
    rewriting: Rewriting | None = None
    on_collision: OnCollision = OnCollision.WARN


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Time, chance and waiting, as arguments: `now_ms` since 1970 UTC, `sleep` in seconds, `uniform` in [0, 1).

    `stood` is called after a successful commit with the new snapshot, the commit, and the counts of the files that it
    removed besides those in `Commit.files`: an overwrite's removes are written from columns. It must not raise.
    """

    now_ms: Callable[[], int]
    sleep: Callable[[float], None]
    uniform: Callable[[], float] = random.random
    stood: Callable[[Snapshot, Commit, FileCounts], None] = lambda _state, _commit, _also_removed: None
