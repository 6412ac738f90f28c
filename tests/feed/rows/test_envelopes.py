"""Changes in the form of a well-known source: keys are all that a user gives."""

from __future__ import annotations

import base64
import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tablefeed
from feed.rows.test_apply_changes import FED, NEEDED, VECTORS, rows, state_files
from support.logs import a_log, col, meta, protocol
from tablefeed.errors import (
    IllegalOptionError,
    InvalidEventsError,
    InvalidRowsError,
    SchemaMismatchError,
    TablefeedError,
    UnsupportedOptionError,
)
from tablefeed.feed.rows.folding import SEQUENCE
from tablefeed.feed.rows.state import STATE_DIR
from tablefeed.store import LocalStore

COLUMNS = {"id": pa.int64(), "v": pa.string()}


def a_target(path: Path, columns: dict[str, pa.DataType] = COLUMNS, **properties: str) -> str:
    url = str(path / "target")
    empty = pa.schema(list(columns.items())).empty_table()
    tablefeed.append(url, empty, properties={**NEEDED, **VECTORS, **properties})
    return url


# --- change feeds ---------------------------------------------------------------------------------------------------


def a_source(path: Path) -> str:
    url = str(path / "source")
    tablefeed.append(url, pa.table({"id": [1, 2, 3], "v": ["a", "b", "c"]}), properties={**VECTORS, **FED})
    return url


@pytest.mark.parametrize("source", ["tablefeed", "changes"])
def test_a_change_feed_makes_a_copy_of_its_table_in_any_batches(tmp_path: Path, source: str) -> None:
    origin, url = a_source(tmp_path), a_target(tmp_path)
    tablefeed.update(origin, {"v": "'B'"}, "id = 2")
    tablefeed.delete(origin, "id = 3")
    tablefeed.delete(origin, "id = 1")
    tablefeed.append(origin, pa.table({"id": [1], "v": ["new"]}))
    feed = tablefeed.changes(origin, start_version=0).read_all()
    half = feed.num_rows // 2
    for part in (feed.slice(half), feed.slice(0, half)):
        tablefeed.apply_changes(url, part, keys="id", source=source)  # type: ignore[arg-type]  # one of its words
    assert rows(url) == rows(origin) == [(1, "new"), (2, "B")]


def test_an_update_that_changes_the_key_leaves_no_row_of_the_old_key(tmp_path: Path) -> None:
    origin, url = a_source(tmp_path), a_target(tmp_path)
    tablefeed.update(origin, {"id": "id + 10"}, "id < 3")
    tablefeed.apply_changes(url, tablefeed.changes(origin, start_version=0), keys="id", source="tablefeed")
    assert rows(url) == rows(origin) == [(11, "a"), (12, "b"), (3, "c")]


def feed(*given: tuple[int, str | None, str | None, int]) -> pa.Table:
    names = ["id", "v", "_change_type", "_commit_version"]
    kinds = [pa.int64(), pa.string(), pa.string(), pa.int64()]
    return pa.table([pa.array(c, kind) for c, kind in zip(zip(*given, strict=True), kinds, strict=True)], names)


@pytest.mark.parametrize("order", [1, -1])
def test_a_row_that_a_version_deletes_and_inserts_is_there(tmp_path: Path, order: int) -> None:
    url = a_target(tmp_path)
    for event in [(1, "old", "insert", 1), (1, "old", "delete", 2), (1, "new", "insert", 2)][::order]:
        tablefeed.apply_changes(url, feed(event), keys="id", source="changes")
    assert rows(url) == [(1, "new")]


def test_what_a_user_gives_goes_before_what_the_source_says(tmp_path: Path) -> None:
    url = a_target(tmp_path, {**COLUMNS, "_commit_version": pa.int64()})
    given = feed((1, "a", "insert", 1), (1, "a", "delete", 2), (2, "b", "insert", 3))
    columns = ["id", "v", "_commit_version"]
    more: dict[str, Any] = {"column_list": columns, "apply_as_deletes": "_change_type = 'none'"}
    tablefeed.apply_changes(url, given, keys="id", source="changes", ties="last", **more)
    assert rows(url) == [(1, "a", 2), (2, "b", 3)]


@pytest.mark.parametrize("old", ["delete", "update_preimage"])
def test_a_feed_with_old_rows_is_not_taken_in_the_order_of_columns_of_the_row_alone(tmp_path: Path, old: str) -> None:
    """An old row has the sequence of the row that it deletes, so it would change nothing."""
    url = a_target(tmp_path)
    by_v: dict[str, Any] = {"keys": "id", "source": "tablefeed", "sequence_by": "V"}
    tablefeed.apply_changes(url, feed((1, "a", "insert", 1), (2, "b", "insert", 1)), **by_v)
    with pytest.raises(InvalidEventsError, match=rf"{old} has in sequence_by \(V\) the values of the old row"):
        tablefeed.apply_changes(url, feed((1, "a", old, 2)), **by_v)
    assert rows(url) == [(1, "a"), (2, "b")]


