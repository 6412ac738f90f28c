"""Offsets, limits and files of DeltaV2MicroBatchStreamTest, which holds Delta-Spark's two sources against each other.

The expected values are those that both give for commits of two files of 600 bytes each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from support.logs import a_log, a_source, add, at, delivered, info, metadata, protocol
from tablefeed.feed.snapshot.table_log import TableLog
from tablefeed.log.plan import Limits
from tablefeed.model.offset import Offset

NONE = Limits()
FILES = ["1a", "1b", "2a", "2b", "3a", "3b", "4a", "4b", "5a", "5b"]


def five_inserts(*, then_an_empty_version: bool = False) -> TableLog:
    """Version 0 makes the table; the files of version 1 are "1a" and "1b", and so on."""
    inserts: dict[str, Any] = {
        f"v{n}": [add(f"{n}{letter}", size=600, modified=n) for letter in "ab"] for n in range(1, 6)
    }
    if then_an_empty_version:
        inserts["v6"] = [info(operation="SET TBLPROPERTIES"), metadata(configuration={"test.property": "value"})]
    return a_log(v0=[protocol(), metadata()], **inserts)


def snapshot(version: int, file_index: int = 0) -> Offset:
    return at(version, file_index, in_snapshot=True)


@pytest.mark.parametrize(
    ("starting_version", "limits", "end"),
    [
        (None, NONE, at(6)),
        (None, Limits(files=5), snapshot(5, 5)),
        (None, Limits(size_bytes=1000), snapshot(5, 2)),
        (0, NONE, at(6)),
        (1, NONE, at(6)),
        (3, NONE, at(6)),
        ("latest", NONE, at(6)),
        ("latest", Limits(files=1000), at(6)),
        ("latest", Limits(size_bytes=1000), at(6)),
        (0, Limits(files=5), at(3, 1)),
        (1, Limits(files=10), at(6)),
        (0, Limits(size_bytes=1000), at(2)),
        (1, Limits(size_bytes=2000), at(3)),
    ],
)
def test_the_first_batch_ends_where_delta_sparks_does(starting_version: Any, limits: Limits, end: Offset) -> None:
    source = a_source(five_inserts(), starting_version=starting_version)

    assert source.latest(source.initial(), limits) == end


@pytest.mark.parametrize(
    ("start", "end", "files"),
    [
        (at(0), at(6), FILES),
        (at(3), at(6), FILES[4:]),
        (at(0, 1), at(6), FILES),
        (at(1, 6), at(6), FILES[2:]),
        (at(1), at(4), FILES[:6]),
        (at(1), at(2, 6), FILES[:4]),
        (at(1, 6), at(4), FILES[2:6]),
        (at(2), at(3), FILES[2:4]),
        (snapshot(0), at(6), FILES),
        (snapshot(2), at(6), FILES),
        (snapshot(1), at(4), FILES[:6]),
        (snapshot(2), at(5), FILES[:8]),
        (snapshot(0), at(2, 6), FILES[:4]),
        (snapshot(5), at(6), FILES),
    ],
)
def test_between_two_offsets_lie_the_files_that_delta_spark_has_there(
    start: Offset, end: Offset, files: Sequence[str]
) -> None:
    assert delivered(a_source(five_inserts()), start, end) == files


ONE_BY_ONE = [place for n in range(1, 6) for place in (at(n, 1), at(n + 1))]


@pytest.mark.parametrize("available_now", [False, True], ids=["", "availableNow"])
@pytest.mark.parametrize(
    ("start", "limits", "ends"),
    [
        (at(0), NONE, [at(7)]),
        (at(1), NONE, [at(7)]),
        (at(2, 6), NONE, [at(7)]),
        (at(6), NONE, [at(7)]),
        (at(7), NONE, [at(7)]),
        (snapshot(0), NONE, [at(7)]),
        (at(0), Limits(files=1), [*ONE_BY_ONE[:-1], at(7)]),
        (at(0), Limits(files=5), [at(3, 1), at(7)]),
        (snapshot(0), Limits(files=5), [at(3, 1), at(7)]),
        (snapshot(2), Limits(files=5), [at(3, 1), at(7)]),
        (at(1), Limits(files=2), [at(2), at(3), at(4), at(5), at(7)]),
        (at(3, 6), Limits(files=10), [at(7)]),
        (at(5), Limits(files=1), [at(5, 1), at(7)]),
        (at(0), Limits(size_bytes=1), [*ONE_BY_ONE[:-1], at(7)]),
        (at(1), Limits(size_bytes=1000), [at(2), at(3), at(4), at(5), at(7)]),
        (at(1, 6), Limits(size_bytes=1000), [at(3), at(4), at(5), at(7)]),
        (at(0), Limits(size_bytes=5000), [at(5, 1), at(7)]),
        (snapshot(2), Limits(size_bytes=3000), [at(3, 1), at(7)]),
        (at(0), Limits(files=10, size_bytes=10_000), [at(7)]),
    ],
)
def test_batch_after_batch_ends_where_delta_sparks_do_and_then_the_stream_waits(
    start: Offset,
    limits: Limits,
    ends: list[Offset],
    available_now: bool,  # noqa: FBT001 (what the scenario is named by)
) -> None:
    """A version without files counts towards no limit."""
    source = a_source(five_inserts(then_an_empty_version=True))
    if available_now:
        source.bound_now()
    found = [source.latest(start, limits)]
    for _ in ends:
        found.append(source.latest(found[-1], limits))

    assert found == [*ends, ends[-1]]


def test_commit_and_stop_are_no_error_whatever_the_offset_and_how_often() -> None:
    source = a_source(five_inserts())
    source.latest(source.initial(), NONE)

    for offset in (at(1, 1), at(6), at(6)):
        source.delivered(offset)
    source.close()
    source.close()
