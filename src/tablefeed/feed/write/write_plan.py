"""A write as it is planned: what crosses to its tasks and back to its commit, and where its files lie."""

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
    """What the table was when the write was planned: a commit finds it so, or is none."""

    table_id: str
    version: Version
    schema_string: str
    partition_columns: tuple[str, ...]
    configuration: Mapping[str, str]
    protocol: Protocol

    @classmethod
    def of(cls, snapshot: Snapshot) -> Planned:
        """What `snapshot` shows the table to be."""
        return cls(
            table_id=snapshot.metadata.table_id,
            version=snapshot.version,
            schema_string=snapshot.metadata.schema_string,
            partition_columns=snapshot.metadata.partition_columns,
            # A plain dict: it crosses to every task.
            configuration=dict(snapshot.metadata.configuration),
            protocol=snapshot.protocol,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WritePlan:
    """What tasks write against. Small; crosses to every task and back to the commit.

    `found` is None where the table is not there yet: this write makes it, with the properties `configuration`.
    `schema_string` and `partition_columns` are the table's after the write, and `metadata` is what has to say so in
    the log of one that is there; None: it does. `protocol` is that of a table that is there, where its new schema needs
    a feature that it lacks; None: it lacks none.
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
    """The identity columns that values are made for."""
    recorded: Mapping[str, int]
    """The newest version that each application has recorded in the table, by its id; the newest records first."""
    statistics: StatisticsShape
    """What the statistics of files tell."""
    tells_all: bool = True
    """Whether the application that writes has recorded nothing where it is not in `recorded`."""
    clustered_by: tuple[LeafPath, ...] = ()
    """The columns, as files call them, of which every file must have statistics."""
    stores_partitions: bool = False
    """Whether files have to hold the partition columns too."""
    protocol: Protocol | None = None
    file_tags: Mapping[str, str] | None = None
    splits: Indexing | None = None
    """How the splits of an IndexTables table index its columns; None: the table is Delta's."""

    @property
    def has_splits(self) -> bool:
        """Whether the table is one of IndexTables, whose files are splits."""
        return self.splits is not None

    @property
    def table_format(self) -> TableFormat:
        """Which of the two kinds of tables it is for."""
        return TableFormat.INDEXTABLES if self.has_splits else TableFormat.DELTA

    @property
    def table_id(self) -> str | None:
        """The id of the table that was found."""
        return None if self.found is None else self.found.table_id

    @property
    def version(self) -> Version | None:
        """The version at which it was found."""
        return None if self.found is None else self.found.version

    def about(self, app_id: str | None) -> WritePlan:
        """The same, telling of that application alone; None: of none. A table may have more than tasks can be sent."""
        told = {app_id: self.recorded[app_id]} if app_id is not None and app_id in self.recorded else {}
        return replace(self, recorded=told, tells_all=bool(told) or (self.tells_all and app_id is not None))

    def about_newest(self) -> WritePlan:
        """The same, telling of no more than `MOST_TOLD` applications, for who does not know yet which one writes."""
        if len(self.recorded) <= MOST_TOLD:
            return self
        return replace(self, recorded=dict(islice(self.recorded.items(), MOST_TOLD)), tells_all=False)


MOST_TOLD = 1_000
"""Spark tells a stream's query id to its tasks alone. A batch that is run again is among the last that were recorded;
where it is not, its files are written, and deleted by the commit that finds it recorded."""


def discard(store: Store, files: Iterable[str]) -> None:
    """Deletes `files`, which no commit names. One that cannot be deleted stays: there is more to tell of than that."""
    for path in files:
        with suppress(StoreError):
            store.delete(path)


def file_directory(plan: WritePlan, schema: Struct, values: Mapping[str, pa.Scalar]) -> str:
    """Gives the folder of a file of the partition with `values`; empty: the table's."""
    if plan.mapping is not MappingMode.NONE or plan.shape.random_folders:
        # Names and values of mapped columns stand in no path: some letters spread the files, as Delta-Spark has it.
        letters = string.ascii_letters + string.digits
        return "".join(random.choices(letters, k=plan.shape.folder_letters))  # noqa: S311 - no secret
    return paths.partition_directory(_texts(plan, schema, values, partition_values.directory_text).items())


def logged_values(plan: WritePlan, schema: Struct, values: Mapping[str, pa.Scalar]) -> dict[str, str | None]:
    """Gives what the log says of the partition with `values`."""
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
    """Raises InvalidRowsError for a partition's value that has no text in the log.

    Spark's texts are bytes, which may be no UTF-8.
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
    # Dates are days and timestamps microseconds there: as_py would make objects of both.
    plain: partition_values.PartitionValue | None
    plain = value.value if value.is_valid and hasattr(value, "value") else value.as_py()
    return plain


def check_partitioning(asked: Sequence[str], actual: Sequence[str], url: str) -> None:
    """Raises SchemaMismatchError where a write asks for another partitioning than its table has."""
    if asked and [n.lower() for n in asked] != [n.lower() for n in actual]:
        raise SchemaMismatchError(
            f"{url} is partitioned by ({', '.join(actual)}), not by ({', '.join(asked)}). Leave partitionBy out: an "
            "existing table keeps its partitioning.",
            url=url,
            error_class="DELTA_METADATA_MISMATCH",
        )