def test_a_feed_may_be_in_the_order_of_a_column_of_the_row_and_the_version(tmp_path: Path) -> None:
    url = a_target(tmp_path)
    by_both: dict[str, Any] = {"keys": "id", "source": "tablefeed", "sequence_by": ["v", "_commit_version"]}
    tablefeed.apply_changes(url, feed((1, "a", "insert", 1), (2, "b", "insert", 1)), **by_both)
    tablefeed.apply_changes(url, feed((1, "a", "delete", 2)), **by_both)
    assert rows(url) == [(2, "b")]


@pytest.mark.parametrize(
    ("changes", "arguments", "error", "text"),
    [
        (feed((1, "a", "upsert", 1)), {}, TablefeedError, "_change_type is 'upsert' in 1 of them"),
        (feed((1, "a", None, 1)), {}, TablefeedError, "_change_type is None"),
        (pa.table({"id": [1], "v": ["a"]}), {}, SchemaMismatchError, "no column _change_type"),
        (
            feed((1, "a", "insert", 1)).set_column(2, "_change_type", pa.array([{"a": 1}])),
            {},
            SchemaMismatchError,
            "is not text",
        ),
        (
            feed((1, "a", "insert", 1)).set_column(3, "_commit_version", pa.array(["1"])),
            {},
            SchemaMismatchError,
            "is string, not an integer",
        ),
        (feed((1, "a", "insert", 1)), {"ignore_null_updates": True}, UnsupportedOptionError, "whole rows"),
        (feed((1, "a", "insert", 1)), {"source": "maxwell"}, IllegalOptionError, "source"),
        (feed((1, "a", "insert", 1)), {"source": None}, IllegalOptionError, "sequence_by"),
    ],
    ids=["kind", "null", "columns", "struct", "text version", "sparse", "source", "no source"],
)
def test_what_is_no_change_feed_is_refused_by_name(
    tmp_path: Path, changes: pa.Table, arguments: dict[str, Any], error: type[Exception], text: str
) -> None:
    url = a_target(tmp_path)
    with pytest.raises(error, match=text):
        tablefeed.apply_changes(url, changes, **{"keys": "id", "source": "changes", **arguments})
    assert rows(url) == []


# --- Debezium -------------------------------------------------------------------------------------------------------

Row = dict[str, Any] | None


def change(op: str, lsn: int | None, *, before: Row = None, after: Row = None, **source: Any) -> dict[str, Any]:
    """An event of Debezium's connector for Postgres, without the description of its values."""
    where = {"connector": "postgresql", "lsn": lsn, "ts_ms": 1, "table": "t", **source}
    return {"before": before, "after": after, "op": op, "source": where, "ts_ms": 2}


def as_json(*given: dict[str, Any] | None) -> pa.Table:
    return pa.table({"value": pa.array([None if one is None else json.dumps(one) for one in given], pa.string())})


def as_columns(*given: dict[str, Any], columns: dict[str, pa.DataType] = COLUMNS) -> pa.Table:
    row = pa.struct(columns)
    source = pa.struct({"connector": pa.string(), "lsn": pa.int64(), "sequence": pa.string(), "ts_ms": pa.int64()})
    kinds = {"before": row, "after": row, "op": pa.string(), "source": source, "ts_ms": pa.int64()}
    return pa.table({name: pa.array([one[name] for one in given], kind) for name, kind in kinds.items()})


def with_said(name: str, values: pa.Array) -> pa.Table:
    """An event in columns whose field `name` is another one."""
    return as_columns(change("c", 1, after=GOOD)).drop_columns([name]).append_column(name, values)


def as_one_column(*given: dict[str, Any]) -> pa.Table:
    found = as_columns(*given)
    return pa.table(
        {"value": pa.StructArray.from_arrays([c.combine_chunks() for c in found.columns], found.column_names)}
    )


FORMS = pytest.mark.parametrize("form", [as_json, as_columns, as_one_column])


def debezium(url: str, changes: pa.Table, **more: Any) -> None:
    tablefeed.apply_changes(url, changes, keys="id", source="debezium", **more)


@FORMS
def test_events_of_debezium_are_applied_in_the_order_of_their_log(tmp_path: Path, form: Any) -> None:
    url = a_target(tmp_path)
    debezium(url, form(change("u", 30, after={"id": 1, "v": "new"}), change("c", 20, after={"id": 2, "v": "b"})))
    debezium(url, form(change("c", 10, after={"id": 1, "v": "old"}), change("d", 40, before={"id": 2, "v": None})))
    assert rows(url) == [(1, "new")]


