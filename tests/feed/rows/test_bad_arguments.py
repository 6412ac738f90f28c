"""What a row change refuses, by class: every argument of every call, before anything is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tablefeed
from feed.rows.test_apply_changes import NEEDED, VECTORS
from tablefeed import Delete, Insert, Update
from tablefeed.errors import (
    AppendOnlyError,
    ConflictingOptionsError,
    IllegalOptionError,
    IncompleteOptionsError,
    InvalidEventsError,
    InvalidRowsError,
    MissingPathError,
    SchemaMismatchError,
    TablefeedError,
    TableNotFoundError,
    UnsupportedFeatureError,
)

ROWS = pa.table({"id": [1, 3], "v": ["x", "y"], "ts": [2, 2]})
EVENTS = ROWS.append_column("op", [["u", "d"]])
NO_ROWS: tuple[Any, ...] = (5, None, "id", [], {"id": [1]})
HISTORY: dict[str, Any] = {"stored_as_scd_type": 2, "except_column_list": ["op", "ts"]}

CALLS: Mapping[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "delete": (tablefeed.delete, {"where": "id = 1"}),
    "update": (tablefeed.update, {"set": {"v": "'x'"}, "where": "id = 1"}),
    "merge": (tablefeed.merge, {"rows": ROWS, "on": ["id"], "matched": [Update()], "not_matched": [Insert()]}),
    "apply_changes": (
        tablefeed.apply_changes,
        {"changes": EVENTS, "keys": "id", "sequence_by": "ts", "except_column_list": ["op"]},
    ),
    "apply_changes_from_snapshot": (
        tablefeed.apply_changes_from_snapshot,
        {"snapshots": (ROWS, 1), "keys": "id"},
    ),
}


class Bad:
    """An argument of a call with a value that is refused, and why."""

    def __init__(self, call: str, error: type[TablefeedError], text: str, **arguments: Any) -> None:
        self.call, self.error, self.text, self.arguments = call, error, text, arguments

    def __str__(self) -> str:
        return f"{self.call} {' '.join(self.arguments)}"


def with_column(name: str, *values: Any, kind: pa.DataType | None = None) -> pa.Table:
    column = pa.array(values, kind)
    return EVENTS.slice(0, len(values)).set_column(EVENTS.column_names.index(name), name, column)


def wrong_of_every_call() -> Iterator[Bad]:
    for call in CALLS:
        yield Bad(call, MissingPathError, "No path", url=None)
        yield Bad(call, IllegalOptionError, "'url'", url=5)
        yield Bad(call, TableNotFoundError, "no table", url="/nowhere/at/all")
        yield Bad(call, IllegalOptionError, "storage_options", storage_options=5)
    for call in list(CALLS)[:4]:
        yield Bad(call, IncompleteOptionsError, "app_id", app_id="job")
        yield Bad(call, IncompleteOptionsError, "txn_version", txn_version=1)
        yield Bad(call, IllegalOptionError, "'app_id'", app_id=5, txn_version=1)
        for version in (-1, 1.5, "1", 2**63):
            yield Bad(call, IllegalOptionError, "'txn_version'", app_id="job", txn_version=version)


def wrong_predicates() -> Iterator[Bad]:
    no_predicates: tuple[Any, ...] = (5, b"id = 1", [], ("id", "=", 1))
    for call in ("delete", "update"):
        for where in ("", "nope", "nope = 1", "id =", "id", "count(*) > 1", "id IN (SELECT 1)", "\ud800"):
            yield Bad(call, IllegalOptionError, "where|filter", where=where)
        yield Bad(call, IllegalOptionError, "UTF-8 can hold", where="v = '\ud800'")
        for no_predicate in no_predicates:
            yield Bad(call, IllegalOptionError, "where|filter", where=no_predicate)
    yield Bad("delete", ConflictingOptionsError, "where", where=None)
    for values in ({}, None, 5, "v = 1", {"nope": "1"}, {"v": 5}, {5: "v"}, {"v": ""}, {"v": "nope"}, {"v": "'a"}):
        yield Bad("update", IllegalOptionError, "set", set=values)
    yield Bad("update", IllegalOptionError, "NUL", set={"v": "'a\0b'"})
    yield Bad("update", InvalidRowsError, "1 / 0", set={"id": "1 / 0"})


def wrong_merges() -> Iterator[Bad]:
    for rows in NO_ROWS:
        yield Bad("merge", SchemaMismatchError, "rows for", rows=rows)
    for on in (5, None, [], ["nope"], [5], ["id", "ID"], "", "id", "target.id > source.id", "target.id = source.nope"):
        yield Bad("merge", IllegalOptionError, "'on'", on=on)
    wrong = (5, None, "", "Update", [5], [Insert()], [Update(where=5)], [Update(where="nope = 1")], [Update(set={})])  # type: ignore[arg-type]
    wrong += ([Update(set=5)], [Update(set={"v": 5})], [Update(set={"nope": "1"})], [Update(set={"v": "nope"})])  # type: ignore[arg-type, dict-item, assignment]
    wrong += ([Delete(where=b"x")], [Delete(where="")])  # type: ignore[arg-type, assignment]
    for name in ("matched", "not_matched_by_source"):
        for clauses in wrong:
            yield Bad("merge", IllegalOptionError, ".", **{"matched": [], name: clauses})
    no_inserts = (5, None, "", [Update()], [Insert(values=5)], [Insert(values={})], [Insert(values={"v": "target.v"})])  # type: ignore[arg-type]
    for inserts in no_inserts:
        yield Bad("merge", IllegalOptionError, ".", not_matched=inserts)
    days = ROWS.set_column(2, "ts", pa.array([1, 2], pa.date64()))
    yield Bad("merge", SchemaMismatchError, "column ts of the source", rows=days)
    twins = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["id", "ID"])
    yield Bad("merge", TablefeedError, "(?i)id", rows=twins)


def wrong_changes() -> Iterator[Bad]:
    for changes in NO_ROWS:
        yield Bad("apply_changes", SchemaMismatchError, "rows for", changes=changes)
    for names in (5, [5], ["nope"], "nope", [None]):
        for option in ("keys", "sequence_by", "column_list", "except_column_list"):
            listed = {"except_column_list": None} if option == "column_list" else {}
            yield Bad("apply_changes", IllegalOptionError, option, **listed, **{option: names})
        for option in ("ignore_null_updates_column_list", "ignore_null_updates_except_column_list"):
            yield Bad("apply_changes", IllegalOptionError, option, **{option: names})
    for names in ([], ""):
        yield Bad("apply_changes", IllegalOptionError, ".", keys=names)
        yield Bad("apply_changes", IllegalOptionError, "sequence_by", sequence_by=names)
    yield Bad("apply_changes", IllegalOptionError, "twice", keys=["id", "ID"])
    yield Bad("apply_changes", IllegalOptionError, "'sequence_by': it names a column twice", sequence_by=["ts", "TS"])
    for sql in (5, b"x", "", "nope = 1", "op", "op ="):
        yield Bad("apply_changes", IllegalOptionError, "apply_as_deletes", apply_as_deletes=sql)
        yield Bad("apply_changes", IllegalOptionError, "apply_as_truncates", apply_as_truncates=sql)
    for switch in (None, 1, "true"):
        yield Bad("apply_changes", IllegalOptionError, "ignore_null_updates", ignore_null_updates=switch)
    for scd_type in (3, 0, None, "1", True, 1.0, [1]):
        yield Bad("apply_changes", IllegalOptionError, "stored_as_scd_type", stored_as_scd_type=scd_type)
    for ties in ("first", None, 5):
        yield Bad("apply_changes", IllegalOptionError, "ties", ties=ties)
    for source in ("oracle", 5):
        yield Bad("apply_changes", IllegalOptionError, "source", source=source)
    exclusive: dict[str, Any] = {"ignore_null_updates": True, "ignore_null_updates_column_list": ["v"]}
    yield Bad("apply_changes", ConflictingOptionsError, "CONFLICTING_IGNORE_NULL_UPDATES", **exclusive)
    yield Bad("apply_changes", ConflictingOptionsError, "column_list", column_list=["id"])
    yield Bad("apply_changes", IllegalOptionError, "REQUIRES_SCD2", track_history_column_list=["v"])
    yield Bad("apply_changes", SchemaMismatchError, "AUTOCDC_SCD2_TARGET_COLUMNS_MISSING", **HISTORY)
    yield Bad("apply_changes", SchemaMismatchError, "op", except_column_list=[])


def wrong_events() -> Iterator[Bad]:
    for name, kind, text in (("id", pa.int64(), "NULL_KEY"), ("ts", pa.int64(), "NULL_SEQUENCE")):
        yield Bad("apply_changes", InvalidEventsError, text, changes=with_column(name, 1, None, kind=kind))
    unordered = {"a map": pa.map_(pa.string(), pa.int64()), "a list": pa.list_(pa.int64()), "half": pa.float16()}
    for kind in unordered.values():
        changes = with_column("ts", None, kind=kind).rename_columns({"ts": "at"})
        more: dict[str, Any] = {"sequence_by": "at", "except_column_list": ["op", "at"]}
        yield Bad("apply_changes", TablefeedError, "NON_ORDERABLE_SEQUENCE|halffloat", changes=changes, **more)
    yield Bad("apply_changes", InvalidRowsError, "id", changes=with_column("id", "no number"))
    yield Bad("apply_changes", TablefeedError, "id", changes=with_column("id", [1]))
    twins = EVENTS.append_column("ID", EVENTS["id"])
    yield Bad("apply_changes", TablefeedError, "(?i)id", changes=twins)


def wrong_snapshots() -> Iterator[Bad]:
    for snapshots in (None, 5, (), (ROWS,), (ROWS, 1, 2), lambda _: 5):
        yield Bad("apply_changes_from_snapshot", IllegalOptionError, "snapshots", snapshots=snapshots)
    for version in (None, True, object(), float("nan"), 2**70, "\ud800", [], {}):
        yield Bad("apply_changes_from_snapshot", TablefeedError, ".", snapshots=(ROWS, version))
    yield Bad("apply_changes_from_snapshot", SchemaMismatchError, "rows for", snapshots=(5, 1))
    for keys in (5, [], "nope", ["id", "ID"]):
        yield Bad("apply_changes_from_snapshot", IllegalOptionError, ".", keys=keys)


WRONG = [*wrong_of_every_call(), *wrong_predicates(), *wrong_merges(), *wrong_changes(), *wrong_events()]
WRONG += wrong_snapshots()


def files(url: str) -> set[str]:
    return {str(path) for path in Path(url).rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    url = str(tmp_path_factory.mktemp("bad") / "table")
    tablefeed.append(url, pa.table({"id": [1, 2], "v": ["a", "b"], "ts": [1, 1]}), properties={**NEEDED, **VECTORS})
    return url


@pytest.mark.parametrize("bad", WRONG, ids=[f"{number} {bad}" for number, bad in enumerate(WRONG)])
def test_what_is_wrong_is_refused_by_its_class_and_nothing_is_written(table: str, bad: Bad) -> None:
    call, good = CALLS[bad.call]
    before = files(table)
    with pytest.raises(bad.error, match=bad.text):
        call(**{"url": table, **good, **bad.arguments})
    assert files(table) == before


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    ("made", "error"),
    [
        ({"properties": {"delta.appendOnly": "true", **NEEDED}}, AppendOnlyError),
        ({"table_format": "indextables"}, UnsupportedFeatureError),
    ],
    ids=["append-only", "IndexTables"],
)
def test_a_table_whose_rows_cannot_change_is_refused_by_name(
    tmp_path: Path, call: str, made: dict[str, Any], error: type[TablefeedError]
) -> None:
    url = str(tmp_path / "table")
    tablefeed.append(url, pa.table({"id": [1, 2], "v": ["a", "b"], "ts": [1, 1]}), **made)
    before = files(url)
    function, good = CALLS[call]
    with pytest.raises(error):
        function(url, **good)
    assert files(url) == before


@pytest.mark.parametrize("call", ["merge", "apply_changes", "apply_changes_from_snapshot"])
def test_a_key_whose_values_have_different_texts_is_refused(tmp_path: Path, call: str) -> None:
    """Spark takes 'a' and 'a  ' for one value of CHAR(3). Compared as texts they would be two rows."""
    known, url = tmp_path / "known", tmp_path / "table"
    tablefeed.append(str(known), pa.table({"id": [1], "v": ["a"], "ts": [1]}), properties=NEEDED)
    commit = "_delta_log/00000000000000000000.json"
    text = (known / commit).read_text(encoding="utf-8")
    plain = r"\"name\":\"v\",\"type\":\"string\",\"nullable\":true,\"metadata\":{}"
    assert plain in text
    declared = plain.replace("{}", r"{\"__CHAR_VARCHAR_TYPE_STRING\":\"char(3)\"}")
    (url / commit).parent.mkdir(parents=True)
    (url / commit).write_text(text.replace(plain, declared), encoding="utf-8")
    before = files(str(url))
    function, good = CALLS[call]
    with pytest.raises(IllegalOptionError, match=r"'v'.*is a CHAR or collated column"):
        function(str(url), **{**good, "on" if call == "merge" else "keys": ["v"]})
    assert files(str(url)) == before
