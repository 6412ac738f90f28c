"""The tables of the options, one per direction: how each parses, what it is without a value, and what the docs say.

Names, defaults and what is refused are Delta-Spark's (docs/options.md). How a user's options are held against these is
options.py's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any, Literal

from tablefeed.errors import IllegalOptionError
from tablefeed.feed.commit.replays import OnCollision, read_on_collision
from tablefeed.feed.snapshot.dialect import TableFormat, read_table_format
from tablefeed.feed.timestamp_text import read_zone
from tablefeed.feed.write.write_rules import Scope, codec, column_paths, policy, read_scope
from tablefeed.log.java_regex import JavaRegex, java_regex
from tablefeed.spark import foreign_settings


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionSpec:
    """One option: how its text becomes a value, what it is without one, and what the docs say."""

    name: str
    parse: Callable[[str, str], Any]
    default: Any
    doc: str


def boolean(option: str, text: str) -> bool:
    """'true' or 'false' in any case."""
    if text.lower() not in ("true", "false"):
        raise IllegalOptionError(option=option, value=text, explain="must be 'true' or 'false'")
    return text.lower() == "true"


def positive_int(option: str, text: str) -> int:
    """A whole number from 1 to 2^31 - 1, as Java reads it."""
    number = _number(text, below=1 << 31)
    if not number:
        raise IllegalOptionError(option=option, value=text, explain="must be a positive integer")
    return number


def compacted_commits(option: str, text: str) -> int:
    """A whole number from 2 to 2^31 - 1."""
    number = _number(text, below=1 << 31)
    if not number or number < 2:
        raise IllegalOptionError(option=option, value=text, explain="must be a whole number of at least 2")
    return number


def positive_long(option: str, text: str) -> int:
    """A whole number from 1 to 2^63 - 1."""
    number = _number(text, below=1 << 63)
    if not number:
        raise IllegalOptionError(option=option, value=text, explain="must be a positive integer")
    return number


_SIZE_UNITS = {"": 0, "b": 0, "k": 10, "kb": 10, "m": 20, "mb": 20, "g": 30, "gb": 30, "t": 40, "tb": 40, "p": 50}
_SIZE_UNITS["pb"] = 50


def size_in_bytes(option: str, text: str) -> int:
    """A size above 0 such as '10g', '512mb' or a plain number of bytes, as Spark reads sizes."""
    parts = re.fullmatch(r"([0-9]+)([a-z]*)", text.lower().strip(), re.ASCII)
    unit = _SIZE_UNITS.get(parts[2]) if parts else None
    number = _number(parts[1], below=1 << 63 - unit) if parts and unit is not None else None
    if not number or unit is None:
        raise IllegalOptionError(option=option, value=text, explain="must be a size configuration such as '10g'")
    return number << unit


def starting_version(option: str, text: str) -> int | Literal["latest"]:
    """`latest`, in lower case, or a version from 0."""
    if text == "latest":
        return "latest"
    number = _number(text, below=1 << 63)
    if number is None:
        raise IllegalOptionError(option=option, value=text, explain="must be greater than or equal to zero")
    return number


def whole_number(option: str, text: str) -> int:
    """A whole number from 0 to 2^63 - 1."""
    number = _number(text, below=1 << 63)
    if number is None:
        raise IllegalOptionError(option=option, value=text, explain="must be a non-negative integer")
    return number


def version_as_of(option: str, text: str) -> int:
    """A version from 0."""
    number = _number(text, below=1 << 63)
    if number is None:
        raise IllegalOptionError(
            option=option,
            value=text,
            explain="must be a version of the table, from 0",
            error_class="DELTA_TIME_TRAVEL_INVALID_BEGIN_VALUE",
        )
    return number


def _number(text: str, *, below: int) -> int | None:
    # As Java reads a number, but for its sign: a plus and leading zeros are fine. Longer ones Python would not convert.
    digits = re.fullmatch(r"\+?0*([0-9]{1,19})", text)
    number = int(digits[1]) if digits else below
    return number if number < below else None


def time_zone(option: str, value: str) -> tzinfo:
    """A time zone: a name such as 'Europe/Berlin', or an offset such as '+01:00'."""
    zone = read_zone(value.strip())
    if zone is None:
        raise IllegalOptionError(
            option=option, value=value, explain="must be a time zone such as 'Europe/Berlin', 'UTC' or '+01:00'"
        )
    return zone


def store_assignment(option: str, value: str) -> str:
    """`ansi`, `strict` or `legacy`, in any case."""
    return policy(value, option)


def table_format(option: str, value: str) -> TableFormat:
    """`delta` or `indextables`, in any case."""
    return read_table_format(option, value)


def compression(option: str, value: str) -> str:
    """A codec's name, in any case."""
    return codec(value, option)