@FORMS
def test_13_an_event_of_a_snapshot_loses_against_a_live_one_at_its_place(tmp_path: Path, form: Any) -> None:
    url = a_target(tmp_path)
    debezium(url, form(change("u", 30, after={"id": 1, "v": "live"}), change("r", 30, after={"id": 2, "v": "read"})))
    debezium(url, form(change("r", 30, after={"id": 1, "v": "read"}), change("r", 30, after={"id": 2, "v": "read"})))
    assert rows(url) == [(1, "live"), (2, "read")]


@FORMS
def test_a_change_of_postgres_that_was_not_committed_before_the_snapshot_is_newer(tmp_path: Path, form: Any) -> None:
    """Its LSN is smaller than that of the snapshot."""
    url = a_target(tmp_path)
    debezium(url, form(change("r", 100, after={"id": 1, "v": "read"}, sequence='[null,"100"]')))
    debezium(url, form(change("u", 95, after={"id": 1, "v": "live"}, sequence='["110","95"]')))
    assert rows(url) == [(1, "live")]


@FORMS
def test_changes_of_postgres_are_in_the_order_of_commits_and_then_of_their_lsn(tmp_path: Path, form: Any) -> None:
    url = a_target(tmp_path)
    given = [(95, "90", "b"), (94, "90", "a"), (93, "110", "d"), (120, "90", "c")]
    for lsn, commit, value in given:
        debezium(url, form(change("u", lsn, after={"id": 1, "v": value}, sequence=f'["{commit}","{lsn}"]')))
    assert rows(url) == [(1, "d")]


@FORMS
def test_an_event_of_an_incremental_snapshot_of_postgres_is_newer_than_what_was_committed_before(
    tmp_path: Path, form: Any
) -> None:
    """Its `lsn` is null."""
    url = a_target(tmp_path)

    def read(commit: int, value: str) -> dict[str, Any]:
        sequence = f'["{commit}","{commit + 5}"]'
        return change("r", None, after={"id": 1, "v": value}, sequence=sequence, snapshot="incremental")

    debezium(url, form(change("c", 95, after={"id": 1, "v": "lost its changes"}, sequence='["90","95"]')))
    debezium(url, form(read(100, "repaired")))
    debezium(url, form(read(120, "repaired again")))
    assert rows(url) == [(1, "repaired again")]
    debezium(url, form(change("u", 122, after={"id": 1, "v": "live"}, sequence='["120","122"]')))
    debezium(url, form(read(120, "repaired again")))
    assert rows(url) == [(1, "live")]


@FORMS
def test_17_a_truncate_deletes_what_is_older(tmp_path: Path, form: Any) -> None:
    url = a_target(tmp_path)
    given = [change("c", 10, after={"id": 1, "v": "a"}), change("t", 20), change("c", 30, after={"id": 2, "v": "b"})]
    debezium(url, form(*given))
    debezium(url, form(change("c", 15, after={"id": 3, "v": "c"})))
    assert rows(url) == [(2, "b")]


@FORMS
def test_an_update_of_debezium_that_changes_the_key_deletes_the_old_key(tmp_path: Path, form: Any) -> None:
    url = a_target(tmp_path)
    debezium(url, form(change("c", 10, after={"id": 1, "v": "a"})))
    moved = change("u", 20, before={"id": 1, "v": "a"}, after={"id": 5, "v": "a"})
    debezium(url, form(change("c", 15, after={"id": 9, "v": "other"}), moved))
    assert rows(url) == [(5, "a"), (9, "other")]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            pa.array([10**18, 5]).cast(pa.timestamp("us", "UTC")),
            pa.array([10**18 + 1, 5]).cast(pa.timestamp("us", "UTC")),
        ),
        (pa.array([10**8, 5], pa.int32()).cast(pa.date32()), pa.array([10**8 + 1, 5], pa.int32()).cast(pa.date32())),
        (pa.array([b"\xff", b"b"]).view(pa.string()), pa.array([b"\xfe", b"b"]).view(pa.string())),
        (pa.array(["a", "b"], pa.string_view()), pa.array(["c", "b"], pa.string_view())),
        (pa.array(["a", "b"]).dictionary_encode(), pa.array(["c", "b"]).dictionary_encode()),
        (pa.array([-0.0, 1.0]), pa.array([2.0, 1.0])),
    ],
)
def test_keys_that_python_lacks_are_compared_too(tmp_path: Path, old: pa.Array, new: pa.Array) -> None:
    kinds = {pa.string_view(): pa.string()}
    kind = old.type.value_type if pa.types.is_dictionary(old.type) else kinds.get(old.type, old.type)
    url = a_target(tmp_path, {"id": kind, "v": pa.int64()})

    def images(keys: pa.Array, values: list[int]) -> pa.Array:
        return pa.StructArray.from_arrays([keys, pa.array(values)], ["id", "v"])

    def given(op: str, before: pa.Array, after: pa.Array, lsn: int) -> pa.Table:
        source = [{"connector": "postgresql", "lsn": lsn}] * 2
        return pa.table({"before": before, "after": after, "op": [op] * 2, "source": source, "ts_ms": [1, 1]})

    was = images(old, [1, 1])
    tablefeed.apply_changes(
        url,
        given("c", was, was, 1),
        keys="id",
        source="debezium",
    )
    tablefeed.apply_changes(url, given("u", was, images(new, [2, 2]), 2), keys="id", source="debezium")
    assert tablefeed.open_table(url).to_arrow()["v"].to_pylist() == [2, 2]


