"""Writes the checkpoint of one version from the checkpoint before it and the commits since, in bounded memory.

A reader finds the checkpoint whole or not at all. Each file appears when it is complete. The file that makes it a
checkpoint appears last, and `_last_checkpoint` is written after that. Files of a killed writer are hidden, or no
checkpoint names them. after_commit.py decides when a checkpoint is due.
"""

from __future__ import annotations

import logging
import math
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tablefeed.delta import names
from tablefeed.delta.checkpoint.checksum_writer import FileCounts
from tablefeed.delta.checkpoint.compaction import compact
from tablefeed.delta.checkpoint.last_checkpoint import WrittenCheckpoint, encode_last_checkpoint, parse_last_checkpoint
from tablefeed.delta.checkpoint.reading import read_actions
from tablefeed.delta.checkpoint.spark_hash import part_of
from tablefeed.delta.checkpoint.tally import Tally
from tablefeed.delta.checkpoint.writing import (
    CheckpointLayout,
    Sidecar,
    fact_actions,
    last_checkpoint_schema,
    v2_actions,
)
from tablefeed.delta.codec import json_lines
from tablefeed.delta.columns import FILE_COLUMNS
from tablefeed.delta.properties import TableProperties
from tablefeed.delta.schema.arrow_schema import to_arrow
from tablefeed.delta.schema.column_mapping import mapping_mode
from tablefeed.delta.schema.stored_schema import stored_schema
from tablefeed.errors import LogGapError, ObjectNotFoundError, StoreError, naming
from tablefeed.feed.commit.own_log import all_in_log_of, check_there, in_log_of
from tablefeed.feed.snapshot.delta_log import DeltaSnapshot
from tablefeed.feed.snapshot.segment_reader import SegmentReader
from tablefeed.feed.snapshot.sorted_files import SortedFiles
from tablefeed.feed.snapshot.table_log import Snapshot
from tablefeed.log.replay import reconciled
from tablefeed.log.segment import Checkpoint, LogSegment
from tablefeed.model.actions import Facts, Version
from tablefeed.model.logfile import LogFileKind
from tablefeed.model.progress import OnProgress, Progress, unreported
from tablefeed.model.schema import Struct
from tablefeed.store import Store, Within

logger = logging.getLogger(__name__)

SIDECAR_ACTIONS = 50_000
"""Most actions of one sidecar: Delta-Spark's default."""

_ROW_GROUP = 16_384  # rows of which some have a few kilobytes of statistics
_MOST_SIDECARS_TOLD = 30  # in _last_checkpoint; Delta-Spark's limit


def write_checkpoint(
    snapshot: DeltaSnapshot,
    *,
    part_actions: int | None = None,
    before_step: Callable[[], None] = lambda: None,
    on_progress: OnProgress = unreported,
) -> FileCounts:
    """Writes the checkpoint of the snapshot's version, points `_last_checkpoint` to it; gives the live files' counts.

    `part_actions` is the most actions of a sidecar, or the approximate number in a part: a hash chooses the part. None
    means `SIDECAR_ACTIONS` in a sidecar, or one file without parts. Parts are written only for tables without V2
    checkpoints; the protocol advises against parts. V2 checkpoints are written if the table's policy asks for them.

    `before_step` is called before each step: a batch of files, or work of a few milliseconds. `on_progress` is told how
    many entries of files were read and written; of a part, how many of that part.

    Tombstones and transaction identifiers that had expired when the version was committed are left out. So the content
    depends on the log alone, and two writers of one checkpoint write the same rows. Raises LogError where the log
    cannot be read, TableReplacedError where the table was replaced or deleted meanwhile (nothing of the checkpoint then
    remains), and StoreError.
    """
    log, version = snapshot.log, snapshot.version
    with naming(log.url):
        stored_schema(snapshot.schema, mapping_mode(snapshot.properties))  # refuses two columns of one physical name
    layout = CheckpointLayout(snapshot.protocol, snapshot.metadata, snapshot.schema)
    with SortedFiles(FILE_COLUMNS) as files, all_in_log_of(snapshot) as within:
        counts, now_ms = _collect(snapshot, files, before_step, on_progress)
        before_step()
        write = _Writing(
            store=log.store,
            within=within,
            layout=layout,
            part_actions=part_actions,
            facts=_unexpired(snapshot.facts, now_ms),
            files=files,
            before_step=before_step,
            on_progress=on_progress,
        )
        written = write.v2(version) if wants_v2(snapshot) else write.classic(version, parts=not _knows_v2(snapshot))
        before_step()
        _point_to(written, log.store, within)
    logger.info(
        "checkpoint table=%s version=%d actions=%d adds=%d bytes=%d",
        log.url,
        version,
        written.action_count,
        written.add_count,
        written.size_bytes,
    )
    return counts


