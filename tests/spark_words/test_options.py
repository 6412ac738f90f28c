"""Each option as users write it: what it parses to, what is refused and how, and the page that says so. No JVM."""

from __future__ import annotations

import logging
import runpy
from datetime import timedelta, timezone
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import StructType

from pyspark_tablefeed import DefaultSource
from support.pages import page
from tablefeed.errors import (
    IllegalOptionError,
    IncompleteOptionsError,
    MissingPathError,
    OptionError,
    TablefeedError,
    UnknownOptionError,
    UnsupportedOptionError,
)
from tablefeed.spark.option_tables import IGNORED, NOT_YET, SPECS
from tablefeed.spark.options import parse_at_load, parse_options, refuse_time_travel, table_path
from tablefeed.spark.parsed_options import ParsedOptions
from tablefeed.spark.sink import BatchWriter

ROOT = Path(__file__).parents[2]
PAGE = page("options.md")
DIRECTIONS = sorted(SPECS)
KNOWN = sorted({spec.name for specs in SPECS.values() for spec in specs} | NOT_YET.keys() | IGNORED["batch write"])


def stream(**options: str) -> ParsedOptions:
    return parse_options(options, "stream read")


def illegal(direction: str, name: str, value: str) -> IllegalOptionError:
    with pytest.raises(IllegalOptionError) as caught:
        parse_options({name: value}, direction)
    return caught.value


UNSET = """startingVersion startingTimestamp endingVersion endingTimestamp timeZone maxFilesPerTrigger
    maxBytesPerTrigger maxRowsPerTrigger eventTimeColumn excludeRegex schemaTrackingLocation schemaLocation
    streamingSourceTrackingId allowSourceColumnRename allowSourceColumnDrop allowSourceColumnTypeChange minPartitions
    columns where consumerId"""
SET = "startingBoundInclusive endingBoundInclusive splitCommits failOnDataLoss"
NOT_SET = """readChangeFeed readChangeData withEventTimeOrder ignoreDeletes ignoreChanges ignoreFileDeletion
    skipChangeCommits ignoreAddedColumns"""
UNSET_OF_WRITES = """tableFormat partitionBy clusterBy userMetadata timeZone compression maxRecordsPerFile optimizeWrite
    logCompactionEvery checkpointPartSize txnAppId txnVersion replaceWhere"""
"""Options that are None where they are not given, or true, or false."""


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("startingVersion", "Latest", "must be 'latest', in lower case, or a version from 0"),
        ("allowSourceColumnDrop", "Always", "must be 'always', in lower case, or a version"),
    ],
)
def test_a_keyword_in_another_case_is_refused_with_its_spelling(name: str, value: str, words: str) -> None:
    assert words in str(illegal("stream read", name, value))


def test_an_option_like_no_other_is_answered_with_the_list() -> None:
    with pytest.raises(
        UnknownOptionError, match=r"Unknown option 'qqqq'. The options are allowSource.*, withEventTimeOrder\.$"
    ):
        stream(qqqq="1")


