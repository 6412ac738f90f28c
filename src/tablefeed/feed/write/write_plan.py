"""The plan of a write, which is sent to its tasks and back to its commit, and the paths of its files."""

from __future__ import annotations

import random
import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

from tablefeed.delta import partition_values, paths
from tablefeed.delta.file_layout import FileShape
from tablefeed.delta.schema.column_mapping import MappingMode
from tablefeed.delta.stats.stats_text import StatisticsShape
from tablefeed.errors import InvalidRowsError, SchemaMismatchError, StoreError
from tablefeed.feed.snapshot.dialect import TableFormat
from tablefeed.feed.snapshot.table_log import Snapshot
from tablefeed.feed.write.align import Alignment
from tablefeed.feed.write.identity import names_in_files
from tablefeed.feed.write.replacement import Replaces
from tablefeed.feed.write.row_rules import Kept
from tablefeed.feed.write.write_rules import WriteRules
from tablefeed.model.actions import Metadata, Protocol, Version
from tablefeed.model.rules import IdentityColumn
from tablefeed.model.schema import DataType, Struct
from tablefeed.model.statistics import LeafPath
from tablefeed.store import Store

if TYPE_CHECKING:
    import pyarrow as pa

    from tablefeed.indextables.split.indexing import Indexing


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """The table when the write was planned. A later change conflicts with the write unless it does no harm."""

    table_id: str
    version: Version
    schema_string: str
    partition_columns: tuple[str, ...]
    configuration: Mapping[str, str]
    protocol: Protocol

    @classmethod
    def of(cls, snapshot: Snapshot) -> Planned:
        """Gives the table as it is in `snapshot`."""
        return cls(
            table_id=snapshot.metadata.table_id,
            version=snapshot.version,
            schema_string=snapshot.metadata.schema_string,
            partition_columns=snapshot.metadata.partition_columns,
            # A plain dict, because it is pickled for every task.
            configuration=dict(snapshot.metadata.configuration),
            protocol=snapshot.protocol,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WritePlan:
    """What a task needs to write its rows. Small; sent to every task and back to the commit.

    `found` is None where the table does not exist: this write creates it, with the properties `configuration`.
    `schema_string` and `partition_columns` are the table's after the write. `metadata` is the new metaData of an
    existing table; None: it does not change. `protocol` is the new protocol of an existing table whose new schema needs
    another feature; None: it does not change.
    """

    location: str
    storage_options: Mapping[str, str]
    found: Planned | None
    schema_string: str
    partition_columns: tuple[str, ...]
    configuration: Mapping[str, str]
    metadata: Metadata | None
    mapping: MappingMode
    alignment: Alignment
    rules: WriteRules
    shape: FileShape
    replaces: Replaces
    kept: Kept | None
    """The rules of the table that its rows must keep; None: it has none."""
    identity: tuple[IdentityColumn, ...]
    """The identity columns for which the tasks generate values."""
    recorded: Mapping[str, int]
    """The newest txn version of each application, by its id. If more than `MOST_TOLD`, the newest records are first."""
    statistics: StatisticsShape
    """Which statistics the files get."""
    tells_all: bool = True
    """Whether an application that is not in `recorded` has no txn in the table."""
    clustered_by: tuple[LeafPath, ...] = ()
    """The clustering columns, by their names in files: every file must have statistics of them."""
    stores_partitions: bool = False
    """Whether files must store the partition columns too."""
    protocol: Protocol | None = None
    file_tags: Mapping[str, str] | None = None
    splits: Indexing | None = None
    """How the splits of an IndexTables table index its columns; None: it is a Delta table."""

    @property
    def has_splits(self) -> bool:
        """Whether the table is an IndexTables table, whose files are splits."""
        return self.splits is not None

    @property
    def table_format(self) -> TableFormat:
        """The format of the table."""
        return TableFormat.INDEXTABLES if self.has_splits else TableFormat.DELTA

    @property
    def table_id(self) -> str | None:
        """The id of the table when the write was planned; None: there was no table."""
        return None if self.found is None else self.found.table_id

    @property
    def version(self) -> Version | None:
        """The version of the table when the write was planned; None: there was no table."""
        return None if self.found is None else self.found.version

    def about(self, app_id: str | None) -> WritePlan:
        """Gives this plan with `recorded` cut to `app_id`, None: to nothing. All may be too much to send to tasks."""
        told = {app_id: self.recorded[app_id]} if app_id is not None and app_id in self.recorded else {}
        return replace(self, recorded=told, tells_all=bool(told) or (self.tells_all and app_id is not None))

    def about_newest(self) -> WritePlan:
        """Gives this plan with `recorded` cut to the first `MOST_TOLD`, for a caller that knows no `app_id` yet."""
        if len(self.recorded) <= MOST_TOLD:
            return self
        return replace(self, recorded=dict(islice(self.recorded.items(), MOST_TOLD)), tells_all=False)


MOST_TOLD = 1_000
"""The most applications in a stream's plan, for which Spark gives the query id only to tasks. A batch that is run again
is usually among the newest; if not, its tasks write files, and the commit finds the batch recorded and deletes them."""


def discard(store: Store, files: Iterable[str]) -> None:
    """Deletes `files`, which no commit names. A file that cannot be deleted stays, and no error is raised."""
    for path in files:
        with suppress(StoreError):
            store.delete(path)


def file_directory(plan: WritePlan, schema: Struct, values: Mapping[str, pa.Scalar]) -> str:
    """Gives the folder of a file of the partition with `values`, relative to the table's; empty: the table's own."""
    if plan.mapping is not MappingMode.NONE or plan.shape.random_folders:
        # Paths never contain names or values of mapped columns. As in Delta-Spark, random letters spread the files.
        letters = string.ascii_letters + string.digits
        return "".join(random.choices(letters, k=plan.shape.folder_letters))  # noqa: S311 - no secret
    return paths.partition_directory(_texts(plan, schema, values, partition_values.directory_text).items())


def logged_values(plan: WritePlan, schema: Struct, values: Mapping[str, pa.Scalar]) -> dict[str, str | None]:
    """Gives the texts of partition `values` in the log, by the columns' names in files."""
    texts = _texts(plan, schema, values, partition_values.serialise)
    if plan.mapping is MappingMode.NONE:
        return texts
    physical = names_in_files(schema, plan.mapping)
    return {physical[name]: text for name, text in texts.items()}


def _texts(
    plan: WritePlan,
    schema: Struct,
    values: Mapping[str, pa.Scalar],
    text: Callable[[partition_values.PartitionValue | None, DataType], str | None],
) -> dict[str, str | None]:
    kinds = {f.name: f.type for f in schema}
    return {name: text(_plain(values[name]), kinds[name]) for name in plan.partition_columns}


def check_text(values: Mapping[str, pa.Scalar], *, url: str) -> None:
    """Raises InvalidRowsError for a partition value that cannot be written to the log: a string that is no UTF-8.

    Spark's strings are bytes and may be invalid UTF-8.
    """
    for name, value in values.items():
        try:
            _plain(value)
        except UnicodeDecodeError as error:
            raise InvalidRowsError(
                f"A value of the rows for {url} is no UTF-8 in column {name!r}, by which it is partitioned: no log can "
                "name that. Nothing of this write was committed: correct or filter the rows.",
                url=url,
            ) from error


def _plain(value: pa.Scalar) -> partition_values.PartitionValue | None:
    # `value` of a date is in days, of a timestamp in microseconds; `as_py` would make objects of both.
    plain: partition_values.PartitionValue | None
    plain = value.value if value.is_valid and hasattr(value, "value") else value.as_py()
    return plain


def check_partitioning(asked: Sequence[str], actual: Sequence[str], url: str) -> None:
    """Raises SchemaMismatchError where a write names other partition columns than its table has."""
    if asked and [n.lower() for n in asked] != [n.lower() for n in actual]:
        raise SchemaMismatchError(
            f"{url} is partitioned by ({', '.join(actual)}), not by ({', '.join(asked)}). Leave partitionBy out: an "
            "existing table keeps its partitioning.",
            url=url,
            error_class="DELTA_METADATA_MISMATCH",
        )
