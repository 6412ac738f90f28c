"""Other writers' tables, copied commit by commit: every copy is equal to its source, or refused by name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tablefeed
from support.corpus import corpus_folder
from support.digest import table_digest
from tablefeed.errors import DataFileError, LogError, UnsupportedFeatureError
from tablefeed.feed.upkeep.background import wait_until_done

_FOLDER = corpus_folder()
_ALL = sorted(json.loads((_FOLDER / "delta" / "expected.json").read_text())["tables"]) if _FOLDER else []
_LARGE = {
    "delta-golden/parquet-decimal-dictionaries-v2",
    "deltars/COVID-19_NYT",
    "kernelrs-data-tar/300k-add-files-100-col-partitioned",
}
"""Tables whose copy or digest takes many seconds."""

TABLES = [table for table in _ALL if table not in _LARGE]


def _copied(source: Path, target: Path, first: int | None) -> str:
    """How one table was met: "equal", or the reason of its refusal."""
    try:
        tablefeed.replicate(source, target, starting_version=first, verify=True)
    except UnsupportedFeatureError:
        return "a feature"
    except DataFileError:
        return "a file is gone"
    except LogError:
        return "the log"
    copy, table = tablefeed.open_table(target), tablefeed.open_table(source)
    assert copy.schema == table.schema
    assert table_digest(copy.to_arrow()) == table_digest(table.to_arrow())
    return "equal"


@pytest.mark.slow
@pytest.mark.usefixtures("corpus")
def test_a_copy_of_any_table_is_equal_or_refused_by_name(corpus: Path, tmp_path: Path) -> None:
    met: dict[str, int] = {}
    for number, table in enumerate(TABLES):
        for first in (None, 0):
            found = _copied(corpus / "delta" / table, tmp_path / f"{number}-{first}", first)
            met[found] = met.get(found, 0) + 1
    wait_until_done()

    assert sum(met.values()) == 2 * len(TABLES)
    assert met["equal"] > 1.5 * len(TABLES), met