@pytest.mark.parametrize(("version", "is_old"), [("4.1.2", True), ("4.2.0.dev1", False), ("4.10.0", False)])
def test_a_pyspark_that_is_too_old_is_named_at_lookup(
    version: str, *, is_old: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyspark_tablefeed.pyspark_version", version)

    if is_old:
        with pytest.raises(TablefeedError, match=r"needs PySpark 4\.2 or newer, and this is PySpark 4\.1\.2"):
            DefaultSource({})
    else:
        DefaultSource({})


def test_without_options_every_one_has_its_default() -> None:
    assert dict(parse_options({}, "stream read").values) == {
        **dict.fromkeys(UNSET.split()),
        **dict.fromkeys(SET.split(), True),
        **dict.fromkeys(NOT_SET.split(), False),
    }
    assert dict(parse_options({}, "batch write").values) == {
        **dict.fromkeys(UNSET_OF_WRITES.split()),
        "mergeSchema": False,
        "overwriteSchema": False,
        "storeAssignmentPolicy": "ansi",
        "txnVersionCollision": "warn",
        "spark.indextables.checkpoint.enabled": True,
        "spark.indextables.checkpoint.interval": 10,
        "spark.indextables.checkpoint.actionsPerPart": 100_000,
        "spark.indextables.checkpoint.multiPart.enabled": True,
        "partitionOverwriteMode": "static",
    }
    assert parse_options({}, "stream write")["recordEmptyBatches"] is True


def test_the_case_of_a_name_does_not_matter() -> None:
    assert stream(MAXFILESPERTRIGGER="7")["maxFilesPerTrigger"] == 7
    assert stream(maxfilespertrigger="7")["maxFilesPerTrigger"] == 7


@pytest.mark.parametrize(
    ("direction", "name", "value", "parsed"),
    [
        ("stream read", "ignoreDeletes", "TRUE", True),
        ("stream read", "schemaTrackingLocation", "/c/tracked", "/c/tracked"),
        ("stream read", "streamingSourceTrackingId", "orders", "orders"),
        ("stream read", "allowSourceColumnRename", "always", "always"),
        ("stream read", "allowSourceColumnTypeChange", "12", 12),
        ("stream read", "failOnDataLoss", "False", False),
        ("stream read", "maxBytesPerTrigger", "1", 1),
        ("stream read", "maxBytesPerTrigger", "10b", 10),
        ("stream read", "maxBytesPerTrigger", "10k", 10 << 10),
        ("stream read", "maxBytesPerTrigger", " 512MB ", 512 << 20),
        ("stream read", "maxBytesPerTrigger", "10g", 10 << 30),
        ("stream read", "maxBytesPerTrigger", "2t", 2 << 40),
        ("stream read", "maxBytesPerTrigger", "8191pb", 8191 << 50),
        ("stream read", "maxBytesPerTrigger", "9223372036854775807", 2**63 - 1),
        ("stream read", "splitCommits", "false", False),
        ("batch read", "minPartitions", "64", 64),
        ("stream read", "startingVersion", "latest", "latest"),
        ("stream read", "startingTimestamp", "2024-02-29", "2024-02-29"),
        ("stream read", "endingVersion", "0", 0),
        ("stream read", "startingBoundInclusive", "False", False),
        ("stream read", "timeZone", "Europe/Berlin", ZoneInfo("Europe/Berlin")),
        ("batch read", "timeZone", "+01:00", timezone(timedelta(hours=1))),
        ("batch read", "timestampAsOf", "2024-02-29", "2024-02-29"),
        ("stream write", "partitionBy", "day, Länder ,h", ("day", "Länder", "h")),
        ("stream write", "clusterBy", "day, place.Land ,`a.b,``c`", (("day",), ("place", "Land"), ("a.b,`c",))),
        ("batch write", "clusterBy", "day", (("day",),)),
        ("stream write", "userMetadata", "", ""),
        ("batch write", "txnAppId", "etl", "etl"),
    ],
)
def test_a_value_is_read_as_delta_spark_reads_it(direction: str, name: str, value: str, parsed: object) -> None:
    assert parse_options({name: value}, direction)[name] == parsed


@pytest.mark.parametrize("value", ["", "yes", "1", " true", "truE!"])
def test_a_switch_is_true_or_false(value: str) -> None:
    error = illegal("stream read", "skipChangeCommits", value)

    assert error.message == (
        f"[DELTA_ILLEGAL_OPTION] Invalid value {value!r} for option 'skipChangeCommits': it must be 'true' or 'false'."
    )


POSITIVE, COUNTED = "must be a positive integer", "must be a non-negative integer"
NO_NUMBERS = ["0", "-1", "", " 1", "1.0", "1e3", "ten", "1_000", "٣", "2147483648", "9" * 5000]
NO_SIZES = ["0", "0g", "-1", "", "g", "1.5k", "2 k", "10x", "10gib", "٣", "8192p", "9223372036854775808", "9" * 5000]
NO_STARTS = ["-1", "Latest", "LATEST", " 2", "", "x", "1.0", "9223372036854775808", "9" * 5000]


@pytest.mark.parametrize(
    ("direction", "name", "values", "said"),
    [
        ("batch read", "minPartitions", NO_NUMBERS, POSITIVE),
        ("stream read", "maxFilesPerTrigger", NO_NUMBERS, POSITIVE),
        ("stream read", "maxRowsPerTrigger", ["0", "-1", "", "1e3", "9223372036854775808"], POSITIVE),
        ("stream read", "maxBytesPerTrigger", NO_SIZES, "must be a size configuration such as '10g'"),
        ("stream read", "startingVersion", NO_STARTS, "must be 'latest', in lower case, or a version from 0"),
        ("stream read", "timeZone", ["", "Mars/Base", "Berlin", "+19:00"], "must be a time zone"),
        ("stream read", "endingVersion", ["-1", "latest", ""], COUNTED),
        ("batch read", "versionAsOf", ["-1", "x", "", "9" * 19], "[DELTA_TIME_TRAVEL_INVALID_BEGIN_VALUE]"),
        ("batch write", "txnVersion", ["-1", "x", "", "9223372036854775808"], COUNTED),
        ("stream write", "partitionBy", ["", " ", "a,", ",a", "a,,b"], "column names"),
        ("stream write", "compression", ["lz4", ""], "compression"),
        ("stream write", "maxRecordsPerFile", ["many"], "maxRecordsPerFile"),
        ("stream write", "compactEvery", ["0"], "compactEvery"),
        ("batch write of changes", "tombstoneGcThresholdInSeconds", ["x", "-1"], "a whole number of seconds from 0"),
    ],
)
def test_a_value_of_another_kind_is_refused_with_what_it_must_be(
    direction: str, name: str, values: list[str], said: str
) -> None:
    for value in values:
        assert said in illegal(direction, name, value).message, value


@pytest.mark.parametrize("half", [{"txnAppId": "etl"}, {"txnVersion": "0"}])
def test_an_application_and_its_version_come_together_or_not_at_all(tmp_path: Path, half: dict[str, str]) -> None:
    with pytest.raises(IncompleteOptionsError, match=r"^\[DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS\]"):
        BatchWriter({"path": str(tmp_path), **half}, StructType(), overwrite=False)


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("name", ["shuffle", "x", "", "partitionsBy "])
def test_a_name_in_no_table_is_refused_in_every_direction(direction: str, name: str) -> None:
    with pytest.raises(UnknownOptionError) as caught:
        parse_options({name: "1"}, direction)
    assert caught.value.option == name


@pytest.mark.parametrize(
    ("direction", "given_name", "nearest"),
    [
        ("stream read", "maxFilePerTrigger", "maxFilesPerTrigger"),
        ("stream read", "maxfilespertriger", "maxFilesPerTrigger"),
        ("stream read", "skipChangeCommit", "skipChangeCommits"),
        ("stream read", "readChangesFeed", "readChangeFeed"),
        ("batch read", "versionAs", "versionAsOf"),
        ("stream write", "partitionsBy", "partitionBy"),
        ("stream write", "zzz", None),
    ],
)
def test_a_misspelt_name_is_answered_with_the_nearest(direction: str, given_name: str, nearest: str | None) -> None:
    with pytest.raises(UnknownOptionError) as caught:
        parse_options({given_name: "true"}, direction)
    assert caught.value.nearest == nearest
    assert (f"Did you mean '{nearest}'?" in caught.value.message) == (nearest is not None)


@pytest.mark.parametrize(
    ("direction", "name", "having"),
    [
        ("batch write", "compactEvery", "a stream write"),
        ("batch read", "consumerId", "a stream read"),
        ("any read", "partitionBy", "a stream write or a batch write"),
        ("stream write", "where", "a stream read or a batch read or a read of changes"),
    ],
)
def test_a_name_that_only_others_have_is_answered_with_them(direction: str, name: str, having: str) -> None:
    with pytest.raises(UnsupportedOptionError, match=f"{name}.*It is an option of {having}. Leave it out."):
        parse_options({name.lower(): "1"}, direction)


def test_a_number_that_is_too_large_is_answered_with_the_largest() -> None:
    with pytest.raises(IllegalOptionError, match="must be a positive integer, at most 2147483647"):
        parse_options({"maxFilesPerTrigger": "2147483648"}, "stream read")


WITHOUT_EFFECT = {
    "stream read": "mergeSchema replaceWhere optimizeWrite compression",
    "batch read": "maxFilesPerTrigger startingVersion endingVersion excludeRegex",
    "stream write": "maxFilesPerTrigger readChangeFeed replaceWhere txnVersion dataChange",
    "batch write": "startingTimestamp writePartitionColumns",
}


@pytest.mark.parametrize(
    ("direction", "name"), [(direction, name) for direction, names in WITHOUT_EFFECT.items() for name in names.split()]
)
def test_what_delta_spark_takes_without_effect_is_taken_with_a_warning(
    direction: str, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="tablefeed"):
        parsed = parse_options({name: "whatever"}, direction)

    assert name not in parsed.values
    assert [record.getMessage() for record in caplog.records] == [f"option={name} has no effect on a {direction}"]


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_what_spark_itself_passes_is_taken_in_silence(direction: str, caplog: pytest.LogCaptureFixture) -> None:
    own = {"path": "/t", "checkpointlocation": "/c", "queryname": "q", "outputmode": "append"}

    with caplog.at_level(logging.WARNING, logger="tablefeed"):
        parse_options(own, direction)

    assert caplog.records == []


@pytest.mark.parametrize("name", ["replaceUsing", "useNullIntolerantEqualityWithDPO", "dataChange"])
def test_what_would_change_rows_and_is_not_done_is_refused_by_name(name: str) -> None:
    with pytest.raises(UnsupportedOptionError) as caught:
        parse_options({name.lower(): "x"}, "batch write")
    assert caught.value.option == name
    assert NOT_YET[name][1] in caught.value.message


@pytest.mark.parametrize(("name", "accepted"), [(name, value) for name, (value, _) in NOT_YET.items() if value])
def test_a_name_that_is_not_done_may_say_what_holds_without_it(name: str, accepted: str) -> None:
    for direction in DIRECTIONS:
        parse_options({name: accepted.upper()}, direction)


FOLLOWED = "checkpoint.enabled checkpoint.interval checkpoint.actionsPerPart checkpoint.multiPart.enabled"
TAKEN_WHERE_IT_HOLDS = """state.format=Avro state.compression=zstd state.entriesPerManifest=50000
    state.compaction.tombstoneThreshold=0.1 state.compaction.maxManifests=20 state.compaction.afterMerge=true
    state.compaction.largeRemoveThreshold=2147483647 state.schema.renormalizeThreshold=5 state.retry.maxAttempts=10
    state.retry.baseDelayMs=100 state.retry.maxDelayMs=5000 state.retention.versions=2 state.retention.hours=168
    state.gc.minManifestAgeHours=1 transaction.retry.maxAttempts=10 transaction.retry.baseDelayMs=100
    transaction.retry.maxDelayMs=5000 transaction.compression.enabled=true transaction.compression.codec=gzip
    checkpoint.compression.enabled=true checkpointRetention.duration=7200000 logRetention.duration=2592000000
    purge.txLogRetentionHours=720 stats.truncation.enabled=true stats.truncation.maxLength=32
    protocol.checkEnabled=true protocol.autoUpgrade=false"""
OF_SPEED_ALONE = """state.compressionLevel state.read.parallelism transaction.compression.gzip.level
    transaction.maxConcurrentReads transaction.cache.enabled transaction.cache.ttl.ms transaction.cache.version.ttl.ms
    transaction.cache.snapshot.ttl.ms transaction.cache.fileList.ttl.ms transaction.cache.metadata.ttl.ms
    transaction.cache.version.capacity transaction.cache.snapshot.capacity transaction.cache.fileList.capacity
    checkpoint.maxRetries checkpoint.parallelism checkpoint.read.timeoutSeconds"""
"""The settings of IndexTables' protocol text and of its log writers, by what a write of ours does with each."""


@pytest.mark.parametrize("setting", FOLLOWED.split())
def test_a_setting_of_indextables_that_is_followed_is_an_option_of_a_write(setting: str) -> None:
    for direction in ("stream write", "batch write"):
        assert f"spark.indextables.{setting}" in {spec.name for spec in SPECS[direction]}


@pytest.mark.parametrize("setting", TAKEN_WHERE_IT_HOLDS.split())
def test_a_setting_of_indextables_is_taken_where_it_says_what_holds_and_else_refused(setting: str) -> None:
    short, _, holds = setting.partition("=")
    name = f"spark.indextables.{short}"
    for direction in ("stream write", "batch write"):
        assert parse_options({name.lower(): holds}, direction) == parse_options({}, direction)
        for other in ("7", "much", "false" if holds == "true" else "true"):
            with pytest.raises(UnsupportedOptionError) as caught:
                parse_options({name.lower(): other}, direction)
            assert caught.value.option == name
            assert NOT_YET[name][1] in caught.value.message


@pytest.mark.parametrize("setting", OF_SPEED_ALONE.split())
def test_a_setting_of_indextables_that_is_of_speed_alone_is_taken_with_a_warning(
    setting: str, caplog: pytest.LogCaptureFixture
) -> None:
    name = f"spark.indextables.{setting}"
    with caplog.at_level(logging.WARNING, logger="tablefeed"):
        assert parse_options({name: "7"}, "stream write") == parse_options({}, "stream write")
    assert [record.getMessage() for record in caplog.records] == [f"option={name} has no effect on a stream write"]


def test_no_setting_of_indextables_is_known_that_no_list_names() -> None:
    known = {spec.name for spec in SPECS["batch write"]} | set(NOT_YET) | IGNORED["batch write"]
    named = (word.partition("=")[0] for word in f"{FOLLOWED} {TAKEN_WHERE_IT_HOLDS} {OF_SPEED_ALONE}".split())

    assert {name for name in known if name.startswith("spark.")} - {"spark.sql.parquet.outputTimestampType"} == {
        f"spark.indextables.{name}" for name in named
    }


def test_how_a_column_is_indexed_is_told_by_its_name() -> None:
    parsed = parse_options({"spark.indextables.indexing.typemap.a.b": "text"}, "stream write")

    assert parsed.index_as == {"a.b": "text"}


@pytest.mark.parametrize(
    ("direction", "name"),
    [("stream write", "spark.indextables.indexing.fastfields"), ("batch read", "spark.indextables.indexing.typemap.a")],
)
def test_a_setting_of_how_columns_are_indexed_is_not_passed_over(direction: str, name: str) -> None:
    with pytest.raises(UnknownOptionError):
        parse_options({name: "text"}, direction)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_no_name_is_both_obeyed_and_ignored(direction: str) -> None:
    assert {spec.name.lower() for spec in SPECS[direction]} & {name.lower() for name in IGNORED[direction]} == set()


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_no_name_of_delta_spark_is_unknown_to_any_direction(direction: str) -> None:
    delta = """replaceOn replaceUsing targetAlias replaceWhere mergeSchema excludeRegex overwriteSchema userMetadata
        useNullIntolerantEqualityWithDPO partitionOverwriteMode maxFilesPerTrigger ignoreFileDeletion ignoreChanges
        ignoreDeletes skipChangeCommits failOnDataLoss optimizeWrite dataChange startingTimestamp startingVersion
        readChangeFeed readChangeData endingTimestamp endingVersion compression maxRecordsPerFile
        parquet.writer.version spark.sql.parquet.outputTimestampType txnAppId txnVersion schemaTrackingLocation
        schemaLocation streamingSourceTrackingId queryName checkpointLocation path writePartitionColumns"""
    for name in delta.split():
        try:
            parse_options({name: "1"}, direction)
        except UnknownOptionError:
            raise
        except OptionError:
            continue  # it is known: the value is not one of its own, or the name is refused with a remedy


def test_what_begins_with_storage_goes_to_the_store_without_its_prefix() -> None:
    parsed = parse_options({"storage.aws_region": "eu-1", "Storage.Key": "K", "path": "/t"}, "batch read")

    assert dict(parsed.storage) == {"aws_region": "eu-1", "Key": "K"}


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_hadoops_file_system_options_are_answered_with_ours(direction: str) -> None:
    with pytest.raises(UnsupportedOptionError, match=r"storage\.aws_access_key_id") as caught:
        parse_options({"fs.s3a.access.key": "x"}, direction)
    assert caught.value.option == "fs.s3a.access.key"


def test_one_path_is_taken_and_none_or_several_are_answered_with_the_call_that_takes_one() -> None:
    assert table_path({"path": "/t"}, call="load") == "/t"
    for options in ({}, {"path": ""}):
        with pytest.raises(MissingPathError, match=r"load\(path\).*toTable"):
            table_path(options, call="load")
    with pytest.raises(MissingPathError, match=r"one table: start\(path\)"):
        table_path({"paths": '["/a","/b"]'}, call="start")


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ({"versionasof": "3"}, "/t"),
        ({"timestampAsOf": "2024-01-01"}, "/t"),
        ({}, "/t@v3"),
        ({}, "/t@20240101000000000"),
    ],
)
def test_a_stream_does_not_travel_in_time(options: dict[str, str], path: str) -> None:
    with pytest.raises(
        UnsupportedOptionError, match=r"^\[DELTA_UNSUPPORTED_TIME_TRAVEL_VIEWS\].*startingVersion"
    ) as caught:
        refuse_time_travel(options, path)
    assert ("A stream has no time travel" in str(caught.value)) == bool(options), "a batch read is told of its path too"


