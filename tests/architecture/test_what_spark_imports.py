"""Spark imports every top-level `pyspark_*` module in each of its Python processes: ours must cost it nothing."""

from __future__ import annotations

import subprocess
import sys

_PROGRAM = """
import sys
import pyspark.sql.datasource
before = set(sys.modules)
import pyspark_tablefeed
print(*sorted(set(sys.modules) - before))
"""


def test_the_shim_imports_nothing_that_the_base_class_did_not() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["pyspark_tablefeed"]
