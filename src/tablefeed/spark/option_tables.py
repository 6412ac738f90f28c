"""The tables of the options, one per direction: how each parses, what it is without a value, and what the docs say.

Names, defaults and what is refused are Delta-Spark's (docs/reference/options.md). options.py checks a user's options
against them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from datetime import tzinfo
from enum import StrEnum
from typing import Any

from tablefeed.data.assignment import Policy
from tablefeed.errors import IllegalOptionError
from tablefeed.feed.arguments import checked_id, word
from tablefeed.feed.changes.java_regex import JavaRegex, java_regex
from tablefeed.feed.commit.collisions import OnCollision
from tablefeed.feed.snapshot.table_format import TableFormat
from tablefeed.feed.snapshot.timeline import parse_timestamp
from tablefeed.feed.stream.source_options import DROP, RENAME, TYPE_CHANGE
from tablefeed.feed.timestamp_text import read_zone
from tablefeed.feed.write.write_rules import Scope, codec, column_paths
from tablefeed.spark import foreign_settings

Parse = Callable[[str, str], Any]
"""Gives the value for an option's name and text; raises IllegalOptionError. The docs show its docstring."""


@dataclass(frozen=True, slots=True)
class OptionSpec:
    """One option: how its text becomes a value, what it is without one, and what the docs say."""

    name: str
    parse: Parse
    _: KW_ONLY
    default: Any = None
    doc: str


def boolean(option: str, text: str) -> bool:
    """'true' or 'false' in any case."""
    if text.lower() not in ("true", "false"):
        raise IllegalOptionError(option=option, value=text, explain="must be 'true' or 'false'")
    return text.lower() == "true"


def _number(text: str, *, below: int) -> int | None:
    # As Java reads a number, but for its sign: a plus and leading zeros are fine. Longer ones Python would not convert.
    digits = re.fullmatch(r"\+?0*([0-9]{1,19})", text)
    number = int(digits[1]) if digits else below
    return number if number < below else None


def _whole(doc: str, must_be: str, *, least: int = 0, below: int = 1 << 63, error_class: str | None = None) -> Parse:
    """Gives the parser, described as `doc`, of whole numbers from `least` to before `below`."""

    def parse(option: str, text: str) -> int:
        number = _number(text, below=below)
        if number is None or number < least:
            most = f", at most {below - 1}" if re.fullmatch(r"\+?[0-9]+", text) and number is None else ""
            explain = f"must be {must_be}{most}"
            raise IllegalOptionError(option=option, value=text, explain=explain, error_class=error_class)
        return number

    parse.__doc__ = doc
    return parse


def _keyword_or_version(keyword: str, must_be: str) -> Parse:
    """Gives the parser of `keyword` or a version."""
    version = _whole("", must_be)

    def parse(option: str, text: str) -> int | str:
        return keyword if text == keyword else version(option, text)

    parse.__doc__ = f"`{keyword}`, in lower case, or a version from 0."
    return parse


_POSITIVE = "a positive integer"
positive_int = _whole("A whole number from 1 to 2^31 - 1, as Java reads it.", _POSITIVE, least=1, below=1 << 31)
positive_long = _whole("A whole number from 1 to 2^63 - 1.", _POSITIVE, least=1)
whole_number = _whole("A whole number from 0 to 2^63 - 1.", "a non-negative integer")


def row_limit(option: str, text: str) -> int | None:
    """A whole number; one below 1 is no limit, as Spark has it."""
    return None if re.fullmatch(r"-[0-9]{1,19}", text) else whole_number(option, text) or None


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


def time_zone(option: str, value: str) -> tzinfo:
    """A time zone: a name such as 'Europe/Berlin', or an offset such as '+01:00'."""
    zone = read_zone(value.strip())
    if zone is None:
        raise IllegalOptionError(
            option=option, value=value, explain="must be a time zone such as 'Europe/Berlin', 'UTC' or '+01:00'"
        )
    return zone


def moment(option: str, value: str) -> str:
    """A timestamp such as '2024-01-31 12:00:00', or a date."""
    parse_timestamp(value, argument=option)
    return value


