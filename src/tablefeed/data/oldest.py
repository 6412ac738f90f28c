"""The oldest versions of packages with which rows are right: an older one may read, write or select other rows.

pip reads the same versions in pyproject.toml. But a cluster may have tablefeed as a zip beside packages of its own.
"""

from __future__ import annotations

import re
from types import ModuleType

from tablefeed.errors import TablefeedError

OLDEST = {"duckdb": "2.0", "pyarrow": "24", "pyroaring": "1.1", "sqlglot": "30.24"}


def why_too_old(package: ModuleType) -> str | None:
    """Says that the imported `package`, one of `OLDEST`, is too old; None if it is not."""
    name, version, oldest = package.__name__, package.__version__, OLDEST[package.__name__]
    if _numbers(version) >= _numbers(oldest):
        return None
    return (
        f"tablefeed needs {name} {oldest} or newer, and this Python has {name} {version}, with which rows can be "
        f"wrong: pip install '{name}>={oldest}'"
    )


def refuse(package: ModuleType) -> None:
    """Raises TablefeedError if the imported `package`, one of `OLDEST`, is too old."""
    if (why := why_too_old(package)) is not None:
        raise TablefeedError(f"{why}.")


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)[:2]]
