"""The Spark session of the tests: small, local, silent and the same on every machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FOR_MINUTES = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:MetaspaceSize=256m -Xms1g -Xmn512m "
    # With one level Java keeps 48 MB of compiled code, which is full after minutes: it then compiles methods again.
    "-XX:ReservedCodeCacheSize=240m"
)
"""A JVM that lives for minutes and has two cores: the better code that it would compile is not worth its compiling."""

CONF: Mapping[str, str] = {
    "spark.driver.memory": "2g",
    "spark.driver.extraJavaOptions": _FOR_MINUTES,
    "spark.sql.session.timeZone": "UTC",
    # Spark's default runs the program `readlink` eight times for each batch on a disk like this one.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.sql.shuffle.partitions": "2",  # the default of 200 is for clusters
    "spark.ui.enabled": "false",
    "spark.sql.ui.explainMode": "simple",  # each plan is written down for the UI: the short form costs less
    "spark.ui.showConsoleProgress": "false",
}
"""What every session of the tests has set; none of it is needed by tablefeed."""


def jar_conf(jars: Path) -> dict[str, str]:
    """What makes a session one of the Delta JAR: `jars` has it and what it needs."""
    return {
        "spark.jars": ",".join(str(jar) for jar in sorted(jars.resolve().glob("*.jar"))),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # The JAR replays a log with 50 tasks by default: seconds for a table of two commits.
        "spark.databricks.delta.snapshotPartitions": "1",
    }


def home_without_archives(scratch: Path) -> Path:
    """Makes a SPARK_HOME of the installed PySpark whose archives of Python modules are empty folders.

    Spark puts `pyspark.zip` first on the path of each Python process that it starts. Python keeps no compiled modules
    of an archive, so each process would compile PySpark again, which takes a second. With an empty folder in its place
    the process imports the same modules from where they are installed. Something must have the archive's name: without
    it Spark does not look for data sources in Python.
    """
    import pyspark

    installed, home = Path(pyspark.__file__).parent, scratch / "home"
    for archive in (installed / "python" / "lib").glob("*.zip"):
        (home / "python" / "lib" / archive.name).mkdir(parents=True, exist_ok=True)
    for name in ("bin", "jars"):
        if not (home / name).exists():  # a program of a soak that was killed starts again in its folder
            (home / name).symlink_to(installed / name)
    return home


def environment(scratch: Path) -> dict[str, str]:
    """What a program that starts a session of its own needs in its environment to have the tests' configuration.

    What the program itself configures comes on top. The files go to `scratch`.
    """
    conf = scratch / "conf"
    conf.mkdir(exist_ok=True)
    (conf / "spark-defaults.conf").write_text("".join(f"{key} {value}\n" for key, value in CONF.items()))
    return {
        "SPARK_HOME": str(home_without_archives(scratch)),
        "SPARK_CONF_DIR": str(conf),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
    }


def start_session(name: str, *, scratch: Path, conf: Mapping[str, str] | None = None) -> SparkSession:
    """Starts the session of this process, whose files go to `scratch`; `conf` comes on top of the tests' own.

    There must be none yet: a process has one JVM, and that keeps the configuration it was started with.
    """
    from pyspark.sql import SparkSession

    if SparkSession.getActiveSession() is not None:
        raise RuntimeError("this process has a session already, configured by someone else")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["SPARK_HOME"] = str(home_without_archives(scratch))
    builder = SparkSession.builder.appName(name).master("local[2]")
    for key, value in {**CONF, "spark.sql.warehouse.dir": str(scratch / "warehouse"), **(conf or {})}.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