def _one_of(words: type[StrEnum]) -> Parse:
    """Gives the parser of one of `words`."""

    def parse(option: str, value: str) -> StrEnum:
        return word(words, value, argument=option)

    *most, last = (f"`{each}`" for each in words)
    parse.__doc__ = f"{', '.join(most)} or {last}, in any case."
    return parse


def compression(option: str, value: str) -> str:
    """A codec's name, in any case."""
    return codec(value, option)


def path_pattern(option: str, value: str) -> JavaRegex:
    """A regular expression of Java's."""
    return java_regex(value, option=option)


def _text(doc: str) -> Parse:
    """Gives the parser, described as `doc`, of texts that are read later."""

    def parse(_option: str, value: str) -> str:
        return value

    parse.__doc__ = doc
    return parse


text = _text("Any text.")
_time = _text("A timestamp such as '2024-01-31 12:00:00', or a date.")
_predicate = _text("A predicate in Spark's SQL.")


def location(option: str, value: str) -> str:
    """A path or URL."""
    if not value:
        raise IllegalOptionError(option=option, value=value, explain="must be a path or URL")
    return value


def tracking_id(option: str, value: str) -> str:
    """Text that a folder's name can end with."""
    if "/" in value or "\\" in value:
        raise IllegalOptionError(option=option, value=value, explain="must not contain / or \\")
    return value


def consumer_id(option: str, value: str) -> str:
    """1 to 128 letters, digits, dots, hyphens and underscores, of which the first is a letter or a digit."""
    return checked_id(value, argument=option)


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


def _switch(name: str, *, default: bool = False, doc: str) -> OptionSpec:
    return OptionSpec(name, boolean, default=default, doc=doc)


_FALSE = {
    "ignoreDeletes": "Skip commits that only delete rows.",
    "ignoreChanges": "Deliver rewritten files whole, unchanged rows included; implies ignoreDeletes.",
    "ignoreFileDeletion": "Older name of ignoreChanges.",
    "skipChangeCommits": "Deliver nothing of a commit that deletes or rewrites rows. It overrides ignoreChanges.",
    "ignoreAddedColumns": "Continue if nullable columns are added to the table, or members to its structs at any "
    "depth. Rows come in the DataFrame's schema, without them, until the stream is started again with a new "
    "DataFrame. Those rows do not come again. Not together with schemaTrackingLocation.",
}

_TIME_ZONE = OptionSpec("timeZone", time_zone, doc="The time zone of a timestamp option that names none. Unset: UTC.")

_STARTING_TIMESTAMP = OptionSpec(
    "startingTimestamp",
    _time,
    doc="Start with the first commit at or after this time. Not together with startingVersion.",
)
_ENDING_TIMESTAMP = OptionSpec(
    "endingTimestamp",
    _time,
    doc="End with the last commit at or before this time. Not together with endingVersion.",
)
_BOUNDS_INCLUSIVE = (
    _switch(
        "startingBoundInclusive",
        default=True,
        doc="false: start after startingVersion or startingTimestamp, without the bound itself.",
    ),
    _switch(
        "endingBoundInclusive",
        default=True,
        doc="false: end before endingVersion or endingTimestamp, without the bound itself.",
    ),
)

CHANGE_FEED = (
    _switch(
        "readChangeFeed",
        doc="Deliver the rows that commits inserted, deleted and updated, with `_change_type`, `_commit_version` and "
        "`_commit_timestamp`. The table must record its changes.",
    ),
    _switch("readChangeData", doc="Older name of readChangeFeed."),
)

TRACKING = (
    OptionSpec(
        "schemaTrackingLocation",
        location,
        doc="A folder below the stream's checkpoint that belongs to this stream alone. Changes of the table's schema, "
        "properties and protocol are tracked there: the stream stops at each change, and continues after it when "
        "it is started again.",
    ),
    OptionSpec("schemaLocation", location, doc="Another name of schemaTrackingLocation."),
    OptionSpec(
        "streamingSourceTrackingId",
        tracking_id,
        doc="Distinguishes the sources of one query that read the same table and share a schemaTrackingLocation.",
    ),
    *(
        OptionSpec(
            option,
            _keyword_or_version("always", "'always', in lower case, or a version of the table"),
            doc=f"`always`, or the version of a change: a stream that tracks schemas continues after {which}.",
        )
        for option, which in (
            (RENAME, "a renamed column"),
            (DROP, "a dropped column"),
            (TYPE_CHANGE, "a widened column"),
        )
    ),
)

