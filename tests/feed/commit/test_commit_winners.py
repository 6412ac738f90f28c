"""Every kind of commit that can win a race against ours, and what becomes of ours: one table, written out.

The rules and their order are those of Delta-Spark's conflict checker for Serializable isolation.
"""

from __future__ import annotations

from typing import Any

import pytest

from support.commits import already_applied, commit_behind, committed
from support.logs import Action, a_log, a_table, add, col, info, live_paths, meta, metadata, protocol, remove, txn
from tablefeed.errors import ConflictError
from tablefeed.feed.snapshot.table_log import TableLog
from tablefeed.log.conflicts import WriteKind

STANDS = "stands"
REPLAY = "replay"
PROTOCOL = "DELTA_PROTOCOL_CHANGED"
METADATA = "DELTA_METADATA_CHANGED"
TRANSACTION = "DELTA_CONCURRENT_TRANSACTION"
APPEND = "DELTA_CONCURRENT_APPEND"
DELETE_READ = "DELTA_CONCURRENT_DELETE_READ"

DV = {"storageType": "i", "pathOrInlineDv": "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L", "sizeInBytes": 40}
WITH_VECTOR = add("old", deletionVector={**DV, "cardinality": 1})
DOMAIN: Action = {"domainMetadata": {"domain": "theirs", "configuration": "{}", "removed": False}}
CDC: Action = {"cdc": {"path": "_change_data/c", "partitionValues": {}, "size": 1, "dataChange": False}}
OTHER_SCHEMA = meta(col("id"), col("new", "string"))

BEFORE = [protocol(), metadata(), add("old")]

# What won, in its versions, and what becomes of: an append, the append as batch 7 of a query, an overwrite.
WINNERS: dict[str, tuple[list[list[Action]], str, str, str]] = {
    "only commitInfo": ([[info(operation="VACUUM START")]], STANDS, STANDS, STANDS),
    "protocol": ([[protocol(1, 4)]], PROTOCOL, PROTOCOL, PROTOCOL),
    "the same protocol once more": ([[protocol()]], STANDS, STANDS, STANDS),
    "properties": ([[metadata(configuration={"owner": "me"})]], METADATA, METADATA, METADATA),
    "schema": ([[OTHER_SCHEMA]], METADATA, METADATA, METADATA),
    "protocol and schema": ([[protocol(1, 4), OTHER_SCHEMA]], PROTOCOL, PROTOCOL, PROTOCOL),
    "a domain": ([[DOMAIN]], STANDS, STANDS, STANDS),
    "txn of another application": ([[txn("other", 9)]], STANDS, STANDS, STANDS),
    "txn of ours, lower": ([[txn("query", 6), add("b")]], STANDS, TRANSACTION, APPEND),
    "txn of ours, the same": ([[txn("query", 7), add("b")]], STANDS, REPLAY, APPEND),
    "txn of ours, higher": ([[txn("query", 8), add("b")]], STANDS, REPLAY, APPEND),
    "txn of ours, higher and then lower": (
        [[txn("query", 8), add("b")], [txn("query", 6), add("c")]],
        STANDS,
        TRANSACTION,
        APPEND,
    ),
    "adds": ([[add("b"), add("c")]], STANDS, STANDS, APPEND),
    "removes": ([[remove("old")]], STANDS, STANDS, DELETE_READ),
    "an update with its changes": ([[remove("old"), add("b"), CDC]], STANDS, STANDS, APPEND),
    "a deletion vector": ([[remove("old"), WITH_VECTOR]], STANDS, STANDS, APPEND),
    "OPTIMIZE": ([[remove("old", data_change=False), add("b", data_change=False)]], STANDS, STANDS, APPEND),
    "removes and then adds": ([[remove("old")], [add("b")]], STANDS, STANDS, DELETE_READ),
    "adds and a schema after them": ([[add("b")], [OTHER_SCHEMA]], METADATA, METADATA, APPEND),
    "a schema and a protocol after it": ([[OTHER_SCHEMA], [protocol(1, 4)]], METADATA, METADATA, METADATA),
    "a schema there and back": ([[OTHER_SCHEMA], [metadata()]], METADATA, METADATA, METADATA),
    "txn of ours, lower, with a schema": ([[txn("query", 6), OTHER_SCHEMA]], METADATA, METADATA, METADATA),
    "txn of ours, the same, and a schema after it": (
        [[txn("query", 7), add("b")], [OTHER_SCHEMA]],
        METADATA,
        REPLAY,
        APPEND,
    ),
    "all at once": (
        [[protocol(1, 4), OTHER_SCHEMA, DOMAIN, txn("query", 6), remove("old"), add("b")]],
        PROTOCOL,
        PROTOCOL,
        PROTOCOL,
    ),
}


def outcome_of(log: TableLog, winners: list[list[Action]], **ours: Any) -> str:
    """Commits ours after `winners`; what came of it, having seen that the table holds our file then and only then."""
    newest = len(winners)
    lost: ConflictError | None = None
    try:
        outcome, _ = commit_behind(log, *winners, **ours)
    except ConflictError as error:
        lost = error
    if lost is not None:
        assert 1 <= lost.winner <= newest
        assert (log.load().version, "ours" in live_paths(log)) == (newest, False)
        return str(lost.error_class)
    if outcome == committed(newest + 1):
        assert live_paths(log).count("ours") == 1
        return STANDS
    recorded = log.load().facts.txns["query"].txn_version
    assert outcome == already_applied(newest, recorded=recorded)
    assert "ours" not in live_paths(log)
    return REPLAY


@pytest.mark.parametrize("winner", WINNERS)
def test_what_an_append_comes_to_after_each_kind_of_winner(winner: str) -> None:
    winners, expected, _, _ = WINNERS[winner]

    assert outcome_of(a_log(v0=BEFORE), winners) == expected


@pytest.mark.parametrize("winner", WINNERS)
def test_what_a_batch_of_a_query_comes_to_after_each_kind_of_winner(winner: str) -> None:
    winners, _, expected, _ = WINNERS[winner]

    assert outcome_of(a_log(v0=BEFORE), winners, txn=("query", 7)) == expected


@pytest.mark.parametrize("txn", [None, ("query", 7)], ids=["alone", "batch of a query"])
@pytest.mark.parametrize("winner", WINNERS)
def test_what_an_overwrite_comes_to_after_each_kind_of_winner(winner: str, txn: tuple[str, int] | None) -> None:
    winners, _, of_a_batch, expected = WINNERS[winner]
    if txn is not None and of_a_batch in (REPLAY, TRANSACTION):
        expected = of_a_batch
    log = a_log(v0=BEFORE)

    assert outcome_of(log, winners, kind=WriteKind.OVERWRITE, txn=txn) == expected
    if expected == STANDS:
        assert live_paths(log) == ["ours"]


def test_the_winner_that_is_named_is_the_first_that_excludes_ours() -> None:
    with pytest.raises(ConflictError) as caught:
        commit_behind(a_table(), [add("b")], [OTHER_SCHEMA], [add("c")])

    assert caught.value.winner == 2
