"""Spark on tables that a catalog names: streams from one to the next, and the token in no file that they write."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import tablefeed
from spark.streams import grow, ids_by_delta_rs
from support.unity import API, TOKEN, Answer, FakeCatalog
from tablefeed.errors import TableReplacedError
from tablefeed.spark import apply_changes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_stream_reads_one_table_by_its_name_and_writes_another(
    spark: SparkSession, tmp_path: Path, catalog: FakeCatalog
) -> None:
    grow(tmp_path / "orders", [1, 2], [3])
    catalog.register("main.sales.orders", f"file://{tmp_path}/orders")
    catalog.register("main.sales.copy", f"file://{tmp_path}/copy")
    options = {f"storage.{name}": value for name, value in catalog.options.items()}
    checkpoint = tmp_path / "checkpoint"

    def run() -> None:
        stream = spark.readStream.format("tablefeed").options(**options).load("uc://main.sales.orders")
        writer = stream.writeStream.format("tablefeed").options(**options).option("checkpointLocation", str(checkpoint))
        query = writer.trigger(availableNow=True).start("uc://main.sales.copy")
        query.awaitTermination()

    run()
    grow(tmp_path / "orders", [4])
    run()

    assert ids_by_delta_rs(tmp_path / "copy") == [1, 2, 3, 4]
    rows = spark.read.format("tablefeed").options(**options).load("uc://main.sales.`copy`").collect()
    assert sorted(row.id for row in rows) == [1, 2, 3, 4]
    written = [path for folder in ("checkpoint", "copy") for path in (tmp_path / folder).rglob("*") if path.is_file()]
    assert [path for path in written if TOKEN.encode() in path.read_bytes()] == []


def test_a_stream_of_a_managed_table_delivers_commits_before_they_are_published(
    spark: SparkSession, tmp_path: Path, catalog: FakeCatalog
) -> None:
    table = tmp_path / "orders"
    grow(table, [1], [2], [3])
    log = table / "_delta_log"
    first = (log / f"{0:020d}.json").read_text(encoding="utf-8")
    (log / f"{0:020d}.json").write_text(managed(first), encoding="utf-8")
    staged = f"{2:020d}.3a0d65cd-4056-49b8-937b-95f9e3ee90e5.json"
    (log / "_staged_commits").mkdir()
    (log / f"{2:020d}.json").rename(log / "_staged_commits" / staged)
    catalog.manage("main.sales.orders", f"file://{table}", 2, v2=staged)
    options = {f"storage.{name}": value for name, value in catalog.options.items()}

    stream = spark.readStream.format("tablefeed").options(**options).load("uc://main.sales.orders")
    query = stream.writeStream.format("memory").queryName("managed").trigger(availableNow=True)
    query.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination()

    assert sorted(row.id for row in spark.table("managed").collect()) == [1, 2, 3]


def test_changes_go_to_no_file_of_a_table_that_takes_the_name_while_tasks_run(
    spark: SparkSession, tmp_path: Path, catalog: FakeCatalog
) -> None:
    for name in ("old", "new"):
        tablefeed.append(
            tmp_path / name, pa.table({"id": [1]}), properties={"delta.feature.domainMetadata": "supported"}
        )
    catalog.register("main.sales.orders", f"file://{tmp_path}/old")
    place = f"{catalog.uri}{API}/tables/renamed"

    def rename(request: str) -> Answer | None:
        if not request.endswith("/renamed"):
            return None
        catalog.tables["main.sales.orders_old"] = catalog.tables["main.sales.orders"]
        catalog.register("main.sales.orders", f"file://{tmp_path}/new")
        return 200, {}

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:  # the first task asks the catalog, so that the next ones find the new table
            urllib.request.urlopen(place).close()  # noqa: S310 - this machine
            yield batch

    catalog.answers = rename
    changes = spark.createDataFrame([(2, 1)], "id long, ts long").coalesce(1).mapInArrow(read, "id long, ts long")
    with pytest.raises(TableReplacedError, match=r"main\.sales\.orders means another table now"):
        apply_changes(
            changes,
            "uc://main.sales.orders",
            keys="id",
            sequence_by="ts",
            except_column_list=["ts"],
            tasks=1,
            storage_options=catalog.options,
        )

    assert {name: len(list((tmp_path / name).rglob("*.parquet"))) for name in ("old", "new")} == {"old": 1, "new": 1}


def managed(first_commit: str) -> str:
    """The first commit of a table, with the protocol of one whose commits a catalog manages."""
    lines = [line for line in first_commit.splitlines() if '"protocol"' not in line]
    features = '"readerFeatures":["catalogManaged"],"writerFeatures":["catalogManaged"]'
    lines.append('{"protocol":{"minReaderVersion":3,"minWriterVersion":7,' + features + "}}")
    return "\n".join(lines) + "\n"