_TASKS = OptionSpec(
    "minPartitions",
    positive_int,
    doc="The least number of tasks for a batch, as far as it has files and row groups. Usually it is the number of "
    "cores in the cluster. Planning then reads the footers of the files that may be shared. Unset: the cores "
    "of the machine that plans, because Spark does not report those of the cluster to a Python source.",
)

_ROWS_AND_COLUMNS = (
    OptionSpec(
        "columns",
        columns,
        doc="Read only these columns, in this order. With readChangeFeed the columns of the feed may be named too. "
        "Unset: all columns.",
    ),
    OptionSpec(
        "where",
        _predicate,
        doc="Deliver only rows for which this predicate is true, such as `day >= DATE'2026-01-01' AND kind <> 'test'`. "
        "Files that partition values and statistics rule out are not opened, but count towards the limits; offsets "
        "do not change. With readChangeFeed all files are opened, and each side of an update is tested separately. "
        "The syntax is Spark's SQL: AND, OR, NOT, comparisons, IN, BETWEEN and IS NULL of a column and literals. "
        "Anything else, or anything that depends on Spark's session, is refused. Needs `tablefeed[where]`.",
    ),
)

STREAM_READ: tuple[OptionSpec, ...] = (
    *CHANGE_FEED,
    OptionSpec(
        "startingVersion",
        _keyword_or_version("latest", "'latest', in lower case, or a version from 0"),
        doc="The first version to deliver, or `latest` for what is committed after the start. Unset: the whole table "
        "first.",
    ),
    _STARTING_TIMESTAMP,
    OptionSpec(
        "endingVersion",
        whole_number,
        doc="The last version to deliver; it may not exist yet. With Trigger.AvailableNow the query ends there; with "
        "other triggers it stays idle.",
    ),
    _ENDING_TIMESTAMP,
    *_BOUNDS_INCLUSIVE,
    _TIME_ZONE,
    OptionSpec(
        "maxFilesPerTrigger",
        positive_int,
        doc="The most data files in one batch; at least one is taken. If no limit is set, it is 1000.",
    ),
    OptionSpec(
        "maxBytesPerTrigger",
        size_in_bytes,
        doc="A batch ends after this many bytes of data files; it may exceed the limit by one file.",
    ),
    OptionSpec(
        "maxRowsPerTrigger",
        positive_long,
        doc="A batch ends after this many rows, by the files' statistics; it may exceed the limit by one file. A file "
        "without a row count uses up the rest of the limit.",
    ),
    _switch(
        "splitCommits",
        default=True,
        doc="false: a batch has whole commits only. A commit larger than the limits is a batch of its own. Only the "
        "initial snapshot is split.",
    ),
    _switch(
        "withEventTimeOrder",
        doc="true: the initial snapshot is delivered in the order of the times in eventTimeColumn, so that a watermark "
        "does not drop rows of older files as late. A batch has the rows between two times. It meets the limits as "
        "far as the files' statistics allow, and a file is opened for each batch that has rows of it. Do not "
        "change it before the snapshot is delivered. No effect with startingVersion or startingTimestamp.",
    ),
    OptionSpec(
        "eventTimeColumn",
        column,
        doc="With withEventTimeOrder, the column of the query's `withWatermark`, which Spark does not report to a "
        "Python source. Its type is timestamp or timestamp_ntz, and it is not a member of a struct. Upper and lower "
        "case do not matter.",
    ),
    *(_switch(name, doc=doc) for name, doc in _FALSE.items()),
    _switch(
        "failOnDataLoss",
        default=True,
        doc="true: fail if log files were removed before they were read. false: continue with the files that are left, "
        "in the schema of the query. It still fails if the removed files changed that schema, or if nothing shows "
        "whether they did.",
    ),
    OptionSpec(
        "excludeRegex",
        path_pattern,
        doc="Do not read files whose path, as the log has it, contains a match of the pattern. They count towards the "
        "limits.",
    ),
    *TRACKING,
    OptionSpec(
        "consumerId",
        consumer_id,
        doc="The name under which the stream is a consumer of the table: vacuum and cleanup of the log keep what "
        "it has still to read. Each stream needs an id of its own ([consumers.md](../how-to/consumers.md)).",
    ),
    _TASKS,
    *_ROWS_AND_COLUMNS,
)

