"""Whatever is committed, and whenever the query dies: a stream that tracks metadata delivers every file once.

In order, and each with the columns that the table had at its commit.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from support.logs import Action, a_log, add, at, col, info, meta, protocol, put
from support.tracking import ALWAYS, MAPPED, Checkpoint
from tablefeed.errors import MetadataEvolvedError
from tablefeed.feed.scan.delta_task import DeltaTask
from tablefeed.log.plan import Limits
from tablefeed.model.offset import Offset
from tablefeed.store import LocalStore

MOST_RUNS = 60

NAMES = ("id", "name", "more")


def mapped_metadata(columns: tuple[str, ...], *, setting: int) -> Action:
    """Columns by physical names that are their first letters, so that a name that comes again is the column of then."""
    properties = {**MAPPED, "delta.checkpointInterval": str(setting), "delta.enableChangeDataFeed": "true"}
    fields = (col(name, id=1 + NAMES.index(name), physicalName=name[0]) for name in columns)
    return meta(*fields, configuration=properties)


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A commit: the columns that it sets, if it does, another property, or neither; and how many files it adds."""

    columns: tuple[str, ...] | None
    setting: int
    files: int


COLUMNS = st.lists(st.sampled_from(NAMES), min_size=1, unique=True).map(tuple)
VERSIONS = st.builds(Version, columns=st.none() | COLUMNS, setting=st.integers(1, 2), files=st.integers(0, 2))


@dataclass(slots=True)
class Delivered:
    """What was read of the table, batch by batch: a batch that ran again counts once."""

    batches: dict[int, list[tuple[str, list[str]]]] = field(default_factory=dict)

    def files(self) -> list[tuple[str, list[str]]]:
        return [file for batch in sorted(self.batches) for file in self.batches[batch]]


class Killed(Exception):  # noqa: N818 - no error: what a test does to a query
    """The query died."""


def run(query: Checkpoint, found: Delivered, *, steps: int, limits: Limits, **options: Any) -> None:
    """Runs a query for so many steps of Spark's, each of which its checkpoint keeps; raises where it dies."""
    source = query.source(allowed=ALWAYS, **options)
    left = steps

    def spend() -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise Killed

    def start_of(batch: int) -> Offset:
        return query.ends[batch - 1] if batch else source.initial()

    while True:
        if query.done == len(query.ends):
            spend()
            start = start_of(len(query.ends))
            end = source.latest(start, limits)
            if end == start:
                return
            query.ends.append(end)
            spend()
            if len(query.ends) > 1:
                source.delivered(start)
        spend()
        batch = len(query.ends) - 1
        tasks = source.tasks(start_of(batch), query.ends[batch])
        read = sorted(
            (file.path, sorted(task.columns.stored or {}))
            for task in tasks
            if isinstance(task, DeltaTask)
            for file in task.files
        )
        found.batches[batch] = [(path, columns) for path, columns in read]
        spend()
        query.done += 1


@settings(max_examples=80, deadline=None)
@given(
    history=st.lists(VERSIONS, max_size=8),
    there=st.integers(0, 8),
    deaths=st.lists(st.integers(0, 12), max_size=6),
    most_files=st.none() | st.integers(1, 2),
    change_feed=st.booleans(),
    from_start=st.booleans(),
)
def test_every_file_comes_once_with_the_columns_of_its_commit(
    history: list[Version],
    there: int,
    deaths: list[int],
    most_files: int | None,
    change_feed: bool,  # noqa: FBT001
    from_start: bool,  # noqa: FBT001
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        table = LocalStore(f"{folder}/table")
        a_log(table, v0=[protocol(2, 5), mapped_metadata(("id",), setting=1)])
        columns: tuple[str, ...] = ("id",)
        begins_with = columns
        expected: list[tuple[int, str, tuple[str, ...]]] = []
        commits: list[list[Action]] = []
        for number, version in enumerate(history, start=1):
            columns = version.columns or columns
            begins_with = columns if number <= there else begins_with
            changed = [mapped_metadata(columns, setting=version.setting)] if version.columns else []
            paths = [f"{number}-{index}" for index in range(version.files)]
            commits.append([info(operation="WRITE"), *changed, *(add(path) for path in paths)])
            expected += [(number, path, columns) for path in paths]
        in_snapshot = 0 if from_start else there
        for number, actions in enumerate(commits[:there], start=1):
            put(table, number, actions)

        query, found = Checkpoint(Path(table.url), Path(folder) / "checkpoint"), Delivered()
        options: dict[str, Any] = {"change_feed": change_feed, **({"starting_version": 0} if from_start else {})}
        limits = Limits(files=most_files)
        for steps in [*deaths, *[1000] * MOST_RUNS]:
            try:
                run(query, found, steps=steps, limits=limits, **options)
            except (Killed, MetadataEvolvedError):
                continue
            if len(commits) <= there:
                break
            put(table, there + 1, commits[there])
            there += 1
        else:
            raise AssertionError("the stream does not come to an end")

        assert query.ends == sorted(query.ends, key=lambda end: end.position)
        assert not query.ends or query.ends[-1] == at(1 + len(history))
        assert found.files() == [
            (path, sorted(begins_with if number <= in_snapshot else columns)) for number, path, columns in expected
        ]
