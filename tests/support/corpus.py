"""Where the corpus of tables by other writers is, and how a run met it."""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_WITHOUT_THE_VARIABLE = Path(__file__).parents[3] / "shared" / "corpus"


def corpus_folder() -> Path | None:
    """The folder that TABLEFEED_CORPUS names, or where the corpus is kept without it. None where it is not there."""
    folder = Path(os.environ.get("TABLEFEED_CORPUS") or _WITHOUT_THE_VARIABLE)
    return folder if folder.is_dir() else None


def corpus_module(path: Path) -> Any:  # Any: a module without types
    """A module of the corpus, taken from its folder so that there is one of it."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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