def test_events_give_no_value_for_a_generated_column(tmp_path: Path) -> None:
    url = str(tmp_path)
    double = col("double", "long", notes={"delta.generationExpression": "id * 2"})
    told = protocol(1, 7, writerFeatures=["generatedColumns", "domainMetadata"])
    a_log(LocalStore(url), v0=[told, meta(col("id"), double)])
    debezium(url, as_json(change("c", 10, after={"id": 1})))
    assert rows(url) == [(1, 2)]
    with pytest.raises(SchemaMismatchError, match=r"lacks or generates: double\b.* List it in except_column_list"):
        debezium(url, as_json(change("u", 20, after={"id": 1, "double": 2})))


@FORMS
def test_the_old_key_of_an_update_is_deleted_at_the_sequence_of_the_new_row(tmp_path: Path, form: Any) -> None:
    url = a_target(tmp_path)
    old, new = {"id": 1, "v": "1"}, {"id": 5, "v": "2"}
    debezium(url, form(change("c", 10, after=old)), sequence_by="v")
    debezium(url, form(change("u", 20, before=old, after=new)), sequence_by="v")
    assert rows(url) == [(5, "2")]


@FORMS
def test_a_delete_in_the_order_of_columns_of_the_row_is_refused(tmp_path: Path, form: Any) -> None:
    """It has the sequence of the row that it deletes, so it would change nothing."""
    url = a_target(tmp_path)
    debezium(url, form(change("c", 10, after={"id": 1, "v": "1"})), sequence_by="V")
    with pytest.raises(InvalidEventsError, match=r"a delete has in sequence_by \(V\) the values of its row"):
        debezium(url, form(change("d", 20, before={"id": 1, "v": "1"})), sequence_by="V")
    assert rows(url) == [(1, "1")]


def kafka(*given: tuple[int, int, dict[str, Any] | None]) -> pa.Table:
    """Messages as Spark's Kafka source gives them: an offset, a key and a value."""
    values = [None if value is None else json.dumps(value).encode() for _, _, value in given]
    keys = [json.dumps({"schema": None, "payload": {"id": key}}).encode() for _, key, _ in given]
    return pa.table(
        {
            "key": pa.array(keys, pa.binary()),
            "value": pa.array(values, pa.binary()),
            "topic": ["t"] * len(given),
            "partition": pa.array([0] * len(given), pa.int32()),
            "offset": [offset for offset, _, _ in given],
        }
    )


def test_16_a_null_value_deletes_its_key_in_the_order_of_kafka(tmp_path: Path) -> None:
    url = a_target(tmp_path)
    debezium(url, kafka((7, 1, None), (8, 2, change("c", 10, after={"id": 2, "v": "b"}))))
    debezium(url, kafka((5, 1, change("c", 5, after={"id": 1, "v": "a"}, connector="oracle"))))
    assert rows(url) == [(2, "b")]


def test_20_an_absent_field_leaves_the_value_and_a_null_is_a_value(tmp_path: Path) -> None:
    url = a_target(tmp_path, {**COLUMNS, "w": pa.string()})
    debezium(
        url,
        as_json(
            change("c", 1, after={"id": 1, "v": "a", "w": "x"}), change("c", 1, after={"id": 2, "v": "b", "w": "y"})
        ),
    )
    debezium(
        url,
        as_json(
            change("u", 3, after={"id": 1, "v": None}),
            change("u", 3, after={"id": 2, "v": "B", "w": "__debezium_unavailable_value"}),
        ),
    )
    debezium(url, as_json(change("u", 2, after={"id": 1, "v": "late", "w": "z"})))
    assert rows(url) == [(1, None, "z"), (2, "B", "y")]


def test_26_json_fills_a_column_that_the_table_got_later(tmp_path: Path) -> None:
    url = a_target(tmp_path)
    debezium(url, as_json(change("c", 1, after={"id": 1, "v": "a"})))
    tablefeed.alter(url, add_columns=pa.schema([("w", pa.string())]))
    debezium(url, as_json(change("u", 3, after={"id": 1, "v": "b"}), change("u", 2, after={"id": 1, "w": "x"})))
    assert rows(url) == [(1, "b", "x")]


@pytest.mark.parametrize("form", [as_columns, as_one_column])
def test_26_a_column_of_debezium_is_added_where_asked(tmp_path: Path, form: Any) -> None:
    url = a_target(tmp_path, {"id": pa.int64()})
    debezium(url, form(change("c", 1, after={"id": 1, "v": "a"})), merge_schema=True)
    assert rows(url) == [(1, "a")]


