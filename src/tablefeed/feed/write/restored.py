"""The files of an earlier version in place of the live ones: what a restore adds and removes.

The keys of both versions' files are kept in Arrow columns; a line of the commit is made from columns too, so no Python
object is built for a file, except to look whether a file that comes back is still there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tablefeed.delta import row_tracking
from tablefeed.delta.deletion_vectors import BadVectorError, stored_at
from tablefeed.delta.removes import Addition, Removal
from tablefeed.errors import DataFileError, ObjectNotFoundError, UnsupportedFeatureError
from tablefeed.feed.snapshot.table_files import TableFiles
from tablefeed.feed.snapshot.table_log import Snapshot
from tablefeed.model.actions import AddFile, DeletionVector, DomainMetadata, Protocol

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """The adds and removes of a restore, its domains, and how many files and bytes the table then has."""

    addition: Addition
    removal: Removal
    domains: tuple[DomainMetadata, ...]
    file_count: int
    size_bytes: int

    def lines(self) -> Iterator[memoryview]:
        """Gives the lines of the commit. Works only once."""
        yield from self.addition.lines()
        yield from self.removal.lines()

    @property
    def metrics(self) -> dict[str, int]:
        """The operationMetrics, by Delta-Spark's names."""
        added, removed = self.addition.counts, self.removal.counts
        return {
            "tableSizeAfterRestore": self.size_bytes,
            "numOfFilesAfterRestore": self.file_count,
            "numRemovedFiles": removed.file_count,
            "numRestoredFiles": added.file_count,
            "removedFilesSize": removed.size_bytes,
            "restoredFilesSize": added.size_bytes,
        }


def restored(
    newest: Snapshot, earlier: Snapshot, *, protocol: Protocol, domains: tuple[DomainMetadata, ...], now_ms: int
) -> Restored:
    """Gives what puts the files of `earlier` in place of those of `newest`; `protocol` is the table's afterwards.

    A file with another deletion vector is another file. Raises DataFileError where a file or vector that comes back is
    gone, UnsupportedFeatureError where such a file has no row ids and the table needs them.
    """
    import pyarrow.compute as pc

    addition, removal = Addition(), Removal(deletion_timestamp_ms=now_ms)
    live, wanted = _keys(newest), _keys(earlier)
    file_count = size_bytes = 0
    for batch in earlier.live_files(with_stats=True):
        file_count += batch.num_rows
        size_bytes += pc.sum(batch["size_bytes"]).as_py() or 0
        back = batch.filter(pc.invert(pc.is_in(batch["key"], value_set=live)))
        _check_there(back, newest)
        if row_tracking.supports_row_tracking(protocol) and back["base_row_id"].null_count:
            raise UnsupportedFeatureError(
                f"{newest.url} cannot be restored to version {earlier.version}: its files have no row ids, and the "
                "table tracks rows since. Nothing was written. Restore it in Spark.",
                url=newest.url,
                features=("rowTracking",),
            )
        addition.take(back)
    for batch in newest.live_files():
        removal.take(batch.filter(pc.invert(pc.is_in(batch["key"], value_set=wanted))))
    return Restored(addition=addition, removal=removal, domains=domains, file_count=file_count, size_bytes=size_bytes)


def _keys(table: Snapshot) -> pa.Array:
    import pyarrow as pa

    batches = [batch["key"] for batch in table.live_files()]
    return pa.concat_arrays(batches) if batches else pa.array([], pa.string())


def _check_there(files: pa.RecordBatch, table: Snapshot) -> None:
    from tablefeed.delta.columns import to_add_files

    opened = TableFiles(table.log.store, storage_options=table.log.storage_options)
    for add in to_add_files(files):
        for path in _paths(add):
            try:
                opened.open_input(path).close()
            except ObjectNotFoundError as error:
                raise DataFileError(
                    f"{table.url} cannot be restored: {path}, which the earlier version needs, is gone. VACUUM or "
                    "another hand removed it. Nothing was written. Restore to a newer version, or bring the file back.",
                    url=table.url,
                    path=path,
                    error_class="DELTA_FILE_NOT_FOUND",
                ) from error


def _paths(add: AddFile) -> Iterator[str]:
    yield add.path
    if isinstance(add.deletion_vector, DeletionVector):
        try:
            stored = stored_at(add.deletion_vector)
        except BadVectorError:
            return  # whoever reads the file is told
        if stored is not None:
            yield stored.path
