"""What an IndexTables log costs to follow, and what becomes of it when files of it are gone: those of the corpus."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from support.faulty_store import FaultyStore
from support.index_log import add, json_log
from support.logs import a_source, delivered
from tablefeed.errors import ChangeDataError, LogGapError
from tablefeed.feed.snapshot.index_log import IndexTablesLog
from tablefeed.feed.snapshot.open_log import open_log
from tablefeed.feed.snapshot.tail import GAP_CHECK_S, Tail
from tablefeed.log.plan import Limits
from tablefeed.model.actions import Version
from tablefeed.store import Entry
from tablefeed.store.memory import MemoryStore

Open = Callable[[str], tuple[IndexTablesLog, FaultyStore]]


@pytest.fixture
def opened(corpus: Path) -> Open:
    """Opens a copy in memory of a table's log, whose calls are counted."""

    def load(name: str) -> tuple[IndexTablesLog, FaultyStore]:
        memory = MemoryStore()
        table = corpus / "indextables" / name
        for file in sorted((table / "_transaction_log").rglob("*")):
            if file.is_file():
                memory.put_if_absent(str(file.relative_to(table)), file.read_bytes())
        store = FaultyStore(memory)
        return IndexTablesLog(store, location=store.url, storage_options={}), store

    return load


@pytest.mark.parametrize("name", ["it053_events_avro", "it053_events_json", "itnative_events"])
def test_going_through_versions_lists_no_log(opened: Open, name: str) -> None:
    log, store = opened(name)
    log.commit(Version(2))  # the schema is looked up once
    since = len(store.calls)

    commits = [log.commit(Version(version)) for version in range(2, 10)]

    assert [commit is None for commit in commits] == [False] * 7 + [True]
    assert [call for call in store.calls[since:] if call.operation in ("list", "directories")] == []


@pytest.mark.parametrize("name", ["it053_events_avro", "it053_events_json", "itnative_events"])
def test_a_look_at_what_is_not_there_yet_is_by_name(opened: Open, name: str) -> None:
    log, store = opened(name)
    since = len(store.calls)

    assert log.commit(Version(9)) is None
    assert [(call.operation, call.name.rpartition("_log/")[2]) for call in store.calls[since:]] == [
        ("read", f"{9:020d}.json"),
        ("stat", f"state-v{9:020d}/_manifest.avro"),
    ]


def test_the_newest_state_is_advanced_to_by_looking_for_the_next(opened: Open) -> None:
    log, store = opened("it053_events_avro")
    snapshot = log.load(Version(8))
    since = len(store.calls)

    assert log.advance(snapshot) is snapshot
    assert {call.operation for call in store.calls[since:]} == {"stat"}
    assert log.advance(log.load(Version(3))).version == 8


def test_a_version_between_two_states_of_which_one_is_gone_is_not_told(opened: Open) -> None:
    log, store = opened("it053_events_avro")
    store.delete(f"_transaction_log/state-v{4:020d}/_manifest.avro")

    with pytest.raises(LogGapError, match="4"):
        log.commit(Version(5))
    assert [file.version for file in log.listing() if file.kind == "commit"] == [6, 7, 8]
    assert log.load(Version(5)).version == 5


@pytest.mark.parametrize("lacks", [1, 7])
def test_a_version_that_a_listing_lacks_is_found_if_the_listing_has_a_later_one(opened: Open, lacks: int) -> None:
    """A disk may list two versions that are made meanwhile so: the later one alone."""
    _, inner = opened("it053_events_json")

    class Growing(FaultyStore):
        def list(self, directory: str, *, start: str = "") -> Iterator[Entry]:
            return (each for each in super().list(directory, start=start) if each.name != f"{lacks:020d}.json")

    store = Growing(inner)
    log = IndexTablesLog(store, location=store.url, storage_options={})
    for file in [each.name for each in inner.list("_transaction_log") if "checkpoint" in each.name]:
        inner.delete(f"_transaction_log/{file}")

    assert log.load().version == 8
    assert lacks in [file.version for file in log.listing() if file.kind == "commit"]
    inner.delete(f"_transaction_log/{lacks:020d}.json")
    with pytest.raises(LogGapError, match=str(lacks)):
        log.load()