def row_limit(option: str, text: str) -> int | None:
    """A whole number; one below 1 is no limit, as Spark has it."""
    if re.fullmatch(r"-[0-9]{1,19}", text):
        return None
    return whole_number(option, text) or None


def overwrite_scope(option: str, value: str) -> Scope:
    """`static` or `dynamic`, in any case."""
    return read_scope(option, value)


def on_collision(option: str, value: str) -> OnCollision:
    """`skip`, `warn` or `fail`, in any case."""
    return read_on_collision(option, value)


def path_pattern(option: str, value: str) -> JavaRegex:
    """A regular expression of Java's."""
    return java_regex(value, option=option)


def text(_option: str, value: str) -> str:
    """Any text."""
    return value


def location(option: str, value: str) -> str:
    """A path or URL."""
    if not value:
        raise IllegalOptionError(option=option, value=value, explain="must be a path or URL")
    return value


def tracking_id(option: str, value: str) -> str:
    """What can end a folder's name."""
    if "/" in value or "\\" in value:
        raise IllegalOptionError(option=option, value=value, explain="must be a part of a folder's name")
    return value


def always_or_version(option: str, text: str) -> int | Literal["always"]:
    """`always`, in lower case, or a version from 0."""
    if text == "always":
        return "always"
    number = _number(text, below=1 << 63)
    if number is None:
        raise IllegalOptionError(option=option, value=text, explain="must be 'always' or a version of the table")
    return number


def column(option: str, value: str) -> str:
    """A column's name."""
    if not value:
        raise IllegalOptionError(option=option, value=value, explain="must be a column's name")
    return value


def columns(option: str, value: str) -> tuple[str, ...]:
    """Column names with commas between them; blanks around a name do not count."""
    names = tuple(name.strip() for name in value.split(","))
    if not all(names):
        raise IllegalOptionError(option=option, value=value, explain="must be column names with commas between them")
    return names


def cluster_columns(option: str, value: str) -> tuple[tuple[str, ...], ...]:
    """Columns with commas between them, members of structs behind dots; backticks around a name with either."""
    return column_paths(value, option)


_FALSE_SPECS = (
    ("ignoreDeletes", "Pass commits that only delete rows."),
    ("ignoreChanges", "Deliver rewritten files whole, unchanged rows included; implies ignoreDeletes."),
    ("ignoreFileDeletion", "Older name of ignoreChanges."),
    ("skipChangeCommits", "Deliver nothing of a commit that deletes or rewrites rows; the strongest of these."),
    (
        "ignoreAddedColumns",
        "Go on where nullable columns are added to the table, or members to its structs at any depth: rows come in the "
        "DataFrame's schema, without them, until the stream is started again with a new one. Those rows do not come "
        "again. Not with schemaTrackingLocation.",
    ),
)

_TIME_ZONE = OptionSpec(
    name="timeZone",
    parse=time_zone,
    default=None,
    doc="The zone of a timestamp in the options that names none. Unset: UTC.",
)

_BOUNDS_INCLUSIVE = (
    OptionSpec(
        name="startingBoundInclusive",
        parse=boolean,
        default=True,
        doc="false: begin with what comes after startingVersion or startingTimestamp.",
    ),
    OptionSpec(
        name="endingBoundInclusive",
        parse=boolean,
        default=True,
        doc="false: end with what comes before endingVersion or endingTimestamp.",
    ),
)

