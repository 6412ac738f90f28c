"""How an error of tablefeed leaves Spark's calls: with its message alone. No JVM."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StructType

import tablefeed
from pyspark_tablefeed import DefaultSource
from tablefeed.errors import TablefeedError

ROWS = StructType().add("id", LongType())


def no_table(folder: Path) -> object:
    return DefaultSource({"path": str(folder / "none")}).schema()


def a_wrong_option(folder: Path) -> object:
    return DefaultSource({"path": str(folder / "t"), "mergeSchemas": "true"}).writer(ROWS, overwrite=False)


def a_limit_of_a_stream(folder: Path) -> object:
    source = DefaultSource({"path": str(folder / "t"), "maxFilesPerTrigger": "0"})
    reader = source.streamReader(source.schema())
    return reader.prepareForTriggerAvailableNow()  # type: ignore[attr-defined]  # of SupportsTriggerAvailableNow


def a_file_that_is_gone(folder: Path) -> object:
    source = DefaultSource({"path": str(folder / "t")})
    reader = source.reader(source.schema())
    [task] = reader.partitions()
    for file in (folder / "t").glob("*.parquet"):
        file.unlink()
    return list(reader.read(task))


@pytest.mark.parametrize("mistake", [no_table, a_wrong_option, a_limit_of_a_stream, a_file_that_is_gone])
def test_an_error_has_no_frame_below_sparks_call_and_no_cause_and_its_whole_traceback_is_logged(
    mistake: Callable[[Path], object], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tablefeed.append(tmp_path / "t", pa.table({"id": [1]}))

    with caplog.at_level(logging.DEBUG, logger="tablefeed.spark.plain_errors"), pytest.raises(TablefeedError) as caught:
        mistake(tmp_path)

    files = {Path(frame.filename).name for frame in traceback.extract_tb(caught.value.__traceback__)}
    assert files <= {"test_plain_errors.py", "__init__.py", "plain_errors.py"}
    text = "".join(traceback.format_exception(caught.value))
    assert text.count("Traceback") == 1
    assert text.splitlines()[-1] == f"tablefeed.errors.{type(caught.value).__name__}: {caught.value}"
    [raised] = [record for record in caplog.records if record.name == "tablefeed.spark.plain_errors"]
    assert raised.exc_info is not None
