"""Copies a whole version of the source in one commit: the first commit of the copy, or one that replaces its files."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.delta import names
from tablefeed.delta.columns import to_add_files
from tablefeed.delta.commit_info import Provenance, TableChange, commit_info
from tablefeed.delta.json_texts import texts_of_map
from tablefeed.delta.removes import Addition, Removal
from tablefeed.errors import naming
from tablefeed.feed.commit.entry import ENGINE, next_commit_time, next_version, own_time_ms
from tablefeed.feed.commit.transaction import Put
from tablefeed.feed.replication.actions import is_copied, keeps_times, names_of, own_metadata, state_names
from tablefeed.feed.replication.copies import Copies
from tablefeed.feed.replication.origin import Origin
from tablefeed.feed.snapshot.delta_log import DeltaLog, DeltaSnapshot
from tablefeed.feed.write.kept_lines import KeptLines, content_of
from tablefeed.model.actions import Commit, DomainMetadata, Txn

if TYPE_CHECKING:
    from tablefeed.feed.snapshot.table_log import Snapshot


def snapshot_put(
    source: DeltaSnapshot, origin: Origin, target: DeltaLog, base: DeltaSnapshot | None, txn: Txn, copies: Copies
) -> Put:
    """Copies the files of `source`, and gives the commit that makes the target, at `base`, equal to it."""
    now_ms = txn.last_updated_ms or 0
    lines = KeptLines()
    addition, removal = Addition(lines.keep), Removal(lines.keep, deletion_timestamp_ms=now_ms)
    live = _values(base, _facts_of)
    first_file: list[str] = []  # if somebody empties the target meanwhile, the file that was there first is gone too
    for batch in source.live_files(with_stats=True):
        names_here = [name for add in to_add_files(batch) for name in names_of(add, source.url)]
        copies.bring(names_here)
        first_file = first_file or names_here[:1]
        addition.take(batch.filter(pc.invert(pc.is_in(_facts_of(batch), value_set=live))))
    wanted = None if base is None else _values(source, lambda batch: batch["key"])
    for batch in () if base is None else base.live_files():
        removal.take(batch.filter(pc.invert(pc.is_in(batch["key"], value_set=wanted))))
    domains = tuple(_domains(source, base))
    copies.bring(name for domain in domains for name in state_names(domain, source.url))
    version = next_version(base)
    time_ms = None
    if keeps_times(source.metadata):
        with naming(source.url):
            theirs_ms = own_time_ms(source)
        with naming(target.url):
            time_ms = next_commit_time(base, theirs_ms)
    operation = TableChange(
        name="CLONE",
        parameters={"source": source.url, "sourceVersion": source.version, "isShallow": False},
        metrics={"numCopiedFiles": addition.counts.file_count, "numRemovedFiles": removal.counts.file_count},
    )
    provenance = Provenance(
        timestamp_ms=now_ms,
        txn_id=str(uuid.uuid4()),
        engine=ENGINE,
        read_version=None if base is None else base.version,
        in_commit_timestamp_ms=time_ms,
    )
    info = commit_info(operation, provenance, is_blind_append=False, metrics=operation.metrics)
    table_id = str(uuid.uuid4()) if base is None else base.metadata.table_id
    entry = Commit(
        version=version,
        txns=(txn,),
        metadata=own_metadata(source.metadata, base, table_id=table_id, version=version, commit_time_ms=time_ms),
        protocol=source.protocol,
        domains=domains,
        info={**info, names.COPIED_FROM: origin.as_info()},
        committed_at_ms=None,
    )
    data = content_of(entry, lines)
    name = names.commit_name(version)
    return Put(log=target, base=base, name=name, data=data, commit=entry, new_files=first_file)


def _facts_of(batch: pa.RecordBatch) -> pa.Array:
    """The file, its partition and the ids of its rows. If the partition or the ids changed, the file is added again."""
    ids = (batch[name].cast(pa.string()).fill_null("") for name in ("base_row_id", "default_row_commit_version"))
    return pc.binary_join_element_wise(batch["key"], *ids, _partitions(batch), "|")


def _partitions(batch: pa.RecordBatch) -> pa.Array:
    """The partition values as texts that do not depend on the order of the columns."""
    texts = texts_of_map(batch["partition_values"]).dictionary_encode()
    values = (orjson.loads(text) for text in texts.dictionary.to_pylist())
    ordered = [orjson.dumps(each, option=orjson.OPT_SORT_KEYS).decode() for each in values]
    return pa.array(ordered, pa.string()).take(texts.indices)


def _values(table: Snapshot | None, of: Callable[[pa.RecordBatch], pa.Array]) -> pa.Array:
    found = [] if table is None else [of(batch) for batch in table.live_files()]
    return pa.concat_arrays(found) if found else pa.array([], pa.string())


def _domains(source: DeltaSnapshot, base: DeltaSnapshot | None) -> Iterator[DomainMetadata]:
    """The domains of the source, and tombstones of those that only the target has."""
    yield from filter(is_copied, source.facts.domains.values())
    for domain in () if base is None else filter(is_copied, base.facts.domains.values()):
        if domain.domain not in source.facts.domains:
            yield DomainMetadata(domain=domain.domain, configuration=domain.configuration, removed=True)
