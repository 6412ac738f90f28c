"""A write keeps the rules of its table: the columns that it fills, the rows and the rules that it refuses."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tablefeed
from support.commits import a_write, commit_behind, committed, still
from support.logs import ID, Action, a_log, col, info, meta, metadata, protocol, struct
from tablefeed import errors
from tablefeed.feed.commit.loop import commit
from tablefeed.feed.snapshot.open_log import open_log
from tablefeed.feed.write.sink import plan_write, write_task
from tablefeed.feed.write.write_rules import WriteRules
from tablefeed.log.conflicts import WriteKind
from tablefeed.store import LocalStore

FEATURES = ["appendOnly", "invariants", "checkConstraints", "generatedColumns", "allowColumnDefaults"]
ALL = protocol(1, 7, writerFeatures=FEATURES)

Column = dict[str, object]


def a_table_of(
    path: Path, *columns: Column, parted_by: tuple[str, ...] = (), told: Action = ALL, **constraints: str
) -> None:
    """An empty table; `positive="x > 0"` is a CHECK constraint."""
    properties = {f"delta.constraints.{name}": text for name, text in constraints.items()}
    a_log(LocalStore(str(path)), v0=[told, meta(*columns, partition_columns=parted_by, configuration=properties)])


def rows(path: Path) -> list[dict[str, Any]]:
    return sorted(tablefeed.open_table(path).to_arrow().to_pylist(), key=str)


def is_untouched(path: Path) -> bool:
    """No file, and no version after the first."""
    return not list(path.rglob("*.parquet")) and tablefeed.open_table(path).version == 0


LONG = col("id")
GENERATED = {"delta.generationExpression": "id * 2"}


# --- conditions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_rows_that_break_a_constraint_are_named_and_leave_neither_a_file_nor_a_version(
    tmp_path: Path, mode: Any
) -> None:
    a_table_of(tmp_path, LONG, positive="id > 0")

    batches = [pa.record_batch([row_ids], schema=ID) for row_ids in ([1, 2], [-1])]
    said = r"VIOLATE_CONSTRAINT_WITH_VALUES.*CHECK constraint positive \(id > 0\).*\n - id : -1\n"
    with pytest.raises(errors.InvalidRowsError, match=said):
        tablefeed.append(tmp_path, batches, mode=mode)

    assert is_untouched(tmp_path)


def test_an_invariant_of_a_column_below_the_top_is_kept(tmp_path: Path) -> None:
    invariant = {"delta.invariants": json.dumps({"expression": {"expression": "s.x < 10"}})}
    a_table_of(tmp_path, col("s", struct(col("x", notes=invariant))))

    with pytest.raises(errors.InvalidRowsError, match=r"s\.x < 10"):
        tablefeed.append(tmp_path, pa.table({"s": [{"x": 10}]}))
    tablefeed.append(tmp_path, pa.table({"s": [{"x": 9}]}))

    assert rows(tmp_path) == [{"s": {"x": 9}}]


def test_a_text_longer_than_its_column_was_declared_is_refused(tmp_path: Path) -> None:
    a_table_of(tmp_path, col("s", "string", notes={"__CHAR_VARCHAR_TYPE_STRING": "varchar(3)"}))

    with pytest.raises(errors.InvalidRowsError, match="DELTA_EXCEED_CHAR_VARCHAR_LIMIT"):
        tablefeed.append(tmp_path, pa.table({"s": ["abcd"]}))

    assert is_untouched(tmp_path)


def test_constraints_hold_for_the_values_that_rows_have_as_the_tables_types(tmp_path: Path) -> None:
    a_table_of(tmp_path, col("id", "integer"), positive="id > 0")

    with pytest.raises(errors.InvalidRowsError, match="id : 0"):
        tablefeed.append(tmp_path, pa.table({"id": [0.9]}))


def test_a_new_tables_constraints_hold_for_its_first_rows(tmp_path: Path) -> None:
    properties = {"delta.constraints.positive": "id > 0"}

    with pytest.raises(errors.InvalidRowsError, match="positive"):
        tablefeed.append(tmp_path, pa.table({"id": [0]}), properties=properties)
    tablefeed.append(tmp_path, pa.table({"id": [1]}), properties=properties)

    assert rows(tmp_path) == [{"id": 1}]


def test_the_rows_of_a_wider_schema_are_held_against_the_rules_too(tmp_path: Path) -> None:
    a_table_of(tmp_path, LONG, positive="id > 0")

    with pytest.raises(errors.InvalidRowsError, match="positive"):
        tablefeed.append(tmp_path, pa.table({"id": [0], "new": ["x"]}), merge_schema=True)
    tablefeed.append(tmp_path, pa.table({"id": [1], "new": ["x"]}), merge_schema=True)

    assert rows(tmp_path) == [{"id": 1, "new": "x"}]


def test_an_overwrite_of_the_schema_is_refused_while_there_are_constraints(tmp_path: Path) -> None:
    a_table_of(tmp_path, LONG, positive="id > 0")

    with pytest.raises(errors.UnsupportedFeatureError, match="CHECK constraints"):
        tablefeed.append(tmp_path, pa.table({"other": [1]}), mode="overwrite", overwrite_schema=True)


def test_rules_speak_of_columns_by_their_names_in_the_table_whatever_files_call_them(tmp_path: Path) -> None:
    mapped = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "1"}
    said = meta(col("id", id=1, physicalName="col-1"), configuration=mapped | {"delta.constraints.positive": "id > 0"})
    a_log(LocalStore(str(tmp_path)), v0=[protocol(2, 5), said])

    with pytest.raises(errors.InvalidRowsError, match="id : 0"):
        tablefeed.append(tmp_path, pa.table({"id": [0]}))
    tablefeed.append(tmp_path, pa.table({"id": [1]}))

    assert rows(tmp_path) == [{"id": 1}]


@pytest.mark.parametrize("given", [{"id": [1], "p": [""]}, {"id": [1]}], ids=["given", "default"])
def test_rules_meet_null_in_a_partition_column_that_is_an_empty_text(tmp_path: Path, given: dict[str, Any]) -> None:
    p = col("p", "string", notes={"CURRENT_DEFAULT": "''"})
    a_table_of(tmp_path, LONG, p, parted_by=("p",), known="p IS NOT NULL")

    with pytest.raises(errors.InvalidRowsError, match="p : null"):
        tablefeed.append(tmp_path, pa.table(given))


# --- columns that rows do not bring ----------------------------------------------------------------------------------


def test_an_absent_column_has_its_default_and_one_that_is_null_stays_null(tmp_path: Path) -> None:
    a_table_of(tmp_path, LONG, col("s", "string", notes={"CURRENT_DEFAULT": "'none'"}))

    tablefeed.append(tmp_path, pa.table({"id": [1]}))
    tablefeed.append(tmp_path, pa.table({"id": [2], "s": pa.array([None], pa.string())}))

    assert rows(tmp_path) == [{"id": 1, "s": "none"}, {"id": 2, "s": None}]


def test_a_nested_column_or_a_variant_may_have_the_default_null(tmp_path: Path) -> None:
    null = {"CURRENT_DEFAULT": "NULL"}
    texts = {"type": "array", "elementType": "string", "containsNull": True}
    days = {"type": "map", "keyType": "string", "valueType": "date", "valueContainsNull": True}
    kinds = [texts, days, struct(col('a "b"', "timestamp")), {**texts, "elementType": struct(col("x"))}, "variant"]
    told = protocol(3, 7, readerFeatures=["variantType"], writerFeatures=[*FEATURES, "variantType"])
    a_table_of(tmp_path, LONG, *(col(f"c{i}", kind, notes=null) for i, kind in enumerate(kinds)), told=told)

    tablefeed.append(tmp_path, pa.table({"id": [1]}))

    assert rows(tmp_path) == [{"id": 1, "c0": None, "c1": None, "c2": None, "c3": None, "c4": None}]


def test_a_default_null_is_refused_by_name_for_a_struct_that_must_have_a_member(tmp_path: Path) -> None:
    a_table_of(tmp_path, LONG, col("s", struct(col("a", nullable=False)), notes={"CURRENT_DEFAULT": "NULL"}))

    with pytest.raises(errors.InvalidRowsError, match=r"NOT NULL constraint violated for column: s\.a"):
        tablefeed.append(tmp_path, pa.table({"id": [1]}))


def test_a_required_column_with_a_default_may_be_absent(tmp_path: Path) -> None:
    a_table_of(tmp_path, LONG, col("n", "integer", nullable=False, notes={"CURRENT_DEFAULT": "7"}))

    tablefeed.append(tmp_path, pa.table({"id": [1]}))

    assert rows(tmp_path) == [{"id": 1, "n": 7}]


def test_a_required_column_without_a_default_may_not(tmp_path: Path) -> None:
    a_table_of(tmp_path, LONG, col("n", "integer", nullable=False), col("g", notes=GENERATED))

    with pytest.raises(errors.SchemaMismatchError, match="no column 'n'"):
        tablefeed.append(tmp_path, pa.table({"id": [1]}))


def test_a_default_that_is_the_present_is_one_moment_for_all_tasks_of_a_write(tmp_path: Path) -> None:
    a_table_of(tmp_path, LONG, col("at", "timestamp", notes={"CURRENT_DEFAULT": "current_timestamp()"}))
    log = open_log(str(tmp_path))
    state = log.load()
    plan = plan_write(log, state, ID, partition_by=(), kind=WriteKind.APPEND, now_ms=1_700_000_000_123)

    for task in (0, 1):
        batch = pa.record_batch([[task]], schema=ID)
        files = write_task(pickle.loads(pickle.dumps(plan)), [batch], task=task, now_ms=task)  # noqa: S301 - ours
        commit(log, log.load(), replace(a_write(log, state), plan=plan, files=files), still())

    assert {row["at"] for row in rows(tmp_path)} == {datetime(2023, 11, 14, 22, 13, 20, 123_000, tzinfo=UTC)}


def test_a_generated_column_is_computed_where_it_is_absent_and_checked_where_it_is_not(tmp_path: Path) -> None:
    a_table_of(tmp_path, LONG, col("twice", notes=GENERATED))

    tablefeed.append(tmp_path, pa.table({"id": [1, None]}))
    tablefeed.append(tmp_path, pa.table({"id": [2], "twice": [4]}))
    with pytest.raises(errors.InvalidRowsError, match=r"DELTA_VIOLATE_CONSTRAINT_WITH_VALUES.*Generated Column"):
        tablefeed.append(tmp_path, pa.table({"id": [3], "twice": pa.array([None], pa.int64())}))

    assert rows(tmp_path) == [{"id": 1, "twice": 2}, {"id": 2, "twice": 4}, {"id": None, "twice": None}]


def test_a_partition_column_may_be_generated_in_the_zone_that_is_told(tmp_path: Path) -> None:
    day = col("day", "date", notes={"delta.generationExpression": "CAST(at AS DATE)"})
    a_table_of(tmp_path, col("at", "timestamp"), day, parted_by=("day",))
    late = pa.table({"at": [datetime(2024, 6, 1, 23, tzinfo=UTC)]})

    with pytest.raises(errors.UnsupportedExpressionError, match="set the option timeZone"):
        tablefeed.append(tmp_path, late)
    for zone in ("Europe/Berlin", "+02:00", "UTC"):
        tablefeed.append(tmp_path, late, time_zone=zone)

    assert [row["day"] for row in rows(tmp_path)] == [date(2024, 6, 1), date(2024, 6, 2), date(2024, 6, 2)]
    assert [p.name for p in sorted(tmp_path.glob("day=*"))] == ["day=2024-06-01", "day=2024-06-02"]


def test_an_expression_of_a_protocol_without_generated_columns_generates_nothing(tmp_path: Path) -> None:
    a_table_of(tmp_path, LONG, col("twice", notes=GENERATED), told=protocol(1, 2))

    tablefeed.append(tmp_path, pa.table({"id": [1]}))

    assert rows(tmp_path) == [{"id": 1, "twice": None}]


# --- what cannot be kept ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "constraint", "said"),
    [
        ([LONG], "rand() > 0", "its constraint c"),
        ([LONG], "id >", "its constraint c"),
        ([LONG], "gone > 0", "there is no gone"),
        ([LONG, col("s", "string", notes={"CURRENT_DEFAULT": "uuid()"})], "id > 0", "the default of column s"),
        ([LONG, col("s", notes={"delta.generationExpression": "xxhash64(id)"})], "id > 0", "the generation expression"),
        ([LONG, col("s", notes={"delta.generationExpression": 7})], "id > 0", "in a form"),
        ([col("id", notes={"delta.invariants": "{}"})], "id > 0", "the invariant of column id"),
    ],
)
def test_a_rule_that_no_task_could_keep_refuses_the_write_before_a_row_is_read(
    tmp_path: Path, columns: list[Column], constraint: str, said: str
) -> None:
    a_table_of(tmp_path, *columns, c=constraint)
    log = open_log(str(tmp_path))

    with pytest.raises(errors.TableError, match=said):
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
    program = _WITHOUT.format(gone="nothing", path=str(tmp_path))
    program += "print('duckdb' in sys.modules, 'sqlglot' in sys.modules)"

    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout

    assert said.split() == ["False", "False"]


# --- rivals ----------------------------------------------------------------------------------------------------------


def test_rows_are_not_committed_to_a_table_that_got_a_rule_after_they_were_held_against_the_others() -> None:
    ruled = [info(), metadata(configuration={"delta.constraints.positive": "id > 0"})]

    with pytest.raises(errors.ConflictError, match="DELTA_METADATA_CHANGED"):
        commit_behind(a_log(v0=[protocol(1, 3), metadata()]), ruled)


def test_rows_for_a_new_table_are_not_committed_to_one_that_a_rival_made_with_other_rules() -> None:
    properties = {"delta.constraints.positive": "id > 0"}
    log = a_log()
    free, bound = a_write(log, None, "free"), a_write(log, None, "bound", rules=WriteRules(properties=properties))

    assert commit(log, None, bound, still())[0] == committed(0)
    with pytest.raises(errors.ConflictError, match="with rules"):
        commit(log, None, free, still())
