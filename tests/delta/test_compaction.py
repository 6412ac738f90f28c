from __future__ import annotations

import json

from tablefeed.delta.checkpoint.compaction import compact
from tablefeed.delta.codec import decode_commit
from tablefeed.model.actions import Commit, Version


def commit(version: int, *lines: str) -> Commit:
    return decode_commit("\n".join(lines).encode(), version=Version(version), log_file="x", modified_ms=1)


def add(path: str, **more: object) -> str:
    values = {"path": path, "partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": True}
    return json.dumps({"add": {**values, **more}})


def remove(path: str) -> str:
    return json.dumps({"remove": {"path": path, "dataChange": True, "deletionTimestamp": 1, "tags": {"k": "v"}}})


def test_the_example_of_the_protocol_comes_out_as_it_says() -> None:
    commits = [
        commit(4, '{"commitInfo":{}}', add("f2"), remove("f1")),
        commit(5, '{"commitInfo":{}}', add("f3"), add("f4"), '{"txn":{"appId":"q","version":4389}}'),
        commit(6, '{"commitInfo":{}}', remove("f3"), '{"txn":{"appId":"q","version":4390}}'),
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
    domain = '{{"domainMetadata":{{"domain":"d","configuration":"{}","removed":{}}}}}'
    commits = [
        commit(1, '{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}', domain.format("a", "false"), add("x%20")),
        commit(2, '{"protocol":{"minReaderVersion":1,"minWriterVersion":4}}', domain.format("b", "true"), add("x ")),
        commit(3, '{"cdc":{"path":"c","partitionValues":{},"size":1,"dataChange":false}}'),
    ]

    lines = [json.loads(line) for line in compact(commits).splitlines()]

    assert lines[0] == {"protocol": {"minReaderVersion": 1, "minWriterVersion": 4}}
    assert [line["add"]["path"] for line in lines if "add" in line] == ["x "]
    assert lines[-1] == {"domainMetadata": {"domain": "d", "configuration": "b", "removed": True}}
    assert len(lines) == 3
