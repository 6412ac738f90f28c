from __future__ import annotations

import json

from support.logs import Action, add, info, protocol, remove, txn
from tablefeed.delta.checkpoint.compaction import compact
from tablefeed.delta.codec import decode_commit
from tablefeed.model.actions import Commit, Version


def commit(version: int, *actions: Action) -> Commit:
    lines = "\n".join(map(json.dumps, actions))
    return decode_commit(lines.encode(), version=Version(version), log_file="x", modified_ms=1)


def test_the_example_of_the_protocol_comes_out_as_it_says() -> None:
    commits = [
        commit(4, info(), add("f2"), remove("f1", tags={"k": "v"})),
        commit(5, info(), add("f3"), add("f4"), txn("q", 4389)),
        commit(6, info(), remove("f3"), txn("q", 4390)),
    ]

    lines = [json.loads(line) for line in compact(commits).splitlines()]

    assert [{kind: a.get("path", a.get("version")) for kind, a in line.items()} for line in lines] == [
        {"txn": 4390},
        {"remove": "f1"},
        {"add": "f2"},
        {"remove": "f3"},
        {"add": "f4"},
    ]
    assert lines[1]["remove"] == {"path": "f1", "dataChange": True, "deletionTimestamp": 1, "tags": {"k": "v"}}


def test_of_what_comes_more_than_once_the_last_stays_and_a_domains_tombstone_too() -> None:
    live, gone = (
        {"domainMetadata": {"domain": "d", "configuration": text, "removed": text == "b"}} for text in ("a", "b")
    )
    commits = [
        commit(1, protocol(1, 2), live, add("x%20")),
        commit(2, protocol(1, 4), gone, add("x ")),
        commit(3, {"cdc": {"path": "c", "partitionValues": {}, "size": 1, "dataChange": False}}),
    ]

    lines = [json.loads(line) for line in compact(commits).splitlines()]

    assert lines[0] == {"protocol": {"minReaderVersion": 1, "minWriterVersion": 4}}
    assert [line["add"]["path"] for line in lines if "add" in line] == ["x "]
    assert lines[-1] == {"domainMetadata": {"domain": "d", "configuration": "b", "removed": True}}
    assert len(lines) == 3
