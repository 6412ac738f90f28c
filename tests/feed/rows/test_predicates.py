"""For which changes a predicate is true: Arrow and data/sql give the same answers, and Arrow is asked first."""

from __future__ import annotations

import math
import subprocess
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import tablefeed
from tablefeed.delta.schema.arrow_schema import from_arrow
from tablefeed.errors import UnsupportedOptionError
from tablefeed.feed.rows.expressions import by_arrow, by_sql, held

ROWS = pa.table(
    {
        "op": pa.array(["d", "u", None, "D", ""]),
        "n": pa.array([1, -1, None, 0, 2**40], pa.int64()),
        "x": pa.array([1.5, math.nan, None, -0.0, -math.inf]),
        "m": pa.array(
            [Decimal("1.50"), Decimal("-2.00"), None, Decimal("0.00"), Decimal("99.99")], pa.decimal128(4, 2)
        ),
        "gone": pa.array([True, False, None, True, False]),
        "day": pa.array([date(2024, 1, 31), date(1970, 1, 1), None, date(9999, 12, 31), date(1, 1, 1)]),
        "at": pa.array([datetime(2024, 1, 31, 12, tzinfo=UTC), None, datetime(1970, 1, 1, tzinfo=UTC), None, None]),
    }
)
BOTH = [
    "op = 'd'",
    "OP <> 'd'",
    "op IN ('d', 'D')",
    "op NOT IN ('d')",
    "op IS NULL OR op = ''",
    "op <=> NULL",
    "NOT (op = 'd' AND n > 0)",
    "n BETWEEN 0 AND 1",
    "n = 1.0",
    "n > -1",
    "x > 1.5",
    "x = 0.0",
    "NOT (x <= 1.5)",
    "m >= 1.5",
    "gone",
    "NOT gone",
    "gone = false",
    "day < DATE'2024-02-01'",
    "at >= TIMESTAMP'2024-01-31 12:00:00Z'",
    "TRUE",
    "FALSE",
]


@pytest.mark.parametrize("text", BOTH)
def test_a_predicate_that_where_takes_has_the_answers_of_sql(text: str) -> None:
    schema = from_arrow(ROWS.schema)
    of_sql = by_sql(ROWS, text, schema, option="apply_as_deletes").to_pylist()
    for rows in (ROWS, pa.concat_tables([ROWS.slice(0, 2), ROWS.slice(2)])):
        answer = by_arrow(rows, text, schema, option="where")
        assert answer is not None
        assert answer.to_pylist() == of_sql


@pytest.mark.parametrize("text", ["upper(op) = 'D'", "op = 'd' AND n + 1 > 1", "op LIKE 'd%'"])
def test_other_predicates_are_left_to_sql(text: str) -> None:
    assert by_arrow(ROWS, text, from_arrow(ROWS.schema), option="where") is None


def test_no_change_is_asked_about_where_there_is_none() -> None:
    nothing = ROWS.schema.empty_table()
    answer = by_arrow(nothing, "op = 'd'", from_arrow(ROWS.schema), option="where")
    assert answer is not None
    assert answer.to_pylist() == []


def test_without_sqlglot_the_error_names_the_argument(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sqlglot", None)

    with pytest.raises(UnsupportedOptionError, match=r"^Option 'apply_as_deletes' .* pip install"):
        held(ROWS, "op = 'd'", from_arrow(ROWS.schema), option="apply_as_deletes")


def test_changes_with_a_plain_predicate_are_applied_without_duckdb(tmp_path: Path) -> None:
    needed = {"delta.feature.domainMetadata": "supported"}
    tablefeed.append(tmp_path, pa.table({"id": [1, 2], "ts": [0, 0]}), properties=needed)
    program = f"""
import sys
import pyarrow as pa
import tablefeed
events = pa.table({{"id": [1, 3], "ts": [1, 1], "op": ["d", "u"]}})
how = {{"keys": "id", "sequence_by": "ts", "apply_as_deletes": "op = 'd'", "except_column_list": ["op"]}}
tablefeed.apply_changes({str(tmp_path)!r}, events, **how)
print("duckdb" in sys.modules)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["False"]
    assert sorted(tablefeed.open_table(tmp_path).to_arrow()["id"].to_pylist()) == [2, 3]
