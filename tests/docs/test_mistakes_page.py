"""The page of mistakes in Spark has the mistakes that its script makes, which needs a session only for their texts."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

from support.pages import ROOT, page


def test_the_page_has_each_mistake_of_its_script_and_no_other(tmp_path: Path) -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "mistakes_in_spark.py"))

    made = [name for name, _ in script["Mistakes"](None, tmp_path).all()]

    assert re.findall(r"^\| ((?:batch read|stream|write): .*?) \|", page("mistakes-in-spark.md"), re.MULTILINE) == made
