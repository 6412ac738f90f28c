"""A write keeps the rules of its table: the columns that it fills, the rows and the rules that it refuses."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tablefeed
from support.logs import ID, Action, a_log, a_write, committed, info, log_of, metadata, protocol, put, still
from support.memory_store import MemoryStore
from tablefeed.errors import (
    ConflictError,
    InvalidRowsError,
    SchemaMismatchError,
    TableError,
    UnsupportedExpressionError,
    UnsupportedFeatureError,
)
from tablefeed.feed.commit.loop import commit
from tablefeed.feed.snapshot.open_log import open_log
from tablefeed.feed.write.sink import plan_write, write_task
from tablefeed.feed.write.write_rules import WriteRules
from tablefeed.log.conflicts import WriteKind
from tablefeed.store import LocalStore

FEATURES = ["appendOnly", "invariants", "checkConstraints", "generatedColumns", "allowColumnDefaults"]
ALL = protocol(1, 7, writerFeatures=FEATURES)

Column = tuple[str, object, dict[str, object]]


def schema_of(*columns: Column, required: tuple[str, ...] = ()) -> str:
    fields = [{"name": n, "type": t, "nullable": n not in required, "metadata": m} for n, t, m in columns]
    return json.dumps({"type": "struct", "fields": fields})


def a_table_of(
    path: Path,
    *columns: Column,
    required: tuple[str, ...] = (),
    partition_columns: tuple[str, ...] = (),
    told: Action = ALL,
    **configuration: str,
) -> None:
    """An empty table; `positive="x > 0"` is a CHECK constraint."""
    properties = {f"delta.constraints.{name}": text for name, text in configuration.items()}
    meta = metadata(
        schema_of(*columns, required=required), partition_columns=partition_columns, configuration=properties
    )
    a_log(LocalStore(str(path)), v0=[told, meta])


def rows(path: Path) -> list[dict[str, Any]]:
    return sorted(tablefeed.open_table(path).to_arrow().to_pylist(), key=str)


def is_untouched(path: Path) -> bool:
    """No file, and no version after the first."""
    return not list(path.rglob("*.parquet")) and tablefeed.open_table(path).version == 0


LONG: Column = ("id", "long", {})
GENERATED: dict[str, object] = {"delta.generationExpression": "id * 2"}
DAY: dict[str, object] = {"delta.generationExpression": "CAST(at AS DATE)"}


# --- conditions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_rows_that_break_a_constraint_are_named_and_leave_neither_a_file_nor_a_version(
    tmp_path: Path, mode: Any
) -> None:
    a_table_of(tmp_path, LONG, positive="id > 0")

    with pytest.raises(InvalidRowsError, match=r"CHECK constraint positive \(id > 0\).*\n - id : -1\n") as caught:
        tablefeed.append(
            tmp_path, [pa.record_batch([[1, 2]], schema=ID), pa.record_batch([[-1]], schema=ID)], mode=mode
        )

    assert caught.value.error_class == "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"
    assert is_untouched(tmp_path)


def test_an_invariant_of_a_column_below_the_top_is_kept(tmp_path: Path) -> None:
    invariant = {"delta.invariants": json.dumps({"expression": {"expression": "s.x < 10"}})}
    inner = {"type": "struct", "fields": [{"name": "x", "type": "long", "nullable": True, "metadata": invariant}]}
    a_table_of(tmp_path, ("s", inner, {}))

    with pytest.raises(InvalidRowsError, match=r"s\.x < 10"):
        tablefeed.append(tmp_path, pa.table({"s": [{"x": 10}]}))
    tablefeed.append(tmp_path, pa.table({"s": [{"x": 9}]}))

    assert rows(tmp_path) == [{"s": {"x": 9}}]


def test_a_text_longer_than_its_column_was_declared_is_refused(tmp_path: Path) -> None:
    a_table_of(tmp_path, ("s", "string", {"__CHAR_VARCHAR_TYPE_STRING": "varchar(3)"}))

    with pytest.raises(InvalidRowsError, match="DELTA_EXCEED_CHAR_VARCHAR_LIMIT"):
        tablefeed.append(tmp_path, pa.table({"s": ["abcd"]}))

    assert is_untouched(tmp_path)


def test_constraints_hold_for_the_values_that_rows_have_as_the_tables_types(tmp_path: Path) -> None:
    a_table_of(tmp_path, ("id", "integer", {}), positive="id > 0")

    with pytest.raises(InvalidRowsError, match="id : 0"):
        tablefeed.append(tmp_path, pa.table({"id": [0.9]}))


def test_a_new_tables_constraints_hold_for_its_first_rows(tmp_path: Path) -> None:
    properties = {"delta.constraints.positive": "id > 0"}

    with pytest.raises(InvalidRowsError, match="positive"):
        tablefeed.append(tmp_path, pa.table({"id": [0]}), properties=properties)
    tablefeed.append(tmp_path, pa.table({"id": [1]}), properties=properties)

    assert rows(tmp_path) == [{"id": 1}]


def test_the_rows_of_a_wider_schema_are_held_against_the_rules_too(tmp_path: Path) -> None:
    a_table_of(tmp_path, LONG, positive="id > 0")

    with pytest.raises(InvalidRowsError, match="positive"):
        tablefeed.append(tmp_path, pa.table({"id": [0], "new": ["x"]}), merge_schema=True)
    tablefeed.append(tmp_path, pa.table({"id": [1], "new": ["x"]}), merge_schema=True)

    assert rows(tmp_path) == [{"id": 1, "new": "x"}]


def test_an_overwrite_of_the_schema_is_refused_while_there_are_constraints(tmp_path: Path) -> None:
    a_table_of(tmp_path, LONG, positive="id > 0")

    with pytest.raises(UnsupportedFeatureError, match="CHECK constraints"):
        tablefeed.append(tmp_path, pa.table({"other": [1]}), mode="overwrite", overwrite_schema=True)


def test_rules_speak_of_columns_by_their_names_in_the_table_whatever_files_call_them(tmp_path: Path) -> None:
    mapped = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "col-1"}
    meta = metadata(
        schema_of(("id", "long", mapped)),
        configuration={
            "delta.columnMapping.mode": "name",
            "delta.columnMapping.maxColumnId": "1",
            "delta.constraints.positive": "id > 0",
        },
    )
    a_log(LocalStore(str(tmp_path)), v0=[protocol(2, 5), meta])

    with pytest.raises(InvalidRowsError, match="id : 0"):
        tablefeed.append(tmp_path, pa.table({"id": [0]}))
    tablefeed.append(tmp_path, pa.table({"id": [1]}))

    assert rows(tmp_path) == [{"id": 1}]


@pytest.mark.parametrize("given", [{"id": [1], "p": [""]}, {"id": [1]}], ids=["given", "default"])
def test_rules_meet_null_in_a_partition_column_that_is_an_empty_text(tmp_path: Path, given: dict[str, Any]) -> None:
    a_table_of(
        tmp_path, LONG, ("p", "string", {"CURRENT_DEFAULT": "''"}), partition_columns=("p",), known="p IS NOT NULL"
    )

    with pytest.raises(InvalidRowsError, match="p : null"):
        tablefeed.append(tmp_path, pa.table(given))


# --- columns that rows do not bring ----------------------------------------------------------------------------------


def test_an_absent_column_has_its_default_and_one_that_is_null_stays_null(tmp_path: Path) -> None:
    a_table_of(tmp_path, LONG, ("s", "string", {"CURRENT_DEFAULT": "'none'"}), required=())

    tablefeed.append(tmp_path, pa.table({"id": [1]}))
    tablefeed.append(tmp_path, pa.table({"id": [2], "s": pa.array([None], pa.string())}))

    assert rows(tmp_path) == [{"id": 1, "s": "none"}, {"id": 2, "s": None}]


def test_a_required_column_with_a_default_may_be_absent(tmp_path: Path) -> None:
    a_table_of(tmp_path, LONG, ("n", "integer", {"CURRENT_DEFAULT": "7"}), required=("n",))

    tablefeed.append(tmp_path, pa.table({"id": [1]}))

    assert rows(tmp_path) == [{"id": 1, "n": 7}]


def test_a_required_column_without_a_default_may_not(tmp_path: Path) -> None:
    a_table_of(tmp_path, LONG, ("n", "integer", {}), ("g", "long", GENERATED), required=("n",))

    with pytest.raises(SchemaMismatchError, match="no column 'n'"):
        tablefeed.append(tmp_path, pa.table({"id": [1]}))


def test_a_default_that_is_the_present_is_one_moment_for_all_tasks_of_a_write(tmp_path: Path) -> None:
    a_table_of(tmp_path, LONG, ("at", "timestamp", {"CURRENT_DEFAULT": "current_timestamp()"}))
    log = open_log(str(tmp_path))
    state = log.load()
    plan = plan_write(log, state, ID, partition_by=(), kind=WriteKind.APPEND, now_ms=1_700_000_000_123)

    for task in (0, 1):
        batch = pa.record_batch([[task]], schema=ID)
        write = a_write(log, state)
        files = write_task(pickle.loads(pickle.dumps(plan)), [batch], task=task, now_ms=task)  # noqa: S301 - ours
        commit(
            log, log.load(), type(write)(plan=plan, files=files, kind=write.kind, operation=write.operation), still()
        )

    assert {row["at"] for row in rows(tmp_path)} == {datetime(2023, 11, 14, 22, 13, 20, 123_000, tzinfo=UTC)}


def test_a_generated_column_is_computed_where_it_is_absent_and_checked_where_it_is_not(tmp_path: Path) -> None:
    a_table_of(tmp_path, LONG, ("twice", "long", GENERATED))

    tablefeed.append(tmp_path, pa.table({"id": [1, None]}))
    tablefeed.append(tmp_path, pa.table({"id": [2], "twice": [4]}))
    with pytest.raises(InvalidRowsError, match="Generated Column") as caught:
        tablefeed.append(tmp_path, pa.table({"id": [3], "twice": pa.array([None], pa.int64())}))

    assert caught.value.error_class == "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"
    assert rows(tmp_path) == [{"id": 1, "twice": 2}, {"id": 2, "twice": 4}, {"id": None, "twice": None}]


def test_a_partition_column_may_be_generated_in_the_zone_that_is_told(tmp_path: Path) -> None:
    a_table_of(tmp_path, ("at", "timestamp", {}), ("day", "date", DAY), partition_columns=("day",))
    late = pa.table({"at": [datetime(2024, 6, 1, 23, tzinfo=UTC)]})

    with pytest.raises(UnsupportedExpressionError, match="set the option timeZone"):
        tablefeed.append(tmp_path, late)
    for zone in ("Europe/Berlin", "+02:00", "UTC"):
        tablefeed.append(tmp_path, late, time_zone=zone)

    assert [row["day"] for row in rows(tmp_path)] == [date(2024, 6, 1), date(2024, 6, 2), date(2024, 6, 2)]
    assert [p.name for p in sorted(tmp_path.glob("day=*"))] == ["day=2024-06-01", "day=2024-06-02"]


def test_an_expression_of_a_protocol_without_generated_columns_generates_nothing(tmp_path: Path) -> None:
    a_table_of(tmp_path, LONG, ("twice", "long", GENERATED), told=protocol(1, 2))

    tablefeed.append(tmp_path, pa.table({"id": [1]}))

    assert rows(tmp_path) == [{"id": 1, "twice": None}]


# --- what cannot be kept ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "constraint", "said"),
    [
        ([LONG], "rand() > 0", "its constraint c"),
        ([LONG], "id >", "its constraint c"),
        ([LONG], "gone > 0", "there is no gone"),
        ([LONG, ("s", "string", {"CURRENT_DEFAULT": "uuid()"})], "id > 0", "the default of column s"),
        ([LONG, ("s", "long", {"delta.generationExpression": "xxhash64(id)"})], "id > 0", "the generation expression"),
        ([LONG, ("s", "long", {"delta.generationExpression": 7})], "id > 0", "in a form"),
        ([("id", "long", {"delta.invariants": "{}"})], "id > 0", "the invariant of column id"),
    ],
)
def test_a_rule_that_no_task_could_keep_refuses_the_write_before_a_row_is_read(
    tmp_path: Path, columns: list[Column], constraint: str, said: str
) -> None:
    a_table_of(tmp_path, *columns, c=constraint)
    log = open_log(str(tmp_path))

    with pytest.raises(TableError, match=said):
        plan_write(log, log.load(), ID, partition_by=(), kind=WriteKind.APPEND)


_WITHOUT = """
import sys
sys.modules[{gone!r}] = None
import pyarrow as pa, tablefeed
try:
    tablefeed.append({path!r}, pa.table({{"id": [1]}}))