BATCH_READ: tuple[OptionSpec, ...] = (
    *CHANGE_FEED,
    OptionSpec(
        "versionAsOf",
        _whole(
            "A version from 0.",
            "a version of the table, from 0",
            error_class="DELTA_TIME_TRAVEL_INVALID_BEGIN_VALUE",
        ),
        doc="Read the table as of this version.",
    ),
    OptionSpec("timestampAsOf", moment, doc="Read the newest version committed at or before this time."),
    _TIME_ZONE,
    _TASKS,
    *_ROWS_AND_COLUMNS,
)

CHANGES_READ: tuple[OptionSpec, ...] = (
    *BATCH_READ,
    OptionSpec("startingVersion", whole_number, doc="The first version to deliver. Set this or startingTimestamp."),
    _STARTING_TIMESTAMP,
    OptionSpec("endingVersion", whole_number, doc="The last version to deliver. Unset: the newest."),
    _ENDING_TIMESTAMP,
    *_BOUNDS_INCLUSIVE,
)

_INDEX_WRITE: tuple[OptionSpec, ...] = (
    _switch(
        "spark.indextables.checkpoint.enabled",
        default=True,
        doc="For an IndexTables table with a log of JSON: write the checkpoints that are due. A table that never had a "
        "checkpoint gets none.",
    ),
    OptionSpec(
        "spark.indextables.checkpoint.interval",
        whole_number,
        default=10,
        doc="For such a table: the least number of versions between two checkpoints. 0: no checkpoint is written.",
    ),
    OptionSpec(
        "spark.indextables.checkpoint.actionsPerPart",
        positive_int,
        default=100_000,
        doc="For such a table: the most actions in one file of a checkpoint. A larger checkpoint has several parts.",
    ),
    _switch(
        "spark.indextables.checkpoint.multiPart.enabled",
        default=True,
        doc="For such a table: false: a checkpoint is one file, whatever its size.",
    ),
)

_USER_METADATA = OptionSpec("userMetadata", text, doc="Text kept in each commit's commitInfo.")

_ZONE_OF_VALUES = OptionSpec(
    "timeZone",
    time_zone,
    doc="The time zone for casts between `timestamp` on one side and `date`, `timestamp_ntz` or text on the other. "
    "The table's generated columns, defaults and constraints are evaluated in it too. Spark does not report "
    "the session's time zone to a Python sink. Unset: casts and rules that depend on a time zone are refused.",
)