@pytest.mark.parametrize("form", [as_columns, as_one_column])
def test_20_a_value_that_the_database_did_not_give_is_left_as_it_is(tmp_path: Path, form: Any) -> None:
    url = a_target(tmp_path)
    debezium(url, form(change("c", 1, after={"id": 1, "v": "a"})))
    debezium(url, form(change("u", 2, after={"id": 1, "v": "__debezium_unavailable_value"})))
    assert rows(url) == [(1, "a")]


UNAVAILABLE = "__debezium_unavailable_value"
HSTORE = json.dumps({UNAVAILABLE: UNAVAILABLE}, separators=(",", ":"))


@pytest.mark.parametrize(
    ("kind", "value", "unavailable"),
    [
        (pa.string(), "a", base64.b64encode(UNAVAILABLE.encode()).decode()),
        (pa.string(), "a", UNAVAILABLE.encode().hex()),
        (pa.string(), "a", HSTORE),
        (pa.binary(), b"a", UNAVAILABLE.encode()),
        (pa.list_(pa.string()), ["a"], [UNAVAILABLE]),
        (pa.list_(pa.string()), ["a"], ["b68a35a7-17ad-35b3-af2a-ae46edb4545a"]),
        (pa.list_(pa.int32()), [1], list(UNAVAILABLE.encode())),
        (
            pa.list_(pa.date32()),
            [date(1970, 1, 2)],
            [date(1970, 1, 1) + timedelta(each) for each in UNAVAILABLE.encode()],
        ),
        (pa.map_(pa.string(), pa.string()), [("a", "b")], [(UNAVAILABLE, UNAVAILABLE)]),
    ],
    ids=["base64", "hex", "hstore", "bytes", "texts", "uuids", "integers", "dates", "map"],
)
def test_20_each_form_of_a_value_that_the_database_did_not_give_leaves_it_as_it_is(
    tmp_path: Path, kind: pa.DataType, value: Any, unavailable: Any
) -> None:
    columns = {"id": pa.int64(), "v": kind}
    url = a_target(tmp_path, columns)
    debezium(url, as_columns(change("c", 1, after={"id": 1, "v": value}), columns=columns))
    debezium(url, as_columns(change("u", 2, after={"id": 1, "v": unavailable}), columns=columns))
    assert rows(url) == [(1, value)]


@FORMS
def test_20_a_row_that_begins_without_a_value_that_the_database_did_not_give_is_refused(
    tmp_path: Path, form: Any
) -> None:
    """Its value would be null. Such a row has a new key: Debezium reports a delete and an insert, or one update."""
    url = a_target(tmp_path)
    debezium(url, form(change("c", 1, after={"id": 1, "v": "a"})))
    new = {"id": 2, "v": UNAVAILABLE}
    for event in (change("c", 2, after=new), change("u", 2, before={"id": 1, "v": None}, after=new)):
        with pytest.raises(InvalidEventsError, match=r"1 events begin a row, .* whose value of column v the database"):
            debezium(url, form(event))
    assert rows(url) == [(1, "a")]


@FORMS
@pytest.mark.parametrize("given", [{"except_column_list": ["v"]}, {"column_list": ["id"]}], ids=["except", "only"])
def test_20_a_value_that_the_table_does_not_get_may_be_unknown(
    tmp_path: Path, form: Any, given: dict[str, list[str]]
) -> None:
    url = a_target(tmp_path)
    debezium(url, form(change("c", 1, after={"id": 1, "v": UNAVAILABLE})), **given)
    assert rows(url) == [(1, None)]


@pytest.mark.parametrize("unavailable", [UNAVAILABLE.encode().hex(), HSTORE], ids=["hex", "hstore"])
def test_20_json_has_forms_of_a_value_that_the_database_did_not_give(tmp_path: Path, unavailable: str) -> None:
    url = a_target(tmp_path)
    debezium(url, as_json(change("c", 1, after={"id": 1, "v": "a"})))
    debezium(url, as_json(change("u", 2, after={"id": 1, "v": unavailable})))
    assert rows(url) == [(1, "a")]


def test_an_image_that_is_null_in_all_events_needs_no_type(tmp_path: Path) -> None:
    url = a_target(tmp_path)
    for event in (change("c", 1, after=GOOD), change("c", 1, after={**GOOD, "id": 2}), change("d", 2, before=GOOD)):
        debezium(url, pa.Table.from_pylist([event]))
    assert rows(url) == [(2, "a")]