def write_compaction(snapshot: Snapshot, first: Version) -> None:
    """Writes the commits from `first` up to the snapshot's as one log compaction file ("Log Compaction Files").

    Raises LogError and StoreError.
    """
    log, last = snapshot.log, snapshot.version
    commits = []
    for version in range(first, last + 1):
        commit = log.commit(Version(version))
        if commit is None:
            raise LogGapError(url=log.url, expected=version, found=None, remedy="No compaction was written.")
        commits.append(commit)
    path = f"{names.LOG_DIR}/{names.compaction_name(first, last)}"
    log.store.put_if_absent(path, compact(commits), within=in_log_of(snapshot))


def write_classic_twin(snapshot: Snapshot, checkpoint: Checkpoint) -> bool:
    """Writes the top level of `checkpoint` under a classic name too, where its own name has a UUID.

    Readers that do not know names with a UUID then find the protocol, and refuse the table because of it ("Handling
    Backward compatibility while moving to UUID-named v2 Checkpoints"). Both name the same sidecars. False where nothing
    was written.
    """
    log = snapshot.log
    if checkpoint[0].kind is not LogFileKind.CHECKPOINT_V2:
        return False
    name = f"{names.LOG_DIR}/{names.checkpoint_name(checkpoint[0].version)}"
    if log.store.exists(name):
        return False
    with naming(log.url), log.store.open_input(f"{names.LOG_DIR}/{checkpoint[0].name}") as source:
        actions = read_actions(source, log_file=checkpoint[0])
    if actions is None:
        return False
    layout = CheckpointLayout(snapshot.protocol, snapshot.metadata, snapshot.schema)
    with all_in_log_of(snapshot) as within:
        _put(log.store, name, layout.top_level, [layout.action_rows(actions, layout.top_level)], within)
        check_there(log.store, [f"{names.LOG_DIR}/{checkpoint[0].name}"])  # and so its sidecars
    return True


def _collect(
    snapshot: DeltaSnapshot, files: SortedFiles, before_step: Callable[[], None], on_progress: OnProgress
) -> tuple[FileCounts, int]:
    """Puts the version's live files and unexpired tombstones into `files`; gives their counts and the commit's time.

    The time is in ms. An earlier checkpoint that cannot be read is left out, as by any reader of the log.
    """

    def collect(segment: LogSegment) -> tuple[FileCounts, int]:
        files.clear()
        now_ms = _committed_ms(snapshot, segment)
        oldest_ms = now_ms - snapshot.properties.deleted_files_ms
        tally = Tally()
        for batch in _rows(snapshot.log.store, segment, before_step):
            before_step()
            # A tombstone without a time is expired.
            is_young = pc.fill_null(pc.greater(batch["deletion_timestamp_ms"], oldest_ms), fill_value=False)
            kept = batch.filter(pc.or_(batch["is_add"], is_young))
            tally.take(kept.filter(kept["is_add"]))
            files.add(kept)
            on_progress(Progress(step="log entries read", done=files.count))
        return tally.result(), now_ms

    return snapshot.segments().read(collect)