_WRITE: tuple[OptionSpec, ...] = (
    OptionSpec(
        "tableFormat",
        _one_of(TableFormat),
        doc="The format of a table that the write creates. If it is set, an existing table must have this format. "
        "Unset: `delta`.",
    ),
    OptionSpec(
        "partitionBy",
        columns,
        doc="The partition columns of a new table. An existing table must have the same, unless overwriteSchema "
        "replaces them. Unset: an existing table keeps its own.",
    ),
    OptionSpec(
        "clusterBy",
        cluster_columns,
        doc="The clustering columns of a new table, up to four. The table records them, its files have statistics of "
        "them, and Spark's OPTIMIZE clusters by them. An existing table must have the same. Not together with "
        "partitionBy.",
    ),
    _USER_METADATA,
    _switch(
        "mergeSchema",
        doc="Add the columns and struct members that the table does not have, at the end. If the table has "
        "`delta.enableTypeWidening`, also widen its types to those of the rows.",
    ),
    _switch(
        "overwriteSchema",
        doc="Replace the schema and the partitioning of an overwritten table by those of the write. No effect on an "
        "append.",
    ),
    OptionSpec(
        "storeAssignmentPolicy",
        _one_of(Policy),
        default=Policy.ANSI,
        doc="How values are cast to the table's types. `ansi`: a value that does not fit fails the write, but a "
        "fraction is cut off without a word: 1.5 becomes 1 in a `bigint`, as in Spark. `strict`: a type that "
        "could have such a value fails the write. `legacy`: numbers that do not fit are wrapped and text that cannot "
        "be read becomes null, without a warning.",
    ),
    _ZONE_OF_VALUES,
    OptionSpec(
        "txnVersionCollision",
        _one_of(OnCollision),
        default=OnCollision.WARN,
        doc="What to do if the table already records a later version of this application (for a stream: a later batch "
        "of this query). A batch that is run again never meets one. `skip`: skip the write. `warn`: skip it with a "
        "warning. `fail`: fail.",
    ),
    OptionSpec(
        "compression",
        compression,
        doc="The codec of data files: `snappy`, `zstd`, `gzip`, `brotli`, `lz4_raw` or `uncompressed`. Unset: the "
        "table's `delta.parquet.compression.codec`, else snappy. In a file of many rows, a column that snappy "
        "does not make a fifth smaller is written without a codec.",
    ),
    OptionSpec(
        "maxRecordsPerFile",
        row_limit,
        doc="The most rows in a data file; 0: no limit. A file is also closed at the table's `delta.targetFileSize`.",
    ),
    OptionSpec(
        "optimizeWrite",
        boolean,
        doc="true: before the commit, the process that commits merges the small files of the tasks into files of about "
        "128 MiB, or `delta.targetFileSize`. Unset: the table's `delta.autoOptimize.optimizeWrite`, else false.",
    ),
    OptionSpec(
        "logCompactionEvery",
        _whole("A whole number from 2 to 2^31 - 1.", "a whole number of at least 2", least=2, below=1 << 31),
        doc="After each commit that completes this many versions, counted from version 0, these versions are also "
        "written as one log compaction file, for readers that use such files. Unset: never.",
    ),
    OptionSpec(
        "checkpointPartSize",
        positive_long,
        doc="About how many actions one file of a checkpoint has, like Delta-Spark's `checkpoint.partSize`. A larger "
        "checkpoint has several parts. No effect if the table supports V2 checkpoints. Unset: one file.",
    ),
    *_INDEX_WRITE,
)

_EMPTY_BATCHES = _switch(
    "recordEmptyBatches",
    default=True,
    doc="Commit a batch without rows too, as Delta-Spark does. `false`: a batch that changes nothing makes no version.",
)

STREAM_WRITE: tuple[OptionSpec, ...] = (
    *_WRITE,
    OptionSpec(
        "compactEvery",
        positive_int,
        doc="After each such number of batches, small files are merged into larger ones in the background, in a commit "
        "that streams do not see ([maintenance.md](../how-to/maintenance.md)). No effect in complete mode. "
        "Unset: never.",
    ),
    _EMPTY_BATCHES,
    OptionSpec(
        "badRecords",
        location,
        doc="A table for rows that do not cast to the table's types or that break NOT NULL, a CHECK constraint, a "
        "generated column or a length. They go there, each once, with the reason, and the batch is committed "
        "without them ([bad-rows.md](../how-to/bad-rows.md)). The first such row "
        "makes the table. Only in append mode, and only for Delta tables. Unset: such a row fails the batch.",
    ),
)

_TXN = (
    OptionSpec(
        "txnAppId",
        text,
        doc="Together with txnVersion: skip this write if the table already records that version of this application.",
    ),
    OptionSpec("txnVersion", whole_number, doc="See txnAppId."),
)

