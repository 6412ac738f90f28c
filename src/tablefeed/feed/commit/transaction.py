"""What is to be committed, what a commit needs besides, and what committing takes in each of the two formats."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from tablefeed.delta.checkpoint.checksum_writer import FileCounts, no_files
from tablefeed.delta.commit_info import Optimize, StreamingUpdate, TableChange, Write
from tablefeed.feed.commit.collisions import OnCollision
from tablefeed.feed.snapshot.table_log import Snapshot, TableLog
from tablefeed.feed.write.restored import Restored
from tablefeed.feed.write.rewriting import Rewriting
from tablefeed.feed.write.write_plan import WritePlan
from tablefeed.feed.write.write_rules import Scope, WriteRules
from tablefeed.log.conflicts import WriteKind
from tablefeed.model.actions import AddFile, Commit, DomainMetadata, FileAction, Txn, Version
from tablefeed.store import Content, Draft, Entry, Within
from tablefeed.store.base import holds

Operation = StreamingUpdate | Write | Optimize | TableChange
"""What a commit says of itself, in Delta-Spark's words: `micro_batch`, `batch_write`, an optimize, or a change of the
table or of its rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """What is to be committed: files written under `plan`, and what the log records about the write.

    `operation` is commitInfo's. `txn` makes the write once-only; `on_collision` applies where the table records a later
    version of the application. `folded` are the live files whose rows an optimize has written to `files`.
    `restored` has the adds and removes of a restore.

    A change of rows has `rewriting`, the live files that lose rows; `files` then hold its new rows. `reads` says
    whether a file that another commit adds may have rows that the change would have to look at, and `decided_by` are
    the paths of live files whose rows decided, whether they are lost or not; None: those of all files. `domains` are
    set by the commit, `beside` are the paths of files that were written for them, and `read_domains` are the names of
    those whose state the change was made from. `bad_records` are the files of rows that were taken out of the write
    (bad_rows.py). `files_stay` says that the commit of another table names the files: then they are never deleted.
    """

    plan: WritePlan
    files: tuple[AddFile, ...]
    kind: WriteKind
    operation: Operation
    txn: Txn | None = None
    user_metadata: str | None = None
    folded: tuple[AddFile, ...] = ()
    restored: Restored | None = None
    rewriting: Rewriting | None = None
    reads: Callable[[FileAction], bool] | None = None
    decided_by: frozenset[str] | None = frozenset()
    domains: tuple[DomainMetadata, ...] = ()
    read_domains: frozenset[str] = frozenset()
    beside: tuple[str, ...] = ()
    on_collision: OnCollision = OnCollision.WARN
    bad_records: Mapping[str, object] | None = None
    files_stay: bool = False

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of the files that were written for it."""
        rewritten = () if self.rewriting is None else self.rewriting.paths
        return (*(file.path for file in self.files), *rewritten, *self.beside)


def micro_batch(kind: WriteKind, query_id: str, batch_id: int) -> Operation:
    """The operation of a micro-batch: append mode for an append, else complete mode, where each batch has all rows."""
    mode: Literal["Append", "Complete"] = "Append" if kind is WriteKind.APPEND else "Complete"
    return StreamingUpdate(output_mode=mode, query_id=query_id, epoch_id=batch_id)


def batch_write(kind: WriteKind, partition_columns: tuple[str, ...], rules: WriteRules | None = None) -> Operation:
    """The operation of an append or overwrite under `rules`, outside a stream."""
    rules = rules or WriteRules()
    replaces = kind is not WriteKind.APPEND
    return Write(
        mode="Overwrite" if replaces else "Append",
        partition_by=partition_columns,
        predicate=rules.replace_where if replaces else None,
        is_dynamic=replaces and rules.scope is Scope.PARTITIONS,
        can_overwrite_schema=rules.overwrites_schema,
        can_merge_schema=rules.merges_schema,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Time, chance and waiting, as arguments: `now_ms` since 1970 UTC, `sleep` in seconds, `uniform` in [0, 1).

    `on_committed` is called after a successful commit with the new snapshot, the commit, and the counts of the files
    that it removed besides those in `Commit.files`: an overwrite's removes are written from columns. It must not raise.
    """

    now_ms: Callable[[], int]
    sleep: Callable[[float], None]
    uniform: Callable[[], float] = random.random
    on_committed: Callable[[Snapshot, Commit, FileCounts], None] = lambda _state, _commit, _also_removed: None


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """The table records `txn_version` of the application, which is not below ours: there is nothing to commit.

    `commit` names the files of our txn that belong to the table; None where it is not known which commit does.
    """

    txn_version: int
    commit: Commit | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Put:
    """A `commit` that is ready to be put after `base`, or as version 0, as the log file `name` with the bytes `data`.

    `data` has a random id, so no other writer puts the same bytes. `also_removed`: see `Surroundings.on_committed`.
    `parts` are files in the log, written before, that are of no use unless `data` is put. `draft` is for all puts of a
    commit that may have the same `data`; None: each has its own. `new_files` are the paths of files that must be there
    after the put, where the write found no table. `needed` are the files that a state names, and the note of its write.
    If one is gone when the version before is gone too, the table was deleted. `undo` deletes what other writers have
    made of the commit, after it is deleted again.
    """

    log: TableLog
    base: Snapshot | None
    name: str
    data: Content
    commit: Commit
    also_removed: FileCounts = field(default_factory=no_files)
    parts: Sequence[str] = ()
    draft: Draft | None = None
    new_files: Sequence[str] = ()
    needed: Sequence[str] = ()
    undo: Callable[[], None] | None = None

    @property
    def version(self) -> Version:
        """The version that the put makes."""
        return self.commit.version

    @property
    def path(self) -> str:
        """The log file, below the table's root."""
        return f"{self.log.directory}/{self.name}"

    def is_ours(self) -> bool:
        """Reads the log file back; says whether it is this commit. Raises StoreError if only its beginning is read."""
        return holds(self.log.store, self.path, self.data)

    @property
    def within(self) -> Within | None:
        """Only the first version makes a log: a later one does not bring a deleted log back."""
        return None if self.base is None else Within(directory=self.log.directory, draft=self.draft)


