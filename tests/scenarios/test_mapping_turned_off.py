"""What becomes of a stream over a table whose column mapping is turned on and off, and what it is called between.

The stories are those of RemoveColumnMappingStreamingReadSuite, under its names: a stream starts, and what follows
happens while it runs. `Success` says that it goes on, `SuccessAndFailSchemaTracking` that it does where it does not
track its schema, and `FailNonAdditiveChange` that it does not.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from scenarios.queries import METADATA_EVOLUTION, NON_ADDITIVE, Stream
from scenarios.tables import Table

STORIES = [
    "StartStreamRead, Upgrade, Downgrade, SuccessAndFailSchemaTracking",
    "Upgrade, StartStreamRead, Downgrade, FailNonAdditiveChange",
    "Upgrade, Downgrade, StartStreamRead, Success",
    "StartStreamRead, Upgrade, Rename, Downgrade, FailNonAdditiveChange",
    "StartStreamRead, Upgrade, Drop, Downgrade, FailNonAdditiveChange",
    "StartStreamRead, Upgrade, Rename, Downgrade, Upgrade, FailNonAdditiveChange",
    "StartStreamRead, Upgrade, Drop, Downgrade, Upgrade, FailNonAdditiveChange",
    "Upgrade, StartStreamRead, Rename, Downgrade, FailNonAdditiveChange",
    "Upgrade, StartStreamRead, Drop, Downgrade, FailNonAdditiveChange",
    "Upgrade, StartStreamRead, Rename, Downgrade, Upgrade, FailNonAdditiveChange",
    "Upgrade, StartStreamRead, Drop, Downgrade, Upgrade, FailNonAdditiveChange",
    "Upgrade, Rename, StartStreamRead, Downgrade, FailNonAdditiveChange",
    "Upgrade, Rename, StartStreamRead, Downgrade, Upgrade, FailNonAdditiveChange",
    "Upgrade, Drop, StartStreamRead, Downgrade, FailNonAdditiveChange",
    "Upgrade, Drop, StartStreamRead, Downgrade, Upgrade, FailNonAdditiveChange",
    "Upgrade, Rename, Downgrade, StartStreamRead, Success",
    "Upgrade, Drop, Downgrade, StartStreamRead, Success",
    "Upgrade, Rename, Downgrade, StartStreamRead, Upgrade, SuccessAndFailSchemaTracking",
    "Upgrade, Drop, Downgrade, StartStreamRead, Upgrade, SuccessAndFailSchemaTracking",
]


def happens(step: str, table: Table) -> None:
    width = len(table.columns)
    match step:
        case "Upgrade":
            table.upgrade()
        case "Downgrade":
            table.downgrade()
            table.append_at_once(*[(-1,) * width] * 3)
        case "Rename":
            table.rename("second", "renamed")
        case "Drop":
            table.drop("third")


@pytest.mark.parametrize(
    ("story", "tracks"),
    [pytest.param(story, how != "", id=story + how) for story in STORIES for how in (" with schema tracking", "")],
)
def test_a_stream_goes_on_over_mapping_turned_on_and_ends_where_names_in_files_change(
    tmp_path: Path,
    story: str,
    tracks: bool,  # noqa: FBT001
) -> None:
    *steps, end = story.split(", ")
    starts_at = steps.index("StartStreamRead")
    table = Table(tmp_path / "table").create("first", "second", "third", kind="long", enableChangeDataFeed="true")
    table.append_at_once(*((number, number + 1, number + 2) for number in range(3)))
    for step in steps[:starts_at]:
        happens(step, table)
    stream = Stream.on(table.path)
    stream = stream.tracked if tracks else stream
    before = stream.run()
    for step in steps[starts_at + 1 :]:
        happens(step, table)

    if end == "Success" or (end == "SuccessAndFailSchemaTracking" and not tracks):
        width = len(table.columns)
        rows = [(number, number + 1, number + 2)[:width] for number in range(3)]
        assert stream.process() == sorted([*rows, *[(-1,) * width] * 3], key=repr)
    else:
        stream.goes_down(METADATA_EVOLUTION if tracks else NON_ADDITIVE)
        assert stream.rows == before
