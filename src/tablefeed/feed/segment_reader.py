"""What the files of a log segment say: opened in the store, decoded by `tablefeed.delta`. Nothing is cached here.

A file that cannot be read is an error that names it; what is tried next is decided by who asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

from tablefeed.delta import codec, names
from tablefeed.delta.checksum import Checksum, parse_checksum
from tablefeed.errors import CorruptLogError, ObjectNotFoundError, StoreError
from tablefeed.log.replay import fold
from tablefeed.log.segment import LogSegment
from tablefeed.model.actions import Commit, Facts
from tablefeed.model.logfile import LogFile
from tablefeed.store import Store

if TYPE_CHECKING:
    import pyarrow as pa

    from tablefeed.delta.checkpoint import TopLevel

KEPT_TAIL_BYTES = 32 << 20
"""File columns of a tail that are kept between the facts and the files of one snapshot: some 100,000 files. More
would be memory that the caller did not ask for, and reading them twice is then a small part of what follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What is known of `segment` from when its facts were read. None: not kept, to be read again."""

    segment: LogSegment
    sidecars: tuple[str, ...] | None = None
    tail: Sequence[pa.RecordBatch] | None = None


def unreadable_log_file(error: CorruptLogError | ObjectNotFoundError) -> str:
    """Gives the name of the file of the log that `error` is about."""
    return error.log_file if isinstance(error, CorruptLogError) else error.name.rpartition("/")[2]


class SegmentReader:
    """Reads segments of the log in `store`. Raises CorruptLogError and StoreError with the store's url."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._url = store.url

    def facts(self, segment: LogSegment) -> Facts:
        """Gives what the segment says besides files."""
        facts = self._top_level(segment).facts if segment.checkpoint else Facts()
        return fold(facts, (self._commit(log_file) for log_file in segment.tail))

    def facts_and_files(self, segment: LogSegment) -> tuple[Facts, Reading]:
        """Gives the same, and what `files` then need not read again; each file of the tail is decoded once."""
        from tablefeed.delta.columns import FileRows, decode_commit_into

        top = self._top_level(segment) if segment.checkpoint else None
        facts = top.facts if top else Facts()
        rows, kept = FileRows(url=self._url), _Kept()
        for log_file in segment.tail:
            commit = decode_commit_into(
                rows,
                self._store.read(_path(log_file)),
                version=log_file.version,
                log_file=log_file.name,
                modified_ms=log_file.modified_ms,
            )
            facts = fold(facts, (commit,))
            kept.add(rows.full())
        kept.add(rows.rest())
        return facts, Reading(segment=segment, sidecars=top.sidecars if top else (), tail=kept.batches)

    def files(self, reading: Reading, *, with_stats: bool) -> tuple[Iterator[pa.RecordBatch], Iterator[pa.RecordBatch]]:
        """Gives the files of the checkpoint and the file actions of the tail, in columns, as they are asked for."""
        segment = reading.segment
        tail = self._tail(segment) if reading.tail is None else iter(reading.tail)
        return self._checkpoint_files(segment, reading.sidecars, with_stats=with_stats), tail

    def is_unchanged(self, segment: LogSegment) -> bool:
        """Says whether no file of the checkpoint was replaced since it was listed; a sidecar never is."""
        for part in segment.checkpoint:
            entry = self._store.stat(_path(part))
            if entry is not None and (entry.size_bytes, entry.modified_ms) != (part.size_bytes, part.modified_ms):
                return False
        return True

    def checksum(self, segment: LogSegment) -> Checksum | None:
        """Gives the version checksum that is listed beside the segment's newest version, None where there is none."""
        if segment.checksum is None:
            return None
        try:
            return parse_checksum(self._store.read(_path(segment.checksum)))
        except StoreError:
            return None  # it was only asked whether anything speaks against the log

    def _commit(self, log_file: LogFile) -> Commit:
        return codec.decode_commit(
            self._store.read(_path(log_file)),
            version=log_file.version,
            url=self._url,
            log_file=log_file.name,
            modified_ms=log_file.modified_ms,
        )

    def _top_level(self, segment: LogSegment) -> TopLevel:
        from tablefeed.delta.checkpoint import read_top_level

        return read_top_level(self._opened(segment), url=self._url)

    def _opened(self, segment: LogSegment) -> Iterator[tuple[LogFile, BinaryIO]]:
        for part in segment.checkpoint:
            with self._store.open_input(_path(part)) as source:
                yield part, source

    def _checkpoint_files(
        self, segment: LogSegment, sidecars: tuple[str, ...] | None, *, with_stats: bool
    ) -> Iterator[pa.RecordBatch]:
        from tablefeed.delta.checkpoint import read_files, read_sidecar

        if segment.checkpoint and sidecars is None:
            sidecars = self._top_level(segment).sidecars
        for name in sidecars or ():
            with self._store.open_input(name) as source:
                yield from read_sidecar(source, with_stats=with_stats, url=self._url, log_file=name)
        if not sidecars:
            for part, source in self._opened(segment):
                yield from read_files(source, with_stats=with_stats, url=self._url, log_file=part.name)

    def _tail(self, segment: LogSegment) -> Iterator[pa.RecordBatch]:
        from tablefeed.delta.columns import FileRows, decode_commit_into

        rows = FileRows(url=self._url)
        for log_file in segment.tail:
            data = self._store.read(_path(log_file))
            decode_commit_into(rows, data, version=log_file.version, log_file=log_file.name, modified_ms=None)
            yield from rows.full()
        yield from rows.rest()


class _Kept:
    """Batches up to `KEPT_TAIL_BYTES`; None as soon as they are more."""

    def __init__(self) -> None:
        self.batches: list[pa.RecordBatch] | None = []
        self._bytes = 0

    def add(self, batches: Sequence[pa.RecordBatch]) -> None:
        self._bytes += sum(batch.nbytes for batch in batches)
        if self.batches is not None:
            self.batches = [*self.batches, *batches] if self._bytes <= KEPT_TAIL_BYTES else None


def _path(log_file: LogFile) -> str:
    return f"{names.LOG_DIR}/{log_file.name}"
