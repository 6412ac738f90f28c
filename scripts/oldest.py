"""Prints pip's constraints for the oldest packages that pyproject.toml allows, one on each line.

    python scripts/oldest.py > FILE        then PIP_CONSTRAINT=FILE pip install ...

Only the package's own dependencies and extras count, not the groups of developers. The newest patch of the oldest
version is taken, because it is built for more versions of Python.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path


def oldest(pyproject: str) -> list[str]:
    """Gives the constraints for the text of a pyproject.toml."""
    project = tomllib.loads(pyproject)["project"]
    asked = [*project["dependencies"], *(text for extra in project["optional-dependencies"].values() for text in extra)]
    found = (re.fullmatch(r"([\w-]+)(?:\[\w+\])?>=([\d.]+)", text) for text in asked)
    return sorted({f"{limit[1]}=={limit[2]}.*" for limit in found if limit})


if __name__ == "__main__":
    limits = oldest((Path(__file__).parents[1] / "pyproject.toml").read_text())
    sys.stdout.write("".join(f"{limit}\n" for limit in limits))
