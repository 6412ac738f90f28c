"""Which rows of a table a stream reads, by its options: the filter `where`, and the times that order its snapshot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tablefeed.feed.scan.table_scan import table_scan
from tablefeed.feed.stream.event_time import EventTimes
from tablefeed.feed.stream.source_options import SourceOptions
from tablefeed.feed.stream.stream_metadata import StreamMetadata
from tablefeed.model.cached import cached_property
from tablefeed.model.schema import Field

if TYPE_CHECKING:
    from tablefeed.data.predicate import RowFilter
    from tablefeed.feed.scan.pruning import Pruner
    from tablefeed.feed.scan.task import LoggedColumns


class StreamRows:
    """The rows that a stream with `options` reads. For use once `metadata` is final (`StreamMetadata.read`).

    `event_time` is the column that orders the initial snapshot, None where no column does.
    """

    def __init__(self, metadata: StreamMetadata, options: SourceOptions, event_time: Field | None) -> None:
        self._metadata, self._options, self._event_time = metadata, options, event_time

    @cached_property
    def filter(self) -> RowFilter | None:
        """The filter for rows; None: all are read."""
        if self._options.where is None:
            return None
        from tablefeed.feed.scan.where import row_filter

        return row_filter(self._options.where, self._metadata.schema)

    @cached_property
    def pruner(self) -> Pruner | None:
        """None, too, for a change feed: its files may be partitioned differently, and few have statistics."""
        if self.filter is None or self._options.change_feed:
            return None
        from tablefeed.feed.scan.pruning import Pruner

        return Pruner(self.filter, schema=self._metadata.schema, columns=self._columns)

    @cached_property
    def event_times(self) -> EventTimes | None:
        """None where the snapshot is delivered file by file."""
        if self._event_time is None:
            return None
        return EventTimes(self._event_time, schema=self._metadata.schema, columns=self._columns)

    @property
    def _columns(self) -> LoggedColumns:
        """How the log names the table's columns, for files with the table's own partition columns."""
        return table_scan(self._metadata.read, self._metadata.schema).columns
