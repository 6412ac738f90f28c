"""What the writer makes of the messages that Spark hands it. No JVM."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StructType

import tablefeed
from tablefeed.errors import CommitError, IllegalOptionError, UnknownOptionError, UnsupportedFeatureError
from tablefeed.spark.options import parse_options
from tablefeed.spark.sink import BatchWriter, StreamWriter


def test_a_commit_without_word_from_its_tasks_as_of_a_continuous_trigger_is_refused(tmp_path: Path) -> None:
    table = tmp_path / "t"
    writer = StreamWriter({"path": str(table)}, StructType().add("id", LongType()), overwrite=False)

    with pytest.raises(CommitError, match=r"2 of 2 tasks did not report .* continuous trigger, with another"):
        writer.commit([None, None], 0)

    assert not table.exists()


IDS = StructType().add("id", LongType())


@pytest.mark.parametrize("writer", [StreamWriter, BatchWriter])
def test_options_named_delta_are_the_properties_of_the_table_that_the_write_makes(
    tmp_path: Path, writer: type[StreamWriter | BatchWriter]
) -> None:
    # Spark hands names on in lower case.
    options = {
        "path": str(tmp_path / "t"),
        "delta.enablechangedatafeed": "true",
        "delta.feature.rowtracking": "supported",
    }

    plan = writer(options, IDS, overwrite=False)._plan

    assert plan.configuration == {"delta.enableChangeDataFeed": "true", "delta.feature.rowTracking": "supported"}


def test_a_table_that_is_there_keeps_its_own_properties(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, pa.table({"id": [1]}), properties={"delta.appendOnly": "true"})

    plan = BatchWriter({"path": str(tmp_path), "delta.appendonly": "false"}, IDS, overwrite=False)._plan

    assert (plan.metadata, plan.configuration) == (None, {})


def test_a_property_that_no_table_has_is_refused_before_a_file_is_written(tmp_path: Path) -> None:
    def refused(**options: str) -> None:
        StreamWriter({"path": str(tmp_path / "t"), **options}, IDS, overwrite=False)

    with pytest.raises(IllegalOptionError, match="DELTA_UNKNOWN_CONFIGURATION"):
        refused(**{"delta.appendonlyy": "true"})
    with pytest.raises(UnsupportedFeatureError, match="collations"):
        refused(**{"delta.feature.collations": "supported"})
    assert not (tmp_path / "t").exists()


def test_a_read_has_no_properties() -> None:
    with pytest.raises(UnknownOptionError):
        parse_options({"delta.appendOnly": "true"}, "batch read")
