"""Which rows of which files one commit changed: the change data feed of a commit, before any file is opened.

Knows one commit at a time: no range, no schema, no property of the table. The rules are PROTOCOL.md's ("Add CDC File",
"Reader Requirements for AddCDCFile", "Add File and Remove File") and, for deletion vectors and for a MERGE that changed
nothing, Delta-Spark's (CDCReader).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from tablefeed.errors import TABLE, ChangeDataError
from tablefeed.model.actions import AddFile, CdcFile, Commit, DeletionVector, RemoveFile


class ChangeType(StrEnum):
    """How a row changed ("Change Data Files", column `_change_type`)."""

    INSERT = "insert"
    DELETE = "delete"
    UPDATE_PREIMAGE = "update_preimage"
    UPDATE_POSTIMAGE = "update_postimage"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedFile:
    """Rows of one file that a commit changed: those not in `deletion_vector` and, where `only_in` is set, in `only_in`.

    `change_type` is how all of them changed; None for a file with a column `_change_type`, which says it for each row.
    `index` numbers the commit's actions that count as changes, from 0 in log order, as Delta-Spark's offsets do; an
    action without a changed row has a number too. `partition_values` is None, and `size_bytes` 0, where a remove left
    them out. `base_row_id` is the action's ("Row IDs").
    """

    index: int
    path: str
    log_path: str
    size_bytes: int
    partition_values: Mapping[str, str | None] | None
    change_type: ChangeType | None
    deletion_vector: DeletionVector | None = None
    only_in: DeletionVector | None = None
    base_row_id: int | None = None


def changed_files(commit: Commit) -> tuple[ChangedFile, ...]:
    """Gives what the change data feed of a table delivers for `commit`, in log order.

    These are the commit's change data files, if it has any. Otherwise they are what its adds and removes with a data
    change imply (`implied_changes`), except for a MERGE that counted no changed row: it rewrote files without changing
    a row, and gives nothing. Raises ChangeDataError for a commit that contradicts itself.
    """
    recorded = [file for file in commit.files if isinstance(file, CdcFile)]
    if recorded:
        return tuple(_recorded(index, file) for index, file in enumerate(recorded))
    return () if _is_merge_of_nothing(commit) else implied_changes(commit)


def counted_actions(commit: Commit) -> tuple[AddFile | RemoveFile | CdcFile, ...]:
    """Gives the actions that `changed_files` numbers, in order: `ChangedFile.index` is an index into these."""
    recorded = tuple(file for file in commit.files if isinstance(file, CdcFile))
    if recorded or _is_merge_of_nothing(commit):
        return recorded
    return tuple(file for file in commit.files if not isinstance(file, CdcFile) and file.data_change)


def implied_changes(commit: Commit) -> tuple[ChangedFile, ...]:
    """Gives the rows that the adds and removes of `commit` with a data change insert and delete, in log order.

    A file counts whole, without the rows in its deletion vector. Of a file that only gets another deletion vector, the
    rows by which the two vectors differ count. A row that was copied to another file is both deleted and inserted: the
    actions of a commit do not show copies. Raises ChangeDataError for a commit that contradicts itself.
    """
    changes = _Changes(commit)
    return tuple(changed for index, file in changes.files for changed in changes.of(index, file))


# What Delta-Spark's MERGE counts in operationMetrics of commitInfo. Where one is missing, nothing is known.
_MERGE_METRICS = ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted")


def _is_merge_of_nothing(commit: Commit) -> bool:
    info = commit.info or {}
    metrics = info.get("operationMetrics")
    if info.get("operation") != "MERGE" or not isinstance(metrics, Mapping):
        return False
    return all(metrics.get(name) == "0" for name in _MERGE_METRICS)


def _recorded(index: int, file: CdcFile) -> ChangedFile:
    return ChangedFile(
        index=index,
        path=file.path,
        log_path=file.log_path,
        size_bytes=file.size_bytes,
        partition_values=file.partition_values,
        change_type=None,
    )


class _Changes:
    """The adds and removes of a commit that change data, numbered, each path at most once added and once removed."""

    def __init__(self, commit: Commit) -> None:
        self._version = commit.version
        self._added: dict[str, AddFile] = {}
        self._removed: dict[str, RemoveFile] = {}
        files = [file for file in commit.files if not isinstance(file, CdcFile)]
        numbered = enumerate(file for file in files if file.data_change)
        self.files = tuple((index, file) for index, file in numbered if self._is_new(file))
        self._refuse_halves([file for file in files if not file.data_change])

    def of(self, index: int, file: AddFile | RemoveFile) -> Iterator[ChangedFile]:
        """The rows that `file` inserts or deletes; none where the other action on the same path gives them all."""
        other = self._removed.get(file.path) if isinstance(file, AddFile) else self._added.get(file.path)
        if other is not None and _vector_id(other) == _vector_id(file):
            raise self._contradiction(file.path, "is added and removed with the same deletion vector or none")
        if other is not None and other.deletion_vector is None:
            return
        partition_values = file.partition_values
        if partition_values is None and other is not None:
            partition_values = other.partition_values
        yield ChangedFile(
            index=index,
            path=file.path,
            log_path=file.log_path,
            size_bytes=file.size_bytes or 0,
            partition_values=partition_values,
            change_type=ChangeType.INSERT if isinstance(file, AddFile) else ChangeType.DELETE,
            deletion_vector=file.deletion_vector,
            only_in=None if other is None else other.deletion_vector,
            base_row_id=file.base_row_id,
        )

    def _is_new(self, file: AddFile | RemoveFile) -> bool:
        earlier: AddFile | RemoveFile
        if isinstance(file, AddFile):
            earlier = self._added.setdefault(file.path, file)
        else:
            earlier = self._removed.setdefault(file.path, file)
        if earlier is file:
            return True
        if _vector_id(earlier) != _vector_id(file):
            raise self._contradiction(file.path, "is listed twice, with different deletion vectors")
        return False  # listed twice, counted once

    def _refuse_halves(self, moved: list[AddFile | RemoveFile]) -> None:
        for file in moved:
            if file.path in (self._removed if isinstance(file, AddFile) else self._added):
                raise self._contradiction(file.path, "is added and removed, but only one of the two changes data")

    def _contradiction(self, path: str, how: str) -> ChangeDataError:
        return ChangeDataError(
            f"Which rows version {self._version} of {TABLE} changed is not certain: the file {path} {how}. "
            "Read from a later version.",
            version=self._version,
        )


def _vector_id(file: AddFile | RemoveFile) -> str | None:
    return None if file.deletion_vector is None else file.deletion_vector.unique_id
