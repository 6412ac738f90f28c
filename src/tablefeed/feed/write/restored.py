"""What a restore makes of a table: the schema and properties of the earlier version, and its files.

As in Delta-Spark's RESTORE (RestoreTableCommand.scala), some things stay as they are: the features of the protocol, the
ids of columns, and the highest values of identity columns and row ids. The keys of both versions' files are kept in
Arrow columns, and the lines of the commit are made from columns. So a Python object is built only for a file that comes
back, to check that it still exists.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tablefeed.delta import features, names, row_tracking
from tablefeed.delta.checkpoint.checksum_writer import FileCounts
from tablefeed.delta.deletion_vectors import BadVectorError, stored_at
from tablefeed.delta.properties import TableProperties
from tablefeed.delta.removes import Addition, Removal
from tablefeed.delta.schema.column_mapping import mapping_mode, physical_name
from tablefeed.delta.schema.identity import identity_columns, with_high_water_marks
from tablefeed.delta.schema.schema_string import format_schema
from tablefeed.delta.stats.clustering import clustering_domain
from tablefeed.errors import TABLE, DataFileError, ObjectNotFoundError, UnsupportedFeatureError
from tablefeed.feed.snapshot.table_files import TableFiles
from tablefeed.feed.snapshot.table_log import Snapshot
from tablefeed.feed.write.delta_plan import clustering_of
from tablefeed.feed.write.kept_lines import KeptLines
from tablefeed.model.actions import AddFile, DeletionVector, DomainMetadata, Metadata, Protocol
from tablefeed.model.rules import IdentityColumn
from tablefeed.model.schema import Struct

if TYPE_CHECKING:
    import pyarrow as pa

_KEPT = (
    names.MATERIALIZED_ROW_ID_COLUMN,
    names.MATERIALIZED_ROW_VERSION_COLUMN,
    names.IN_COMMIT_TIMESTAMPS_SINCE_VERSION,
    names.IN_COMMIT_TIMESTAMPS_SINCE_TIME,
    names.CHECKPOINT_PROTECTION_BEFORE,
)
"""Properties that describe the log and its files so far; an earlier value would be wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """The table after a restore. `domains` are those that change; `lines` are the adds and removes of files."""

    metadata: Metadata
    protocol: Protocol
    domains: tuple[DomainMetadata, ...]
    added: FileCounts
    removed: FileCounts
    lines: KeptLines
    file_count: int
    size_bytes: int

    @property
    def metrics(self) -> dict[str, int]:
        """The operationMetrics, by Delta-Spark's names."""
        added, removed = self.added, self.removed
        return {
            "tableSizeAfterRestore": self.size_bytes,
            "numOfFilesAfterRestore": self.file_count,
            "numRemovedFiles": removed.file_count,
            "numRestoredFiles": added.file_count,
            "removedFilesSize": removed.size_bytes,
            "restoredFilesSize": added.size_bytes,
        }


def restored(newest: Snapshot, earlier: Snapshot, *, now_ms: int) -> Restored:
    """Gives the table `newest` after it is restored to `earlier`. A file with another deletion vector is another file.

    Raises AppendOnlyError where rows must not be removed, UnsupportedFeatureError for a table that cannot be written
    before or after, and where in between column mapping was turned on, off or changed, or row tracking was dropped;
    DataFileError where a file that comes back or its vector is gone; CommitError where its rows need ids and none can
    be assigned.
    """
    import pyarrow.compute as pc

    metadata, protocol = _described(newest, earlier)
    lines = KeptLines()
    addition, removal = Addition(lines.keep), Removal(lines.keep, deletion_timestamp_ms=now_ms)
    needs_ids = row_tracking.supports_row_tracking(protocol) and not TableProperties.of(metadata).suspends_row_tracking
    ids = _RowIds(newest) if needs_ids else None
    live, wanted = _keys(newest), _keys(earlier)
    file_count = size_bytes = 0
    for batch in earlier.live_files(with_stats=True):
        file_count += batch.num_rows
        size_bytes += pc.sum(batch["size_bytes"]).as_py() or 0
        back = batch.filter(pc.invert(pc.is_in(batch["key"], value_set=live)))
        _check_there(back, newest)
        addition.take(back if ids is None else ids.given(back))
    for batch in newest.live_files():
        removal.take(batch.filter(pc.invert(pc.is_in(batch["key"], value_set=wanted))))
    clustered = clustering_of(earlier)
    return Restored(
        metadata=metadata,
        protocol=protocol,
        domains=(
            *(() if clustered == clustering_of(newest) else (clustering_domain(clustered),)),
            *((row_tracking.mark_domain(ids.mark),) if ids is not None and ids.mark > ids.before else ()),
        ),
        added=addition.counts,
        removed=removal.counts,
        lines=lines,
        file_count=file_count,
        size_bytes=size_bytes,
    )


