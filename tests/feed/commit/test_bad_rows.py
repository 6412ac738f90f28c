"""The commit of bad rows, whose files the commit of their batch names."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import tablefeed
from support.commits import still
from support.logs import NOW_MS
from tablefeed.errors import ConflictError
from tablefeed.feed.commit.bad_rows import Named, commit_bad_rows, named
from tablefeed.feed.commit.transaction import Surroundings, micro_batch
from tablefeed.feed.write.bad_rows import table_of_bad_rows
from tablefeed.feed.write.sink import write_task
from tablefeed.log.conflicts import WriteKind
from tablefeed.model.actions import Txn


def bad_rows(url: str, row: str) -> Named:
    """A file with one bad row, which no commit of its table names yet."""
    plan = table_of_bad_rows(url, {})
    none = pa.nulls(1, pa.string())
    columns = [[row], ["it is bad"], none, none, ["query"], [0]]
    given = pa.table(columns, names=["row", "reason", "error_class", "column", "query_id", "batch_id"])
    found = named(url, write_task(plan, given.to_batches(), task=0, now_ms=NOW_MS))
    assert found is not None
    return found


def test_bad_rows_whose_commit_conflicts_are_committed_when_the_batch_is_run_again(tmp_path: Path) -> None:
    """Nothing has them but these files: the batch itself is committed already."""
    url = str(tmp_path)

    def commit(given: Named, version: int, *, rival: bool = False) -> None:
        def around() -> Surroundings:
            if rival:
                tablefeed.alter(url, set_properties={"mine": "x"})
            return still()

        txn = Txn(app_id="query", txn_version=version)
        operation = micro_batch(WriteKind.APPEND, "query", version)
        commit_bad_rows(given, {}, txn, operation=operation, around=around)

    commit(bad_rows(url, "first"), 0)
    second = bad_rows(url, "second")
    with pytest.raises(ConflictError):
        commit(second, 1, rival=True)
    commit(second, 1)

    assert sorted(tablefeed.open_table(url).to_arrow()["row"].to_pylist()) == ["first", "second"]
