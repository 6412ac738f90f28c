"""Copies the files that a commit names from one table's folder to another's, byte for byte, under the same names.

If a file of that name exists, it must have the same bytes: an earlier run copied it and died before its commit, or the
source restored an old file. A file is never overwritten. No file is deleted when a run fails, because another run may
have found it and committed it. VACUUM deletes files that no commit names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tablefeed.delta import names
from tablefeed.errors import CommitError, ConflictError, DataFileError, ObjectNotFoundError
from tablefeed.feed.replication.origin import AGAIN
from tablefeed.feed.snapshot.delta_log import DeltaLog
from tablefeed.store import Entry
from tablefeed.store.local import LocalStore

_CHUNK_BYTES = 8 << 20


CopyFiles = Callable[[Sequence[str]], None]
"""Copies the named files from the source's folder to the target's. Does and raises as `Store.copy`."""


class Copies:
    """Copies from `source` to `target` by `copy_files`, and counts what it copied."""

    def __init__(self, source: DeltaLog, target: DeltaLog, copy_files: CopyFiles | None = None) -> None:
        self._source, self._target = source, target
        self._copy_files = copy_files or (lambda files: target.store.copy(files, source.store))
        self._is_copied_elsewhere = copy_files is not None
        self.file_count = 0

    def bring(self, wanted: Iterable[str], live: frozenset[str] = frozenset()) -> None:
        """Returns when the target has the files `wanted`, durably; those in `live` are not compared.

        Raises DataFileError where the source lacks one, ConflictError where the target has another file there, and
        CommitError where a file was copied to another machine.
        """
        missing: list[str] = []
        for name in dict.fromkeys(wanted):
            there = self._target.store.stat(name)
            if there is None:
                missing.append(name)
            elif name not in live and not self._is_equal(name, there):
                raise ConflictError(
                    f"Nothing was committed to {self._target.url}: it has a file {name}, which is not that of "
                    f"{self._source.url}. Delete the file if no table needs it, or copy to another path.",
                    url=self._target.url,
                    winner=-1,
                    error_class="TABLEFEED_REPLICA_CHANGED",
                )
        if not missing:
            return
        try:
            self._copy_files(missing)
        except ObjectNotFoundError as error:
            raise self._gone(error.name) from error
        if self._is_copied_elsewhere and isinstance(self._target.store, LocalStore):
            self._check_same_disk(missing)
        self.file_count += len(missing)

    def _check_same_disk(self, files: Sequence[str]) -> None:
        """Raises CommitError if a copied file is not on this disk: Spark's tasks may run on other machines."""
        absent = [name for name in files if not self._target.store.exists(name)]
        if absent:
            raise CommitError(
                f"{len(absent)} of {len(files)} copied files are not at {self._target.url} on this machine, such "
                f"as {absent[0]}. A task copied them to the disk of another machine, or they were deleted since. "
                "Nothing was committed. Copy to an object store or a shared disk, or call tablefeed.replicate.",
                url=self._target.url,
            )

    def _is_equal(self, name: str, there: Entry) -> bool:
        found = self._source.store.stat(name)
        if found is None:
            raise self._gone(name)
        if found.size_bytes != there.size_bytes:
            return False
        stores = self._source.store, self._target.store
        for begin in range(0, found.size_bytes, _CHUNK_BYTES):
            one, other = (store.read(name, start=begin, end=begin + _CHUNK_BYTES) for store in stores)
            if one != other or len(one) != min(_CHUNK_BYTES, found.size_bytes - begin):
                return False
        return True

    def _gone(self, name: str) -> DataFileError:
        return DataFileError(
            f"A version of {self._source.url} that was not copied yet needs the file {name}, which is gone: VACUUM or "
            f"somebody deleted it. That version was not copied. {AGAIN} To keep files for longer, raise "
            f"{names.DELETED_FILE_RETENTION}.",
            url=self._source.url,
            path=name,
            error_class="DELTA_FILE_NOT_FOUND",
        )
