"""Streams the live files of one version in columns, and continues with other log files where a checkpoint is damaged.

The damage may be found only in the last row group, when most files have been handed out. Every segment of one version
has the same live files. So another segment is read, and the files already handed out are left out. If one of these is
not in that segment, the stream ends with the first error. No keys are kept while reading succeeds: after an error, the
keys of the files handed out are read again from the readable part.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from tablefeed.delta.checkpoint.checksum import differences
from tablefeed.errors import TablefeedError
from tablefeed.feed.snapshot.next_best import DAMAGE, Damage, NextBest
from tablefeed.feed.snapshot.segment_reader import Reading, SegmentReader
from tablefeed.log.segment import LogSegment
from tablefeed.model.actions import Facts

if TYPE_CHECKING:
    import pyarrow as pa

logger = logging.getLogger(__name__)


def stream_live_files(
    reader: SegmentReader, reading: Reading, segments: NextBest[LogSegment], *, with_stats: bool
) -> Iterator[pa.RecordBatch]:
    """Gives the live files of a version, each once, from the segment of `reading` or from another one in its place.

    Memory holds one batch and the columns of the tail. Raises CorruptLogError or ObjectNotFoundError for the first log
    file that could not be read, where no other segment gives the version or the other one lacks a file already given.
    """
    from tablefeed.log.replay import Remaining, live_files

    first: Damage | None = None
    given: list[pa.Array] = []
    while True:
        handed_out, remaining = 0, Remaining(given)
        try:
            for batch in remaining.of(live_files(*reader.files(reading, with_stats=with_stats))):
                handed_out += batch.num_rows
                yield batch
        except DAMAGE as error:
            first = segments.failed(reading.segment, error)
        else:
            if first is not None and not remaining.met_all:
                raise first
            return
        segment = segments.next()
        try:
            given += _first_keys(reader, reading, given, handed_out)
        except TablefeedError as error:
            raise first from error
        if not reader.is_unchanged(reading.segment):
            raise first
        reading = Reading(segment=segment)


def held_against_checksum(
    files: Iterable[pa.RecordBatch], reader: SegmentReader, segment: LogSegment, facts: Facts, *, url: str
) -> Iterator[pa.RecordBatch]:
    """Gives `files`, the live files of the segment's version, and logs a warning where its checksum disagrees.

    "State Validation". Compared only if a checksum is listed and `files` is read to its end. The log is trusted.
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
    """Gives the keys of the first `count` files that `stream_live_files` gave from `reading`."""
    from tablefeed.log.replay import Remaining, live_files

    if count == 0:
        return
    for batch in Remaining(given).of(live_files(*reader.files(reading, with_stats=False))):
        yield batch["key"].slice(0, count)
        count -= min(count, batch.num_rows)
        if count == 0:
            return