BATCH_WRITE: tuple[OptionSpec, ...] = (
    *_WRITE,
    *_TXN,
    OptionSpec(
        "replaceWhere",
        _predicate,
        doc="Overwrite only the rows for which this predicate is true; it must be true for the written rows. The "
        "syntax is that of `where`, and it needs sqlglot too. If it names columns that are not partition columns, "
        "the driver takes these rows out of their files.",
    ),
    OptionSpec(
        "partitionOverwriteMode",
        _one_of(Scope),
        default=Scope.TABLE,
        doc="`dynamic`: overwrite only the partitions that the new rows belong to. `static`: overwrite the whole "
        "table.",
    ),
)

_SOURCE = StrEnum("_SOURCE", ["tablefeed", "changes", "debezium"])
_TIES = StrEnum("_TIES", ["fail", "last"])
"""The words of `feed.rows`, which is not imported here because it needs pyarrow."""

ROW_CHANGES: tuple[OptionSpec, ...] = (
    OptionSpec(
        "keys",
        columns,
        doc="The columns that identify a row. With this option the rows of the DataFrame are change events, which are "
        "applied to the table as `tablefeed.apply_changes` does ([apply-changes.md](../how-to/apply-changes.md)). The "
        "table must exist.",
    ),
    OptionSpec(
        "sequenceBy",
        columns,
        doc="The column that says which event of a key is newer, or several that are compared one after the other. "
        "It must be set, unless source is.",
    ),
    OptionSpec(
        "source",
        _one_of(_SOURCE),
        doc="The system that the changes come from. `tablefeed`: `readChangeFeed`. `changes`: Spark's `changes()`. "
        "`debezium`: Debezium's events. It sets the options that are left out, so that only keys must be set.",
    ),
    OptionSpec("applyAsDeletes", _predicate, doc="An event for which it is true deletes its key."),
    OptionSpec(
        "applyAsTruncates",
        _predicate,
        doc="An event for which it is true deletes all older rows. A batch with such an event is in memory as a "
        "whole, with all rows of the table. Only with storedAsScdType 1.",
    ),
    OptionSpec("columnList", columns, doc="The columns of the events that the table gets. Unset: all."),
    OptionSpec("exceptColumnList", columns, doc="The columns of the events that the table does not get."),
    _switch("ignoreNullUpdates", doc="A null in an event leaves the value as it was."),
    OptionSpec(
        "ignoreNullUpdatesColumnList", columns, doc="A null in one of these columns leaves the value as it was."
    ),
    OptionSpec(
        "ignoreNullUpdatesExceptColumnList", columns, doc="A null in any column but these leaves the value as it was."
    ),
    OptionSpec(
        "storedAsScdType",
        _whole("1 or 2.", "1 or 2", least=1, below=3),
        default=1,
        doc="1: the table has a row for each key. 2: it has each version of a row, from `__START_AT` up to `__END_AT`.",
    ),
    OptionSpec(
        "trackHistoryColumnList", columns, doc="With storedAsScdType 2: the columns whose change begins a version."
    ),
    OptionSpec(
        "trackHistoryExceptColumnList",
        columns,
        doc="With storedAsScdType 2: the columns whose change begins no version.",
    ),
    OptionSpec(
        "ties",
        _one_of(_TIES),
        default="fail",
        doc="What happens to two upserts of a key with equal sequences and different values. `fail`: they are refused. "
        "`last`: the last of the batch counts, by the number of its task and then by its arrival there.",
    ),
    _switch("mergeSchema", doc="Add the columns of the events that the table does not have."),
    OptionSpec(
        "tombstoneGcThresholdInSeconds",
        _whole("A whole number from 0 to 2^63 - 1.", "a whole number of seconds from 0"),
        doc="The least time for which a delete is remembered, to ignore older events that come later. Unset: forever.",
    ),
    _ZONE_OF_VALUES,
)

STREAM_OF_CHANGES = (*ROW_CHANGES, _USER_METADATA, _EMPTY_BATCHES)
BATCH_OF_CHANGES = (*ROW_CHANGES, _USER_METADATA, *_TXN)

