"""What callers of the Python API pass is judged before a row is read: a bad argument is our error, by its name."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import write_deltalake

import tablefeed
from tablefeed.errors import IllegalOptionError, MissingPathError, OptionError, SchemaMismatchError

READS: dict[str, Callable[..., Any]] = {
    "open_table": lambda path, **arguments: tablefeed.open_table(path).to_arrow(**arguments),
    "appends": lambda path, **arguments: tablefeed.appends(path, **arguments).read_all(),
    "changes": lambda path, **arguments: tablefeed.changes(path, **arguments).read_all(),
}
ROWS = pa.table({"id": [1], "day": ["a"]})
EVERY_WAY_IN: list[Callable[..., Any]] = [
    tablefeed.open_table,
    tablefeed.appends,
    tablefeed.changes,
    tablefeed.follow,
    lambda path, **arguments: tablefeed.append(path, ROWS, **arguments),
]


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    recorded = {"delta.enableChangeDataFeed": "true"}
    write_deltalake(tmp_path, ROWS, partition_by=["day"], configuration=recorded)
    return tmp_path


class NoTime(dt.datetime):
    """As NaT of pandas: a datetime by its class, equal to nothing."""

    __hash__ = dt.datetime.__hash__

    def __eq__(self, other: object) -> bool:
        return False

    def __ne__(self, other: object) -> bool:
        return True


@pytest.mark.parametrize("read", READS.values(), ids=list(READS))
def test_columns_are_any_iterable_of_names(orders: Path, read: Callable[..., Any]) -> None:
    for columns in (["day", "id"], ("day", "id"), (name for name in ("day", "id")), {"day": 1, "id": 2}):
        assert read(orders, columns=columns).to_pydict() == {"day": ["a"], "id": [1]}


@pytest.mark.parametrize("read", READS.values(), ids=list(READS))
@pytest.mark.parametrize("condition", [None, pc.field("id") > 0])
def test_a_column_comes_as_often_as_it_is_asked_for(
    orders: Path, read: Callable[..., Any], condition: pc.Expression | None
) -> None:
    rows = read(orders, columns=["day", "id", "day", "id"], filter=condition)

    assert rows.schema.names == ["day", "id", "day", "id"]
    assert [column.to_pylist() for column in rows.columns] == [["a"], [1], ["a"], [1]]


@pytest.mark.parametrize("read", READS.values(), ids=list(READS))
@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ("id", "must be a list of column names"),
        (5, "must be a list of column names"),
        (b"id", "must be a list of column names"),
        (["id", 5], "must be a text"),
        ([["id"]], "must be a text"),
    ],
)
def test_columns_that_are_no_list_of_names_are_refused(
    orders: Path, read: Callable[..., Any], columns: Any, said: str
) -> None:
    with pytest.raises(IllegalOptionError, match=said) as caught:
        read(orders, columns=columns)
    assert caught.value.option == "columns"


@pytest.mark.parametrize("read", READS.values(), ids=list(READS))
def test_a_column_that_the_table_has_not_is_refused(orders: Path, read: Callable[..., Any]) -> None:
    with pytest.raises(SchemaMismatchError, match="has no column 'ID'"):
        read(orders, columns=["ID"])


@pytest.mark.parametrize("way_in", EVERY_WAY_IN)
def test_a_path_is_a_text_or_a_path(orders: Path, way_in: Callable[..., Any]) -> None:
    with pytest.raises(MissingPathError, match="No path was given"):
        way_in(None)
    for other in (5, str(orders).encode(), [str(orders)]):
        with pytest.raises(IllegalOptionError, match="must be a path or a URL"):
            way_in(other)


@pytest.mark.parametrize("way_in", EVERY_WAY_IN)
@pytest.mark.parametrize("options", ["allow_absolute_paths=true", 5, [("a", "b")], {1: "x"}])
def test_storage_options_are_a_mapping_of_names_and_are_not_shown(
    orders: Path, way_in: Callable[..., Any], options: Any
) -> None:
    with pytest.raises(IllegalOptionError, match="must map names to values") as caught:
        way_in(orders, storage_options=options)
    assert "absolute" not in str(caught.value)


@pytest.mark.parametrize("value", ["false", 0, 1, None, "yes"])
@pytest.mark.parametrize(
    ("way_in", "name"),
    [
        (tablefeed.appends, "ignore_deletes"),
        (tablefeed.appends, "ignore_changes"),
        (tablefeed.appends, "skip_change_commits"),
        (tablefeed.changes, "compute_updates"),
        (EVERY_WAY_IN[-1], "merge_schema"),
    ],
)
def test_a_switch_is_true_or_false(orders: Path, way_in: Callable[..., Any], name: str, value: Any) -> None:
    with pytest.raises(IllegalOptionError, match="must be True or False") as caught:
        way_in(orders, **{name: value})
    assert caught.value.option == name


@pytest.mark.parametrize(
    ("way_in", "name"),
    [(tablefeed.open_table, "timestamp"), (tablefeed.changes, "start_timestamp"), (tablefeed.changes, "end_timestamp")],
)
@pytest.mark.parametrize("value", [NoTime(2024, 1, 1), 5, b"2024-01-01", "soon"])
def test_a_time_is_a_text_a_datetime_or_a_date(orders: Path, way_in: Callable[..., Any], name: str, value: Any) -> None:
    with pytest.raises(IllegalOptionError) as caught:
        way_in(orders, **{name: value})
    assert (caught.value.option, caught.value.error_class) == (name, "DELTA_TIMESTAMP_INVALID")


@pytest.mark.parametrize("value", [True, False, "1", 1.0])
@pytest.mark.parametrize(
    ("way_in", "name"),
    [
        (tablefeed.open_table, "version"),
        (tablefeed.appends, "start_version"),
        (tablefeed.changes, "end_version"),
        (tablefeed.follow, "after"),
        (partial(EVERY_WAY_IN[-1], app_id="loader"), "txn_version"),
        (lambda path, version: tablefeed.consumers(path).register("sums", version=version), "version"),
    ],
)
def test_a_version_is_a_whole_number_and_no_bool(
    orders: Path, way_in: Callable[..., Any], name: str, value: Any
) -> None:
    with pytest.raises(IllegalOptionError, match="must be a whole number") as caught:
        way_in(orders, **{name: value})
    assert caught.value.option == name


@pytest.mark.parametrize("app_id", [None, 5, ["loader"], b"loader"])
def test_an_application_is_asked_for_by_its_name(orders: Path, app_id: Any) -> None:
    with pytest.raises(IllegalOptionError, match="must be a text"):
        tablefeed.open_table(orders).txn_version(app_id)


@pytest.mark.parametrize("seconds", [0, -1, "1", None, float("nan"), float("inf"), 10**9])
def test_an_interval_is_a_number_of_seconds_above_0(orders: Path, seconds: Any) -> None:
    with pytest.raises(IllegalOptionError, match="must be a number of seconds above 0"):
        tablefeed.follow(orders, poll_interval_s=seconds)


@pytest.mark.parametrize(
    "arguments",
    [
        {"mode": 5},
        {"mode": ["append"]},
        {"partition_by": 5},
        {"partition_by": [5]},
        {"partition_by": ["day", "day"]},
        {"properties": "delta.appendOnly=true"},
        {"properties": {5: "x"}},
        {"properties": {"delta.appendOnly": True}},
        {"app_id": "loader", "txn_version": "5"},
        {"app_id": "loader", "txn_version": 5.5},
        {"app_id": 5, "txn_version": 5},
        {"app_id": "loader"},
    ],
)
def test_nothing_is_written_where_an_argument_is_bad(orders: Path, arguments: dict[str, Any]) -> None:
    for path in (orders, orders / "new"):
        with pytest.raises(OptionError):
            tablefeed.append(path, ROWS, **arguments)
    assert tablefeed.open_table(orders).version == 0
    assert not (orders / "new").exists()