CHANGE_FEED = (
    OptionSpec(
        name="readChangeFeed",
        parse=boolean,
        default=False,
        doc="Deliver the rows that commits inserted, deleted and updated, with `_change_type`, `_commit_version` and "
        "`_commit_timestamp`, of a table that records its changes.",
    ),
    OptionSpec(name="readChangeData", parse=boolean, default=False, doc="Older name of readChangeFeed."),
)

TRACKING = (
    OptionSpec(
        name="schemaTrackingLocation",
        parse=location,
        default=None,
        doc="A folder of this stream's own below its checkpoint. Changes of the table's schema, properties and "
        "protocol are tracked there: the stream stops at each, and goes on with it when it is started again.",
    ),
    OptionSpec(name="schemaLocation", parse=location, default=None, doc="Another name of schemaTrackingLocation."),
    OptionSpec(
        name="streamingSourceTrackingId",
        parse=tracking_id,
        default=None,
        doc="Tells apart the sources of one query that read one table and share a schemaTrackingLocation.",
    ),
    *(
        OptionSpec(
            name=f"allowSourceColumn{what}",
            parse=always_or_version,
            default=None,
            doc=f"`always`, or the version of a change: a stream that tracks schemas goes on over {which}.",
        )
        for what, which in (
            ("Rename", "a renamed column"),
            ("Drop", "a dropped column"),
            ("TypeChange", "a column of a wider type"),
        )
    ),
)

_TASKS = OptionSpec(
    name="minPartitions",
    parse=positive_int,
    default=None,
    doc="Over how many tasks a batch is spread at the least, as far as it has files and row groups: as a rule the "
    "cluster's cores. When it is planned, the footers of the files that may be shared are read for it. Unset: the "
    "cores of the machine that plans, as Spark does not tell a Python source of the cluster's.",
)

_ROWS_AND_COLUMNS = (
    OptionSpec(
        name="columns",
        parse=columns,
        default=None,
        doc="The DataFrame has these columns alone, in this order, and of the files no others are read. With "
        "readChangeFeed they may be the feed's too. Unset: all.",
    ),
    OptionSpec(
        name="where",
        parse=text,
        default=None,
        doc="Deliver only rows of which this predicate is true, such as `day >= DATE'2026-01-01' AND kind <> 'test'`, "
        "and do not open files that partition values and statistics rule out; they count towards the limits, and "
        "offsets stay what they are. With readChangeFeed all files are opened, and each side of an update is judged "
        "by itself. In Spark's SQL: AND, OR, NOT, comparisons, IN, BETWEEN and IS NULL of a column and literals; what "
        "is more, or would hang on Spark's session, is refused. Needs `tablefeed[where]`.",
    ),
)

