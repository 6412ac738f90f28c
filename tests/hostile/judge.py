"""What the answers to a made-up log are held against: a plain replay of the same bytes. And how many there are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta

import hypothesis

from hostile.logs import METADATA, Json, replay, rows
from hostile.ways_in import Answers
from tablefeed.errors import TablefeedError

IN_CI = hypothesis.settings().max_examples == hypothesis.settings.get_profile("ci").max_examples
"""Whether the thorough profile is in use."""
EXAMPLES = {
    "valid logs": (1_500, 8),
    "fields of actions": (4_500, 15),
    "lines of commits": (3_000, 10),
    "damaged checkpoints": (400, 5),
    "cells of checkpoints": (400, 5),
    "hints": (200, 4),
    "damaged data files": (300, 4),
    "deletion vectors": (300, 4),
}
"""How often each property is tried in CI and by whoever works on the code."""


def examples(of: str) -> hypothesis.settings:
    """As many examples as the profile in use stands for.

    An answer takes milliseconds. One that is still not there after ten seconds will not come.
    """
    in_ci, at_work = EXAMPLES[of]
    return hypothesis.settings(max_examples=in_ci if IN_CI else at_work, deadline=timedelta(seconds=10))


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
