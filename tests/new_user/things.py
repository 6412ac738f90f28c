"""What lies in the folder of the new user when a transcript begins: real tables, flights, a checkpoint of a query."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path

import pyarrow.csv as pacsv
import pytest

from new_user.player import ROOT

TRANSCRIPTS = Path(__file__).parent / "transcripts"
RECORDINGS = ROOT / "tests" / "corpus" / "recordings"


def give_things(transcript: str, folder: Path) -> None:
    """Puts what the transcript of that name uses into `folder`. Skips the test where that is not to be had."""
    match transcript:
        case "flights":
            sys.path.insert(0, str(ROOT / "examples"))
            from flights import load_flights  # type: ignore[import-not-found]  # an example, no package

            try:
                pacsv.write_csv(load_flights(ROOT / ".cache"), folder / "flights.csv")
            except subprocess.CalledProcessError:
                pytest.skip("the flights cannot be downloaded")
        case "recordings":
            for name in ("streams", "indextables"):
                with tarfile.open(RECORDINGS / f"{name}.tar.xz") as archive:
                    archive.extractall(folder, filter="data")
