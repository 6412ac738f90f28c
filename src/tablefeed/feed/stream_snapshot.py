"""The table with which a stream begins: its live files in the order in which offsets count them, held as columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tablefeed.errors import LogError
from tablefeed.feed.table_log import TableLog
from tablefeed.log.plan import Step
from tablefeed.model.actions import AddFile, Version

if TYPE_CHECKING:
    import pyarrow as pa

    from tablefeed.feed.pruning import Pruner


class InitialSnapshot:
    """The live files of one version of a log, kept until they are forgotten.

    `counts_rows`: whether their rows are asked for. With `pruner`, files that it rules out are numbered, and not given
    to be read. Raises LogError (DELTA_LOG_FILE_NOT_FOUND_FOR_STREAMING_SOURCE)
    for a version that cannot be read any more.
    """

    def __init__(self, log: TableLog, *, counts_rows: bool, pruner: Pruner | None = None) -> None:
        self._log, self._counts_rows, self._pruner = log, counts_rows, pruner
        self._kept: tuple[Step, pa.RecordBatch] | None = None

    def step(self, version: Version) -> Step:
        """Gives the files of `version` by their sizes, and rows where these are counted."""
        return self._sorted(version)[0]

    def files(self, version: Version) -> pa.RecordBatch:
        """Gives the files of `version` as columns (`tablefeed.delta.columns.FILE_COLUMNS`), in order."""
        return self._sorted(version)[1]

    def adds(self, version: Version, begin: int, stop: int | None) -> Iterator[AddFile]:
        """Gives the files to read from the number `begin` on, up to and without `stop`."""
        from tablefeed.delta.columns import to_add_files

        files = self.files(version)
        asked = files.slice(begin, (files.num_rows if stop is None else stop) - begin)
        yield from to_add_files(asked if self._pruner is None else asked.filter(asked["may_match"]))

    def forget(self) -> None:
        """Drops what is kept: the stream is past it."""
        self._kept = None

    def _sorted(self, version: Version) -> tuple[Step, pa.RecordBatch]:
        if self._kept is None or self._kept[0].version != version:
            try:
                files = self._read(version)
            except LogError as error:
                raise LogError(
                    f"The table {self._log.url} cannot be read as of version {version} any more, and this query "
                    f"stands in the middle of that snapshot: {error.message} Start with a new checkpoint.",
                    url=self._log.url,
                    error_class="DELTA_LOG_FILE_NOT_FOUND_FOR_STREAMING_SOURCE",
                ) from error
            sizes = memoryview(files["size_bytes"].buffers()[1]).cast("q") if files.num_rows else ()
            rows = files["num_records"].to_pylist() if self._counts_rows else ()
            self._kept = (Step(version=version, sizes=sizes, rows=rows, in_snapshot=True), files)
        return self._kept

    def _read(self, version: Version) -> pa.RecordBatch:
        from tablefeed.delta.columns import FILE_COLUMNS
        from tablefeed.feed.files import NUM_RECORDS, with_num_records
        from tablefeed.log.replay import sorted_for_stream

        needs_stats = self._counts_rows or self._pruner is not None
        files, schema = self._log.load_for_files(version).live_files(with_stats=needs_stats), FILE_COLUMNS
        if self._counts_rows:
            files, schema = map(with_num_records, files), schema.append(NUM_RECORDS)
        if self._pruner is not None:
            from tablefeed.feed.pruning import MAY_MATCH

            files, schema = self._pruner.marked(files), schema.append(MAY_MATCH)
        return sorted_for_stream(files, schema=schema)