def _rows(store: Store, segment: LogSegment, before_step: Callable[[], None]) -> Iterator[pa.RecordBatch]:
    reader = SegmentReader(store)
    before_step()
    reading = reader.reading(segment)
    before_step()
    adds, turns = reader.files(reading, with_stats=True)
    yield from reconciled(chain(adds, reader.removed(reading)), turns)


def _committed_ms(snapshot: Snapshot, segment: LogSegment) -> int:
    """When the version was committed, in ms: the time of its log file, or its in-commit timestamp if that is earlier.

    In-commit timestamps only grow: after one commit by a clock that is ahead, they stay ahead for as long. Then what
    is still needed would count as expired. The file of a commit that was copied is younger than the commit.
    """
    own_ms = snapshot.facts.in_commit_timestamp_ms
    file_ms = (segment.commits[-1:] or segment.checkpoint)[0].modified_ms
    return file_ms if own_ms is None else min(own_ms, file_ms)


def _unexpired(facts: Facts, now_ms: int) -> Facts:
    if facts.metadata is None:
        return facts
    properties = TableProperties.of(facts.metadata)
    txns = {app_id: txn for app_id, txn in facts.txns.items() if properties.keeps_txn(txn, now_ms=now_ms)}
    return Facts(protocol=facts.protocol, metadata=facts.metadata, txns=txns, domains=facts.domains)


def _knows_v2(snapshot: Snapshot) -> bool:
    return "v2Checkpoint" in (snapshot.protocol.reader_features or ())


def wants_v2(snapshot: Snapshot) -> bool:
    """Whether the table gets V2 checkpoints. Their names have a new UUID each, so they never exist already."""
    return _knows_v2(snapshot) and snapshot.properties.wants_v2_checkpoints


