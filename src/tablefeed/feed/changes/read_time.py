"""Changes that a table did not record, computed from the files that its commits added and removed.

This is Spark's read-time change feed (`deduplicationMode`, `computeUpdates` of `CHANGES FROM ...`), with Spark's option
names and rules for combining them. `tablefeed.data.row_changes` compares rows and row ids.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from tablefeed.errors import ChangeDataError, IllegalOptionError, UnsupportedOptionError
from tablefeed.feed.changes.change_files import ChangeReader, change_rows, row_change
from tablefeed.feed.scan.task import BATCH_ROWS
from tablefeed.log.changes import ChangedFile, ChangeType
from tablefeed.model.actions import Commit

if TYPE_CHECKING:
    import pyarrow as pa


class Deduplication(StrEnum):
    """What is done with rows that a commit moved, unchanged, from one file to another."""

    NONE = "none"
    DROP_CARRYOVERS = "dropCarryovers"


def deduplication(mode: object, *, compute_updates: bool) -> Deduplication | None:
    """Gives the mode that the arguments of `changes` mean; None: deliver recorded changes. Raises OptionError."""
    if mode is not None and not isinstance(mode, str):
        raise _no_mode(mode)
    if mode == "netChanges":
        raise UnsupportedOptionError(
            option="deduplication_mode='netChanges'",
            remedy="Read with 'dropCarryovers', and keep the first and last change of each key.",
        )
    if mode is not None and mode not in list(Deduplication):
        raise _no_mode(mode)
    if compute_updates and mode != Deduplication.DROP_CARRYOVERS:
        raise IllegalOptionError(
            option="compute_updates",
            value="True",
            explain="needs the deduplication mode 'dropCarryovers'. Recorded changes name updates already, and a row "
            "that was copied unchanged would look like an update",
        )
    return None if mode is None else Deduplication(mode)


def _no_mode(mode: object) -> IllegalOptionError:
    explain = "must be None, 'none' or 'dropCarryovers'"
    return IllegalOptionError(option="deduplication_mode", value=str(mode), explain=explain)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadTimeRows:
    """Delivers the changed rows of commits: file by file, or compared where a commit both removes and adds rows.

    Rows are compared by all columns of `table_schema`, and only with `Deduplication.DROP_CARRYOVERS`. `row_id_column`
    is where files store row ids; None: updates are not computed.
    """

    reader: ChangeReader
    mode: Deduplication
    table_schema: pa.Schema
    row_id_column: str | None
    url: str

    def rows(self, changed: Sequence[ChangedFile], commit: Commit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Gives the rows of `changed`, the files of `commit`, as batches of `schema`.

        Where rows are compared, all changed rows of the commit are held in memory, with all their columns.
        """
        out = [file for file in changed if file.change_type is ChangeType.DELETE]
        into = [file for file in changed if file.change_type is ChangeType.INSERT]
        if self.mode is Deduplication.NONE or not out or not into:
            for file in changed:
                yield from self.reader.rows(file, commit, schema)
            return
        for change_type, rows in self._compared(self._table(out, commit), self._table(into, commit)):
            change = row_change(commit, change_type, url=self.url)
            for batch in rows.to_batches(max_chunksize=BATCH_ROWS):
                yield change_rows(batch, schema, change)

    def _compared(self, out: pa.Table, into: pa.Table) -> Iterator[tuple[ChangeType, pa.Table]]:
        from tablefeed.data.row_changes import split_updates, without_carryovers

        deleted, inserted = without_carryovers(out, into)
        if self.row_id_column is not None:
            before, removed = split_updates(deleted, inserted, row_id=self.row_id_column)
            after, new = split_updates(inserted, deleted, row_id=self.row_id_column)
            yield ChangeType.UPDATE_PREIMAGE, before
            yield ChangeType.UPDATE_POSTIMAGE, after
            deleted, inserted = removed, new
        yield ChangeType.DELETE, deleted
        yield ChangeType.INSERT, inserted

    def _table(self, files: Sequence[ChangedFile], commit: Commit) -> pa.Table:
        import pyarrow as pa

        if self.row_id_column is None:
            stored = (batch for file in files for batch in self.reader.stored_rows(file, self.table_schema))
            if not self.table_schema.names:  # a pyarrow table without columns would lose the number of rows
                return pa.table({"row": pa.nulls(sum(batch.num_rows for batch in stored))})
            return pa.Table.from_batches(stored, self.table_schema)
        schema = self.table_schema.append(pa.field(self.row_id_column, pa.int64()))
        numbered = (batch for file in files for batch in self._with_row_ids(file, commit, schema, self.row_id_column))
        return pa.Table.from_batches(numbered, schema)

    def _with_row_ids(
        self, file: ChangedFile, commit: Commit, schema: pa.Schema, row_id: str
    ) -> Iterator[pa.RecordBatch]:
        """Rows with their ids: the id stored in the file, else the file's base row id plus the position ("Row IDs")."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if file.base_row_id is None:
            raise ChangeDataError(
                f"Version {commit.version} of {self.url} does not say which ids the rows of the file {file.path} have, "
                "so its updates cannot be computed. Leave compute_updates out, or read from a later version.",
                url=self.url,
                version=commit.version,
            )
        place = f"{row_id} place"
        for batch in self.reader.stored_rows(file, schema.append(pa.field(place, pa.int64())), positions=place):
            ids = pc.coalesce(batch[row_id], pc.add(batch[place], file.base_row_id))
            yield pa.RecordBatch.from_arrays([*batch.columns[: len(self.table_schema)], ids], schema=schema)
