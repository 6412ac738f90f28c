"""What a new user types, and what is in the folder when a transcript begins: real tables, flights, files of a page."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path

import pyarrow.csv as pacsv
import pytest

from new_user.player import ROOT
from support.pages import blocks, page

TRANSCRIPTS = Path(__file__).parent / "transcripts"
RECORDINGS = ROOT / "tests" / "corpus" / "recordings"
TUTORIAL = blocks(page("first-pipeline.md"))


CHANGING = {
    "tutorial": (
        (r"batch \d+( of query \S+): (not )?done\n  source 0: .*\n    .* delivered\n", r"batch <n>\1: <how far>\n"),
        (r"((?:versions behind|files to deliver) +)\d+", r"\1<n>"),
    )
}
"""What differs from run to run in one transcript only: how far a query was when it was killed."""


def script(transcript: str) -> str:
    """What the user types in the transcript of that name: in that of the tutorial, what its page says."""
    if transcript != "tutorial":
        return (TRANSCRIPTS / f"{transcript}.txt").read_text(encoding="utf-8")
    typed = ("> ".join(block.text.splitlines(keepends=True)) for block in TUTORIAL if block.language == "bash")
    return "# The tutorial of docs, block by block. The files that it shows are there.\n$ " + "$ ".join(typed)


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
        case "tutorial":
            for block in TUTORIAL:
                if block.title:
                    (folder / block.title).write_text(block.text, encoding="utf-8")
        case "recordings":
            for name in ("streams", "indextables"):
                with tarfile.open(RECORDINGS / f"{name}.tar.xz") as archive:
                    archive.extractall(folder, filter="data")
            for data_file in folder.rglob("*.parquet"):  # else vacuum finds more of them as the recordings grow old
                if "_delta_log" not in data_file.parts:
                    data_file.touch()
