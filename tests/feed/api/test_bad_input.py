"""Tables as they should not be: each is an error of ours that names the table, what is wrong and what to do now."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import hypothesis.strategies as st
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import HealthCheck, example, given, settings

import tablefeed
from support.logs import LONG_ID, a_log, a_source, add, commit_path, info, log_of, metadata, protocol
from tablefeed.errors import (
    CorruptLogError,
    DataFileError,
    LogError,
    LogGapError,
    StoreConfigError,
    StoreError,
    TablefeedError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from tablefeed.log.plan import Limits
from tablefeed.store import LocalStore, MemoryStore

ROWS = pa.table({"id": [1]})


def append_a_row(path: Path) -> object:
    return tablefeed.append(path, ROWS)


EVERY_WAY_IN: list[Callable[[Path], object]] = [
    tablefeed.open_table,
    lambda path: tablefeed.appends(path).read_all(),
    lambda path: tablefeed.changes(path).read_all(),
    tablefeed.follow,
]
READ_IN = EVERY_WAY_IN[:3]
FIRST, SECOND = "00000000000000000000.json", "00000000000000000001.json"


def a_good_table(path: Path) -> Path:
    recorded = {"delta.enableChangeDataFeed": "true"}
    for row in (1, 2):
        write_deltalake(str(path), pa.table({"id": [row]}), mode="append", configuration=recorded)
    return path


def logged(path: Path, text: str | bytes, version: int = 1) -> Path:
    """A good table whose commit of `version` is `text`."""
    file = a_good_table(path) / commit_path(version)
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


# --- no table --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way_in", EVERY_WAY_IN)
def test_a_path_with_nothing_there_is_no_table(tmp_path: Path, way_in: Callable[[Path], object]) -> None:
    with pytest.raises(TableNotFoundError, match="Check the path") as caught:
        way_in(tmp_path / "nothing")
    assert str(caught.value).startswith("[DELTA_TABLE_NOT_FOUND] ")
    assert str(tmp_path / "nothing") in str(caught.value)


@pytest.mark.parametrize("way_in", [*EVERY_WAY_IN, append_a_row])
def test_a_path_that_is_a_file_is_no_table_and_none_is_made_there(
    tmp_path: Path, way_in: Callable[[Path], object]
) -> None:
    file = tmp_path / "file"
    file.write_text("")

    with pytest.raises(TableNotFoundError, match=r"it is a file\. Give the table's folder"):
        way_in(file)


@pytest.mark.parametrize("way_in", EVERY_WAY_IN)
def test_an_empty_log_directory_is_no_table(tmp_path: Path, way_in: Callable[[Path], object]) -> None:
    (tmp_path / "_delta_log").mkdir()

    with pytest.raises(TableNotFoundError, match="none with a commit"):
        way_in(tmp_path)


def test_a_log_directory_with_other_files_is_no_table(tmp_path: Path) -> None:
    (tmp_path / "_delta_log").mkdir()
    (tmp_path / "_delta_log" / "_last_checkpoint").write_text('{"version":0,"size":1}')
    (tmp_path / "_delta_log" / ".00000000000000000000.json.crc").write_text("")

    with pytest.raises(TableNotFoundError):
        tablefeed.open_table(tmp_path)


def test_a_table_of_the_other_format_is_told_apart(tmp_path: Path) -> None:
    (tmp_path / "_transaction_log").mkdir()
    (tmp_path / "_transaction_log" / FIRST).write_text("{}")

    with pytest.raises(LogError, match="INDEXTABLES_STATE_INCONSISTENT"):
        tablefeed.open_table(tmp_path)


# --- a log that cannot be read ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("way_in", READ_IN)
@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ('{"commitInfo":{}}\n{"add":{"path":"x","par', 2, "the last line is cut off"),
        ("what is this\n", 1, "not JSON"),
        (b"\xef\xbb\xbf" + b'{"commitInfo":{}}\n', 1, "byte order mark"),
        (b"\xff\xfe{\x00", 1, "byte order mark"),
        (b'{"commitInfo":{"by":"\xff"}}\n', 1, "not UTF-8"),
        ("[]\n", 1, "not a JSON object"),
        ('{"add":{"path":"x"}}\n', 1, "add.partitionValues is missing"),
        ('{"add":5}\n', 1, "add is not a JSON object"),
        ("", None, "it is empty"),
        ("\n\n", None, "it is empty"),
        (json.dumps(metadata()) + "\n" + json.dumps(metadata()) + "\n", 2, "a second time"),
        (json.dumps(protocol()) + "\n" + json.dumps(protocol()) + "\n", 2, "a second time"),
    ],
)
def test_a_log_file_that_cannot_be_read_is_named_with_the_line(
    tmp_path: Path, way_in: Callable[[Path], object], text: str | bytes, line: int | None, reason: str
) -> None:
    with pytest.raises(CorruptLogError, match=reason) as caught:
        way_in(logged(tmp_path, text))

    assert (caught.value.log_file, caught.value.line) == (SECOND, line)
    assert str(tmp_path) in str(caught.value)


def test_a_log_file_that_cannot_be_read_stops_a_writer_too(tmp_path: Path) -> None:
    with pytest.raises(CorruptLogError):
        tablefeed.append(logged(tmp_path, "junk\n"), ROWS)
    assert not (tmp_path / commit_path(2)).exists()


@pytest.mark.parametrize("way_in", [*EVERY_WAY_IN, append_a_row])
def test_a_version_that_is_missing_between_others_is_named(tmp_path: Path, way_in: Callable[[Path], object]) -> None:
    a_good_table(tmp_path)
    write_deltalake(str(tmp_path), pa.table({"id": [3]}), mode="append")
    (tmp_path / commit_path(1)).unlink()

    with pytest.raises(LogGapError, match="version 1 is missing") as caught:
        way_in(tmp_path)
    assert caught.value.error_class == "DELTA_VERSIONS_NOT_CONTIGUOUS"
    assert "Restore the missing log files" in str(caught.value)


@pytest.mark.parametrize("missing", ["protocol", "metadata"])
def test_a_log_that_never_says_what_the_table_is_is_damaged(missing: str) -> None:
    said = {"protocol": [protocol()], "metadata": [metadata()]}
    log = a_log(v0=[*(said["metadata"] if missing == "protocol" else said["protocol"]), add("a")])

    with pytest.raises(LogError, match=f"holds no {missing} action") as caught:
        log.load()
    assert caught.value.error_class == "DELTA_STATE_RECOVER_ERROR"
    assert "memory:orders" in str(caught.value)


@pytest.mark.parametrize(
    "schema",
    [
        "",
        "5",
        "{",
        '{"type":"struct"}',
        '{"type":"struct","fields":[{"name":"id"}]}',
        LONG_ID.replace('"long"', '"from the future"'),
        LONG_ID.replace('"long"', '"decimal(99,1)"'),
    ],
)
def test_a_schema_that_cannot_be_read_is_our_error(schema: str) -> None:
    log = a_log(v0=[protocol(), metadata(schema)])

    with pytest.raises(TablefeedError, match="memory:orders"):
        _ = log.load().arrow_schema


@pytest.mark.parametrize(
    ("partition_columns", "said"),
    [(["ID"], "by 'ID', which is no column"), (["day"], "by 'day', which is no column"), (["id", "id"], "twice")],
)
def test_a_table_that_is_partitioned_by_what_is_no_column_of_it_is_refused(
    tmp_path: Path, partition_columns: list[str], said: str
) -> None:
    a_log(LocalStore(str(tmp_path)), v0=[protocol(), metadata(partition_columns=partition_columns), add("a")])

    for way_in in READ_IN:
        with pytest.raises(LogError, match=said):
            way_in(tmp_path)


# --- what is not supported -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("required", "features"),
    [
        (protocol(4, 8), "reader version 4"),
        (protocol(3, 7, readerFeatures=["fromTheFuture"], writerFeatures=["fromTheFuture"]), "fromTheFuture"),
        (protocol(3, 7, readerFeatures=["catalogManaged"], writerFeatures=["catalogManaged"]), "catalogManaged"),
    ],
)
def test_a_protocol_that_is_not_known_is_refused_by_name_with_the_word_to_upgrade(
    tmp_path: Path, required: dict[str, object], features: str
) -> None:
    a_log(LocalStore(str(tmp_path)), v0=[required, metadata()])

    for way_in in (*EVERY_WAY_IN, append_a_row):
        with pytest.raises(UnsupportedFeatureError, match="Upgrade tablefeed") as caught:
            way_in(tmp_path)
        assert features in str(caught.value)
        assert str(caught.value).startswith("[DELTA_")


def test_a_feature_that_binds_writers_alone_refuses_writing_and_not_reading(tmp_path: Path) -> None:
    listed = protocol(1, 7, writerFeatures=["fromTheFuture"])
    a_log(LocalStore(str(tmp_path)), v0=[listed, metadata()])

    assert tablefeed.open_table(tmp_path).to_arrow().num_rows == 0
    with pytest.raises(UnsupportedFeatureError, match="fromTheFuture") as caught:
        tablefeed.append(tmp_path, ROWS)
    assert caught.value.error_class == "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE"


def test_a_table_of_another_file_format_is_refused() -> None:
    other = metadata()
    other["metaData"]["format"] = {"provider": "orc", "options": {}}

    with pytest.raises(UnsupportedFeatureError, match="'orc'"):
        a_log(v0=[protocol(), other]).load()


def test_actions_and_fields_that_nobody_knows_are_passed_over() -> None:
    log = a_log(v0=[protocol(), metadata(), {"fromTheFuture": {"x": 1}}, add("a", fromTheFuture=1)])

    assert log.load().version == 0


@pytest.mark.parametrize("option", ["fs.s3a.access.key", "fs.azure.account.key", "spark.hadoop.fs.s3a.endpoint"])
def test_options_by_hadoops_names_are_told_by_ours(tmp_path: Path, option: str) -> None:
    with pytest.raises(StoreConfigError) as caught:
        tablefeed.open_table(a_good_table(tmp_path), storage_options={option: "secret value"})
    assert option in str(caught.value)
    assert "secret value" not in str(caught.value)


@pytest.mark.parametrize("url", ["", "s3:bucket/table", "nosuch://x/y", "file://host/x"])
def test_a_url_that_names_no_store_is_our_error(url: str) -> None:
    for way_in in (tablefeed.open_table, tablefeed.appends, tablefeed.follow):
        with pytest.raises(StoreError):
            way_in(url)


# --- data files ------------------------------------------------------------------------------------------------------


def data_file(path: Path) -> Path:
    return sorted(path.glob("*.parquet"))[0]


@pytest.mark.parametrize("way_in", [lambda path: tablefeed.open_table(path).to_arrow(), *READ_IN[1:]])
def test_a_data_file_that_is_gone_is_named(tmp_path: Path, way_in: Callable[[Path], object]) -> None:
    data_file(a_good_table(tmp_path)).unlink()

    with pytest.raises(DataFileError, match="is gone") as caught:
        way_in(tmp_path)
    assert caught.value.error_class == "DELTA_FILE_NOT_FOUND"


def test_a_data_file_of_other_types_is_named(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": ["text"]}), data_file(a_good_table(tmp_path)))

    with pytest.raises(DataFileError, match="does not fit the table's schema"):
        tablefeed.open_table(tmp_path).to_arrow()


# --- junk ------------------------------------------------------------------------------------------------------------

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
near_actions = st.sampled_from([protocol(), metadata(), add("a"), info(inCommitTimestamp=1)]).flatmap(
    lambda action: st.tuples(
        st.just(action), st.sampled_from(sorted(next(iter(action.values())) or ["x"])), json_values
    )
)


def replaced(found: tuple[dict[str, dict[str, object]], str, object]) -> str:
    """An action of which one field is anything."""
    action, name, value = found
    ((kind, fields),) = action.items()
    return json.dumps({kind: {**fields, name: value}})


lines = json_values.map(json.dumps) | near_actions.map(replaced) | st.text(max_size=20)
junk = st.binary(max_size=60) | st.lists(lines, max_size=4).map(
    lambda parts: "\n".join(parts).encode("utf-8", "replace")
)


@given(text=junk)
@example(text=b'{"metaData":{"id":"x","schemaString":"[1]","partitionColumns":[],"format":{"provider":"parquet"}}}')
@example(text=b'{"add":{"path":"%ff","partitionValues":{},"size":1,"modificationTime":1,"dataChange":true}}')
@settings(max_examples=100)
def test_whatever_is_in_a_commit_file_nothing_but_our_errors_escapes(text: bytes) -> None:
    store = MemoryStore("orders")
    a_log(store, v0=[protocol(), metadata(), add("a")])
    for version in (0, 1):
        store.replace(commit_path(version), text)
        try:
            snapshot = log_of(store).load()
            _ = [batch.num_rows for batch in snapshot.live_files(with_stats=True)], snapshot.arrow_schema
            source = a_source(log_of(store), starting_version=0)
            source.tasks(source.initial(), source.latest(source.initial(), Limits()))
        except TablefeedError as error:
            assert "memory:orders" in str(error)  # noqa: PT017 - it may also be fine


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = a_good_table(tmp_path_factory.mktemp("template"))
    DeltaTable(str(path)).create_checkpoint()
    return path


def in_memory(path: Path) -> MemoryStore:
    store = MemoryStore("orders")
    for file in path.rglob("*"):
        if file.is_file():
            store.replace(str(file.relative_to(path)), file.read_bytes())
    return store


@given(data=st.data())
@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_is_in_a_checkpoint_nothing_but_our_errors_escapes(template: Path, data: st.DataObject) -> None:
    store = in_memory(template)
    (name,) = (e.name for e in store.list("_delta_log") if e.name.endswith(".parquet"))
    whole = store.read(f"_delta_log/{name}")
    store.replace(f"_delta_log/{name}", data.draw(damaged(whole)))
    for version in (0, 1):
        store.delete(commit_path(version))

    try:
        snapshot = log_of(store).load()
        _ = [batch.num_rows for batch in snapshot.live_files(with_stats=True)]
    except TablefeedError as error:
        assert "memory:orders" in str(error)  # noqa: PT017 - damage in a column that is not read is no error


@given(data=st.data())
@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_is_in_a_data_file_nothing_but_our_errors_escapes(
    template: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    good = data_file(template).read_bytes()
    path = tmp_path_factory.mktemp("table")
    a_log(LocalStore(str(path)), v0=[protocol(), metadata(), add("junk.parquet")])
    (path / "junk.parquet").write_bytes(data.draw(damaged(good)))

    try:
        tablefeed.open_table(path).to_arrow()
    except TablefeedError as error:
        assert "junk.parquet" in str(error)  # noqa: PT017 - damage where nothing is read is no error


def damaged(whole: bytes) -> st.SearchStrategy[bytes]:
    """Some bytes of a good file, cut off or overwritten, or any bytes at all."""

    def overwritten(place: int, junk_bytes: bytes) -> bytes:
        return whole[:place] + junk_bytes + whole[place + len(junk_bytes) :]

    places = st.integers(0, len(whole) - 1)
    return (
        st.binary(max_size=40)
        | places.map(lambda end: whole[:end])
        | st.builds(overwritten, places, st.binary(min_size=1, max_size=8))
    )
