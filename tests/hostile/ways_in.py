"""Every public way of reading a table, and what each answers: a value, or one of our errors. All else escapes."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa

import tablefeed
from support.logs import commit_path
from tablefeed.errors import TABLE, TablefeedError
from tablefeed.feed.scan.task import read_task
from tablefeed.feed.snapshot.open_log import open_log
from tablefeed.feed.stream.source import open_source
from tablefeed.feed.stream.source_options import SourceOptions
from tablefeed.log.plan import Limits
from tablefeed.report.page import report

Outcome = object
"""What a question came to: its answer or the TablefeedError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What a table's readers are told. `rows` and `stream` are Arrow tables, `files` the rows of `Table.files()`."""

    facts: Outcome
    schema: Outcome
    files: Outcome
    rows: Outcome
    stream: Outcome
    history: Outcome

    @property
    def all(self) -> tuple[Outcome, ...]:
        """Each of them."""
        return (self.facts, self.schema, self.files, self.rows, self.stream, self.history)


def ask(question: Callable[[], Outcome]) -> Outcome:
    """Gives the answer, or the error if it is one of ours."""
    try:
        return question()
    except TablefeedError as error:
        assert str(error)  # noqa: PT017 - whatever it says, it says something
        assert TABLE not in str(error)  # noqa: PT017 - and of which table
        return error


def ask_everything(path: Path) -> Answers:
    """Asks the table at `path`, opened once, all that it can be asked."""
    opened = ask(lambda: tablefeed.open_table(path))
    if not isinstance(opened, tablefeed.Table):
        return Answers(**dict.fromkeys(("facts", "schema", "files", "rows", "stream", "history"), opened))
    return Answers(
        facts=(opened.version, opened.table_id, opened.partition_columns, opened.txn_version("app"), opened.protocol),
        schema=ask(lambda: opened.schema),
        files=ask(lambda: listed(opened)),
        rows=ask(opened.to_arrow),
        stream=ask(lambda: streamed(path)),
        history=ask(lambda: list(opened.history())),
    )


def listed(table: tablefeed.Table) -> list[dict[str, Any]]:  # Any: a row's values
    """Gives the rows of `files()` as dicts, their partition values too."""
    files = [row for batch in table.files() for row in batch.to_pylist()]
    return [{**file, "partition_values": dict(file["partition_values"])} for file in files]


def ids_of(rows: Outcome) -> list[int]:
    """Gives the ids in `rows`, an Arrow table, sorted."""
    assert isinstance(rows, pa.Table)
    return sorted(rows["id"].to_pylist())


def _all_of(batches: pa.RecordBatchReader) -> pa.Table:
    return batches.read_all()


def _followed(path: Path) -> Sequence[tablefeed.Commit]:
    there = itertools.takewhile(lambda version: (path / commit_path(version)).exists(), itertools.count())
    with contextlib.closing(_closable(tablefeed.follow(path, after=-1))) as commits:
        return [commit for _, commit in zip(there, commits, strict=False)]


def _closable(commits: Iterator[tablefeed.Commit]) -> Any:
    return commits  # Any: it is a generator, as its type does not say


def streamed(path: Path, options: SourceOptions | None = None) -> pa.Table:
    """All that a stream of the table delivers, by default the table as it stands first, in batches of two files."""
    snapshot = open_log(str(path)).load()
    schema_string = snapshot.metadata.schema_string
    source = open_source(
        str(path),
        storage_options={},
        schema_string=schema_string,
        options=options or SourceOptions(),
        clock=lambda: 0.0,
    )
    start, batches = source.initial(), list[pa.RecordBatch]()
    while (end := source.latest(start, Limits(files=2))) != start:
        for task in source.tasks(start, end):
            batches += read_task(task, snapshot.arrow_schema)
        start = end
    source.close()
    return pa.Table.from_batches(batches, snapshot.arrow_schema)


OTHER_WAYS: Mapping[str, Callable[[Path], Outcome]] = {
    "version 0": lambda path: tablefeed.open_table(path, version=0).to_arrow(),
    "timestamp": lambda path: tablefeed.open_table(path, timestamp="2024-01-31").version,
    "no column": lambda path: _all_of(tablefeed.open_table(path).to_batches(columns=[])),
    "appends": lambda path: _all_of(tablefeed.appends(path)),
    "appends among changes": lambda path: _all_of(tablefeed.appends(path, start_version=0, ignore_changes=True)),
    "changes": lambda path: _all_of(tablefeed.changes(path)),
    "changes told by files": lambda path: _all_of(tablefeed.changes(path, deduplication_mode="dropCarryovers")),
    "follow": _followed,
    "report": lambda path: len(report(str(path), commits=100, storage_options={}, now_ms=0)[0]),
    "append": lambda path: tablefeed.append(path, pa.table({"id": [99]}).slice(1), app_id="app", txn_version=1),
}
"""The ways in besides the newest version and the stream of it, by name. The last comes in to write."""
other_ways = st.sampled_from(sorted(OTHER_WAYS))
