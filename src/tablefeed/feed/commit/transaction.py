"""What is to be committed: files that were written and the words that describe them; and in what surroundings."""

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
    """What is to be committed: files written under `plan`, and the words that describe them.

    `operation` is commitInfo's; `txn` makes it once-only, `on_collision` is for one that meets a later version.
    `folded` are the live files whose rows an optimize has written to `files`. `rewriting` is what `commit` writes
    besides for an overwrite of the rows of a predicate; None: nothing yet.
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

    `stood` is told of a commit that stands, of the table's state then, and of what it removed besides the files that it
    names: live files that were never values. It must not raise.
    """

    now_ms: Callable[[], int]
    sleep: Callable[[float], None]
    uniform: Callable[[], float] = random.random
    stood: Callable[[Snapshot, Commit, FileCounts], None] = lambda _state, _commit, _also_removed: None