STREAM_READ: tuple[OptionSpec, ...] = (
    *CHANGE_FEED,
    OptionSpec(
        name="startingVersion",
        parse=starting_version,
        default=None,
        doc="The first version to deliver, or `latest` for what comes after the start. Unset: the whole table first.",
    ),
    OptionSpec(
        name="startingTimestamp",
        parse=text,
        default=None,
        doc="Begin with the first commit at or after this time, a timestamp or a date. Not with startingVersion.",
    ),
    OptionSpec(
        name="endingVersion",
        parse=whole_number,
        default=None,
        doc="The last version to deliver; it may be still to come. Trigger.AvailableNow ends there, others idle.",
    ),
    OptionSpec(
        name="endingTimestamp",
        parse=text,
        default=None,
        doc="Deliver nothing that is committed after this time, a timestamp or a date. Not with endingVersion.",
    ),
    *_BOUNDS_INCLUSIVE,
    _TIME_ZONE,
    OptionSpec(
        name="maxFilesPerTrigger",
        parse=positive_int,
        default=None,
        doc="Most data files in one batch; at least one is taken. 1000 where no limit is set.",
    ),
    OptionSpec(
        name="maxBytesPerTrigger",
        parse=size_in_bytes,
        default=None,
        doc="Bytes of data files after which a batch ends; it may go over by one file.",
    ),
    OptionSpec(
        name="maxRowsPerTrigger",
        parse=positive_long,
        default=None,
        doc="Rows, by the files' statistics, after which a batch ends; it may go over by one file. "
        "A file without a count takes all that is left.",
    ),
    OptionSpec(
        name="splitCommits",
        parse=boolean,
        default=True,
        doc="false: a batch holds whole commits, one larger than the limits alone; only the initial snapshot is split.",
    ),
    OptionSpec(
        name="withEventTimeOrder",
        parse=boolean,
        default=False,
        doc="true: the whole table, where it comes first, is delivered in the order of the times in eventTimeColumn, "
        "so that a watermark takes no row of an older file for late. A batch holds the rows between two times; the "
        "limits are met as far as the files' statistics tell, and a file is opened for each batch that has rows of it. "
        "Not to be changed before the whole table is delivered. Of no effect with startingVersion or "
        "startingTimestamp.",
    ),
    OptionSpec(
        name="eventTimeColumn",
        parse=column,
        default=None,
        doc="With withEventTimeOrder, the column of `withWatermark`, of which a Python source is not told: one of type "
        "timestamp or timestamp_ntz, no member of a struct. Its name is met in any case.",
    ),
    *(OptionSpec(name=name, parse=boolean, default=False, doc=doc) for name, doc in _FALSE_SPECS),
    OptionSpec(
        name="failOnDataLoss",
        parse=boolean,
        default=True,
        doc="Fail where log files were removed before they were read. With false the stream goes on with the files "
        "that are left, in the schema of the query. It still fails where the removed files changed that schema, or "
        "where nothing shows whether they did.",
    ),
    OptionSpec(
        name="excludeRegex",
        parse=path_pattern,
        default=None,
        doc="Do not read files in whose path, as the log has it, the pattern is found. They count towards the limits.",
    ),
    *TRACKING,
    _TASKS,
    *_ROWS_AND_COLUMNS,
)

BATCH_READ: tuple[OptionSpec, ...] = (
    *CHANGE_FEED,
    OptionSpec(name="versionAsOf", parse=version_as_of, default=None, doc="Read the table as of this version."),
    OptionSpec(
        name="timestampAsOf",
        parse=text,
        default=None,
        doc="Read the newest version committed at or before this time, a timestamp or a date.",
    ),
    _TIME_ZONE,
    _TASKS,
    *_ROWS_AND_COLUMNS,
)

CHANGES_READ: tuple[OptionSpec, ...] = (
    *BATCH_READ,
    OptionSpec(name="startingVersion", parse=whole_number, default=None, doc="The first version to deliver."),
    OptionSpec(
        name="startingTimestamp",
        parse=text,
        default=None,
        doc="Begin with the first commit at or after this time, a timestamp or a date; this or startingVersion.",
    ),
    OptionSpec(
        name="endingVersion", parse=whole_number, default=None, doc="The last version to deliver. Unset: the newest."
    ),
    OptionSpec(
        name="endingTimestamp",
        parse=text,
        default=None,
        doc="End with the last commit at or before this time, a timestamp or a date. Not with endingVersion.",
    ),
    *_BOUNDS_INCLUSIVE,
)

_INDEX_WRITE: tuple[OptionSpec, ...] = (
    OptionSpec(
        name="spark.indextables.checkpoint.enabled",
        parse=boolean,
        default=True,
        doc="Of an IndexTables table whose log is of JSON: write the checkpoints that are due. A table that has had "
        "none gets none.",
    ),
    OptionSpec(
        name="spark.indextables.checkpoint.interval",
        parse=whole_number,
        default=10,
        doc="Of such a table: how many versions a checkpoint lies behind the one before, at least; 0: none is written.",
    ),
    OptionSpec(
        name="spark.indextables.checkpoint.actionsPerPart",
        parse=positive_int,
        default=100_000,
        doc="Of such a table: most actions of a file of a checkpoint; a larger one has several parts.",
    ),
    OptionSpec(
        name="spark.indextables.checkpoint.multiPart.enabled",
        parse=boolean,
        default=True,
        doc="Of such a table: false: a checkpoint is one file, however large.",
    ),
)

