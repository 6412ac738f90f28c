"""What the answers to a made-up log are held against: a plain replay of the same bytes."""

from __future__ import annotations

import json
from collections.abc import Sequence

import hypothesis

from hostile.logs import METADATA, Json, replay, rows
from hostile.ways_in import Answers
from support.examples import examples as examples_of_profile
from tablefeed.errors import TablefeedError

_ANSWERS_WITHIN_S = 10


def examples(fuzz: int) -> hypothesis.settings:
    """As many examples as the profile in use stands for.

    An answer takes milliseconds. One that is still not there after ten seconds will not come.
    """
    return examples_of_profile(fuzz, deadline_s=_ANSWERS_WITHIN_S)


def agrees(answers: Answers, commits: Sequence[bytes]) -> None:
    """Asserts that whatever was answered is what a plain replay of the same bytes says."""
    names = ("facts", "files", "rows", "stream")
    ours = {name: found for name in names if not isinstance(found := getattr(answers, name), TablefeedError)}
    if not ours:
        return
    live, newest = replay(commits)
    metadata = newest["metaData"]
    if "facts" in ours:
        columns = tuple(metadata["partitionColumns"])
        assert ours["facts"][:4] == (len(commits) - 1, metadata["id"], columns, newest["txn"].get("app"))
    if "files" in ours:
        assert sorted(map(_described, ours["files"])) == sorted(
            _described(
                {
                    "path": path,
                    "size_bytes": add["size"],
                    "modified_ms": add["modificationTime"],
                    "partition_values": add["partitionValues"],
                    "has_deletion_vector": unique_id is not None,
                }
            )
            for (path, unique_id), add in live.items()
        )
    if metadata.get("schemaString") == json.loads(METADATA[0])["metaData"]["schemaString"]:
        for name in {"rows", "stream"} & set(ours):
            found = zip(*(ours[name][column].to_pylist() for column in ("id", "p")), strict=True)
            assert sorted(found, key=str) == rows(live, metadata["partitionColumns"])


def is_answered(answers: Answers) -> bool:
    """Whether nothing was refused."""
    return not any(isinstance(answer, TablefeedError) for answer in answers.all)


def _described(file: Json) -> str:
    names = ("path", "size_bytes", "modified_ms", "partition_values", "has_deletion_vector")
    return json.dumps([file[name] for name in names])
