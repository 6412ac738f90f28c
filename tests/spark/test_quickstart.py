"""The shortest example does what it says."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from spark.streams import ids_by_delta_rs

QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstart.py"


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_the_quickstart_copies_a_table_and_then_what_is_appended(tmp_path: Path) -> None:
    runpy.run_path(str(QUICKSTART))["main"](tmp_path)

    assert ids_by_delta_rs(tmp_path / "orders_copy") == [1, 2, 3]