_WRITE: tuple[OptionSpec, ...] = (
    OptionSpec(
        name="tableFormat",
        parse=table_format,
        default=None,
        doc="What kind of table is made where there is none: `delta` or `indextables`. A table that is there is what "
        "it is, and must be that where this is set. Unset: `delta`.",
    ),
    OptionSpec(
        name="partitionBy",
        parse=columns,
        default=None,
        doc="Partition columns of a new table, with commas between them. An existing table keeps its own.",
    ),
    OptionSpec(
        name="clusterBy",
        parse=cluster_columns,
        default=None,
        doc="Clustering columns of a new table, up to four, with commas between them and members of structs as `a.b`: "
        "the table says so, its files have statistics of them, and Spark's OPTIMIZE clusters them. An existing table "
        "must have the same. Not with partitionBy.",
    ),
    OptionSpec(name="userMetadata", parse=text, default=None, doc="Text kept in each commit's commitInfo."),
    OptionSpec(
        name="mergeSchema",
        parse=boolean,
        default=False,
        doc="Add the columns and struct members that the table has not, at the end; where the table has "
        "`delta.enableTypeWidening`, make its types as wide as the rows'.",
    ),
    OptionSpec(
        name="overwriteSchema",
        parse=boolean,
        default=False,
        doc="Give an overwritten table the schema and the partitioning of the write. Without effect on an append.",
    ),
    OptionSpec(
        name="storeAssignmentPolicy",
        parse=store_assignment,
        default=policy("ansi", "storeAssignmentPolicy"),
        doc="How values are cast to the table's types: `ansi`, where a value that does not fit fails the write, "
        "`strict`, where no type is taken that could have one, or `legacy`, where numbers that do not fit are wrapped "
        "and what cannot be read is null, without a word.",
    ),
    OptionSpec(
        name="timeZone",
        parse=time_zone,
        default=None,
        doc="Where days, clocks and texts are read as moments, and moments shown as those: Spark's session zone, "
        "which it does not tell. The table's generated columns, defaults and constraints are evaluated there too. "
        "Unset: casts and rules that hang on it are refused.",
    ),
    OptionSpec(
        name="txnVersionCollision",
        parse=on_collision,
        default=OnCollision.WARN,
        doc="What is done where the table records a later version of this application (of a stream: a later batch of "
        "this query), which no batch that is run again meets: `skip` the write, skip it and `warn`, or `fail`.",
    ),
    OptionSpec(
        name="compression",
        parse=compression,
        default=None,
        doc="How data files are compressed: `snappy`, `zstd`, `gzip`, `brotli`, `lz4_raw` or `uncompressed`. Unset: "
        "as the table's `delta.parquet.compression.codec` says, else snappy.",
    ),
    OptionSpec(
        name="maxRecordsPerFile",
        parse=row_limit,
        default=None,
        doc="The most rows of a data file; 0: any number. A file is also closed at the table's `delta.targetFileSize`.",
    ),
    OptionSpec(
        name="optimizeWrite",
        parse=boolean,
        default=None,
        doc="true: the small files that tasks wrote are made into files of about 128 MiB, or `delta.targetFileSize`, "
        "before they are committed, by the process that commits. Unset: as the table's "
        "`delta.autoOptimize.optimizeWrite` says, else false.",
    ),
    OptionSpec(
        name="logCompactionEvery",
        parse=compacted_commits,
        default=None,
        doc="Behind each commit of ours whose version ends so many, counted from version 0, these are also written as "
        "one log compaction file, for readers that take them. Unset: never.",
    ),
    OptionSpec(
        name="checkpointPartSize",
        parse=positive_long,
        default=None,
        doc="About how many actions a file of a checkpoint holds, as Delta-Spark's `checkpoint.partSize`: a larger "
        "checkpoint has several parts. Without effect where the table supports V2 checkpoints. Unset: one file.",
    ),
    *_INDEX_WRITE,
)

STREAM_WRITE: tuple[OptionSpec, ...] = (
    *_WRITE,
    OptionSpec(
        name="compactEvery",
        parse=positive_int,
        default=None,
        doc="After each so many batches, small files are folded into larger ones, behind the query's back and in a "
        "commit that streams do not see ([maintenance.md](maintenance.md)). Without effect in complete mode. Unset: "
        "never.",
    ),
    OptionSpec(
        name="recordEmptyBatches",
        parse=boolean,
        default=True,
        doc="Commit a batch without rows too, as Delta-Spark does. `false`: one that changes nothing makes no version.",
    ),
)

