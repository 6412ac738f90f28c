"""The rows of changed files as a change feed delivers them: the table's columns and three columns of the feed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tablefeed.delta import names
from tablefeed.errors import ChangeDataError
from tablefeed.feed.scan.table_scan import table_scan
from tablefeed.feed.scan.task import RowChange, change_constants, read_task
from tablefeed.feed.snapshot.table_log import Snapshot
from tablefeed.log.changes import ChangedFile, ChangeType
from tablefeed.model.actions import Commit

if TYPE_CHECKING:
    import pyarrow as pa


_MOST_US = 2**63 - 1


def change_schema(read: Snapshot) -> pa.Schema:
    """Gives the columns of the table as of `read`, then the three columns of the change feed."""
    import pyarrow as pa

    own = [
        (names.CHANGE_TYPE, pa.string()),
        (names.COMMIT_VERSION, pa.int64()),
        (names.COMMIT_TIMESTAMP, pa.timestamp("us", tz="UTC")),
    ]
    return pa.schema([*read.arrow_schema, *(pa.field(name, kind) for name, kind in own)])


def row_change(commit: Commit, change_type: ChangeType | None, *, url: str) -> RowChange:
    """Gives the values of the feed's columns for rows that `commit` changed.

    `change_type` None: the file has a change type for each row. A commit whose time is not known gives null. Raises
    ChangeDataError where the commit's time is out of the range of a timestamp.
    """
    at_us = None if commit.committed_at_ms is None else commit.committed_at_ms * 1000
    if at_us is not None and abs(at_us) > _MOST_US:
        raise ChangeDataError(
            f"Version {commit.version} of {url} has the commit time {commit.committed_at_ms} ms after 1970, which is "
            "outside the range of a timestamp. Read from a later version.",
            url=url,
            version=commit.version,
        )
    return RowChange(type=change_type and change_type.value, version=commit.version, committed_at_us=at_us)


class ChangeReader:
    """Reads the files that commits changed, in the schema of the version `read`. Not for use by several threads."""

    def __init__(self, read: Snapshot) -> None:
        self._read = read
        # A file's partition columns need not be those of `read`: an overwrite may have changed them.
        self._scan = table_scan(read, by_file=True)

    def rows(self, file: ChangedFile, commit: Commit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Gives the rows of `file` that `commit` changed, as batches of `schema`: any columns of `change_schema`.

        Raises DataFileError where the file is gone, is not what the log says, or is a file of changes that lacks a
        row's change type. Raises ChangeDataError where the commit's time is out of the range of a timestamp.
        """
        import pyarrow as pa

        read = schema
        if file.change_type is None and names.CHANGE_TYPE not in schema.names:
            read = schema.append(pa.field(names.CHANGE_TYPE, pa.string()))
        change = row_change(commit, file.change_type, url=self._read.log.url)
        for batch in read_task(self._scan.of_changes([(file, change)]), read, store=self._read.log.store):
            yield batch if read is schema else batch.select(schema.names)

    def stored_rows(
        self, file: ChangedFile, schema: pa.Schema, *, positions: str | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Gives the changed rows of `file` as batches of `schema`: columns of the table, and other columns in files.

        `positions` names the column of `schema` that gets each row's position in the file, counted from 0.
        """
        task = self._scan.of_changes([(file, None)])
        return read_task(task, schema, store=self._read.log.store, positions=positions)


def change_rows(batch: pa.RecordBatch, schema: pa.Schema, change: RowChange) -> pa.RecordBatch:
    """Gives the rows of `batch` in `schema`, with the feed's columns filled from `change`."""
    import pyarrow as pa

    from tablefeed.data.conform import no_columns

    if not schema.names:
        return no_columns(batch.num_rows)
    constants = change_constants(change)
    columns = [
        pa.repeat(constants[field.name], batch.num_rows) if field.name in constants else batch[field.name]
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
