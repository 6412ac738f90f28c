"""The live files of a table whose rows are changed: which of them may have such rows, and the rows in them."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import tzinfo

import pyarrow as pa
from pyroaring import BitMap64

from tablefeed.data.assignment import Assignment
from tablefeed.data.predicate import RowFilter
from tablefeed.delta import features
from tablefeed.delta.columns import to_add_files
from tablefeed.delta.row_tracking import IdColumns, id_columns
from tablefeed.delta.schema.identity import identity_columns
from tablefeed.feed.scan.delta_task import DeltaTask, ParquetFile, delta_columns
from tablefeed.feed.scan.pruning import MAY_MATCH, Pruner
from tablefeed.feed.scan.row_ids import read_with_ids
from tablefeed.feed.scan.task import read_task
from tablefeed.feed.snapshot.table_log import Snapshot
from tablefeed.feed.write.replacement import matches
from tablefeed.feed.write.rewriting import by_partition
from tablefeed.feed.write.row_rules import rules_in_force
from tablefeed.feed.write.write_rules import WriteRules
from tablefeed.model.actions import AddFile, CdcFile, FileAction
from tablefeed.model.rules import TableRules


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """The rows of a live file that a change takes away, by their positions in the file. `rows_left` rows stay."""

    file: AddFile
    positions: BitMap64
    rows_left: int


class TargetRows:
    """Reads the live rows of one version of a Delta table. Raises DataFileError and LogError where that fails.

    `zone` is the time zone in which new values are made and the table's rules are evaluated; None: not given.
    """

    def __init__(self, snapshot: Snapshot, before: Snapshot | None = None, *, zone: tzinfo | None = None) -> None:
        self.snapshot = snapshot
        self.zone = zone
        self.before = snapshot if before is None else before
        """The table as it is, where the commit adds columns to it."""
        self.schema = snapshot.arrow_schema
        self._columns = delta_columns(snapshot.schema, snapshot.metadata)
        log = snapshot.log
        self._store = log.store
        self._task = DeltaTask(url=log.location, storage_options=log.storage_options, columns=self._columns)
        names = {name.lower() for name in self.schema.names}
        self.position = next(name for i in range(len(names) + 1) if (name := f"_position_{i}") not in names)
        """The name of the column that `read` gives positions in; no column of the table has it."""

    def in_zone(self, zone: tzinfo | None) -> TargetRows:
        """Gives the same rows with another `zone`."""
        return TargetRows(self.snapshot, self.before, zone=zone)

    @property
    def write_rules(self) -> WriteRules:
        """How new rows are made to fit the table."""
        return WriteRules(assignment=Assignment(zone=self.zone))

    @property
    def rules(self) -> TableRules | None:
        """The rules that new rows must keep; None: the table has none."""
        snapshot = self.snapshot
        return rules_in_force(snapshot.schema, snapshot.metadata.configuration, snapshot.protocol)

    @property
    def generated(self) -> frozenset[str]:
        """The generated columns."""
        rules = self.rules
        return frozenset() if rules is None else frozenset(rules.generated)

    @property
    def identity(self) -> tuple[str, ...]:
        """The identity columns."""
        partition_columns = self.snapshot.metadata.partition_columns
        columns = identity_columns(self.snapshot.schema, partition_columns=partition_columns)
        return tuple(column.name for column in columns)

    def check_rows_may_go(self) -> None:
        """Raises AppendOnlyError for a table from which no row is removed."""
        features.check_writable(self.snapshot.protocol, self.snapshot.metadata, removes=True)

    @property
    def id_columns(self) -> IdColumns | None:
        """The columns of files in which rows that are copied keep their ids and versions; None: rows have none."""
        return id_columns(self.snapshot.properties, self.snapshot.schema)

    @property
    def id_column(self) -> tuple[str, ...]:
        """The column in which rows that are updated keep their ids, which get the version of the commit; or none."""
        return (self.id_columns or ())[:1]

    def files(self, rows: RowFilter | None) -> Iterator[AddFile]:
        """Gives the live files that may have a row for which `rows` is true, with their statistics; None: all."""
        live = self.snapshot.live_files(with_stats=True)
        if rows is not None:
            marked = self._pruner(rows).marked(live)
            live = (batch.filter(batch[MAY_MATCH.name]).drop_columns([MAY_MATCH.name]) for batch in marked)
        for batch in live:
            yield from to_add_files(batch)

    def may_match(self, file: FileAction, rows: RowFilter | None) -> bool:
        """Whether `file`, which another commit added, may have a row for which `rows` is true."""
        if isinstance(file, CdcFile):
            return False
        if rows is None or file.partition_values is None:
            return True
        return self._pruner(rows).choose([file.partition_values], [file.stats])[0]

    def hits(self, rows: RowFilter | None) -> Iterator[Hit]:
        """Gives for each live file with rows for which `rows` is true where they are; None: all rows.

        Only the columns of `rows` are read.
        """
        for file in self.files(rows):
            positions, count = BitMap64(), 0
            for batch in self.read([file], pa.schema([]) if rows is None else rows.fields, with_positions=True):
                count += batch.num_rows
                held = batch if rows is None else batch.filter(matches(batch.select(rows.fields.names), rows))
                positions |= as_bitmap(held[self.position])
            if positions:
                yield Hit(file=file, positions=positions, rows_left=count - len(positions))

    def read(
        self, files: Iterable[AddFile], schema: pa.Schema, *, with_positions: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """Gives the live rows of `files` in the columns of `schema`, and of each its position in its file."""
        position = self.position if with_positions else None
        if position is not None:
            schema = schema.append(pa.field(position, pa.int64()))
        return read_task(self._task.of(list(files)), schema, store=self._store, positions=position)

    def rows_of(self, hits: Iterable[Hit], *, with_ids: bool = False) -> Iterator[pa.RecordBatch]:
        """Gives the rows of `hits` in all columns, one partition after the other; also in `id_columns` if asked for."""
        files = [(hit.file, replace(self._task.file(hit.file), only=hit.positions)) for hit in _in_order(hits)]
        return self._rows(files, self.id_columns if with_ids else None)

    def rows_beside(self, hits: Iterable[Hit]) -> Iterator[pa.RecordBatch]:
        """Gives the rows that stay in the files of `hits`, in all columns and in `id_columns`, as `rows_of`."""
        files = [(hit.file, replace(self._task.file(hit.file), without=hit.positions)) for hit in _in_order(hits)]
        return self._rows(files, self.id_columns)

    def _rows(self, files: list[tuple[AddFile, ParquetFile]], ids: IdColumns | None) -> Iterator[pa.RecordBatch]:
        if ids is not None:
            return read_with_ids(self._task, files, self.schema, ids, store=self._store)
        return read_task(replace(self._task, files=tuple(file for _, file in files)), self.schema, store=self._store)

    def _pruner(self, rows: RowFilter) -> Pruner:
        return Pruner(rows, schema=self.snapshot.schema, columns=self._columns)


def as_bitmap(positions: pa.Int64Array) -> BitMap64:
    """Gives `positions`, none of them null, as a set."""
    whole = pa.concat_arrays([positions])  # so that its buffer begins with it
    return BitMap64(array("Q", whole.buffers()[1].to_pybytes()[: 8 * len(whole)]) if len(whole) else ())


def _in_order(hits: Iterable[Hit]) -> list[Hit]:
    return sorted(hits, key=lambda hit: by_partition(hit.file))
