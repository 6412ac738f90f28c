"""Whether our commit conflicts with a concurrent commit of another writer, or can follow it.

The order and the classes of the checks are Delta-Spark's for Serializable isolation. A blind append (only added files,
nothing read) conflicts with three things: a protocol change, a metadata change, and a commit of the same application.
The dialect says which protocol and metadata changes do no harm. Any other change stops the write, which must then run
again on the changed table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from tablefeed.model.actions import AddFile, Commit, FileAction, RemoveFile, Txn


class WriteKind(StrEnum):
    """What a transaction does to the rows that are there."""

    APPEND = "append"
    OVERWRITE = "overwrite"
    OPTIMIZE = "optimize"
    """The same rows in other files."""
    DEFINE = "define"
    """Makes a table without rows, or changes its metadata. No row is read or changed."""
    DEFINE_CHECKED = "define checked"
    """Changes the table's metadata, after every row was checked against a new rule."""
    RESTORE = "restore"
    """Puts the files of an earlier version in place of the live ones."""
    CHANGE = "change"
    """Deletes or updates some rows, and may add others."""

    @property
    def removes(self) -> bool:
        """Whether rows are removed, which an append-only table refuses.

        A change may remove none, such as a merge that only inserts: what removes its rows asks the table.
        """
        return self is WriteKind.OVERWRITE


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """Why our commit conflicts with that of `version`, with Delta-Spark's class and the remedy."""

    version: int
    error_class: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """Whether the protocol and the metadata of the other commit leave our transaction valid as it is."""

    protocol: bool = False
    metadata: bool = False


def conflict_with(
    theirs: Commit,
    *,
    kind: WriteKind,
    txn: Txn | None,
    tolerance: Tolerance = Tolerance(),
    reads: Callable[[FileAction], bool] = lambda _file: True,
    folded: frozenset[str] = frozenset(),
    any_row: bool = False,
    domains: frozenset[str] = frozenset(),
) -> Conflict | None:
    """Gives the conflict of a transaction of `kind` with the commit `theirs`, or None.

    `reads` says whether an overwrite replaces a file, or would replace it if it existed. An overwrite has read these
    files and no others. Of a change of rows it says whether a new file may have rows that the change would have read.

    `folded` are the decoded paths of files that an optimize or a change of rows has rewritten, or by whose rows it has
    decided. It conflicts with any change to one of them, also of its deletion vector, and not with adds and removes of
    other files. With `any_row` a change has decided by all rows, and conflicts with any that removes some.

    `domains` are the names of those that our commit was made from, whether it sets them or not.

    A `txn` of `theirs` with our app id and at least our version is a replay and not a conflict: the caller must have
    checked for it before.
    """

    def because(error_class: str, reason: str) -> Conflict:
        return Conflict(version=theirs.version, error_class=error_class, reason=reason)

    if theirs.protocol is not None and not tolerance.protocol:
        return because("DELTA_PROTOCOL_CHANGED", "it changed the table's protocol; run the write again")
    if theirs.metadata is not None and not tolerance.metadata:
        return because("DELTA_METADATA_CHANGED", "it changed the table's metadata; run the write again")
    if txn is not None and any(each.app_id == txn.app_id for each in theirs.txns):
        return because(
            "DELTA_CONCURRENT_TRANSACTION",
            f"it was made by the same application ({txn.app_id}); make sure that only one run of it is alive",
        )
    if any(domain.domain in domains for domain in theirs.domains):
        return because("DELTA_CONCURRENT_DELETE_READ", "it changed the state that was read; run it again")
    if kind is WriteKind.OVERWRITE and any(isinstance(f, AddFile) and reads(f) for f in theirs.files):
        return because("DELTA_CONCURRENT_APPEND", "it added files that this overwrite has not seen; run it again")
    if kind is WriteKind.OVERWRITE and any(isinstance(f, RemoveFile) and reads(f) for f in theirs.files):
        # An overwrite has read what it replaces: Delta-Spark's check of files read comes before that of files removed.
        return because("DELTA_CONCURRENT_DELETE_READ", "it removed files that this overwrite replaces; run it again")
    if kind is WriteKind.DEFINE_CHECKED and any(isinstance(f, AddFile) and f.data_change for f in theirs.files):
        return because("DELTA_CONCURRENT_APPEND", "it added rows that were not checked against the new rule; try again")
    if kind is WriteKind.RESTORE:
        # As in Delta-Spark (`commitLarge`), any commit: the files of two versions were compared.
        return because("DELTA_CONCURRENT_WRITE", "it was made while the files to restore were compared; restore again")
    if kind is WriteKind.CHANGE and (theirs.info or {}).get("operation") == "RESTORE":
        # It may take any row away, also one because of which an event changed nothing, or bring rows back.
        return because("DELTA_CONCURRENT_DELETE_READ", "it restored an earlier version; run the change again")
    if kind is WriteKind.CHANGE and any(reads(file) for file in _with_new_rows(theirs)):
        return because("DELTA_CONCURRENT_APPEND", "it added rows that this change has not seen; run it again")
    if any_row and any(file.data_change for file in theirs.removed):
        return because("DELTA_CONCURRENT_DELETE_READ", "it removed rows that were compared; run it again")
    if any(isinstance(f, AddFile | RemoveFile) and f.path in folded for f in theirs.files):
        return because("DELTA_CONCURRENT_DELETE_READ", "it changed files whose rows were being rewritten; run it again")
    return None


def _with_new_rows(commit: Commit) -> list[AddFile]:
    """The added files that may have rows which the table did not have: neither moved nor left over from deletes."""
    before = {file.path: _deleted_rows(file) for file in commit.removed}
    return [
        file
        for file in commit.added
        if file.data_change and _deleted_rows(file) <= before.get(file.path, _deleted_rows(file))
    ]


def _deleted_rows(file: AddFile | RemoveFile) -> int:
    return 0 if file.deletion_vector is None else file.deletion_vector.cardinality
