"""What a rival's commit means for ours: most mean nothing, and the rest are told apart by class."""

from __future__ import annotations

from functools import partial

import pytest

from support.actions import add, commit, remove
from tablefeed.log.conflicts import WriteKind, conflict_with
from tablefeed.model.actions import Commit, DeletionVector, DomainMetadata, FileAction, Metadata, Protocol, Txn

v8 = partial(commit, 8)
OURS = Txn(app_id="query", txn_version=5)
PROTOCOL = Protocol(min_reader_version=1, min_writer_version=2)
METADATA = Metadata(table_id="t", schema_string='{"type":"struct","fields":[]}')


def class_for(winner: Commit, kind: WriteKind, txn: Txn | None = OURS) -> str | None:
    found = conflict_with(winner, kind=kind, txn=txn)
    return None if found is None else found.error_class


OTHER_TXN = Txn(app_id="another query", txn_version=5)

HARMLESS_TO_AN_APPEND = {
    "an append": v8(add("b")),
    "a delete": v8(remove("a")),
    "an update": v8(remove("a"), add("b")),
    "an optimize": v8(remove("a", data_change=False), add("b", data_change=False)),
    "another stream's batch": v8(add("b"), txns=(OTHER_TXN,)),
    "another domain": v8(domains=(DomainMetadata(domain="d", configuration="{}", removed=False),)),
    "nothing": v8(),
}


@pytest.mark.parametrize("winner", HARMLESS_TO_AN_APPEND.values(), ids=HARMLESS_TO_AN_APPEND)
def test_a_blind_append_goes_on_after_whatever_is_done_to_rows(winner: Commit) -> None:
    assert conflict_with(winner, kind=WriteKind.APPEND, txn=OURS) is None
    assert conflict_with(winner, kind=WriteKind.APPEND, txn=None) is None


@pytest.mark.parametrize("kind", WriteKind)
def test_every_write_loses_to_a_change_of_the_table_itself(kind: WriteKind) -> None:
    assert class_for(v8(protocol=PROTOCOL), kind) == "DELTA_PROTOCOL_CHANGED"
    assert class_for(v8(metadata=METADATA), kind) == "DELTA_METADATA_CHANGED"


@pytest.mark.parametrize("kind", WriteKind)
@pytest.mark.parametrize("theirs", [4, 5, 6])
def test_every_write_loses_to_the_same_application_whatever_its_version(kind: WriteKind, theirs: int) -> None:
    winner = v8(add("b"), txns=(OTHER_TXN, Txn(app_id="query", txn_version=theirs)))

    assert class_for(winner, kind) == "DELTA_CONCURRENT_TRANSACTION"
    assert class_for(winner, WriteKind.APPEND, txn=None) is None


@pytest.mark.parametrize(
    ("winner", "error_class"),
    [
        (v8(add("b")), "DELTA_CONCURRENT_APPEND"),
        (HARMLESS_TO_AN_APPEND["an optimize"], "DELTA_CONCURRENT_APPEND"),  # though its rows are not new
        (v8(remove("a")), "DELTA_CONCURRENT_DELETE_READ"),
        (v8(txns=(OTHER_TXN,)), None),
    ],
)
def test_an_overwrite_loses_to_added_files_and_to_removed_ones_alone(winner: Commit, error_class: str | None) -> None:
    assert class_for(winner, WriteKind.OVERWRITE) == error_class


def test_of_several_reasons_the_first_in_the_order_of_delta_spark_is_told() -> None:
    everything = v8(add("b"), remove("a"), protocol=PROTOCOL, metadata=METADATA, txns=(OURS,))
    no_protocol = v8(add("b"), remove("a"), metadata=METADATA, txns=(OURS,))
    only_rows = v8(add("b"), remove("a"), txns=(OURS,))
    only_files = v8(add("b"), remove("a"))

    assert [class_for(w, WriteKind.OVERWRITE) for w in (everything, no_protocol, only_rows, only_files)] == [
        "DELTA_PROTOCOL_CHANGED",
        "DELTA_METADATA_CHANGED",
        "DELTA_CONCURRENT_TRANSACTION",
        "DELTA_CONCURRENT_APPEND",
    ]