def test_values_that_are_null_in_all_events_need_no_type_and_a_delete_needs_only_its_key(tmp_path: Path) -> None:
    url = a_target(tmp_path)
    unknown = {**GOOD, "id": 2, "v": None}
    for event in (change("c", 1, after=GOOD), change("c", 2, after=unknown), change("d", 3, before={"id": 1})):
        debezium(url, pa.Table.from_pylist([event]))
    assert rows(url) == [(2, None)]


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ({"connector": "mysql", "file": "b.999999", "pos": 9}, {"connector": "mysql", "file": "b.1000000", "pos": 4}),
        (
            {"connector": "mariadb", "file": "b.1", "pos": 9, "row": 0},
            {"connector": "mariadb", "file": "b.1", "pos": 9, "row": 1},
        ),
        (
            {"connector": "sqlserver", "commit_lsn": "0a:01", "change_lsn": "0a:00", "event_serial_no": 1},
            {"connector": "sqlserver", "commit_lsn": "0a:01", "change_lsn": "0a:00", "event_serial_no": 2},
        ),
    ],
    ids=["mysql", "mariadb", "sqlserver"],
)
def test_each_connector_has_its_own_order(tmp_path: Path, older: dict[str, Any], newer: dict[str, Any]) -> None:
    url = a_target(tmp_path)
    debezium(url, as_json(change("u", None, after={"id": 1, "v": "new"}, **newer)))
    debezium(url, as_json(change("u", None, after={"id": 1, "v": "old"}, **older)))
    assert rows(url) == [(1, "new")]


def at_row(op: str, row: int, value: str = "a") -> dict[str, Any]:
    """An event of MySQL at one place of its log."""
    image = {"before" if op == "d" else "after": {"id": 1, "v": value}}
    return change(op, None, connector="mysql", file="b.1", pos=9, row=row, **image)


@pytest.mark.parametrize(
    "given",
    [(at_row("c", 0), at_row("d", 0)), (at_row("u", 1), at_row("u", 0, "b"))],
    ids=["a delete after an insert", "a second statement"],
)
def test_changes_of_a_compressed_transaction_of_mysql_are_refused_where_their_order_is_not_known(
    tmp_path: Path, given: tuple[dict[str, Any], ...]
) -> None:
    url = a_target(tmp_path)
    with pytest.raises(InvalidEventsError, match=r"the place 9 in MySQL's log, as with binlog_transaction_compression"):
        debezium(url, as_json(*given))
    debezium(url, kafka(*((at, 1, each) for at, each in enumerate(given))))
    assert rows(url) == ([] if given[-1]["op"] == "d" else [(1, "b")])


@pytest.mark.parametrize("times", [1, 2], ids=["once", "delivered again"])
def test_one_event_of_mysql_may_delete_a_key_and_give_it_to_the_next_row(tmp_path: Path, times: int) -> None:
    """Debezium makes a delete and an insert of an update that changes the key, as `SET id = id + 1`."""
    url, given = a_target(tmp_path), [at_row("d", 0), at_row("c", 1, "b"), at_row("u", 2, "c"), at_row("u", 2, "c")]
    debezium(url, as_json(*given * times))
    assert rows(url) == [(1, "c")]


def test_a_position_is_remembered_in_the_form_of_yesterday(tmp_path: Path) -> None:
    """In another form it would be older or newer than the positions that a table remembers."""
    url = a_target(tmp_path)
    debezium(url, as_json(change("u", None, after=GOOD, connector="mysql", file="b.000042", pos=7, row=1)))
    (file,) = state_files(url)
    assert pq.read_table(Path(url) / STATE_DIR / file)[SEQUENCE].to_pylist() == [
        {"log": "00000000000000000042", "position": 7, "row": 1, "live": 1}
    ]


def described(kind: pa.DataType, declared: dict[str, Any], value: Any) -> tuple[dict[str, pa.DataType], pa.Table]:
    """A table with a column x, and an event whose JSON describes the value of x."""
    fields = [{"field": "id", "type": "int64"}, {"field": "x", **declared}]
    schema = {"type": "struct", "fields": [{"field": "before", "fields": fields}, {"field": "after", "fields": fields}]}
    message = {"schema": schema, "payload": change("c", 1, after={"id": 1, "x": value})}
    return {"id": pa.int64(), "x": kind}, as_json(message)


