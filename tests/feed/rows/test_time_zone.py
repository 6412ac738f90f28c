"""Rows that change get values that depend on a time zone: a date that is generated from a timestamp."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pytest

import tablefeed
from support.logs import a_log, col, meta, protocol
from tablefeed import Update
from tablefeed.errors import IllegalOptionError, SchemaMismatchError, UnsupportedExpressionError
from tablefeed.model.outcome import AlreadyApplied, Committed
from tablefeed.store import LocalStore

EARLY, LATE = datetime(2024, 6, 1, 1, tzinfo=UTC), datetime(2024, 6, 1, 23, tzinfo=UTC)
GIVEN = pa.table({"id": [1], "at": [LATE], "seq": [2]})
CHANGES: dict[str, Callable[..., Committed | AlreadyApplied]] = {
    "update": lambda url, **zone: tablefeed.update(url, {"at": "TIMESTAMP'2024-06-01 23:00:00Z'"}, **zone),
    "merge": lambda url, **zone: tablefeed.merge(
        url, GIVEN, on=["id"], matched=[Update(set={"at": "source.at", "seq": "source.seq"})], **zone
    ),
    "apply_changes": lambda url, **zone: tablefeed.apply_changes(url, GIVEN, keys="id", sequence_by="seq", **zone),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_date_is_generated_in_the_zone_that_is_given(
    tmp_path: Path, change: Callable[..., Committed | AlreadyApplied]
) -> None:
    url = str(tmp_path)
    day = col("day", "date", notes={"delta.generationExpression": "CAST(at AS DATE)"})
    told = protocol(1, 7, writerFeatures=["generatedColumns", "domainMetadata"])
    columns = (col("id"), col("at", "timestamp"), col("seq"), day)
    a_log(LocalStore(url), v0=[told, meta(*columns, partition_columns=("day",))])
    tablefeed.append(url, pa.table({"id": [1], "at": [EARLY], "seq": [1]}), time_zone="UTC")

    with pytest.raises(UnsupportedExpressionError, match="set the option timeZone"):
        change(url)
    with pytest.raises(IllegalOptionError, match="time_zone"):
        change(url, time_zone="Mars")
    change(url, time_zone="Europe/Berlin")

    (row,) = tablefeed.open_table(url).to_arrow().to_pylist()
    assert (row["at"], row["day"]) == (LATE, date(2024, 6, 2))


@pytest.mark.parametrize(
    ("kept", "given", "exact", "rounded"),
    [
        (pa.timestamp("us", tz="UTC"), pa.date32(), date(2024, 6, 1), None),
        (pa.timestamp("us", tz="UTC"), pa.timestamp("ns"), datetime(2024, 6, 1, 5), datetime(2024, 3, 31, 2, 30)),  # noqa: DTZ001
        (pa.date32(), pa.timestamp("us", tz="America/New_York"), datetime(2024, 5, 31, 22, tzinfo=UTC), LATE),
        (pa.timestamp("us"), pa.timestamp("ms", tz="UTC"), LATE, datetime(2024, 10, 27, 1, 30, tzinfo=UTC)),
    ],
    ids=str,
)
def test_keys_are_compared_in_the_zone_that_is_given(
    tmp_path: Path, kept: pa.DataType, given: pa.DataType, exact: object, rounded: object
) -> None:
    """Berlin has no 02:30 on 31 March, and two on 27 October."""
    url = str(tmp_path)
    tablefeed.create(url, pa.schema([("id", kept), ("v", pa.int64())]))
    tablefeed.alter(url, enable_features=["domainMetadata"])
    keys = pa.array([exact], given)
    for version in (1, 2):
        told = pa.table({"id": keys, "v": [version]})
        tablefeed.apply_changes(url, told, keys="id", sequence_by="v", time_zone="Europe/Berlin")
    assert tablefeed.open_table(url).to_arrow()["v"].to_pylist() == [2]

    if rounded is not None:
        told = pa.table({"id": pa.array([rounded], given), "v": [3]})
        with pytest.raises(SchemaMismatchError, match="cannot hold the key"):
            tablefeed.apply_changes(url, told, keys="id", sequence_by="v", time_zone="Europe/Berlin")
