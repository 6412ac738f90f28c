"""The page about lost checkpoints finds where the query goes on, however far it was."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tablefeed
from support.pages import blocks, page


def found(lake: Path, *, copied: Iterable[int], first: int = 0) -> dict[str, Any]:  # Any: the names of a snippet
    """What the first snippet finds where three commits have two rows each, and the target the rows `copied`."""
    for version in range(3):
        tablefeed.append(lake / "orders", pa.table({"id": [2 * version, 2 * version + 1]}))
    if first:
        tablefeed.checkpoint(lake / "orders")
        for version in range(first):
            (lake / "orders" / "_delta_log" / f"{version:020}.json").unlink()
    tablefeed.append(lake / "orders_copy", pa.table({"id": pa.array(copied, pa.int64())}))
    code = next(block.text for block in blocks(page("lost-checkpoint.md")) if block.language == "python")
    names = dict[str, Any]()
    with contextlib.redirect_stdout(io.StringIO()):
        exec(code.replace("/lake", str(lake)), names)  # noqa: S102 - a page of ours
    return names


@pytest.mark.parametrize(
    ("copied", "after", "partly"),
    [([], -1, False), ([0, 1, 2, 3], 1, False), ([0, 1, 2], 0, True), (range(6), 2, False)],
)
def test_the_query_goes_on_after_the_last_version_that_is_in_the_target(
    *, copied: Iterable[int], after: int, partly: bool, tmp_path: Path
) -> None:
    names = found(tmp_path, copied=copied)

    assert (names["after"], names["partly"]) == (after, partly)


def test_a_log_that_begins_after_what_was_delivered_is_not_guessed_about(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="Copy the table anew"):
        found(tmp_path, copied=[0, 1], first=2)
