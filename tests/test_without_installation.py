"""The package works from a zip on the path, as `addPyFile` ships it, where nothing says that it was ever installed."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from tablefeed._version import __version__

_SRC = Path(__file__).parents[1] / "src"

_EVERY_MODULE = """
import importlib, pkgutil
import pyspark_tablefeed, tablefeed
for module in pkgutil.walk_packages(tablefeed.__path__, "tablefeed."):
    importlib.import_module(module.name)
"""

_APPEND = """
import sys
import pyarrow as pa
import tablefeed
for table_format in ("delta", "indextables"):
    url = f"{sys.argv[1]}/{table_format}"
    for row in range(2):
        tablefeed.append(url, pa.table({"id": [row]}), table_format=table_format)
    print(sorted(tablefeed.open_table(url).to_arrow()["id"].to_pylist()))
print((next(tablefeed.follow(f"{sys.argv[1]}/delta", after=0)).info or {})["engineInfo"])
"""

_TYPED = """
from importlib.resources import files
print(files("tablefeed").joinpath("py.typed").is_file())
"""


@pytest.fixture
def path(tmp_path: Path) -> list[Path]:
    """The package in a zip, and what is installed beside it, but nothing that says that the package is installed."""
    zipped, site = tmp_path / "tablefeed.zip", tmp_path / "site"
    with zipfile.ZipFile(zipped, "w") as archive:
        for file in _SRC.rglob("*"):
            if "__pycache__" not in file.parts:
                archive.write(file, file.relative_to(_SRC))
    site.mkdir()
    for installed in Path(sysconfig.get_path("purelib")).iterdir():
        if "tablefeed" not in installed.name:
            (site / installed.name).symlink_to(installed)
    return [zipped, site]


def run(program: str, path: list[Path], *arguments: str) -> str:
    command = [
        sys.executable,
        "-I",
        "-S",
        "-c",
        f"import sys\nsys.path[:0] = {[*map(str, path)]}\n{program}",
        *arguments,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_module_can_be_imported_from_a_zip(path: list[Path]) -> None:
    run(_EVERY_MODULE, path)


def test_a_table_of_each_format_is_made_and_appended_to_from_a_zip(path: list[Path], tmp_path: Path) -> None:
    assert run(_APPEND, path, str(tmp_path)).splitlines() == ["[0, 1]", "[0, 1]", f"tablefeed/{__version__}"]


def test_a_zip_says_that_the_package_is_typed(path: list[Path]) -> None:
    assert run(_TYPED, path) == "True\n"