_REPLACING: Mapping[str, tuple[str | None, str]] = {
    "replaceOn": (None, "Overwrite the whole table, or append."),
    "replaceUsing": (None, "Overwrite the whole table, or append."),
    "useNullIntolerantEqualityWithDPO": (
        "false",
        "Leave it out: a null partition that is written to is overwritten as well.",
    ),
    "dataChange": ("true", "Rewrite files with OPTIMIZE: every write of this version changes data."),
}
NOT_YET: Mapping[str, tuple[str | None, str]] = {
    **_REPLACING,
    **foreign_settings.HELD,
    "badRecords": (None, "Only a stream that writes rows in append mode has it. Leave it out."),
}
"""Names that would change rows or rules in a way that this version does not support.

By name: the one value that is accepted because it says what holds anyway, and what to do instead of any other.
"""

_ACCEPTED_BY_DELTA = (
    frozenset({"path", "queryName", "checkpointLocation", "outputMode"})
    | {spec.name for spec in (*STREAM_READ, *BATCH_READ)} - {"consumerId"}
    | {spec.name for spec in BATCH_WRITE if spec.name not in ("partitionBy", "clusterBy", "tableFormat")}
    - {spec.name for spec in _INDEX_WRITE}
    | _REPLACING.keys()
    | {"targetAlias", "writePartitionColumns", "parquet.writer.version", "spark.sql.parquet.outputTimestampType"}
)
"""The names that Delta-Spark takes on a reader and a writer alike (DeltaOptions, validOptionKeys), Spark's and ours."""


def _names(*specs: OptionSpec) -> frozenset[str]:
    return frozenset(spec.name for spec in specs)


def _without_effect(specs: tuple[OptionSpec, ...], *refused: frozenset[str]) -> frozenset[str]:
    # What would choose rows and columns is not passed over in a write.
    ours = {spec.name for spec in _ROWS_AND_COLUMNS}
    return _ACCEPTED_BY_DELTA.difference({spec.name for spec in specs}, ours, *refused)


ANY_READ = (*BATCH_READ, *TRACKING)
"""The options that decide about a DataFrame's schema: Spark asks for it before it says whether the read is a stream."""

IGNORED: Mapping[str, frozenset[str]] = {
    "stream read": _without_effect(STREAM_READ, frozenset({"versionAsOf", "timestampAsOf"})),
    "batch read": _without_effect(BATCH_READ),
    "read of changes": _without_effect(CHANGES_READ),
    "any read": _without_effect(ANY_READ) | {spec.name for spec in STREAM_READ}.difference(s.name for s in ANY_READ),
    "stream write": _without_effect(STREAM_WRITE) | foreign_settings.WITHOUT_EFFECT,
    "batch write": _without_effect(BATCH_WRITE, frozenset(_REPLACING)) | foreign_settings.WITHOUT_EFFECT,
    **{
        direction: _without_effect((), _names(*STREAM_WRITE, *BATCH_WRITE), frozenset(_REPLACING))
        for direction in ("stream write of changes", "batch write of changes")
    },
}
"""Names that Delta-Spark or IndexTables accepts in a direction without effect there, or with one on the layout alone.

Accepted, with a warning.
"""

SPECS: Mapping[str, tuple[OptionSpec, ...]] = {
    "stream read": STREAM_READ,
    "batch read": BATCH_READ,
    "read of changes": CHANGES_READ,
    "any read": ANY_READ,
    "stream write": STREAM_WRITE,
    "batch write": BATCH_WRITE,
    "stream write of changes": STREAM_OF_CHANGES,
    "batch write of changes": BATCH_OF_CHANGES,
}

_NEEDS_KEYS = (_names(*ROW_CHANGES), "It says what change events mean. Set keys too, or leave it out.")
_NO_KEYS = (
    _names(*STREAM_WRITE, *BATCH_WRITE),
    "With the option keys, change events are applied to the rows of a table that exists. Leave it out.",
)
OTHERS: Mapping[str, tuple[frozenset[str], str]] = {
    "stream write": _NEEDS_KEYS,
    "batch write": _NEEDS_KEYS,
    "stream write of changes": _NO_KEYS,
    "batch write of changes": _NO_KEYS,
}
"""Names that mean something only in another kind of write, and what to do instead."""
