"""Where the corpus is, the tables of other projects, and how a run met it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

_WITHOUT_THE_VARIABLE = Path(__file__).parents[3] / "shared" / "corpus"


def corpus_folder() -> Path | None:
    """The folder that TABLEFEED_CORPUS names, or where the corpus is kept without it. None where it is not there."""
    folder = Path(os.environ.get("TABLEFEED_CORPUS") or _WITHOUT_THE_VARIABLE)
    return folder if folder.is_dir() else None


SKIPPED_WITHOUT_CORPUS = "it needs other projects' tables: set TABLEFEED_CORPUS to the corpus"


def other_projects_tables() -> Path:
    """The folder of the corpus; where it is absent the test is skipped."""
    folder = corpus_folder()
    if folder is None:
        pytest.skip(SKIPPED_WITHOUT_CORPUS)
    return folder


@dataclass(slots=True)
class Tally:
    """How many tables of the corpus were read right, refused with the right error, or met in any other way."""

    right: int = 0
    refused: int = 0
    wrong: int = 0

    def __call__(self, *, right: int = 0, refused: int = 0, wrong: int = 0) -> None:
        """Counts verdicts. One that is wrong fails the whole run, whatever its test says."""
        self.right += right
        self.refused += refused
        self.wrong += wrong

    def closing_line(self) -> str:
        """The line that a run ends with."""
        if corpus_folder() is None:
            return "corpus: absent"
        return f"corpus: {self.right} right, {self.refused} refused, {self.wrong} wrong"
