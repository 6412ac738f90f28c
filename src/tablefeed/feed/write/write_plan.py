"""The plan of a write, which is sent to its tasks and back to its commit, and the paths of its files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, ClassVar, Self

from tablefeed.delta import partition_values, paths
from tablefeed.delta.file_layout import FileShape
from tablefeed.delta.schema.column_mapping import MappingMode
from tablefeed.delta.schema.schema_string import format_schema
from tablefeed.delta.stats.stats_text import StatisticsShape
from tablefeed.errors import TABLE, InvalidRowsError, SchemaMismatchError
from tablefeed.feed.snapshot.table_format import TableFormat
from tablefeed.feed.write.align import Alignment
from tablefeed.feed.write.replacement import Replaces
from tablefeed.feed.write.row_rules import Kept
from tablefeed.feed.write.write_rules import Scope, WriteRules
from tablefeed.model.actions import Metadata, Protocol, Version
from tablefeed.model.rules import IdentityColumn
from tablefeed.model.schema import DataType, Struct
from tablefeed.model.statistics import LeafPath
from tablefeed.store import Entry

if TYPE_CHECKING:
    import pyarrow as pa

    from tablefeed.feed.snapshot.table_log import Snapshot
    from tablefeed.indextables.split.indexing import Indexing


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """The table when the write was planned. A later change conflicts with the write unless it does no harm."""

    table_id: str
    version: Version
    schema: Struct
    partition_columns: tuple[str, ...]
    configuration: Mapping[str, str]
    protocol: Protocol
    head: Entry | None
    """The file of the version's commit; None: not known."""

    @classmethod
    def of(cls, snapshot: Snapshot) -> Planned:
        """Gives the table as it is in `snapshot`."""
        return cls(
            table_id=snapshot.metadata.table_id,
            version=snapshot.version,
            schema=snapshot.schema,
            partition_columns=snapshot.metadata.partition_columns,
            # A plain dict, because it is pickled for every task.
            configuration=dict(snapshot.metadata.configuration),
            protocol=snapshot.protocol,
            head=snapshot.head,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedWrite:
    """What the plans of both formats have. Small; sent to every task and back to the commit.

    `found` is None where the table does not exist: this write creates it. `schema` and `partition_columns` are the
    table's after the write. `url` names the table in errors and holds no credentials, as `location` may.
    """

    location: str
    url: str
    storage_options: Mapping[str, str] = field(repr=False)
    found: Planned | None
    schema: Struct
    partition_columns: tuple[str, ...]
    alignment: Alignment
    rules: WriteRules
    recorded: Mapping[str, int]
    """The newest txn version of each application, by its id. Of more than `MOST_RECORDED` the newest records are first.
    """
    records_all: bool
    """Whether an application that is not in `recorded` has no txn in the table."""

    @property
    def table_id(self) -> str | None:
        """The id of the table when the write was planned; None: there was no table."""
        return None if self.found is None else self.found.table_id

    @property
    def version(self) -> Version | None:
        """The version of the table when the write was planned; None: there was no table."""
        return None if self.found is None else self.found.version

    @property
    def next_version(self) -> Version:
        """The first version that the commit can have."""
        return Version(0 if self.found is None else self.found.version + 1)

    @property
    def changes_table(self) -> bool:
        """Whether the write changes the table even without rows: it creates the table."""
        return self.found is None

    def about(self, app_id: str | None) -> Self:
        """Gives this plan with `recorded` cut to `app_id`, None: to nothing. All may be too much to send to tasks."""
        kept = {app_id: self.recorded[app_id]} if app_id is not None and app_id in self.recorded else {}
        return replace(self, recorded=kept, records_all=bool(kept) or (self.records_all and app_id is not None))

    def about_newest(self) -> Self:
        """Gives this plan with `recorded` cut to the first `MOST_RECORDED`, for a caller that knows no `app_id` yet."""
        if len(self.recorded) <= MOST_RECORDED:
            return self
        return replace(self, recorded=dict(islice(self.recorded.items(), MOST_RECORDED)), records_all=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaPlan(PlannedWrite):
    """A write of Parquet files to a Delta table.

    `configuration` are the properties of a new table; empty for an existing one. `metadata` and `protocol` are the new
    ones of an existing table, the protocol where its new schema needs another feature; None: they do not change.
    """

    table_format: ClassVar = TableFormat.DELTA

    configuration: Mapping[str, str]
    metadata: Metadata | None
    protocol: Protocol | None
    mapping: MappingMode
    shape: FileShape
    replaces: Replaces
    kept: Kept | None
    """The rules of the table that its rows must keep; None: it has none."""
    identity: tuple[IdentityColumn, ...]
    """The identity columns for which the tasks generate values."""
    statistics: StatisticsShape
    """Which statistics the files get."""
    clustered_by: tuple[LeafPath, ...]
    """The clustering columns, by their names in files: every file must have statistics of them."""
    stores_partitions: bool
    """Whether files must store the partition columns too."""
    file_tags: Mapping[str, str] | None
    carried: tuple[str, ...] = ()
    """Columns of longs that the rows bring and the files get, besides the table's columns: ids that rows keep."""

    @property
    def changes_table(self) -> bool:
        """Whether the write changes the table even without rows: it creates the table or changes its metadata."""
        return self.found is None or self.metadata is not None

    @property
    def metadata_after(self) -> Metadata:
        """The table's metadata after the commit, as far as files depend on it."""
        if self.metadata is not None:
            return self.metadata
        return Metadata(
            table_id=self.table_id or "",
            schema_string=format_schema(self.schema),
            partition_columns=self.partition_columns,
            configuration=self.configuration if self.found is None else self.found.configuration,
        )

    def for_table_rows(self, column_count: int) -> DeltaPlan:
        """Gives the plan to write rows that were read from the table's files: they have all columns, in order.

        They were checked against the rules of the table, and against a predicate, when they were first written.
        """
        return replace(
            self,
            alignment=tuple(range(column_count)),
            kept=None,
            identity=(),
            replaces=replace(self.replaces, scope=Scope.TABLE),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitPlan(PlannedWrite):
    """A write of splits to an IndexTables table. Its log does not say what applications wrote (index_attempts.py)."""

    table_format: ClassVar = TableFormat.INDEXTABLES

    indexing: Indexing
    """How the splits index the columns."""
    named: Mapping[str, int]
    """The newest txn version of each application in the names of the live splits, by its key. The first plan of a query
    or call reads these names, and so does a plan after a write of unknown outcome. Others have none."""


WritePlan = DeltaPlan | SplitPlan

MOST_RECORDED = 1_000
"""The most applications in a stream's plan, for which Spark gives the query id only to tasks. A batch that is run again
is usually among the newest; if not, its tasks write files, and the commit finds the batch recorded and deletes them."""


def partition_path(name: str, schema: Struct, values: Mapping[str, pa.Scalar]) -> str:
    """Gives the path, below the table's root, of a file `name` in the folder of the partition with `values`.

    Raises InvalidRowsError as `check_text`.
    """
    check_text(values)
    directory = paths.partition_directory(_texts(schema, values, partition_values.directory_text).items())
    return f"{directory}/{name}" if directory else name


def partition_texts(schema: Struct, values: Mapping[str, pa.Scalar]) -> dict[str, str | None]:
    """Gives the texts of partition `values` in the log, by the columns' names in the table."""
    return _texts(schema, values, partition_values.serialise)


def check_text(values: Mapping[str, pa.Scalar]) -> None:
    """Raises InvalidRowsError for a partition value that cannot be written to the log: a string that is no UTF-8.

    Spark's strings are bytes and may be invalid UTF-8.
    """
    for name, value in values.items():
        try:
            _plain(value)
        except UnicodeDecodeError as error:
            raise InvalidRowsError(
                f"The rows for {TABLE} have a value in the partition column {name!r} that is not UTF-8, and the log "
                "cannot hold it. Nothing of this write was committed. Correct or filter the rows.",
            ) from error


def _texts(
    schema: Struct,
    values: Mapping[str, pa.Scalar],
    text: Callable[[partition_values.PartitionValue | None, DataType], str | None],
) -> dict[str, str | None]:
    kinds = {field.name: field.type for field in schema}
    return {name: text(_plain(value), kinds[name]) for name, value in values.items()}


def _plain(value: pa.Scalar) -> partition_values.PartitionValue | None:
    # `value` of a date is in days, of a timestamp in microseconds; `as_py` would make objects of both.
    plain: partition_values.PartitionValue | None
    plain = value.value if value.is_valid and hasattr(value, "value") else value.as_py()
    return plain


def check_partitioning(asked: Sequence[str], actual: Sequence[str]) -> None:
    """Raises SchemaMismatchError where a write names other partition columns than its table has."""
    if asked and [n.lower() for n in asked] != [n.lower() for n in actual]:
        by = f"partitioned by {', '.join(actual)}" if actual else "not partitioned"
        raise SchemaMismatchError(
            f"{TABLE} is {by}, and the write asks for {', '.join(asked)}. An "
            "existing table keeps its partitioning: name no partition columns.",
            error_class="DELTA_METADATA_MISMATCH",
        )
