"""The changes that Delta-Spark's own stream of changes delivered, recorded: the same rows, with the same times.

A stream from a version on, read to its end, delivers what a bounded read from that version delivers. What the two
refuse differently is not chosen: a stream knows other classes for a bound, and notices later that a feed was off.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tablefeed
from corpus.verdict import Digest
from support.corpus import corpus_module
from tablefeed.errors import TablefeedError

MODULUS = 1 << 256  # of a digest that is a sum over rows

ROWS = [
    "cdf/cdf_from1",
    "cdf/cdf_ts",
    "cdf_dv/cdf_from0_files1",
    "cdf_multi/cdf_from0",
    "cdf_multi/cdf_from6",
    "cdf_late/cdf_from4",
    "cdf_addcol/cdf_from0",
    "cdf_ict/cdf_from0",
    "cdf_ict/cdf_from4",
]
REFUSED = ["append/cdf_not_enabled_from0", "cdf_late/cdf_from0", "clone/cdf_from0", "cleaned/cdf_from0"]

Scenario = Mapping[str, Any]  # Any: the recorder's JSON


@pytest.fixture(scope="module")
def tables(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Mapping[str, Scenario]]:
    """Where the recorded tables are, and what was recorded of them."""
    recorder = corpus_module(corpus / "streams" / "scenarios.py")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # files that the recorder leaves open
        recorded = recorder.load(str(corpus / "streams"))
        folder = recorder.unpack(str(corpus / "streams"), str(tmp_path_factory.mktemp("tables")), recorded["rebase"])
    return Path(folder), {scenario["id"]: scenario for scenario in recorded["scenarios"]}


def bounds(scenario: Scenario) -> dict[str, Any]:
    options = scenario["opts"]
    if "startingVersion" in options:
        return {"start_version": int(options["startingVersion"])}
    return {"start_timestamp": options["startingTimestamp"]}


@pytest.mark.parametrize("name", ROWS)
def test_the_rows_are_those_of_delta_sparks_stream(
    tables: tuple[Path, Mapping[str, Scenario]], digest: Digest, name: str
) -> None:
    folder, scenarios = tables
    (run,) = scenarios[name]["expect"]

    found = digest(tablefeed.changes(folder / scenarios[name]["table"], **bounds(scenarios[name])).read_all())

    total = sum(int(digits, 16) for _, digits in run["batches"]) % MODULUS
    assert found == (sum(rows for rows, _ in run["batches"]), f"{total:064x}")


@pytest.mark.parametrize("name", REFUSED)
def test_what_delta_sparks_stream_refuses_is_refused_by_the_same_class(
    tables: tuple[Path, Mapping[str, Scenario]], name: str
) -> None:
    folder, scenarios = tables
    (run,) = scenarios[name]["expect"]

    with pytest.raises(TablefeedError) as caught:
        tablefeed.changes(folder / scenarios[name]["table"], **bounds(scenarios[name])).read_all()
    assert caught.value.error_class == run["err"]["condition"]


@pytest.mark.parametrize("table", ["cdf", "cdf_dv", "cdf_multi", "cdf_addcol", "cdf_ict", "cdf_parts"])
def test_what_commits_put_in_and_took_out_comes_to_what_they_recorded(
    tables: tuple[Path, Mapping[str, Scenario]], table: str
) -> None:
    folder, _ = tables

    recorded = rows(tablefeed.changes(folder / table))
    told = rows(tablefeed.changes(folder / table, deduplication_mode="dropCarryovers"))

    as_two = {"update_preimage": "delete", "update_postimage": "insert"}
    assert sum(recorded.values()) > 20
    assert told == Counter(
        tuple(as_two.get(value, value) if isinstance(value, str) else value for value in row)
        for row in recorded.elements()
    )


def test_an_update_of_delta_spark_is_told_by_the_ids_of_its_rows(tables: tuple[Path, Mapping[str, Scenario]]) -> None:
    folder, _ = tables

    found = tablefeed.changes(
        folder / "rowtrack", start_version=3, end_version=3, deduplication_mode="dropCarryovers", compute_updates=True
    )

    told = found.read_all().select(["_change_type", "id", "s"]).to_pylist()
    assert told == [
        {"_change_type": "update_preimage", "id": 3, "s": "r3"},
        {"_change_type": "update_postimage", "id": 3, "s": "u"},
    ]


def rows(reader: pa.RecordBatchReader) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in reader.read_all().to_pylist())
