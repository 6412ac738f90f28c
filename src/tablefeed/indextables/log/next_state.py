"""The next state of a table: its files, from the state before and what changed ("states", incremental writes).

A state names the manifests of the state before and adds new ones, so that an append writes only what it adds. From time
to time a rewrite puts all live files into new manifests, without the dead ones. This module decides which of the two
happens, and makes the bytes of every file. The caller reads the live files and puts the new ones. Where another writer
put the version first, the caller asks again from that writer's state.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from types import MappingProxyType

import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.errors import LogError
from tablefeed.indextables import names
from tablefeed.indextables.log import avro_file, bounds, columns, schema_registry, state_writer
from tablefeed.indextables.log.avro_state import Manifest, State
from tablefeed.indextables.log.last_checkpoint import Hint
from tablefeed.indextables.log.version_file import Writer
from tablefeed.model.actions import AddFile, Metadata, Version

_SORTED_ROWS = 100_000
"""How many files of a rewrite are in memory and sorted together: as many as IndexTables itself does that with."""

_BATCH_ROWS = 8192
_ID_DIGITS = {Writer.SCALA: 8, Writer.NATIVE: 16}


@dataclass(frozen=True, slots=True, kw_only=True)
class StateShape:
    """When a state is rewritten, and how large its manifests are. The defaults are those of IndexTables.

    A state is rewritten where it would have more tombstones than `tombstone_share` of the files before, or more
    manifests than a rewrite would need plus `most_manifests` - 1. A rewrite that finds more than `renormalise_above`
    doc mappings gives them the hashes of their canonical form.
    """

    entries_per_manifest: int = 50_000
    tombstone_share: float = 0.10
    most_manifests: int = 20
    renormalise_above: int = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class StateUpdate:
    """What `version` changes in the state before it.

    `added` are files whose paths were never in the log. They are compared only with paths that are read anyway. With
    `replaces_all` only `added` is left; single files are never removed. `registry` holds doc mappings by hash that the
    state before may not have. Without `metadata` the state repeats the metadata of the state before.
    """

    version: Version
    created_ms: int
    added: Sequence[AddFile] = ()
    replaces_all: bool = False
    registry: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    protocol_version: int = 4
    metadata: Metadata | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NextState:
    """A state and its files, by their names below the log directory, in the order in which they are put.

    First `manifests`, then `state_file` under `names.state_name` of its version. Each is put only where no file has its
    name. Putting `state_file` is the commit.
    """

    state: State
    manifests: tuple[tuple[str, bytes], ...]
    state_file: bytes


def next_state(
    base: State | None,
    update: StateUpdate,
    *,
    writer: Writer,
    shape: StateShape,
    live: Callable[[], Iterable[pa.RecordBatch]],
    new_id: Callable[[], str],
    sync: Callable[[], bytes],
    url: str,
) -> NextState:
    """The state after `update` is applied to `base`; `base` is None where there is no earlier state.

    `live` returns the files before `update` as batches of `columns.FILE_COLUMNS`, each path once. It is called only for
    a rewrite, which needs the memory of some manifests. `new_id` returns at least 16 random hexadecimal digits, `sync`
    16 random bytes.

    Raises LogError: INDEXTABLES_PATH_USED_AGAIN for a path that is added twice or was removed before, because readers
    let tombstones win; INDEXTABLES_DOC_MAPPING_UNKNOWN for an added file whose doc mapping is not known. Errors of
    `live` pass through.
    """
    _refuse_paths(base, update, url=url)
    known = {**(base.registry if base else {}), **update.registry}
    _refuse_unknown_mappings(update, known, url=url)
    anew = base is None or update.replaces_all or _is_rewrite_due(base, update, shape)
    mappings = schema_registry.DocMappings(known, renormalise=anew and len(known) > shape.renormalise_above)
    making = _Making(writer=writer, update=update, mappings=mappings, new_id=new_id, sync=sync, url=url)
    added = columns.of_adds(update.added)
    if base is not None and not anew:
        made = [making.manifest(rows) for rows in _cut(pa.Table.from_batches([added]), shape)]
        return making.finish(made, onto=base)
    before = () if update.replaces_all else _without_added(live(), update, url=url)
    made = [making.manifest(rows) for rows in _sorted_cuts(chain(before, [added]), shape)]
    if not made and writer is Writer.SCALA:  # which never writes a state without a manifest
        made = [making.manifest(columns.FILE_COLUMNS.empty_table())]
    return making.finish(made, metadata=base.metadata if base else None)


def hint_of(state: State) -> Hint:
    """What `_last_checkpoint` says of `state`."""
    return Hint(
        version=state.version,
        action_count=state.file_count,
        size_bytes=state.total_bytes,
        file_count=state.file_count,
        created_ms=state.created_ms,
        is_state=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Made:
    """A manifest as it is named and as it is put; `total_bytes` are those of its files."""

    manifest: Manifest
    data: bytes
    total_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Making:
    """What all files of one state share."""

    writer: Writer
    update: StateUpdate
    mappings: schema_registry.DocMappings
    new_id: Callable[[], str]
    sync: Callable[[], bytes]
    url: str

    def manifest(self, rows: pa.Table) -> _Made:
        """The manifest of `rows`, under a name of its own."""
        is_scala = self.writer is Writer.SCALA  # which writes version 0 for all entries
        rows = state_writer.stamped(
            rows,
            version=0 if is_scala else self.update.version,
            added_ms=self.update.created_ms if is_scala else None,
        )
        versions = pc.min_max(rows["added_version"]).as_py()
        name = names.shared_manifest_name(self.new_id()[: _ID_DIGITS[self.writer]])
        manifest = Manifest(
            name=name,
            path=name,
            entry_count=rows.num_rows,
            min_added_version=versions["min"] or 0,
            max_added_version=versions["max"] or 0,
            bounds=bounds.bounds_of(columns.partitions_of(rows)),
            live_count=-1 if is_scala else rows.num_rows,
        )
        data = state_writer.encode_entries(
            rows.to_batches(max_chunksize=_BATCH_ROWS),
            writer=self.writer,
            mappings=self.mappings,
            # the native log does not compress its own, and reads these: it repeats the doc mapping in every entry
            codec=avro_file.ZSTANDARD,
            sync=self.sync(),
            url=self.url,
        )
        return _Made(manifest=manifest, data=data, total_bytes=pc.sum(rows["size_bytes"]).as_py() or 0)

    def finish(
        self, made: Sequence[_Made], *, onto: State | None = None, metadata: Metadata | None = None
    ) -> NextState:
        """The state of the manifests `made`, `onto` what another names, or alone."""
        update = self.update
        own = tuple(each.manifest for each in made)
        state = State(
            version=update.version,
            created_ms=update.created_ms,
            file_count=sum(each.entry_count for each in own) + (onto.file_count if onto else 0),
            total_bytes=sum(each.total_bytes for each in made) + (onto.total_bytes if onto else 0),
            manifests=(*(replace(each, path=each.name) for each in (onto.manifests if onto else ())), *own),
            tombstones=onto.tombstones if onto else pa.array([], pa.string()),
            registry=self.mappings.registry,
            protocol_version=update.protocol_version,
            metadata=update.metadata or (onto.metadata if onto else metadata),
        )
        data = state_writer.encode_state(state, writer=self.writer, sync=self.sync(), url=self.url)
        files = tuple((each.manifest.name, each.data) for each in made)
        return NextState(state=state, manifests=files, state_file=data)


def _is_rewrite_due(base: State, update: StateUpdate, shape: StateShape) -> bool:
    if base.file_count <= 0:
        return True
    files = base.file_count + len(update.added)
    manifests = len(base.manifests) + -(-len(update.added) // shape.entries_per_manifest)
    # IndexTables would rewrite a table that fills this many manifests with every commit
    needed = -(-files // shape.entries_per_manifest)
    return (
        len(base.tombstones) / base.file_count > shape.tombstone_share or manifests > shape.most_manifests + needed - 1
    )


def _without_added(live: Iterable[pa.RecordBatch], update: StateUpdate, *, url: str) -> Iterator[pa.RecordBatch]:
    """Gives `live`. Raises LogError where a file of it is added again."""
    added = pa.chunked_array([pa.array([add.log_path for add in update.added], pa.string())])
    for batch in live:
        again = columns.with_keys(batch, added)
        if again.num_rows:
            raise _used_again(again["key"][0].as_py(), update, url=url)
        yield batch


def _sorted_cuts(batches: Iterable[pa.RecordBatch], shape: StateShape) -> Iterator[pa.Table]:
    """The rows of each manifest of a rewrite: runs of them are sorted, so that a partition is in few manifests."""
    size = max(1, _SORTED_ROWS // shape.entries_per_manifest) * shape.entries_per_manifest
    waiting, count = list[pa.RecordBatch](), 0
    for batch in batches:
        waiting.append(batch)
        count += batch.num_rows
        while count >= size:
            rows = pa.Table.from_batches(waiting)
            yield from _cut(_sorted_by_partition(rows.slice(0, size)), shape)
            waiting, count = rows.slice(size).to_batches(), count - size
    if count:
        yield from _cut(_sorted_by_partition(pa.Table.from_batches(waiting)), shape)


def _cut(rows: pa.Table, shape: StateShape) -> Iterator[pa.Table]:
    for begin in range(0, rows.num_rows, shape.entries_per_manifest):
        yield rows.slice(begin, shape.entries_per_manifest)


def _sorted_by_partition(rows: pa.Table) -> pa.Table:
    partitions = columns.partitions_of(rows)
    if not any(partitions):
        return rows
    keys = [[text or "" for _, text in sorted(each.items())] for each in partitions]
    return rows.take(pa.array(sorted(range(rows.num_rows), key=keys.__getitem__), pa.int64()))


def _refuse_paths(base: State | None, update: StateUpdate, *, url: str) -> None:
    paths = [add.log_path for add in update.added]
    if len(set(paths)) < len(paths):
        raise _used_again(next(path for path in paths if paths.count(path) > 1), update, url=url)
    if base is not None and len(base.tombstones):
        asked = pa.array(sorted(paths), pa.string())
        for path in asked.filter(pc.is_in(asked, value_set=base.tombstones)).to_pylist():
            raise _used_again(path, update, url=url)


def _refuse_unknown_mappings(update: StateUpdate, known: Collection[str], *, url: str) -> None:
    for add in update.added:
        split = add.split
        key = split.doc_mapping_ref if split is not None and split.doc_mapping is None else None
        if key is not None and key not in known:
            raise LogError(
                f"Version {update.version} of {url} would add {add.log_path!r}, but neither the table nor the commit "
                f"has its doc mapping {key!r}. IndexTables could not open the file. Commit the doc mapping with it.",
                url=url,
                error_class="INDEXTABLES_DOC_MAPPING_UNKNOWN",
            )


def _used_again(path: str, update: StateUpdate, *, url: str) -> LogError:
    return LogError(
        f"Version {update.version} of {url} would add {path!r}, a path that the log already has. A path names one "
        "file, and a removed path stays removed. Write the rows to a file with another name.",
        url=url,
        error_class="INDEXTABLES_PATH_USED_AGAIN",
    )