@dataclass(frozen=True, slots=True, kw_only=True)
class _Writing:
    store: Store
    within: Within
    layout: CheckpointLayout
    part_actions: int | None
    facts: Facts
    files: SortedFiles
    before_step: Callable[[], None]
    on_progress: OnProgress

    def classic(self, version: Version, *, parts: bool) -> WrittenCheckpoint:
        """V1 spec, in one file, or in parts to which Spark's hash of a row's path assigns it ("Multi-part checkpoint").

        Only the path is hashed, as in Delta-Spark, although the protocol's text asks for the deletion vector's id too.
        """
        actions, schema = fact_actions(self.facts), self.layout.schema
        wanted = self.part_actions if parts else None
        count = 1 if wanted is None else max(math.ceil(self.files.count / wanted), 1)
        size_bytes = 0
        for part in range(count):
            facts = [self.layout.action_rows(actions, schema)] if part == part_of(None, count) else ()
            name = names.checkpoint_name(version)
            if count > 1:
                name = names.checkpoint_part_name(version, part=part + 1, part_count=count)
            size_bytes += self._put(name, schema, chain(facts, self._file_rows(schema, part=part, part_count=count)))[0]
        return WrittenCheckpoint(
            version=version,
            action_count=len(actions) + self.files.count,
            add_count=self.files.add_count,
            size_bytes=size_bytes,
            part_count=None if count == 1 else count,
            schema=last_checkpoint_schema(schema),
        )

    def v2(self, version: Version) -> WrittenCheckpoint:
        """V2 spec, in JSON, with a UUID in the name and the file actions in sidecars."""
        sidecars = list(self._sidecars(version))
        actions = [
            *v2_actions(version, sidecars, self.layout, action_count=self.files.count, add_count=self.files.add_count),
            *fact_actions(self.facts),
        ]
        name = names.checkpoint_uuid_name(version, uuid=str(uuid.uuid4()))
        self.store.put_if_absent(f"{names.LOG_DIR}/{name}", json_lines(actions), within=self.within)
        check_there(self.store, (f"{names.LOG_DIR}/{names.SIDECARS_DIR}/{sidecar.name}" for sidecar in sidecars))
        size_bytes, modified_ms = self._stat(name)
        told = [action[names.SIDECAR] for action in actions if names.SIDECAR in action]
        v2 = {"path": name, "sizeInBytes": size_bytes, "modificationTime": modified_ms}
        return WrittenCheckpoint(
            version=version,
            action_count=len(actions) + self.files.count,
            add_count=self.files.add_count,
            size_bytes=size_bytes + sum(sidecar.size_bytes for sidecar in sidecars),
            v2=v2 | {"sidecarFiles": told} if len(told) <= _MOST_SIDECARS_TOLD else v2,
        )

    def _sidecars(self, version: int) -> Iterator[Sidecar]:
        most = self.part_actions or SIDECAR_ACTIONS
        groups = math.ceil(most / _ROW_GROUP)
        most -= most % groups  # so that a sidecar ends where a row group does
        count = math.ceil(self.files.count / most)
        rows = self._file_rows(self.layout.files, rows=most // groups)
        for part in range(1, count + 1):
            name = names.sidecar_name(version, part=part, part_count=count, uuid=str(uuid.uuid4()))
            size_bytes, modified_ms = self._put(f"{names.SIDECARS_DIR}/{name}", self.layout.files, _up_to(rows, most))
            yield Sidecar(name=name, size_bytes=size_bytes, modified_ms=modified_ms)

    def _file_rows(
        self, schema: Struct, *, part: int = 0, part_count: int = 1, rows: int = _ROW_GROUP
    ) -> Iterator[pa.RecordBatch]:
        done = 0
        for batch in self.files.batches(rows):
            if part_count > 1:
                parts = [part_of(path, part_count) for path in batch["log_path"].to_pylist()]
                batch = batch.filter(pc.equal(pa.array(parts, pa.int64()), part))
            adds = batch["is_add"].true_count  # adds come first
            for rows in filter(len, (batch.slice(0, adds), batch.slice(adds))):  # one row group each
                self.before_step()
                made = self.layout.file_rows(rows, schema)
                self.before_step()
                yield made
                done += made.num_rows
                self.on_progress(Progress(step="log entries written", done=done, total=self.files.count))

    def _put(self, name: str, schema: Struct, rows: Iterable[pa.RecordBatch]) -> tuple[int, int]:
        """Writes one Parquet file of the log; gives its size and time."""
        _put(self.store, f"{names.LOG_DIR}/{name}", schema, rows, self.within)
        return self._stat(name)

    def _stat(self, name: str) -> tuple[int, int]:
        entry = self.store.stat(f"{names.LOG_DIR}/{name}")
        if entry is None:
            raise ObjectNotFoundError(url=self.store.url, name=f"{names.LOG_DIR}/{name}")
        return entry.size_bytes, entry.modified_ms


def _put(store: Store, name: str, schema: Struct, rows: Iterable[pa.RecordBatch], within: Within) -> None:
    with (
        store.publish(name, within=within) as out,
        pq.ParquetWriter(
            out,
            to_arrow(schema),
            compression="snappy",  # which every reader of checkpoints has
            store_schema=False,
            store_decimal_as_integer=True,
            write_page_checksum=True,
        ) as writer,
    ):
        for batch in rows:
            writer.write_batch(batch, row_group_size=batch.num_rows)


def _up_to(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """The next batches with `rows` rows together, or all that are left."""
    while rows > 0 and (batch := next(batches, None)) is not None:
        rows -= batch.num_rows
        yield batch


def _point_to(written: WrittenCheckpoint, store: Store, within: Within) -> None:
    """Points `_last_checkpoint` to `written`, unless it points to a later version."""
    path = f"{names.LOG_DIR}/{names.LAST_CHECKPOINT}"
    try:
        hint = parse_last_checkpoint(store.read(path))
    except StoreError:
        hint = None
    if hint is None or hint.version <= written.version:
        store.replace(path, encode_last_checkpoint(written), within=within)