BATCH_WRITE: tuple[OptionSpec, ...] = (
    *_WRITE,
    OptionSpec(
        name="txnAppId",
        parse=text,
        default=None,
        doc="With txnVersion: skip this write where the table already records that version of this application.",
    ),
    OptionSpec(name="txnVersion", parse=whole_number, default=None, doc="See txnAppId."),
    OptionSpec(
        name="replaceWhere",
        parse=text,
        default=None,
        doc="Overwrite only the rows for which this predicate is true, as the written rows must be. Its language is "
        "that of `where`, and it needs sqlglot as well. Where it names columns that are no partition columns, the "
        "driver writes the files anew that have such rows.",
    ),
    OptionSpec(
        name="partitionOverwriteMode",
        parse=overwrite_scope,
        default=Scope.TABLE,
        doc="`dynamic`: overwrite only the partitions that rows are written to; `static`: the table.",
    ),
)

NOT_YET: Mapping[str, str] = {
    "replaceOn": "Overwrite the whole table, or append.",
    "replaceUsing": "Overwrite the whole table, or append.",
    "useNullIntolerantEqualityWithDPO": "Leave it out: a null partition that is written to is overwritten as well.",
    "dataChange": "Rewrite files with OPTIMIZE: every write of this version changes data.",
    **{name: remedy for name, (_, remedy) in foreign_settings.HELD.items()},
}
"""Names that would change rows or rules, and that this version does not do: refused, with what to do instead."""

AS_IF_UNSET: Mapping[str, str] = {
    "useNullIntolerantEqualityWithDPO": "false",
    "dataChange": "true",
    **{name: value for name, (value, _) in foreign_settings.HELD.items()},
}
"""The one value of a name in `NOT_YET` that says what holds without it: accepted."""

_REPLACING = frozenset({"replaceOn", "replaceUsing", "useNullIntolerantEqualityWithDPO", "dataChange"})

_ACCEPTED_BY_DELTA = (
    frozenset({"path", "queryName", "checkpointLocation", "outputMode"})
    | {spec.name for spec in (*STREAM_READ, *BATCH_READ)}
    | {spec.name for spec in BATCH_WRITE if spec.name not in ("partitionBy", "clusterBy", "tableFormat")}
    - {spec.name for spec in _INDEX_WRITE}
    | _REPLACING
    | {"targetAlias"}
    | {"compression", "maxRecordsPerFile", "writePartitionColumns"}
    | {"parquet.writer.version", "spark.sql.parquet.outputTimestampType"}
)
"""The names that Delta-Spark takes on a reader and a writer alike (DeltaOptions, validOptionKeys), Spark's and ours."""


def _without_effect(specs: tuple[OptionSpec, ...], *refused: frozenset[str]) -> frozenset[str]:
    # What would choose rows and columns is not passed over in a write.
    ours = {spec.name for spec in _ROWS_AND_COLUMNS}
    return _ACCEPTED_BY_DELTA.difference({spec.name for spec in specs}, ours, *refused)


IGNORED: Mapping[str, frozenset[str]] = {
    "stream read": _without_effect(
        STREAM_READ,
        frozenset({"versionAsOf", "timestampAsOf"}),
    ),
    "batch read": _without_effect(BATCH_READ),
    "read of changes": _without_effect(CHANGES_READ),
    "stream write": _without_effect(STREAM_WRITE) | foreign_settings.WITHOUT_EFFECT,
    "batch write": _without_effect(BATCH_WRITE, _REPLACING) | foreign_settings.WITHOUT_EFFECT,
}
"""Names that Delta-Spark or IndexTables accepts in a direction without effect there, or with one on the layout alone.

Accepted, with a warning.
"""

SPECS: Mapping[str, tuple[OptionSpec, ...]] = {
    "stream read": STREAM_READ,
    "batch read": BATCH_READ,
    "read of changes": CHANGES_READ,
    "stream write": STREAM_WRITE,
    "batch write": BATCH_WRITE,
}
