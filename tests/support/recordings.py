"""The recordings of tests/corpus/recordings, unpacked: what other implementations wrote and read for these tests."""

from __future__ import annotations

import json
import lzma
import os
import shutil
import tarfile
from functools import cache
from pathlib import Path
from typing import Any

from support.corpus import corpus_folder, other_projects_tables

_RECORDINGS = Path(__file__).parents[1] / "corpus" / "recordings"
_ROOT = b"@@ROOT@@"
"""What stands for the folder of the tables in a log that has absolute paths."""


@cache
def recorded_streams() -> dict[str, Any]:  # Any: the recorder's JSON, described beside it
    """What was recorded of Delta-Spark's streams: `tables`, `scenarios`, and the logs to `rebase`."""
    found: dict[str, Any] = json.loads(lzma.decompress((_RECORDINGS / "streams.json.xz").read_bytes()))
    return found


def unpack_stream_tables(into: Path) -> None:
    """Unpacks the tables of the recorded streams into the folder `into`, with the times of their commits."""
    _unpack("streams.tar.xz", into)
    for name in recorded_streams()["rebase"]:
        path = into / name
        modified_s = path.stat().st_mtime
        path.write_bytes(path.read_bytes().replace(_ROOT, bytes(into)))
        os.utime(path, (modified_s, modified_s))


def unpack_index_tables(into: Path) -> None:
    """Unpacks the IndexTables tables into the folder `into`, beside them those of the corpus where it is present."""
    _unpack("indextables.tar.xz", into)
    corpus = corpus_folder()
    if corpus is not None and (corpus / "indextables").is_dir():
        for folder in (corpus / "indextables").glob("upstream_*"):
            shutil.copytree(folder, into / folder.name)


def index_table(tables: Path, name: str) -> Path:
    """The folder of one of these tables. The test is skipped where it is another project's and the corpus is absent."""
    if name.startswith("upstream_"):
        other_projects_tables()
    return tables / name


def _unpack(archive: str, into: Path) -> None:
    with tarfile.open(_RECORDINGS / archive) as tar:
        tar.extractall(into, filter="data")
