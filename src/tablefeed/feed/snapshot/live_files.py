"""The live files of one version as a stream of columns, and how it goes on where a checkpoint breaks off under it.

That a checkpoint is damaged may come out in its last row group, when most of its files have been handed out. All
segments of one version have the same files: so another segment is read without those that were handed out, and only
where it turns out to have each of them does the stream end well. Nothing is held for that while all goes well: what
was handed out is read again from the part that could be read, keys alone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from tablefeed.delta.checkpoint.checksum import differences
from tablefeed.errors import CorruptLogError, ObjectNotFoundError, TablefeedError
from tablefeed.feed.snapshot.segment_reader import Reading, SegmentReader, passed_over
from tablefeed.log.segment import LogSegment
from tablefeed.model.actions import Facts

if TYPE_CHECKING:
    import pyarrow as pa

logger = logging.getLogger(__name__)

Segments = Callable[[frozenset[str]], LogSegment]
"""Gives the segment of the version without some of its files; raises where there is none."""


def stream_live_files(
    reader: SegmentReader, reading: Reading, segments: Segments, *, unreadable: frozenset[str], with_stats: bool
) -> Iterator[pa.RecordBatch]:
    """Gives the live files of a version, each once, from the segment of `reading` or from others in its place.

    `unreadable` are files that no segment is to have. In memory are one batch and the columns of the tail. Raises
    CorruptLogError and ObjectNotFoundError for the first file that could not be read where no other segment leads to
    the version, or where it leads to other files than those handed out.
    """
    from tablefeed.log.replay import Remaining, live_files

    first: CorruptLogError | ObjectNotFoundError | None = None
    given: list[pa.Array] = []
    while True:
        handed_out, remaining = 0, Remaining(given)
        try:
            for batch in remaining.of(live_files(*reader.files(reading, with_stats=with_stats))):
                handed_out += batch.num_rows
                yield batch
        except (CorruptLogError, ObjectNotFoundError) as error:
            first = first or error
            unreadable |= passed_over(reading.segment, error)
        else:
            if first is not None and not remaining.met_all:
                raise first
            return
        try:
            segment = segments(unreadable)
            given += _first_keys(reader, reading, given, handed_out)
        except TablefeedError as error:
            raise first from error
        if segment == reading.segment or not reader.is_unchanged(reading.segment):
            raise first
        reading = Reading(segment=segment)


def held_against_checksum(
    files: Iterable[pa.RecordBatch], reader: SegmentReader, segment: LogSegment, facts: Facts, *, url: str
) -> Iterator[pa.RecordBatch]:
    """Gives `files`, all those of the segment's version, and logs a warning where its checksum tells otherwise.

    "State Validation". Only where a checksum is listed and the files are read to their end; the log stays right.
    """
    import pyarrow.compute as pc

    file_count = size_bytes = 0
    for batch in files:
        yield batch
        file_count += batch.num_rows
        size_bytes += pc.sum(batch["size_bytes"]).as_py() or 0
    checksum = reader.checksum(segment)
    if checksum is None:
        return
    found = "; ".join(differences(checksum, facts, file_count=file_count, size_bytes=size_bytes))
    if found:
        logger.warning("checksum differs from log table=%s version=%d: %s", url, segment.version, found)


def _first_keys(reader: SegmentReader, reading: Reading, given: Sequence[pa.Array], count: int) -> Iterator[pa.Array]:
    """Gives the keys of the first `count` files that `stream_live_files` had from `reading`."""
    from tablefeed.log.replay import Remaining, live_files

    if count == 0:
        return
    for batch in Remaining(given).of(live_files(*reader.files(reading, with_stats=False))):
        yield batch["key"].slice(0, count)
        count -= min(count, batch.num_rows)
        if count == 0:
            return
