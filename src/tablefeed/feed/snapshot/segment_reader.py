"""Reads the files of a log segment from the store; `tablefeed.delta` decodes them. Nothing is cached here.

A file that cannot be read raises an error that names it. The caller decides what to try next.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, BinaryIO

from tablefeed.delta import codec, names
from tablefeed.delta.checkpoint.checksum import Checksum, parse_checksum
from tablefeed.errors import CorruptLogError, ObjectNotFoundError, StoreError, naming
from tablefeed.log.facts import fold
from tablefeed.log.segment import LogSegment
from tablefeed.model.actions import Commit, Facts
from tablefeed.model.logfile import LogFile, LogFileKind
from tablefeed.store import Entry, Store

if TYPE_CHECKING:
    import pyarrow as pa

    from tablefeed.delta.checkpoint.reading import TopLevel

logger = logging.getLogger(__name__)

KEPT_TAIL_BYTES = 16 << 20
"""A tail up to this size, some 20,000 files, is decoded once and kept for the facts and the files of a snapshot. More
would be memory that the caller did not ask for. A longer tail is read twice, the first time for its facts alone."""

_TURN_BYTES = 4 << 20
"""Small commits are decoded in groups up to this size, because each group looks up its keys among all before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What was kept of `segment` when its facts were read. None: not kept, so it must be read again."""

    segment: LogSegment
    sidecars: tuple[str, ...] | None = None
    tail: Sequence[Sequence[pa.RecordBatch]] | None = None
    """In groups, the newest commits first, as `SegmentReader.files` gives it."""


def passed_over(segment: LogSegment, error: CorruptLogError | ObjectNotFoundError) -> frozenset[str]:
    """Gives the log files to leave out after `error` came from reading `segment`, and logs a warning that names them.

    Empty where no other segment avoids the log file that `error` is about.
    """
    name = error.log_file if isinstance(error, CorruptLogError) else error.name.rpartition("/")[2]
    files = segment.replaceable(name)
    if files:
        logger.warning("passed over %s: %s", ", ".join(sorted(files)), error)
    return files


def is_as_listed(found: Entry, listed: LogFile | Entry) -> bool:
    """Says whether `found`, the store's answer for one name, is the `listed` file: same size, same time.

    Some stores give times in milliseconds in a listing, but in seconds for a single object.
    """
    same_time = found.modified_ms in (listed.modified_ms, listed.modified_ms // 1000 * 1000)
    return same_time and found.size_bytes == listed.size_bytes


class SegmentReader:
    """Reads segments of the log in `store`. Raises CorruptLogError and StoreError with the store's url."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._url = store.url

    def facts(self, segment: LogSegment) -> Facts:
        """Gives the facts of the segment. Its file actions are not checked."""
        facts = self._top_level(segment).facts if segment.checkpoint else Facts()
        return fold(facts, map(self._facts_of, segment.tail))

    def facts_and_files(self, segment: LogSegment) -> tuple[Facts, Reading]:
        """Gives the facts, and what `files` then need not read again; the file actions of a short tail are checked."""
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
        """Gives the checkpoint's sidecars, which `files` and `removed` would otherwise each look up."""
        return Reading(segment=segment, sidecars=self._top_level(segment).sidecars if segment.checkpoint else ())

    def files(
        self, reading: Reading, *, with_stats: bool
    ) -> tuple[Iterator[pa.RecordBatch], Iterator[Sequence[pa.RecordBatch]]]:
        """Gives the files of the checkpoint, and the tail's file actions in groups, newest first, for `live_files`.

        Both are in columns, read and decoded as they are asked for.
        """
        segment = reading.segment
        checkpoint = self._checkpoint_files(reading, with_stats=with_stats)
        if reading.tail is not None:
            return checkpoint, iter(reading.tail)
        return checkpoint, (self._decoded(turn, with_stats=with_stats)[0] for turn in _newest_first(segment.tail))

    def removed(self, reading: Reading) -> Iterator[pa.RecordBatch]:
        """Gives the remove actions of the checkpoint, which `files` leaves out."""
        from tablefeed.delta.checkpoint.reading import read_removed

        with naming(self._url):
            for name, source, _ in self._with_files(reading):
                yield from read_removed(source, log_file=name)

    def check(self, segment: LogSegment, *, before_step: Callable[[], None] = lambda: None) -> None:
        """Reads all of `segment` that any reader may need, batch by batch; keeps nothing.

        Every column of every row group is decoded, in sidecars too. `before_step` is called before each batch. Raises
        LogError and ObjectNotFoundError where `segment` cannot be read.
        """
        before_step()
        reading = self.reading(segment)
        checkpoint, turns = self.files(reading, with_stats=True)
        for _ in chain(self._all_columns(reading), checkpoint, self.removed(reading), turns):
            before_step()

    def is_unchanged(self, segment: LogSegment) -> bool:
        """Says whether no file of the checkpoint was replaced since it was listed. Sidecars are never replaced."""
        for part in segment.checkpoint:
            entry = self._store.stat(_path(part))
            if entry is not None and not is_as_listed(entry, part):
                return False
        return True

    def checksum(self, segment: LogSegment) -> Checksum | None:
        """Gives the version checksum of the segment's version; None where none is listed or it cannot be read."""
        if segment.checksum is None:
            return None
        try:
            return parse_checksum(self._store.read(_path(segment.checksum)))
        except StoreError:
            return None  # the checksum only confirms the log, so reading goes on without it

    def _facts_of(self, log_file: LogFile) -> Commit:
        with naming(self._url):
            facts = codec.decode_facts(
                self._store.read(_path(log_file)),
                version=log_file.version,
                log_file=log_file.name,
                modified_ms=log_file.modified_ms,
            )
            if log_file.kind is LogFileKind.COMPACTION:
                self._check_reconciled(log_file, (), facts)
            return facts

    def _decoded(self, turn: Sequence[LogFile], *, with_stats: bool) -> tuple[Sequence[pa.RecordBatch], list[Commit]]:
        from tablefeed.delta.columns import FileRows, decode_commit_into

        rows = FileRows(with_stats=with_stats)
        batches: list[pa.RecordBatch] = []
        commits = []
        with naming(self._url):
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
            raise CorruptLogError(reason, log_file=log_file.name)

    def _top_level(self, segment: LogSegment) -> TopLevel:
        from tablefeed.delta.checkpoint.reading import read_top_level

        with naming(self._url):
            return read_top_level(self._opened(segment), root_url=self._url)

    def _opened(self, segment: LogSegment) -> Iterator[tuple[LogFile, BinaryIO]]:
        for part in segment.checkpoint:
            with self._store.open_input(_path(part)) as source:
                yield part, source

    def _all_columns(self, reading: Reading) -> Iterator[pa.RecordBatch]:
        from tablefeed.delta.checkpoint.reading import read_all_columns

        with naming(self._url):
            for part, source in self._opened(reading.segment):
                yield from read_all_columns(source, log_file=part.name)
            for name, source in self._opened_sidecars(reading.sidecars or ()):
                yield from read_all_columns(source, log_file=name)

    def _checkpoint_files(self, reading: Reading, *, with_stats: bool) -> Iterator[pa.RecordBatch]:
        from tablefeed.delta.checkpoint.reading import read_files, read_sidecar_files
        from tablefeed.log.replay import each_once

        parts = reading.segment.checkpoint
        files = (
            file
            for name, source, is_sidecar in self._with_files(reading)
            for file in (read_sidecar_files if is_sidecar else read_files)(source, with_stats=with_stats, log_file=name)
        )
        with naming(self._url):
            yield from each_once(files, log_file=parts[0].name if parts else "")

    def _with_files(self, reading: Reading) -> Iterator[tuple[str, BinaryIO, bool]]:
        """Opens what has the checkpoint's file actions: its sidecars (True) if it has any, or else its parts."""
        sidecars = reading.sidecars
        if reading.segment.checkpoint and sidecars is None:
            sidecars = self._top_level(reading.segment).sidecars
        if sidecars:
            yield from ((name, source, True) for name, source in self._opened_sidecars(sidecars))
        else:
            yield from ((part.name, source, False) for part, source in self._opened(reading.segment))

    def _opened_sidecars(self, sidecars: Sequence[str]) -> Iterator[tuple[str, BinaryIO]]:
        for name in sidecars:
            with self._store.open_input(name) as source:
                yield name, source


def _newest_first(tail: Sequence[LogFile]) -> Iterator[Sequence[LogFile]]:
    """Gives `tail` in groups, the newest first. A group has at most `_TURN_BYTES`, or it is one larger file.

    A compaction, which is the oldest file, is a group of its own.
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