@pytest.mark.parametrize("path", ["/t", "/a@v3/t", "/t@vx", "/t@home", "s3://user@bucket/t"])
def test_a_path_with_an_at_is_not_always_a_version(path: str) -> None:
    refuse_time_travel({}, path)


def test_before_a_read_is_known_to_be_a_stream_only_what_neither_kind_knows_is_refused() -> None:
    given = {"path": "/t", "versionAsOf": "3", "maxFilesPerTrigger": "not looked at", "storage.k": "v"}
    assert parse_at_load(given)["versionAsOf"] == 3
    with pytest.raises(IllegalOptionError, match=r"^\[DELTA_TIME_TRAVEL_INVALID_BEGIN_VALUE\]"):
        parse_at_load({"versionAsOf": "x"})
    with pytest.raises(UnknownOptionError):
        parse_at_load({"maxFilePerTrigger": "1"})
    with pytest.raises(UnsupportedOptionError):
        parse_at_load({"clusterBy": "1"})


@given(st.sampled_from(DIRECTIONS), st.dictionaries(st.sampled_from(KNOWN) | st.text(max_size=20), st.text()))
def test_any_options_are_values_or_an_option_error(direction: str, options: dict[str, str]) -> None:
    try:
        parsed = parse_options(options, direction)
    except OptionError:
        return
    assert parsed.values.keys() == {spec.name for spec in SPECS[direction]}


