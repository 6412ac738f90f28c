"""The Spark session of one side: the same for both but for what makes the JAR the JAR."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.questions import Setting, Side

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CORES = 2

LOCAL = f"local[{CORES}]"
"""The driver and all tasks in one JVM."""

CLUSTER = f"local-cluster[1,{CORES},4096]"
"""The driver and one executor, each in a JVM of its own."""

FORMATS = {Side.OURS: "tablefeed", Side.JAR: "delta"}
"""What a side is called in `format(...)`."""

READY = "ready"
"""What the source and sink that do nothing (ready.py) are called there."""

_BOTH = {
    "spark.driver.memory": "4g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",  # one a core: the default of 200 is for clusters
    "spark.sql.streaming.numRecentProgressUpdates": "10000",  # each batch's times are read when the query has ended
}


_ADVISED = {
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.execution.arrow.maxBytesPerBatch": "2147483647",  # no limit, which Spark would check after each row
}


def start_session(side: Side, setting: Setting, *, scratch: Path, jars: Path, master: str = LOCAL) -> SparkSession:
    """Starts this process's one session. Both are set for a machine of this size, as a user of one would."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    conf = {**_BOTH, "spark.sql.warehouse.dir": str(scratch / "warehouse"), "spark.local.dir": str(scratch / "spark")}
    if setting is Setting.ADVISED:
        conf |= _ADVISED
        os.environ["SPARK_HOME"] = str(_home_without_archive(scratch))
    if side is Side.JAR:
        conf |= _jar_conf(jars)
    builder = SparkSession.builder.appName(f"benchmark of {side}").master(master)
    for key, value in conf.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def _home_without_archive(scratch: Path) -> Path:
    """Makes a SPARK_HOME of the installed PySpark without `pyspark.zip`, as docs/how-to/faster.md advises."""
    import pyspark

    installed, home = Path(pyspark.__file__).parent, scratch / "spark-home"
    (home / "python" / "lib").mkdir(parents=True)
    for linked in ("bin", "jars", *(f"python/lib/{one.name}" for one in installed.glob("python/lib/py4j-*.zip"))):
        (home / linked).symlink_to(installed / linked)
    return home


def _jar_conf(jars: Path) -> dict[str, str]:
    found = sorted(str(jar) for jar in jars.resolve().glob("*.jar"))
    if not any("delta-spark" in jar for jar in found):
        raise SystemExit(f"{jars} holds no delta-spark JAR: scripts/peer_jars.sh fetches it and what it needs")
    return {
        "spark.jars": ",".join(found),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # The JAR replays the log at each commit with 50 tasks by default: several times as slow here.
        "spark.databricks.delta.snapshotPartitions": "2",
    }
