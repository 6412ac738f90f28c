"""A write that a rival's commit excludes: its files go, where it is certain that no commit names them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import tablefeed
from support.commits import a_write, commit_files, faulty, raced, still
from support.faulty_store import Fault
from support.logs import a_log, add, live_paths, metadata, protocol, put
from tablefeed.errors import CommitUnknownError, ConflictError
from tablefeed.feed.commit.loop import commit
from tablefeed.log.conflicts import WriteKind
from tablefeed.model.actions import Version
from tablefeed.store import LocalStore

OVERWRITE = WriteKind.OVERWRITE


@pytest.mark.parametrize("when", ["before our commit", "while we put"])
def test_a_write_that_a_rival_excludes_leaves_no_file(when: str) -> None:
    inner = a_log(v0=[protocol(), metadata(), add("old")]).store
    log = raced(inner, *[lambda: put(inner, 1, [add("theirs")])] * (when == "while we put"))
    snapshot = log.load()
    ours = a_write(log, snapshot, "ours", "more", kind=OVERWRITE)
    if when == "before our commit":
        put(inner, 1, [add("theirs")])

    with pytest.raises(ConflictError):
        commit(log, snapshot, ours, still())

    assert (inner.exists("ours"), inner.exists("more")) == (False, False)
    assert live_paths(log) == ["old", "theirs"]


def test_files_that_an_earlier_commit_of_the_same_write_names_stay_though_it_is_excluded_now() -> None:
    log = a_log(v0=[protocol(), metadata(), add("old")])
    snapshot = log.load()
    ours = a_write(log, snapshot, "ours", kind=OVERWRITE)
    commit(log, snapshot, ours, still())

    with pytest.raises(ConflictError):
        commit(log, snapshot, ours, still())

    assert log.store.exists("ours")
    assert live_paths(log) == ["ours"]


def test_files_stay_where_the_log_does_not_show_that_nothing_of_ours_stands() -> None:
    log = a_log(v0=[protocol(), metadata()], v1=[add("a")], v2=[metadata(configuration={"owner": "me"})])
    now = log.load()
    ours = a_write(log, now, "ours")
    behind = replace(
        ours.plan, found=replace(ours.plan.found, version=Version(0), head=None) if ours.plan.found else None
    )
    log.store.delete("_delta_log/00000000000000000001.json")

    with pytest.raises(ConflictError, match="gone from the log"):
        commit(log, now, replace(ours, plan=behind), still())

    assert log.store.exists("ours")


def test_files_stay_where_the_fate_of_their_commit_is_unknown() -> None:
    store, log = faulty(*(Fault(operation="put_if_absent", at=n) for n in range(1, 9)))

    with pytest.raises(CommitUnknownError):
        commit_files(log, "ours", kind=OVERWRITE)

    assert store.exists("ours")


def test_an_append_of_pythons_that_is_excluded_leaves_no_file(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, pa.table({"id": [1]}))

    def rows() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"id": [2]})
        put(LocalStore(str(tmp_path)), 1, [metadata()])

    with pytest.raises(ConflictError):
        tablefeed.append(tmp_path, rows())
    assert len(list(tmp_path.glob("*.parquet"))) == 1