NUMBERS = st.integers(0, 2**64) | st.sampled_from([0, 1, 2**31 - 1, 2**31, 2**63 - 1, 2**63])


@given(NUMBERS, st.sampled_from(["", "+", "0", "+000"]))
def test_a_number_that_is_taken_is_the_number_that_was_written(number: int, prefix: str) -> None:
    tops: dict[tuple[str, str], tuple[int, int]] = {
        ("stream read", "maxFilesPerTrigger"): (1, 2**31 - 1),
        ("stream read", "maxRowsPerTrigger"): (1, 2**63 - 1),
        ("stream read", "startingVersion"): (0, 2**63 - 1),
        ("batch read", "versionAsOf"): (0, 2**63 - 1),
        ("batch write", "txnVersion"): (0, 2**63 - 1),
    }
    for (direction, name), (least, most) in tops.items():
        options = {name: f"{prefix}{number}"}
        if least <= number <= most:
            assert parse_options(options, direction)[name] == number
        else:
            with pytest.raises(IllegalOptionError):
                parse_options(options, direction)


def test_the_page_on_options_is_the_one_that_the_tables_make() -> None:
    made = runpy.run_path(str(ROOT / "scripts" / "options_page.py"))["options_page"]()
    assert made == PAGE, "make it again: PYTHONPATH=src python scripts/options_page.py > docs/reference/options.md"


def test_every_name_of_the_tables_stands_on_the_page_with_what_it_does() -> None:
    for specs in SPECS.values():
        for spec in specs:
            assert f"| `{spec.name}` |" in PAGE
            assert spec.doc in PAGE
    for name, (_, remedy) in NOT_YET.items():
        assert f"| `{name}` |" in PAGE
        assert remedy in PAGE


@pytest.mark.parametrize(("text", "limit"), [("0", None), ("-1", None), ("7", 7)])
def test_a_row_limit_below_one_is_none(text: str, limit: int | None) -> None:
    assert parse_options({"maxRecordsPerFile": text}, "batch write")["maxRecordsPerFile"] == limit