except tablefeed.TablefeedError as error:
    print(error)
"""


@pytest.mark.parametrize("gone", ["duckdb", "sqlglot"])
def test_where_the_extra_is_not_installed_it_is_named_and_nothing_is_written(tmp_path: Path, gone: str) -> None:
    a_table_of(tmp_path, LONG, positive="id > 0")

    program = _WITHOUT.format(gone=gone, path=str(tmp_path))
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout

    assert 'pip install "tablefeed[rules]"' in said
    assert is_untouched(tmp_path)


def test_a_table_without_rules_loads_no_engine(tmp_path: Path) -> None:
    program = (
        _WITHOUT.format(gone="nothing", path=str(tmp_path)) + "print('duckdb' in sys.modules, 'sqlglot' in sys.modules)"
    )

    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout

    assert said.split() == ["False", "False"]


# --- rivals ----------------------------------------------------------------------------------------------------------


def test_rows_are_not_committed_to_a_table_that_got_a_rule_after_they_were_held_against_the_others() -> None:
    log = a_log(v0=[protocol(1, 3), metadata()])
    state = log.load()
    write = a_write(log, state, "a")
    put(log.store, 1, [info(), metadata(configuration={"delta.constraints.positive": "id > 0"})])

    with pytest.raises(ConflictError, match="DELTA_METADATA_CHANGED"):
        commit(log, state, write, still())


def test_rows_for_a_new_table_are_not_committed_to_one_that_a_rival_made_with_other_rules() -> None:
    properties = {"delta.constraints.positive": "id > 0"}
    log = log_of(MemoryStore("orders"))
    free, bound = a_write(log, None, "free"), a_write(log, None, "bound", rules=WriteRules(properties=properties))

    assert commit(log, None, bound, still())[0] == committed(0)
    with pytest.raises(ConflictError, match="with rules"):
        commit(log, None, free, still())
