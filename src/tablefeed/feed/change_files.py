"""The rows of changed files as a change feed delivers them: the table's columns, and three of the feed's own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from tablefeed.delta import names
from tablefeed.errors import ChangeDataError, DataFileError
from tablefeed.feed.scan import ScanFile, ScanTask, TableColumns, read_task, table_columns
from tablefeed.feed.table_log import Snapshot
from tablefeed.log.changes import ChangedFile, ChangeType
from tablefeed.model.actions import Commit

if TYPE_CHECKING:
    import pyarrow as pa


_MOST_US = 2**63 - 1


def change_schema(read: Snapshot) -> pa.Schema:
    """Gives the columns of the table as of `read`, then those of the feed."""
    import pyarrow as pa

    own = [
        (names.CHANGE_TYPE, pa.string()),
        (names.COMMIT_VERSION, pa.int64()),
        (names.COMMIT_TIMESTAMP, pa.timestamp("us", tz="UTC")),
    ]
    return pa.schema([*read.arrow_schema, *(pa.field(name, kind) for name, kind in own)])


class ChangeReader:
    """Reads the files that commits changed in the schema of one version, `read`. For one reader, not for threads."""

    def __init__(self, read: Snapshot) -> None:
        self._read = read
        self._columns: dict[frozenset[str], TableColumns] = {}

    def rows(self, file: ChangedFile, commit: Commit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Gives the rows of `file` that `commit` changed, as batches of `schema`: any columns of `change_schema`.

        Raises DataFileError where the file is gone, is not what the log says, or, recorded by its writer, does not say
        of each row what became of it.
        """
        import pyarrow as pa

        constants = self.constants(commit, file.change_type)
        inside = [field for field in schema if field.name not in constants]
        if file.change_type is None and names.CHANGE_TYPE not in schema.names:
            inside.append(pa.field(names.CHANGE_TYPE, pa.string()))
        for batch in self.stored_rows(file, pa.schema(inside)):
            if file.change_type is None and batch[names.CHANGE_TYPE].null_count:
                raise self._untold(file, commit)
            yield stamped(batch, schema, constants)

    def stored_rows(
        self, file: ChangedFile, schema: pa.Schema, *, positions: str | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Gives the changed rows of `file` as batches of `schema`: columns of the table, and others that files have.

        `positions` names the column that takes each row's place in the file, from 0.
        """
        partition_values = file.partition_values or {}
        scan_file = ScanFile(
            path=file.path,
            size_bytes=file.size_bytes,
            partition_values=partition_values,
            deletion_vector=file.deletion_vector,
            only_in=file.only_in,
        )
        log = self._read.log
        task = ScanTask(
            url=log.location,
            storage_options=log.storage_options,
            files=(scan_file,),
            columns=self._columns_by(frozenset(partition_values)),
        )
        return read_task(task, schema, store=log.store, positions=positions)

    def constants(self, commit: Commit, change_type: ChangeType | None) -> Mapping[str, pa.Scalar]:
        """Gives the values of the feed's columns for all rows of `commit`; without the change where rows say it.

        Raises ChangeDataError where the commit says that it was made at a time that no timestamp holds.
        """
        import pyarrow as pa

        at_us = (commit.committed_at_ms or 0) * 1000
        if abs(at_us) > _MOST_US:
            raise ChangeDataError(
                f"Version {commit.version} of {self._read.log.url} says that it was made {commit.committed_at_ms} ms "
                "after 1970, which no timestamp holds. Read from a later version.",
                url=self._read.log.url,
                version=commit.version,
            )
        constants = {
            names.COMMIT_VERSION: pa.scalar(commit.version, pa.int64()),
            names.COMMIT_TIMESTAMP: pa.scalar(at_us, pa.timestamp("us", tz="UTC")),
        }
        if change_type is not None:
            constants[names.CHANGE_TYPE] = pa.scalar(change_type.value, pa.string())
        return constants

    def _columns_by(self, keys: frozenset[str]) -> TableColumns:
        # The partitioning of the file's version, which need not be the commit's: an overwrite may have changed it.
        if keys not in self._columns:
            self._columns[keys] = table_columns(
                self._read.schema, self._read.metadata, url=self._read.log.url, partitioned_by=keys
            )
        return self._columns[keys]

    def _untold(self, file: ChangedFile, commit: Commit) -> DataFileError:
        url = self._read.log.url
        return DataFileError(
            f"The file {file.path} of the changes of version {commit.version} of {url} does not say of each row what "
            f"became of it ({names.CHANGE_TYPE} is null or missing). Read from a later version.",
            url=url,
            path=file.path,
        )


def stamped(batch: pa.RecordBatch, schema: pa.Schema, constants: Mapping[str, pa.Scalar]) -> pa.RecordBatch:
    """Gives the rows of `batch` in `schema`, with the columns of `constants` filled in."""
    import pyarrow as pa

    columns = [
        pa.repeat(constants[field.name], batch.num_rows) if field.name in constants else batch[field.name]
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