PRECISE = {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": "2"}}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC).replace(tzinfo=None)
LOCAL, MOMENT = pa.timestamp("us"), pa.timestamp("us", tz="UTC")
B64 = base64.b64encode


@pytest.mark.parametrize(
    ("kind", "declared", "value", "expected"),
    [
        (pa.decimal128(10, 2), PRECISE, B64((-12345).to_bytes(3, "big", signed=True)).decode(), Decimal("-123.45")),
        (pa.decimal128(10, 2), {"type": "string"}, "1.5", Decimal("1.50")),
        (
            pa.decimal128(10, 2),
            {"type": "struct", "name": "io.debezium.data.VariableScaleDecimal"},
            {"scale": 1, "value": B64(b"\x0f").decode()},
            Decimal("1.50"),
        ),
        (pa.date32(), {"type": "int32", "name": "io.debezium.time.Date"}, 1, date(1970, 1, 2)),
        (LOCAL, {"type": "int64", "name": "io.debezium.time.Timestamp"}, 1000, EPOCH.replace(second=1)),
        (LOCAL, {"type": "int64", "name": "io.debezium.time.MicroTimestamp"}, 7, EPOCH.replace(microsecond=7)),
        (
            MOMENT,
            {"type": "string", "name": "io.debezium.time.ZonedTimestamp"},
            "1970-01-01T01:00:00.5+01:00",
            EPOCH.replace(microsecond=500000, tzinfo=UTC),
        ),
        (pa.binary(), {"type": "bytes"}, B64(b"\x00\xff").decode(), b"\x00\xff"),
        (pa.string(), {"type": "string", "name": "io.debezium.data.Uuid"}, "u", "u"),
        (pa.bool_(), {"type": "boolean"}, True, True),
        (pa.float32(), {"type": "float"}, 1.5, 1.5),
        (pa.float32(), {"type": "float"}, 1.4e-45, 2.0**-149),
        (pa.float32(), {"type": "float"}, "Infinity", float("inf")),
        (pa.float64(), {"type": "float"}, 0.1, 0.10000000149011612),
        (pa.float64(), {"type": "double"}, "-Infinity", float("-inf")),
        (pa.float64(), {"type": "int64"}, 2**53, 2.0**53),
    ],
)  # fmt: skip
def test_described_values_are_read_as_what_they_mean(
    tmp_path: Path, kind: pa.DataType, declared: dict[str, Any], value: Any, expected: Any
) -> None:
    columns, changes = described(kind, declared, value)
    url = a_target(tmp_path, columns, **{"delta.feature.timestampNtz": "supported"})
    debezium(url, changes)
    assert rows(url) == [(1, expected)]


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        ({"type": "struct", "name": "io.debezium.data.VariableScaleDecimal"}, {"scale": 10**7, "value": "AQ=="}),
        ({"type": "string"}, "1E-10000000"),
        ({"type": "string"}, "1E-41"),
        ({"type": "double"}, "NaN"),
    ],
)
def test_a_decimal_with_far_more_digits_than_its_column_is_refused(
    tmp_path: Path, declared: dict[str, Any], value: Any
) -> None:
    columns, changes = described(pa.decimal128(10, 2), declared, value)
    with pytest.raises(InvalidRowsError, match="has no value of column x, which is decimal128"):
        debezium(a_target(tmp_path, columns), changes)


@pytest.mark.parametrize(
    ("kind", "declared", "value"),
    [
        (pa.decimal128(10, 2), {"type": "string"}, "1.505"),
        (pa.decimal128(10, 2), {"type": "string"}, "NaN"),
        (pa.decimal128(10, 2), {"type": "string"}, "1_000"),
        (pa.int32(), {"type": "int64"}, 2**40),
        (pa.int32(), {"type": "double"}, 1.0),
        (pa.float32(), {"type": "double"}, 1.1),
        (pa.float32(), {"type": "int32"}, 2**24 + 1),
        (pa.float32(), {"type": "float"}, 0.1000000015),
        (pa.float32(), {"type": "float"}, 1e39),
        (pa.float32(), {"type": "float"}, 1e-50),
        (pa.float64(), {"type": "float"}, -1e39),
        (pa.string(), {"type": "string"}, "\ud800"),
        (pa.decimal128(10, 2), {**PRECISE, "parameters": {"scale": "x"}}, "AA=="),
        (pa.float64(), {"type": "int64"}, 2**60 + 1),
        (LOCAL, {"type": "int64", "name": "io.debezium.time.NanoTimestamp"}, 1),
        (LOCAL, {"type": "int64"}, 1),
        (MOMENT, {"type": "int64", "name": "io.debezium.time.Timestamp"}, 1),
        (MOMENT, {"type": "string", "name": "io.debezium.time.ZonedTimestamp"}, "1970-01-01T00:00:00.1234567Z"),
        (pa.date32(), {"type": "int64", "name": "io.debezium.time.Timestamp"}, 1),
        (pa.date32(), {"type": "int32"}, 1),
        (pa.string(), {"type": "bytes"}, "AA=="),
        (pa.string(), {"type": "int32"}, 1),
        (pa.list_(pa.int64()), {"type": "array"}, [1]),
    ],
)
def test_a_value_that_is_not_read_exactly_is_refused_with_its_column(
    tmp_path: Path, kind: pa.DataType, declared: dict[str, Any], value: Any
) -> None:
    columns, changes = described(kind, declared, value)
    url = a_target(tmp_path, columns, **{"delta.feature.timestampNtz": "supported"})
    with pytest.raises(TablefeedError, match=r"[Cc]olumn x\b"):
        debezium(url, changes)
    assert rows(url) == []


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ({"type": "int64", "name": "io.debezium.time.Timestamp"}, "io.debezium.time.Timestamp"),
        ({"type": "int64"}, "int64"),
    ],
)
def test_the_error_names_what_the_event_says_of_a_value(tmp_path: Path, declared: dict[str, Any], said: str) -> None:
    columns, changes = described(pa.date32(), declared, 1)
    with pytest.raises(SchemaMismatchError, match=f"is date32.*, which is not read exactly from {said}. "):
        debezium(a_target(tmp_path, columns), changes)


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (pa.decimal128(10, 2), "1234", "no value of column x"),  # base64 of precise, or the text of string
        (MOMENT, 1, "no value of column x"),
        (LOCAL, 1, "does not describe it"),  # milliseconds or microseconds
        (pa.binary(), "AAAA", "does not describe it"),  # base64 or hex
    ],
    ids=["decimal", "moment", "local", "bytes"],
)
def test_values_that_mean_several_things_are_refused_where_nothing_describes_them(
    tmp_path: Path, kind: pa.DataType, value: Any, text: str
) -> None:
    url = a_target(tmp_path, {"id": pa.int64(), "x": kind}, **{"delta.feature.timestampNtz": "supported"})
    with pytest.raises(TablefeedError, match=text):
        debezium(url, as_json(change("c", 1, after={"id": 1, "x": value})))
    assert rows(url) == []


