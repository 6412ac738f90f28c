"""Which rows of which files one commit changed: the change data feed of a commit, before any file is opened.

Knows one commit at a time: no range, no schema, no property of the table. The rules are PROTOCOL.md's ("Add CDC File",
"Reader Requirements for AddCDCFile", "Add File and Remove File") and, for deletion vectors and for a MERGE that changed
nothing, Delta-Spark's (CDCReader).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from tablefeed.errors import ChangeDataError
from tablefeed.model.actions import AddFile, CdcFile, Commit, DeletionVector, RemoveFile


class ChangeType(StrEnum):
    """What became of a row ("Change Data Files", column `_change_type`)."""

    INSERT = "insert"
    DELETE = "delete"
    UPDATE_PREIMAGE = "update_preimage"
    UPDATE_POSTIMAGE = "update_postimage"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedFile:
    """Rows of one file that a commit changed: those not in `deletion_vector` that, where `only_in` is given, are in it.

    `change_type` is what became of all of them; None for a file that says it row by row, in its column `_change_type`.
    `index` counts what stands for changes in the commit, from 0 in the log's order, as offsets of Delta-Spark count it;
    an action without a changed row has its number too. `partition_values` is None, and `size_bytes` 0, where a remove
    left them out. `base_row_id` is the action's ("Row IDs").
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


def changed_files(commit: Commit, *, url: str) -> tuple[ChangedFile, ...]:
    """Gives what the feed of a table that records its changes delivers of `commit`, in the log's order.

    Files of changes where the commit has any; else what its adds and removes with a data change imply
    (`implied_changes`), but nothing of a MERGE that counted no changed row, which rewrote files as they were. Raises
    ChangeDataError where it cannot be told.
    """
    recorded = [file for file in commit.files if isinstance(file, CdcFile)]
    if recorded:
        return tuple(_recorded(index, file) for index, file in enumerate(recorded))
    return () if _is_merge_of_nothing(commit) else implied_changes(commit, url=url)


def counted_actions(commit: Commit) -> tuple[AddFile | RemoveFile | CdcFile, ...]:
    """Gives the actions that `changed_files` numbers, in order: the index of a changed file is one into these."""
    recorded = tuple(file for file in commit.files if isinstance(file, CdcFile))
    if recorded or _is_merge_of_nothing(commit):
        return recorded
    return tuple(file for file in commit.files if not isinstance(file, CdcFile) and file.data_change)


def implied_changes(commit: Commit, *, url: str) -> tuple[ChangedFile, ...]:
    """Gives the rows that the adds and removes of `commit` with a data change put in and take out, in the log's order.

    Whole files, without the rows that their deletion vector had taken out before; of a file that stays under another
    deletion vector, the rows by which the two differ. Rows that were copied into another file are taken out there and
    put in here: one commit's actions do not tell them. Raises ChangeDataError for a commit that contradicts itself.
    """
    changes = _Changes(commit, url=url)
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

    def __init__(self, commit: Commit, *, url: str) -> None:
        self._version = commit.version
        self._url = url
        self._added: dict[str, AddFile] = {}
        self._removed: dict[str, RemoveFile] = {}
        files = [file for file in commit.files if not isinstance(file, CdcFile)]
        numbered = enumerate(file for file in files if file.data_change)
        self.files = tuple((index, file) for index, file in numbered if self._is_new(file))
        self._refuse_halves([file for file in files if not file.data_change])

    def of(self, index: int, file: AddFile | RemoveFile) -> Iterator[ChangedFile]:
        """The rows that `file` puts in or takes out; none where its other half says them all."""
        other = self._removed.get(file.path) if isinstance(file, AddFile) else self._added.get(file.path)
        if other is not None and _vector_id(other) == _vector_id(file):
            raise self._contradiction(file.path, "is added and removed as one and the same")
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
            raise self._contradiction(file.path, "comes twice with two deletion vectors")
        return False  # said twice, meant once

    def _refuse_halves(self, moved: list[AddFile | RemoveFile]) -> None:
        for file in moved:
            if file.path in (self._removed if isinstance(file, AddFile) else self._added):
                raise self._contradiction(file.path, "changes data in one of its two halves only")

    def _contradiction(self, path: str, how: str) -> ChangeDataError:
        return ChangeDataError(
            f"Version {self._version} of {self._url} does not tell which rows it changed: the file {path} {how}. "
            "Read from a later version.",
            url=self._url,
            version=self._version,
        )


def _vector_id(file: AddFile | RemoveFile) -> str | None:
    return None if file.deletion_vector is None else file.deletion_vector.unique_id
