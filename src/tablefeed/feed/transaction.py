"""What is to be committed: files that were written, and the words that describe them."""

from __future__ import annotations

from dataclasses import dataclass

from tablefeed.feed.operations import Operation
from tablefeed.feed.replays import OnCollision
from tablefeed.feed.row_replacement import Rewriting
from tablefeed.feed.sink import WritePlan
from tablefeed.log.transaction import WriteKind
from tablefeed.model.actions import AddFile, Txn


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
