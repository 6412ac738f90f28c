"""The table with which a stream begins: its live files in the order in which offsets count them (snapshot_files.py).

A `SnapshotOrder` decides what a batch reads of it: file by file here, by the times in a column in event_order.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from tablefeed.errors import LogError
from tablefeed.feed.snapshot.same_table import refuse_other
from tablefeed.feed.snapshot.table_log import Snapshot
from tablefeed.feed.stream.lag import SnapshotLeft
from tablefeed.feed.stream.stream_metadata import REMEDY
from tablefeed.log.plan import Step
from tablefeed.model.actions import AddFile, Version
from tablefeed.model.offset import Offset

if TYPE_CHECKING:
    import pyarrow as pa

    from tablefeed.data.predicate import RowFilter
    from tablefeed.feed.scan.pruning import Pruner
    from tablefeed.feed.stream.event_time import EventTimes
    from tablefeed.feed.stream.snapshot_files import SnapshotFiles


class SnapshotOrder(Protocol):
    """The order in which a stream delivers its initial snapshot."""

    def part(self, start: Offset, end: Offset) -> tuple[Iterator[AddFile], RowFilter | None]:
        """Gives the files to read for a batch from `start`, in the snapshot, to `end`, a later offset.

        With them the filter for their rows; None: all rows.
        """

    def left(self, end: Offset) -> SnapshotLeft:
        """Gives what of the snapshot is still to be delivered after `end`, an offset within it."""

    def forget(self) -> None:
        """Drops what is kept. Called once the stream is past the snapshot."""


class InitialSnapshot:
    """The live files of one version of the table `begun`, kept until `forget`.

    `counts_rows`: whether the number of rows of each file is needed. Files that `pruner` rules out count in offsets and
    are not read. With `event_times`, files are marked (`EventTimes.marked`). Raises LogError
    (DELTA_LOG_FILE_NOT_FOUND_FOR_STREAMING_SOURCE) for a version that cannot be read any more.
    """

    def __init__(
        self,
        begun: Snapshot,
        *,
        counts_rows: bool,
        pruner: Pruner | None = None,
        event_times: EventTimes | None = None,
    ) -> None:
        self._begun, self._log = begun, begun.log
        self._counts_rows, self._pruner, self._event_times = counts_rows, pruner, event_times
        self._kept: tuple[Step, SnapshotFiles] | None = None

    def step(self, version: Version) -> Step:
        """Gives the sizes of the files of `version`, and their numbers of rows where `counts_rows`."""
        return self._sorted(version)[0]

    def files(self, version: Version) -> SnapshotFiles:
        """Gives the files of `version`, in offset order."""
        return self._sorted(version)[1]

    def log_paths(self, version: Version) -> Iterator[str]:
        """Gives the paths of the files of `version` as logged, in offset order."""
        files = self.files(version)
        for batch in files.between(0, files.columns.num_rows):
            yield from batch["log_path"].to_pylist()

    def adds(self, files: Iterable[pa.RecordBatch]) -> Iterator[AddFile]:
        """Gives those of `files` that are to be read. `files` are from what the method `files` gave."""
        from tablefeed.delta.columns import to_add_files

        for batch in files:
            yield from to_add_files(batch if self._pruner is None else batch.filter(batch["may_match"]))

    def forget(self) -> None:
        """Drops what is kept. Called once the stream is past the snapshot."""
        if self._kept is not None:
            self._kept[1].close()
        self._kept = None

    def _sorted(self, version: Version) -> tuple[Step, SnapshotFiles]:
        if self._kept is None or self._kept[0].version != version:
            self.forget()
            try:
                files = self._read(version)
            except LogError as error:
                raise LogError(
                    f"The table {self._log.url} can no longer be read as of version {version}, and this query has "
                    f"delivered only a part of that snapshot: {error.message} Start with a new checkpoint.",
                    url=self._log.url,
                    error_class="DELTA_LOG_FILE_NOT_FOUND_FOR_STREAMING_SOURCE",
                ) from error
            rows = _Numbers(files.columns["num_records"]) if self._counts_rows else ()
            sizes = _Numbers(files.columns["size_bytes"])
            self._kept = (Step(version=version, sizes=sizes, rows=rows, in_snapshot=True), files)
        return self._kept

    def _read(self, version: Version) -> SnapshotFiles:
        from tablefeed.delta.columns import FILE_COLUMNS
        from tablefeed.feed.snapshot.files import NUM_RECORDS, with_num_records
        from tablefeed.feed.stream.snapshot_files import SnapshotFiles

        needs_stats = self._counts_rows or self._pruner is not None or self._event_times is not None
        found = self._log.load_for_files(version)
        expected = self._begun.metadata.table_id
        refuse_other(self._log.url, expected=expected, found=found.metadata.table_id, remedy=REMEDY)
        files, schema = found.live_files(with_stats=needs_stats), FILE_COLUMNS
        if self._counts_rows:
            files, schema = map(with_num_records, files), schema.append(NUM_RECORDS)
        if self._pruner is not None:
            from tablefeed.feed.scan.pruning import MAY_MATCH

            files, schema = self._pruner.marked(files), schema.append(MAY_MATCH)
        if self._event_times is not None:
            import pyarrow as pa

            from tablefeed.feed.stream.event_time import mark_fields

            files, schema = self._event_times.marked(files), pa.schema([*schema, *mark_fields()])
        return SnapshotFiles(files, schema=schema)


class ByFiles:
    """The snapshot file by file, as in Delta-Spark: an offset counts how many files were delivered.

    Only rows that pass `where` are delivered.
    """

    def __init__(self, snapshot: InitialSnapshot, *, where: RowFilter | None) -> None:
        self._snapshot, self._where = snapshot, where

    def part(self, start: Offset, end: Offset) -> tuple[Iterator[AddFile], RowFilter | None]:
        """See `SnapshotOrder`."""
        files = self._snapshot.files(start.version)
        stop = end.file_index if end.in_snapshot else files.columns.num_rows
        return self._snapshot.adds(files.between(start.file_index, stop)), self._where

    def left(self, end: Offset) -> SnapshotLeft:
        """See `SnapshotOrder`."""
        sizes = self._snapshot.files(end.version).columns["size_bytes"]
        left = sizes[end.file_index :]
        return SnapshotLeft(files=len(left), size_bytes=_total(left), total_bytes=_total(sizes))

    def forget(self) -> None:
        """See `SnapshotOrder`."""
        self._snapshot.forget()


def _total(sizes: pa.Array) -> int:
    import pyarrow.compute as pc

    return int(pc.sum(sizes).as_py() or 0)


class _Numbers(Sequence[Any]):  # Any: an int, or where some are not known, None too
    """A column of integers as Python's. Only those that are asked for are made."""

    def __init__(self, column: pa.Array) -> None:
        self._column = column

    def __len__(self) -> int:
        return len(self._column)

    def __getitem__(self, index: int) -> Any:  # type: ignore[override]  # nobody slices a step's numbers
        return self._column[index].as_py()