class FormatCommit(Protocol):
    """One transaction on a table of one format. It is made for one call of `loop.commit`, and may remember its tries.

    A state is the newest that was read, None where there is no table. Every method may raise LogError and StoreError.
    The methods with a body are what most formats do.
    """

    @property
    def own_paths(self) -> tuple[str, ...]:
        """The paths of the files that the commit itself has written so far, in addition to the transaction's."""
        return ()

    def begin(self, state: Snapshot | None) -> Snapshot | None:
        """Gives the state to commit after: `state`, or the table made without rows where the format needs that."""
        return state

    def replayed(self, state: Snapshot | None) -> Replay | None:
        """Gives what `state` records of our txn; None where it records neither ours nor a later one."""
        ...

    def check(self, state: Snapshot | None) -> None:
        """Raises ConflictError or TableError where the transaction cannot be committed after `state`."""
        ...

    def changes_nothing(self, state: Snapshot) -> bool:  # noqa: ARG002 - for formats that override it
        """Whether the commit would change nothing and record nothing, so that the format has none."""
        return False

    def prepared(self, state: Snapshot | None) -> Put:
        """Gives the commit to put after `state`, and writes the files that it needs beside it."""
        ...

    def after(self, put: Put, head: Entry) -> Snapshot:
        """Gives the table after `put`, which is in the log as `head`; does what the format needs after a commit."""
        ...

    def longest_pause_s(self, lost: int) -> float:
        """Gives the longest pause after so many lost puts. Raises ConflictError where the write gives up."""
        ...

    def close(self) -> None:
        """Removes what was kept for a further put."""
        return
