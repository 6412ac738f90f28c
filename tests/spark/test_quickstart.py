"""The shortest example does what it says, with a JVM of its own and as a client that has none."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from spark.streams import ids_by_delta_rs

QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstart.py"

CLIENT = """
import json, runpy, sys
from pathlib import Path

runpy.run_path(sys.argv[1])["main"](Path(sys.argv[2]))

from pyspark import SparkContext
from pyspark.sql import SparkSession

session = SparkSession.getActiveSession()
gateway = SparkContext._gateway is not None
ours = any(name.partition(".")[0] in ("tablefeed", "pyspark_tablefeed") for name in sys.modules)
print(json.dumps({"session": type(session).__module__, "gateway": gateway, "tablefeed": ours}))
"""


@pytest.mark.usefixtures("spark")
def test_the_quickstart_copies_a_table_and_then_what_is_appended(tmp_path: Path) -> None:
    runpy.run_path(str(QUICKSTART))["main"](tmp_path)

    assert ids_by_delta_rs(tmp_path / "orders_copy") == [1, 2, 3]


def test_a_client_of_connect_runs_the_quickstart_without_a_jvm_and_without_tablefeed(
    connect_url: str, tmp_path: Path
) -> None:
    no_java = {"PATH": "", "JAVA_HOME": str(tmp_path / "no java")}

    client = subprocess.run(
        [sys.executable, "-c", CLIENT, str(QUICKSTART), str(tmp_path)],
        env={**os.environ, **no_java, "SPARK_REMOTE": connect_url},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )

    assert ids_by_delta_rs(tmp_path / "orders_copy") == [1, 2, 3]
    assert json.loads(client.stdout.splitlines()[-1]) == {
        "session": "pyspark.sql.connect.session",
        "gateway": False,
        "tablefeed": False,
    }