def test_a_folder_with_a_delta_log_too_is_a_delta_table(tmp_path: Path) -> None:
    for folder in ("_delta_log", "_transaction_log"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"{0:020d}.json").write_text("{}")

    assert not isinstance(open_log(str(tmp_path)), IndexTablesLog)
    (tmp_path / "_delta_log" / f"{0:020d}.json").unlink()
    assert isinstance(open_log(str(tmp_path)), IndexTablesLog)


def test_a_log_of_states_is_found_without_the_hint_at_its_newest_state(corpus: Path, tmp_path: Path) -> None:
    shutil.copytree(corpus / "indextables" / "it053_events_avro", tmp_path / "table")
    (tmp_path / "table" / "_transaction_log" / "_last_checkpoint").unlink()

    log = open_log(str(tmp_path / "table"))

    assert isinstance(log, IndexTablesLog)
    assert log.load().version == 8


def test_behind_a_hole_a_state_tells_what_changed_since_the_last_one_that_is_there(opened: Open) -> None:
    log, store = opened("it053_events_avro")
    paths = {
        version: {path for batch in log.load(Version(version)).live_files() for path in batch["log_path"].to_pylist()}
        for version in (1, 3)
    }
    store.delete(f"_transaction_log/state-v{2:020d}/_manifest.avro")
    tail = Tail(log, clock=lambda: 0.0, fail_on_data_loss=False)

    commits = list(tail.commits(Version(2)))

    assert [commit.version for commit in commits] == [3, 4, 5, 6, 7, 8]
    assert {add.log_path for add in commits[0].added} == paths[3] - paths[1]
    assert len(commits[0].added) == 2
    assert commits[0].removed == ()
    with pytest.raises(LogGapError):
        list(Tail(log, clock=lambda: 0.0, fail_on_data_loss=True).commits(Version(2)))


def test_rows_that_came_in_a_hole_and_were_merged_with_others_are_not_told(opened: Open) -> None:
    log, store = opened("it053_events_avro")
    for gone in (3, 4):
        store.delete(f"_transaction_log/state-v{gone:020d}/_manifest.avro")

    with pytest.raises(ChangeDataError, match="INDEXTABLES_CHANGES_UNKNOWN"):
        list(Tail(log, clock=lambda: 0.0, fail_on_data_loss=False).commits(Version(3)))


def test_where_nothing_before_a_state_is_there_it_is_not_told_as_new(opened: Open) -> None:
    log, store = opened("it053_events_avro")
    store.delete(f"_transaction_log/{0:020d}.json")
    for gone in (1, 2):
        store.delete(f"_transaction_log/state-v{gone:020d}/_manifest.avro")

    with pytest.raises(LogGapError):
        log.commit(Version(3), over_holes=True)


def test_a_stream_goes_on_behind_a_hole_though_no_later_state_can_be_loaded() -> None:
    commits = json_log({0: (), 1: [add("a")], 2: [add("lost")], 3: [add("c")]})
    store = MemoryStore()
    log = IndexTablesLog(store, location=store.url, storage_options={})
    for version in (0, 1):
        store.put_if_absent(f"_transaction_log/{version:020d}.json", commits[f"{version:020d}.json"])
    minutes = count(0.0, GAP_CHECK_S)
    source = a_source(log, clock=lambda: next(minutes), starting_version=1, fail_on_data_loss=False)
    middle = source.latest(source.initial(), Limits())

    store.put_if_absent(f"_transaction_log/{3:020d}.json", commits[f"{3:020d}.json"])

    assert delivered(source, middle, source.latest(middle, Limits())) == ["c"]
    with pytest.raises(LogGapError):
        log.load()