def test_a_conflict_names_the_winner_and_the_application() -> None:
    found = conflict_with(v8(txns=(OURS,)), kind=WriteKind.APPEND, txn=OURS)

    assert found is not None
    assert found.version == 8
    assert "(query)" in found.reason


@pytest.mark.parametrize("theirs", [remove("a"), remove("a", data_change=False), add("a", data_change=False)], ids=str)
def test_an_optimize_loses_to_whoever_did_anything_to_a_file_that_it_folded(theirs: FileAction) -> None:
    found = conflict_with(v8(theirs), kind=WriteKind.OPTIMIZE, txn=None, folded=frozenset({"a", "b"}))

    assert found is not None
    assert found.error_class == "DELTA_CONCURRENT_DELETE_READ"


def test_an_optimize_does_not_mind_what_is_done_to_other_files() -> None:
    theirs = v8(add("c"), remove("d"), add("e", data_change=False))

    assert conflict_with(theirs, kind=WriteKind.OPTIMIZE, txn=None, folded=frozenset({"a", "b"})) is None


def test_an_overwrite_of_some_files_is_excluded_by_those_alone() -> None:
    def found(winner: Commit) -> str | None:
        conflict = conflict_with(winner, kind=WriteKind.OVERWRITE, txn=OURS, reads=lambda file: file.path == "a")
        return None if conflict is None else conflict.error_class

    assert found(v8(add("b"), remove("c"))) is None
    assert found(v8(add("b"), add("a"))) == "DELTA_CONCURRENT_APPEND"
    assert found(v8(add("b"), remove("a"))) == "DELTA_CONCURRENT_DELETE_READ"


def without(rows: int) -> DeletionVector:
    return DeletionVector(storage_type="i", path_or_inline="vector", offset=None, size_bytes=34, cardinality=rows)


@pytest.mark.parametrize(
    ("winner", "error_class"),
    [
        (v8(add("new")), "DELTA_CONCURRENT_APPEND"),
        (v8(add("new", data_change=False), remove("b", data_change=False)), None),
        (v8(remove("b"), add("b", deletion_vector=without(1))), None),
        (v8(remove("b", deletion_vector=without(2)), add("b", deletion_vector=without(1))), "DELTA_CONCURRENT_APPEND"),
        (v8(remove("unread"), info={"operation": "RESTORE"}), "DELTA_CONCURRENT_DELETE_READ"),
        (v8(add("unread")), None),
        (v8(remove("a")), "DELTA_CONCURRENT_DELETE_READ"),
        (v8(remove("a"), add("a", deletion_vector=without(1))), "DELTA_CONCURRENT_DELETE_READ"),
        (v8(remove("a", data_change=False), add("c", data_change=False)), "DELTA_CONCURRENT_DELETE_READ"),
        (
            v8(domains=(DomainMetadata(domain="ours", configuration="{}", removed=False),)),
            "DELTA_CONCURRENT_DELETE_READ",
        ),
        (v8(domains=(DomainMetadata(domain="theirs", configuration="{}", removed=False),)), None),
    ],
    ids=[
        "rows that it would have read",
        "the same rows in other files",
        "fewer rows in a file",
        "more rows in a file",
        "an earlier version of the table",
        "rows that it would not have read",
        "one of its files removed",
        "fewer rows in one of its files",
        "one of its files folded",
        "the domain that it sets",
        "another domain",
    ],
)
def test_a_change_of_rows_conflicts_with_what_would_change_it(winner: Commit, error_class: str | None) -> None:
    found = conflict_with(
        winner,
        kind=WriteKind.CHANGE,
        txn=None,
        reads=lambda file: file.path != "unread",
        folded=frozenset({"a"}),
        domains=frozenset({"ours"}),
    )
    assert (None if found is None else found.error_class) == error_class
