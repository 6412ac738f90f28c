"""Facts and live files follow from a log as PROTOCOL.md, "Action Reconciliation", says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablefeed.errors import TABLE, LogError
from tablefeed.log.facts import fold
from tablefeed.log.replay import each_once, live_files
from tablefeed.model.actions import Commit, DomainMetadata, Facts, Metadata, Protocol, Txn, Version

ROWS = pa.schema(
    [
        ("key", pa.string()),
        ("is_add", pa.bool_()),
        ("log_path", pa.string()),
        ("modified_ms", pa.int64()),
        ("stats", pa.string()),
        ("row", pa.int64()),
    ]
)
"""The columns that replay gives a meaning to, and one that says which row is which."""


def add(key: str, row: int = 0, *, modified_ms: int = 0, log_path: str = "") -> dict[str, object]:
    stats = '{"numRecords":1}'
    path = log_path or key
    return {"key": key, "is_add": True, "log_path": path, "modified_ms": modified_ms, "stats": stats, "row": row}


def remove(key: str, row: int = 0) -> dict[str, object]:
    return {"key": key, "is_add": False, "log_path": key, "row": row}


def batch(*rows: dict[str, object]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(list(rows), schema=ROWS)


def rows_of(batches: list[pa.RecordBatch]) -> list[int]:
    return [row for each in batches for row in each["row"].to_pylist()]


def replayed(checkpoint: Iterable[pa.RecordBatch], *tail: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """`tail` in log order, a turn for each."""
    return live_files(checkpoint, [[each] for each in reversed(tail)])


def a_commit(version: int, *actions: Metadata | Protocol | Txn | DomainMetadata, ict_ms: int | None = None) -> Commit:
    return Commit(
        version=Version(version),
        txns=tuple(a for a in actions if isinstance(a, Txn)),
        metadata=next((a for a in actions if isinstance(a, Metadata)), None),
        protocol=next((a for a in actions if isinstance(a, Protocol)), None),
        domains=tuple(a for a in actions if isinstance(a, DomainMetadata)),
        info=None if ict_ms is None else {"inCommitTimestamp": ict_ms},
        committed_at_ms=5,
    )


def metadata(table_id: str) -> Metadata:
    return Metadata(table_id=table_id, schema_string="{}")


def protocol(writer: int) -> Protocol:
    return Protocol(min_reader_version=1, min_writer_version=writer)


def domain(name: str, configuration: str = "", *, removed: bool = False) -> DomainMetadata:
    return DomainMetadata(domain=name, configuration=configuration, removed=removed)


def test_the_newest_metadata_and_protocol_win_and_older_ones_stay_until_then() -> None:
    facts = fold(Facts(), [a_commit(0, protocol(2), metadata("a")), a_commit(1, protocol(4)), a_commit(2), a_commit(3)])

    assert facts == Facts(protocol=protocol(4), metadata=metadata("a"))


def test_the_latest_txn_of_an_application_wins_even_when_its_version_falls() -> None:
    first, second = Txn(app_id="a", txn_version=7), Txn(app_id="a", txn_version=3)
    other = Txn(app_id="b", txn_version=1)

    assert fold(Facts(), [a_commit(0, first, other), a_commit(1, second)]).txns == {"a": second, "b": other}


def test_a_tombstone_removes_a_domain_until_it_is_set_again() -> None:
    commits = [a_commit(0, domain("d", "1"), domain("e", "1")), a_commit(1, domain("d", "1", removed=True))]

    assert fold(Facts(), commits).domains == {"e": domain("e", "1")}
    assert fold(Facts(), [*commits, a_commit(2, domain("d", "2"))]).domains["d"] == domain("d", "2")


def test_the_in_commit_timestamp_is_the_newest_commits_own() -> None:
    assert fold(Facts(), [a_commit(0, ict_ms=8), a_commit(1, ict_ms=9)]).in_commit_timestamp_ms == 9
    assert fold(Facts(), [a_commit(0, ict_ms=8), a_commit(1)]).in_commit_timestamp_ms is None
    assert fold(Facts(in_commit_timestamp_ms=7), []).in_commit_timestamp_ms == 7


def test_folding_leaves_the_facts_before_it_as_they_were() -> None:
    before = fold(Facts(), [a_commit(0, Txn(app_id="a", txn_version=1), domain("d"))])

    fold(before, [a_commit(1, Txn(app_id="a", txn_version=2), domain("d", removed=True))])

    assert before.txns["a"].txn_version == 1
    assert "d" in before.domains


_actions = st.one_of(
    st.sampled_from("ab").map(metadata),
    st.integers(1, 7).map(protocol),
    st.builds(Txn, app_id=st.sampled_from("xy"), txn_version=st.integers(0, 5)),
    st.builds(DomainMetadata, domain=st.sampled_from("de"), configuration=st.sampled_from("12"), removed=st.booleans()),
)
_histories = st.lists(st.lists(_actions, max_size=3), max_size=5).map(
    lambda history: [a_commit(version, *actions) for version, actions in enumerate(history)]
)


@given(_histories, st.integers(0, 5))
def test_facts_can_be_folded_in_one_go_or_in_two(commits: list[Commit], split: int) -> None:
    assert fold(fold(Facts(), commits[:split]), commits[split:]) == fold(Facts(), commits)


def test_a_remove_in_the_tail_ends_a_file_of_the_checkpoint() -> None:
    checkpoint = [batch(add("a", 1), add("b", 2)), batch(add("c", 3))]

    assert rows_of(list(replayed(checkpoint, batch(remove("b"))))) == [1, 3]


def test_an_add_for_a_live_file_takes_its_place() -> None:
    live = replayed([batch(add("a", 1), add("b", 2))], batch(add("a", 3)), batch(add("a", 4)))

    assert rows_of(list(live)) == [4, 2]


def test_a_file_that_was_removed_and_added_again_is_live() -> None:
    live = replayed([batch(add("a", 1))], batch(remove("a"), add("b", 2), add("a", 3)))

    assert rows_of(list(live)) == [2, 3]


@pytest.mark.parametrize("counted_at_once", [1, 1_000])
@pytest.mark.parametrize("checkpoint", [[batch(add("a"), add("a"))], [batch(add("a"), add("b")), batch(add("a"))]])
def test_a_checkpoint_that_names_a_file_twice_does_not_end_well(
    checkpoint: list[pa.RecordBatch], counted_at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tablefeed.log.replay._COUNTED_AT_ONCE", counted_at_once)
    files = each_once(checkpoint, log_file="1.checkpoint.parquet")

    assert [next(files) for _ in checkpoint] == checkpoint
    with pytest.raises(LogError, match=rf"1\.checkpoint\.parquet of {TABLE} names a data file twice"):
        next(files)


def test_a_checkpoint_of_no_files_or_of_one_path_with_two_deletion_vectors_names_each_once() -> None:
    for checkpoint in ([], [batch()], [batch(add("a"), add("a\x00u1"), add("a\x00u2"))]):
        assert list(each_once(checkpoint, log_file="")) == checkpoint


def test_one_path_with_two_deletion_vectors_is_two_files() -> None:
    live = replayed([batch(add("a", 1))], batch(add("a\x00u1", 2), remove("a")))

    assert rows_of(list(live)) == [2]


def test_a_checkpoint_without_a_tail_is_passed_on_as_it_is() -> None:
    checkpoint = [batch(add("a", 1)), batch(), batch(add("b", 2))]

    assert list(live_files(checkpoint, [])) == checkpoint


def test_the_checkpoint_is_read_as_the_files_are_asked_for() -> None:
    def checkpoint() -> Iterator[pa.RecordBatch]:
        yield batch(add("a", 1))
        raise AssertionError("nobody asked for the second batch")

    assert rows_of([next(replayed(checkpoint(), batch(remove("x"))))]) == [1]


@given(
    st.lists(st.lists(st.tuples(st.sampled_from("abcdef"), st.booleans()), max_size=5), max_size=6),
    st.integers(0, 6),
    st.integers(1, 3),
)
def test_any_history_replayed_in_columns_gives_what_a_plain_replay_gives(
    history: list[list[tuple[str, bool]]], checkpoint_at: int, turn: int
) -> None:
    numbers = iter(range(1000))
    commits = [[(key, is_add, next(numbers)) for key, is_add in actions] for actions in history]

    def plain(upto: int) -> dict[str, int]:
        live: dict[str, int] = {}
        for key, is_add, row in (action for actions in commits[:upto] for action in actions):
            live.pop(key, None)
            if is_add:
                live[key] = row
        return live

    base = plain(checkpoint_at)
    checkpoint = [batch(add(key, row)) for key, row in base.items()]
    tail = [
        batch(*(add(key, row) if is_add else remove(key, row) for key, is_add, row in actions))
        for actions in commits[checkpoint_at:]
    ]
    spoken_of = {key for actions in commits[checkpoint_at:] for key, _, _ in actions}
    untouched = [row for key, row in base.items() if key not in spoken_of]
    decided = sorted(row for key, row in plain(len(commits)).items() if key in spoken_of)

    turns = [tail[begin : begin + turn] for begin in range(0, len(tail), turn)]
    found = rows_of(list(live_files(checkpoint, turns[::-1])))
    assert sorted(found[: len(decided)]) == decided
    assert found[len(decided) :] == untouched