class _RowIds:
    """Gives ids to the rows of files from before the table tracked rows; `mark` is the greatest id, `before` it was.

    As in Delta-Spark, they are assigned as to new rows. The restore is the version after `newest`, or conflicts.
    """

    def __init__(self, newest: Snapshot) -> None:
        self.mark = self.before = row_tracking.high_water_mark(newest.facts.domains)
        self._version = newest.version + 1

    def given(self, files: pa.RecordBatch) -> pa.RecordBatch:
        """Gives `files`, each with the ids that it has or gets."""
        import pyarrow as pa
        import pyarrow.compute as pc

        from tablefeed.delta.stats.stats_columns import record_counts

        if not files["base_row_id"].null_count:
            return files
        firsts: list[int] = []
        asked = (files["log_path"], files["base_row_id"], record_counts(files["stats"]))
        for path, first, rows in zip(*(column.to_pylist() for column in asked), strict=True):
            firsts.append(self.mark + 1 if first is None else first)
            if first is None:
                if rows is None or self.mark + rows > row_tracking.LAST_ROW_ID:
                    raise row_tracking.no_ids(path, row_count=rows)
                self.mark += rows
        versions = pc.fill_null(files["default_row_commit_version"], self._version)
        given = {"base_row_id": pa.array(firsts, pa.int64()), "default_row_commit_version": versions}
        for name, column in given.items():
            files = files.set_column(files.schema.get_field_index(name), files.schema.field(name), column)
        return files


def _described(newest: Snapshot, earlier: Snapshot) -> tuple[Metadata, Protocol]:
    features.check_writable(newest.protocol, newest.metadata, removes=True)
    if mapping_mode(newest.properties) is not mapping_mode(earlier.properties):
        raise UnsupportedFeatureError(
            f"{TABLE} cannot be restored to version {earlier.version}: its column mapping was changed since. Nothing "
            "was written. Restore to a version after that change.",
            features=("columnMapping",),
            error_class="DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE",
        )
    _check_row_ids_go_on(newest, earlier)
    now, then = newest.metadata.configuration, earlier.metadata.configuration
    texts = {name: text for name, text in then.items() if name not in _KEPT}
    texts |= {name: now[name] for name in _KEPT if name in now}
    if names.MAX_COLUMN_ID in now:
        largest = (TableProperties(each).largest_column_id for each in (now, then))
        texts[names.MAX_COLUMN_ID] = max(largest, key=lambda text: int(text) if text.isdigit() else 0)
    metadata = replace(earlier.metadata, schema_string=_schema_string(newest, earlier), configuration=texts)
    protocol = features.merged_protocol(newest.protocol, earlier.protocol)
    features.check_writable(protocol, metadata, removes=False)
    return metadata, protocol


def _check_row_ids_go_on(newest: Snapshot, earlier: Snapshot) -> None:
    """Refuses a version from before row tracking was dropped from the table, also if it was turned on again since.

    Files that both versions have lost their ids. The mark was lost too, so ids of other files may be given already.
    """
    tracked, tracks = (row_tracking.supports_row_tracking(table.protocol) for table in (earlier, newest))
    if (tracked and not tracks) or earlier.properties.row_id_column not in (None, newest.properties.row_id_column):
        raise UnsupportedFeatureError(
            f"{TABLE} cannot be restored to version {earlier.version}: row tracking was dropped since, so the row ids "
            "of that version are no longer unique. Nothing was written. Restore to a version after that, or overwrite "
            "the table with the rows of that version.",
            features=(names.ROW_TRACKING,),
        )


def _schema_string(newest: Snapshot, earlier: Snapshot) -> str:
    """The earlier schema. Each identity column keeps its present mark if that is further, whatever its name is now.

    A table that was replaced since may count otherwise: the mark is then the next value of the earlier column.
    """
    now, marks = _identity(newest.schema), dict[str, int]()
    for stored_as, column in _identity(earlier.schema).items():
        known = now.get(stored_as)
        if known is not None and known.high_water_mark is not None and known.step * column.step > 0:
            mark = known.high_water_mark + (column.start - known.high_water_mark) % column.step
            before = column.high_water_mark
            if before is None or (mark - before) * column.step > 0:
                marks[column.name] = mark
    if not marks:
        return earlier.metadata.schema_string
    return format_schema(with_high_water_marks(earlier.schema, marks))


def _identity(schema: Struct) -> dict[str, IdentityColumn]:
    """The identity columns by their names in files, which no renaming changes."""
    stored_as = {column.name: physical_name(column) for column in schema}
    return {stored_as[column.name]: column for column in identity_columns(schema, partition_columns=())}


def _keys(table: Snapshot) -> pa.Array:
    import pyarrow as pa

    batches = [batch["key"] for batch in table.live_files()]
    return pa.concat_arrays(batches) if batches else pa.array([], pa.string())


def _check_there(files: pa.RecordBatch, table: Snapshot) -> None:
    from tablefeed.delta.columns import to_add_files

    opened = TableFiles(table.log.store, storage_options=table.log.storage_options)
    for add in to_add_files(files):
        for path in _paths(add):
            try:
                opened.open_input(path).close()
            except ObjectNotFoundError as error:
                raise DataFileError(
                    f"{table.url} cannot be restored: {path}, which the earlier version needs, is gone. VACUUM or "
                    "another hand removed it. Nothing was written. Restore to a newer version, or bring the file back.",
                    url=table.url,
                    path=path,
                    error_class="DELTA_FILE_NOT_FOUND",
                ) from error


def _paths(add: AddFile) -> Iterator[str]:
    yield add.path
    if isinstance(add.deletion_vector, DeletionVector):
        try:
            stored = stored_at(add.deletion_vector)
        except BadVectorError:
            return  # reading the file raises the error
        if stored is not None:
            yield stored.path