GOOD = {"id": 1, "v": "a"}


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        (as_json(change("c", 1, after={**GOOD, "new": 1})), "lacks or generates: new"),
        (as_json(change("m", 1)), "op is 'm'"),
        (as_json(change("c", 1, after=GOOD, connector="oracle")), "connector 'oracle' is not known"),
        (as_json(change("c", None, after=GOOD)), "NULL_SEQUENCE"),
        (as_json(change("c", 1, after=GOOD, sequence="5")), "source.sequence is '5'"),
        (as_json(None), "null value, or an event"),
        (as_json(change("d", 1)), "NULL_KEY"),
        (as_json(change("c", 1, after={**GOOD, "V": "b"})), "differ only in case"),
        (pa.table({"value": ["{"]}), "no JSON"),
        (pa.table({"value": pa.array([b'{"op": "\xff"}']).view(pa.string())}), "no JSON"),
        (pa.table({"value": ["[1]"]}), "no JSON object"),
        (pa.table({"value": ['{"schema": null, "payload": 5}']}), "no JSON object"),
        (pa.table({"value": ['{"schema": {"fields": [5]}, "payload": {"op": "c"}}']}), "does not name its fields"),
        (pa.table({"value": ['{"a": 1e' + "9" * 30 + "}"]}), "exponent"),
        (pa.table({"value": ['{"a":' * 10**5 + "1" + "}" * 10**5]}), "no JSON: maximum recursion"),
        (as_json(change("c", 2**70, after=GOOD)), "the field source or ts_ms of an event cannot be read"),
        (as_columns(change("c", 1, after=GOOD)).set_column(0, "before", pa.array([{"id": "x"}])), "before.id"),
        (with_said("op", pa.array([b"\xff"]).view(pa.string())), "the field op, source or ts_ms of an event"),
        (with_said("ts_ms", pa.array([10**18]).cast(pa.timestamp("us"))), "the field op, source or ts_ms of an event"),
        (pa.table([pa.array(["{}"])] * 2, ["value", "value"]), "two columns value"),
        (as_json(change("c", 1, after="{}")), "no JSON object"),  # type: ignore[arg-type]  # as MongoDB's connector has it
        (as_json(change("c", "x", after=GOOD)), "the field source or ts_ms of an event"),  # type: ignore[arg-type]  # no LSN
        (pa.table({"id": [1]}), "no envelope"),
        (kafka((1, 1, change("t", 1))), "the offset of a truncate orders it in one partition only"),
    ],
    ids=[
        "column",
        "op",
        "connector",
        "position",
        "sequence",
        "tombstone",
        "key",
        "twin",
        "json",
        "not UTF-8",
        "array",
        "payload",
        "schema",
        "exponent",
        "deep",
        "huge lsn",
        "before",
        "op not UTF-8",
        "late",
        "twice",
        "row",
        "lsn",
        "columns",
        "truncate",
    ],
)
def test_what_debezium_does_not_say_is_refused_by_name(tmp_path: Path, changes: pa.Table, text: str) -> None:
    url = a_target(tmp_path)
    with pytest.raises(TablefeedError, match=text):
        debezium(url, changes)
    assert rows(url) == []


def test_17_a_truncate_is_refused_where_history_is_kept(tmp_path: Path) -> None:
    interval = {"__START_AT": pa.int64(), "__END_AT": pa.int64()}
    url = a_target(tmp_path, {**COLUMNS, **interval})
    debezium(url, as_json(change("c", 1, after=GOOD)), stored_as_scd_type=2, sequence_by="__ts_ms")
    with pytest.raises(TablefeedError, match="truncates the table"):
        debezium(url, as_json(change("t", 5)), stored_as_scd_type=2, sequence_by="__ts_ms")
    assert rows(url) == [(1, "a", 2, None)]
