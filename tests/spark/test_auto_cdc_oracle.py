"""Random histories of change events end in the rows in which Spark's own AUTO CDC ends, whatever their batches.

No key has two events of one sequence, unless they are equal: what Spark makes of these is not defined.
"""

from __future__ import annotations

import datetime
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import tablefeed
from support.auto_cdc import AutoCdc

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.one_spark, pytest.mark.usefixtures("few_rows")]

KEYS = 300
"""Each has a history of its own."""

AT = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
SEQUENCES: Mapping[str, tuple[pa.DataType, Callable[[int], Any]]] = {
    "number": (pa.int64(), lambda n: 3 * n - 20),
    "text": (pa.string(), lambda n: ("", "A", "a", "aa", "b", "é", "\ud7ff", "\ufffd", "😀")[n % 9] + "~" * (n // 9)),
    "struct": (
        pa.struct([("day", pa.int32()), ("line", pa.string())]),
        lambda n: {"day": n // 4 - 2, "line": "xyz√"[n % 4]},
    ),
    "time": (pa.timestamp("us", "UTC"), lambda n: AT + datetime.timedelta(microseconds=7 * n)),
}

VALUES: Mapping[str, tuple[pa.DataType, Sequence[Any]]] = {
    "v": (pa.string(), ["a", "b", None, ""]),
    "x": (pa.float64(), [1.5, math.nan, None]),
    "s": (pa.struct([("m", pa.list_(pa.int32()))]), [None, {"m": None}, {"m": [None]}, {"m": [1, 2]}]),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """How events are applied. `kept` says whether the table has the sequence as a column."""

    scd_type: int
    sequence: str
    kept: bool = False
    tracked: Sequence[str] | None = None

    @property
    def but(self) -> list[str]:
        return ["op"] if self.kept else ["op", "at"]

    @property
    def schema(self) -> pa.Schema:
        """Of the events."""
        values = [(name, kind) for name, (kind, _) in VALUES.items()]
        at = SEQUENCES[self.sequence][0]
        return pa.schema([("id", pa.int64()), ("part", pa.string()), *values, ("at", at), ("op", pa.string())])

    def apply(self, url: Path, events: pa.Table) -> None:
        tablefeed.apply_changes(
            url,
            events,
            keys=["id", "part"],
            sequence_by="at",
            apply_as_deletes="op = 'd'",
            except_column_list=self.but,
            stored_as_scd_type=1 if self.scd_type == 1 else 2,
            track_history_column_list=self.tracked,
        )


FLOWS = {
    "rows": Flow(scd_type=1, sequence="number", kept=True),
    "rows by text": Flow(scd_type=1, sequence="text"),
    "rows by a struct": Flow(scd_type=1, sequence="struct"),
    "history": Flow(scd_type=2, sequence="number"),
    "history by text": Flow(scd_type=2, sequence="text"),
    "history of two columns by time": Flow(scd_type=2, sequence="time", tracked=["x", "s"]),
    "history of one column by a struct": Flow(scd_type=2, sequence="struct", tracked=["v"]),
}


def some_events(chance: random.Random, flow: Flow, *, keys: int) -> list[dict[str, Any]]:
    """The events of all keys, in any order; some come twice."""
    events = []
    for key in range(keys):
        for at in chance.sample(range(18), chance.randint(1, 12)):
            # Few values, so that many upserts change nothing.
            values = {name: chance.choice(choices[: 1 + key % len(choices)]) for name, (_, choices) in VALUES.items()}
            own = {"id": key // 2, "part": "ab"[key % 2], "at": SEQUENCES[flow.sequence][1](at)}
            event = {**own, **values, "op": "d" if chance.random() < 0.3 else "u"}
            events += [event] * (2 if chance.random() < 0.1 else 1)
    chance.shuffle(events)
    return events


def in_batches(chance: random.Random, events: list[dict[str, Any]], flow: Flow, count: int) -> list[pa.Table]:
    cuts = [0, *sorted(chance.sample(range(len(events)), count - 1)), len(events)]
    return [pa.Table.from_pylist(events[start:end], schema=flow.schema) for start, end in pairwise(cuts)]


def a_target(url: Path, flow: Flow) -> Path:
    schema = pa.schema([field for field in flow.schema if field.name not in flow.but])
    if flow.scd_type == 2:
        kind = SEQUENCES[flow.sequence][0]
        schema = pa.schema([*schema, ("__START_AT", kind), ("__END_AT", kind)])
    tablefeed.create(
        url,
        schema,
        properties={"delta.feature.domainMetadata": "supported", "delta.enableDeletionVectors": "true"},
    )
    return url


def texts(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return sorted(str(sorted(row.items())) for row in rows)


@pytest.mark.in_turn
@pytest.mark.parametrize("flow", FLOWS.values(), ids=FLOWS)
def test_histories_end_in_the_rows_of_sparks_own_auto_cdc(spark: SparkSession, tmp_path: Path, flow: Flow) -> None:
    if tuple(map(int, spark.version.split(".")[:2])) < (4, 3):
        pytest.skip("Spark has AUTO CDC from 4.3 on")
    chance = random.Random(str(flow))  # noqa: S311 (no secret)
    events = some_events(chance, flow, keys=KEYS)
    theirs = AutoCdc(
        spark,
        keys=["id", "part"],
        sequence_by="at",
        deletes="op = 'd'",
        but=flow.but,
        scd_type=flow.scd_type,
        tracked=flow.tracked,
    )
    ours = a_target(tmp_path / "target", flow)

    for batch in in_batches(chance, events, flow, 3):
        theirs.apply(batch)
    chance.shuffle(events)
    for batch in in_batches(chance, events, flow, 5):
        flow.apply(ours, batch)

    assert texts(tablefeed.open_table(ours).to_arrow().to_pylist()) == texts(theirs.rows())
