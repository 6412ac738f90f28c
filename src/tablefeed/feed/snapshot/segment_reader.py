"""What the files of a log segment say: opened in the store, decoded by `tablefeed.delta`. Nothing is cached here.

A file that cannot be read is an error that names it; what is tried next is decided by who asked.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, BinaryIO

from tablefeed.delta import codec, names
from tablefeed.delta.checkpoint.checksum import Checksum, parse_checksum
from tablefeed.errors import CorruptLogError, ObjectNotFoundError, StoreError
from tablefeed.log.replay import each_once, fold
from tablefeed.log.segment import LogSegment
from tablefeed.model.actions import Commit, Facts
from tablefeed.model.logfile import LogFile, LogFileKind
from tablefeed.store import Entry, Store

if TYPE_CHECKING:
    import pyarrow as pa

    from tablefeed.delta.checkpoint.reading import TopLevel

logger = logging.getLogger(__name__)

KEPT_TAIL_BYTES = 16 << 20
"""Bytes of a tail that is decoded once, and kept, for the facts and the files of one snapshot: some 20,000 files. More
would be memory that the caller did not ask for; a longer tail is read twice, the first time for its facts alone."""

_TURN_BYTES = 4 << 20
"""Small commits are decoded together up to this: each turn looks up its keys among all those before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What is known of `segment` from when its facts were read. None: not kept, to be read again."""

    segment: LogSegment
    sidecars: tuple[str, ...] | None = None
    tail: Sequence[Sequence[pa.RecordBatch]] | None = None
    """By turns, as `SegmentReader.files` gives it."""


def passed_over(segment: LogSegment, error: CorruptLogError | ObjectNotFoundError) -> frozenset[str]:
    """Gives the files to leave out next, as `error` came while `segment` was read, and logs a warning that names them.

    None where no other segment can do without the file of the log that `error` is about.
    """
    name = error.log_file if isinstance(error, CorruptLogError) else error.name.rpartition("/")[2]
    files = segment.replaceable(name)
    if files:
        logger.warning("passed over %s: %s", ", ".join(sorted(files)), error)
    return files


def is_as_listed(found: Entry, listed: LogFile | Entry) -> bool:
    """Says whether the file `found`, which was asked for by its name, is the one that was `listed`."""
    # Some stores list a time in milliseconds and give one object's in seconds.
    return (found.size_bytes, found.modified_ms // 1000) == (listed.size_bytes, listed.modified_ms // 1000)


class SegmentReader:
    """Reads segments of the log in `store`. Raises CorruptLogError and StoreError with the store's url."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._url = store.url

    def facts(self, segment: LogSegment) -> Facts:
        """Gives what the segment says besides files, which are not judged."""
        facts = self._top_level(segment).facts if segment.checkpoint else Facts()
        return fold(facts, map(self._facts_of, segment.tail))

    def facts_and_files(self, segment: LogSegment) -> tuple[Facts, Reading]:
        """Gives the same, and what `files` then need not read again; the files of a short tail are judged."""
        top = self._top_level(segment) if segment.checkpoint else None
        facts, sidecars = (top.facts, top.sidecars) if top else (Facts(), ())
        if sum(log_file.size_bytes for log_file in segment.tail) > KEPT_TAIL_BYTES:
            facts = fold(facts, map(self._facts_of, segment.tail))
            return facts, Reading(segment=segment, sidecars=sidecars)
        turns: list[Sequence[pa.RecordBatch]] = []
        for turn in reversed(list(_newest_first(segment.tail))):
            batches, commits = self._decoded(turn, with_stats=True)
            facts = fold(facts, commits)
            turns.append(batches)
        return facts, Reading(segment=segment, sidecars=sidecars, tail=turns[::-1])

    def reading(self, segment: LogSegment) -> Reading:
        """Gives what `files` and `removed` of the segment's checkpoint would else look up each."""
        return Reading(segment=segment, sidecars=self._top_level(segment).sidecars if segment.checkpoint else ())

    def files(
        self, reading: Reading, *, with_stats: bool
    ) -> tuple[Iterator[pa.RecordBatch], Iterator[Sequence[pa.RecordBatch]]]:
        """Gives the files of the checkpoint, and the file actions of the tail by turns (`log.replay.live_files`).

        In columns, read and decoded as they are asked for.
        """
        segment = reading.segment
        files = self._checkpoint_files(segment, reading.sidecars, with_stats=with_stats)
        name = segment.checkpoint[0].name if segment.checkpoint else ""
        checkpoint = each_once(files, log_file=name, url=self._store.url)
        if reading.tail is not None:
            return checkpoint, iter(reading.tail)
        return checkpoint, (self._decoded(turn, with_stats=with_stats)[0] for turn in _newest_first(segment.tail))

    def removed(self, reading: Reading) -> Iterator[pa.RecordBatch]:
        """Gives the removes of the checkpoint: what `files` leaves out."""
        from tablefeed.delta.checkpoint.reading import read_removed

        sidecars = reading.sidecars
        if reading.segment.checkpoint and sidecars is None:
            sidecars = self._top_level(reading.segment).sidecars
        for name in sidecars or ():
            with self._store.open_input(name) as source:
                yield from read_removed(source, url=self._url, log_file=name)
        if not sidecars:
            for part, source in self._opened(reading.segment):
                yield from read_removed(source, url=self._url, log_file=part.name)

    def check(self, segment: LogSegment, *, before_step: Callable[[], None] = lambda: None) -> None:
        """Reads all that `segment` says, whatever of it a reader may need, a batch at a time; keeps nothing.

        Every column of every row group is decoded, of sidecars too. `before_step` is called before each batch. Raises
        LogError and ObjectNotFoundError where `segment` cannot be read.
        """
        before_step()
        reading = self.reading(segment)
        checkpoint, turns = self.files(reading, with_stats=True)
        for _ in chain(self._all_columns(reading), checkpoint, self.removed(reading), turns):
            before_step()

    def is_unchanged(self, segment: LogSegment) -> bool:
        """Says whether no file of the checkpoint was replaced since it was listed; a sidecar never is."""
        for part in segment.checkpoint:
            entry = self._store.stat(_path(part))
            if entry is not None and not is_as_listed(entry, part):
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

    def _facts_of(self, log_file: LogFile) -> Commit:
        facts = codec.decode_facts(
            self._store.read(_path(log_file)),
            version=log_file.version,
            url=self._url,
            log_file=log_file.name,
            modified_ms=log_file.modified_ms,
        )
        if log_file.kind is LogFileKind.COMPACTION:
            self._check_reconciled(log_file, (), facts)
        return facts

    def _decoded(self, turn: Sequence[LogFile], *, with_stats: bool) -> tuple[Sequence[pa.RecordBatch], list[Commit]]:
        from tablefeed.delta.columns import FileRows, decode_commit_into

        rows = FileRows(url=self._url, with_stats=with_stats)
        batches: list[pa.RecordBatch] = []
        commits = []
        for log_file in turn:
            data = self._store.read(_path(log_file))
            commits.append(
                decode_commit_into(
                    rows, data, version=log_file.version, log_file=log_file.name, modified_ms=log_file.modified_ms
                )
            )
            batches += rows.full()
        batches += rows.rest()
        if turn[0].kind is LogFileKind.COMPACTION:
            self._check_reconciled(turn[0], batches, commits[0])
        return batches, commits

    def _check_reconciled(self, log_file: LogFile, files: Sequence[pa.RecordBatch], facts: Commit) -> None:
        from tablefeed.delta.checkpoint.compaction import unreconciled_facts, unreconciled_files

        reason = unreconciled_facts(facts) or unreconciled_files(files)
        if reason is not None:
            raise CorruptLogError(reason, url=self._url, log_file=log_file.name)

    def _top_level(self, segment: LogSegment) -> TopLevel:
        from tablefeed.delta.checkpoint.reading import read_top_level

        return read_top_level(self._opened(segment), url=self._url)

    def _opened(self, segment: LogSegment) -> Iterator[tuple[LogFile, BinaryIO]]:
        for part in segment.checkpoint:
            with self._store.open_input(_path(part)) as source:
                yield part, source

    def _all_columns(self, reading: Reading) -> Iterator[pa.RecordBatch]:
        from tablefeed.delta.checkpoint.reading import read_all_columns

        for part, source in self._opened(reading.segment):
            yield from read_all_columns(source, url=self._url, log_file=part.name)
        for name in reading.sidecars or ():
            with self._store.open_input(name) as source:
                yield from read_all_columns(source, url=self._url, log_file=name)

    def _checkpoint_files(
        self, segment: LogSegment, sidecars: tuple[str, ...] | None, *, with_stats: bool
    ) -> Iterator[pa.RecordBatch]:
        from tablefeed.delta.checkpoint.reading import read_files, read_sidecar

        if segment.checkpoint and sidecars is None:
            sidecars = self._top_level(segment).sidecars
        for name in sidecars or ():
            with self._store.open_input(name) as source:
                yield from read_sidecar(source, with_stats=with_stats, url=self._url, log_file=name)
        if not sidecars:
            for part, source in self._opened(segment):
                yield from read_files(source, with_stats=with_stats, url=self._url, log_file=part.name)


def _newest_first(tail: Sequence[LogFile]) -> Iterator[Sequence[LogFile]]:
    """Gives `tail` in turns of at least one file and otherwise at most `_TURN_BYTES`, the newest first.

    A compaction, which is the oldest, is a turn of its own.
    """
    end, oldest = len(tail), 1 if tail and tail[0].kind is LogFileKind.COMPACTION else 0
    while end:
        begin, size_bytes = end - 1, tail[end - 1].size_bytes
        while begin > oldest and size_bytes + tail[begin - 1].size_bytes <= _TURN_BYTES:
            begin -= 1
            size_bytes += tail[begin].size_bytes
        yield tail[begin:end]
        end = begin


def _path(log_file: LogFile) -> str:
    return f"{names.LOG_DIR}/{log_file.name}"
