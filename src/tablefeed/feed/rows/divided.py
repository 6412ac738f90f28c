"""Moves the change events of a batch from Spark's tasks to the process that applies and commits them.

A task gets events of any keys. It writes them to a file below `EVENTS_DIR`, in which each record batch has events of
one bucket of keys. If there are few events, they travel with the task's report instead. The process that commits reads
the buckets of all tasks, one group of buckets after the other, so that its memory does not grow with the batch. No log
names these files. They are deleted when the batch is applied or given up, because a batch that runs again gets its
events again. Vacuum deletes the files of processes that were killed.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.errors import TABLE, DataFileError, ObjectNotFoundError
from tablefeed.feed.rows.apply import Batch, Part, applied_part
from tablefeed.feed.rows.events import BUCKETS, key_buckets
from tablefeed.feed.rows.folding import KIND, Folding, Kind
from tablefeed.feed.write.orphans import delete_orphans, deleted_on_error
from tablefeed.feed.write.target_rows import TargetRows
from tablefeed.store import Store, Within

EVENTS_DIR = "_tablefeed/events"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Limits, in bytes of events: of a task's report, and about those of a task's memory and of one group.

    Applying events takes some seven times their bytes of memory. Each group reads the key columns of the table again.
    """

    report: int = 1 << 20
    task: int = 32 << 20
    group: int = 64 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Aside:
    """The events of one task, those of each key in the order of their arrival. Picklable.

    They are either in `data`, not divided by bucket, or in the file `path`. Each record batch of this file has events
    of one bucket. `buckets` has the numbers of these buckets, in the order of the record batches.
    """

    task: int
    row_count: int = 0
    size_bytes: int = 0
    truncates: bool = False
    data: bytes = b""
    path: str | None = None
    buckets: tuple[int, ...] = ()


def in_chunks(batches: Iterable[pa.RecordBatch], size_bytes: int) -> Iterator[pa.Table]:
    """Gives the rows of `batches` in tables of about `size_bytes`; none is empty."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        if batch.num_rows:
            held.append(batch)
            size += batch.nbytes
        if size >= size_bytes:
            yield pa.Table.from_batches(held)
            held, size = [], 0
    if held:
        yield pa.Table.from_batches(held)


def set_aside(chunks: Iterator[pa.Table], how: Folding, store: Store, *, task: int, sizes: Sizes) -> Aside:
    """Keeps the events of one task for the process that commits, durable when this returns. No chunk is empty."""
    aside = Aside(task=task)
    first, second = next(chunks, None), next(chunks, None)
    if first is None:
        return aside
    if second is None and first.nbytes <= sizes.report:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, first.schema) as writer:
            writer.write_table(first)
        return replace(_counting(aside, first), data=sink.getvalue().to_pybytes())
    path = f"{EVENTS_DIR}/{uuid.uuid4()}.arrow"
    buckets: list[int] = []
    with (
        store.create(path, within=Within(directory="")) as handle,
        pa.ipc.new_file(handle, first.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer,
    ):
        for chunk in chain((each for each in (first, second) if each is not None), chunks):
            aside = _counting(aside, chunk)
            for bucket, batch in _divided(chunk, how):
                buckets.append(bucket)
                writer.write_batch(batch)
    return replace(aside, path=path, buckets=tuple(buckets))


def applied(target: TargetRows, asides: Sequence[Aside], how: Folding, *, now_ms: int, sizes: Sizes) -> list[Part]:
    """Applies the events of all tasks, one group of keys after the other; a batch with a truncate is one group.

    The events of a key are in the order of the tasks' numbers, then of their arrival. Nothing is committed. If this
    raises, the files that it wrote are deleted. Raises as `applied_part`, and DataFileError if events are gone.
    """
    parts: list[Part] = []
    in_order, store = sorted(asides, key=lambda aside: aside.task), target.snapshot.log.store
    with deleted_on_error(store) as written:
        for task, buckets in enumerate(_groups(asides, sizes)):
            found = [batch for aside in in_order for batch in _read(aside, buckets, store, how)]
            if sum(batch.num_rows for batch in found):
                batch = Batch(events=pa.Table.from_batches(found), how=how)
                parts.append(applied_part(target, batch, task=task, now_ms=now_ms))
                written += parts[-1].paths
        reported, taken = sum(aside.row_count for aside in asides), sum(part.events for part in parts)
        if reported != taken:
            raise _gone(EVENTS_DIR, f"{taken} of {reported} events were found")
    return parts


def delete_asides(store: Store, asides: Iterable[Aside]) -> None:
    """Deletes the files of `asides`. It never fails: what cannot be deleted stays, and a warning is logged."""
    delete_orphans(store, (aside.path for aside in asides if aside.path is not None))


def _counting(aside: Aside, events: pa.Table) -> Aside:
    return replace(
        aside,
        row_count=aside.row_count + events.num_rows,
        size_bytes=aside.size_bytes + events.nbytes,
        truncates=aside.truncates or pc.any(pc.equal(events[KIND], Kind.TRUNCATE)).as_py(),
    )


def _divided(events: pa.Table, how: Folding) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Gives the events bucket by bucket, those of each in their order."""
    buckets = key_buckets(events.select(how.keys))
    ordered = events.combine_chunks().take(pc.sort_indices(buckets))  # a stable sort
    start = 0
    for counted in sorted(pc.value_counts(buckets).to_pylist(), key=lambda each: each["values"]):
        rows = ordered.slice(start, counted["counts"])
        start += rows.num_rows
        yield from ((counted["values"], batch) for batch in rows.to_batches())


def _groups(asides: Sequence[Aside], sizes: Sizes) -> Iterator[frozenset[int]]:
    """Gives the buckets that are applied at once."""
    size_bytes = sum(aside.size_bytes for aside in asides)
    count = 1 if any(aside.truncates for aside in asides) else min(BUCKETS, 1 + size_bytes // sizes.group)
    for group in range(count):
        yield frozenset(bucket for bucket in range(BUCKETS) if bucket * count // BUCKETS == group)


def _read(aside: Aside, buckets: frozenset[int], store: Store, how: Folding) -> Iterator[pa.RecordBatch]:
    if aside.data:
        events = pa.ipc.open_stream(aside.data).read_all()
        if len(buckets) < BUCKETS:
            events = events.filter(pc.is_in(key_buckets(events.select(how.keys)), value_set=pa.array(sorted(buckets))))
        yield from events.to_batches()
    elif aside.path is not None:
        try:
            with store.open_input(aside.path) as source:
                reader = pa.ipc.open_file(source)
                for number, bucket in enumerate(aside.buckets):
                    if bucket in buckets:
                        yield reader.get_batch(number)
        except (ObjectNotFoundError, pa.ArrowException, OSError) as error:
            raise _gone(aside.path, str(error)) from error


def _gone(path: str, why: str) -> DataFileError:
    return DataFileError(
        f"The change events of a batch for {TABLE} cannot be read from {path}: {why.rstrip('.')}. Nothing was "
        "committed. Run the batch again.",
        path=path,
    )
