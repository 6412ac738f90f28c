"""Spark finds `format("tablefeed")` by itself, and takes it from whoever registers it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pyspark_tablefeed import DefaultSource
from spark.streams import grow, ids_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_session_that_registered_nothing_knows_the_format(new_session: SparkSession, tmp_path: Path) -> None:
    grow(tmp_path / "t", [1, 2])

    assert ids_of(new_session.read.format("tablefeed").load(str(tmp_path / "t"))) == [1, 2]


def test_the_source_can_be_registered_by_hand(new_session: SparkSession, tmp_path: Path) -> None:
    grow(tmp_path / "t", [1, 2])

    # Made here, so that Spark sends the class itself: its workers do not find the modules of the tests.
    class OtherwiseNamed(DefaultSource):
        @classmethod
        def name(cls) -> str:
            return "tablefeed_by_hand"

    for source in (DefaultSource, OtherwiseNamed):
        new_session.dataSource.register(source)
        assert ids_of(new_session.read.format(source.name()).load(str(tmp_path / "t"))) == [1, 2]
