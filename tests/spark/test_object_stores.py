"""A stream from a table on an object store into another, as Spark runs it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import tablefeed
from support.gateway import Gateway

OTHERS = ("azurite", "fake_gcs_server")
STORES = ["s3_server", *(pytest.param(server, marks=pytest.mark.every_store) for server in OTHERS)]


@pytest.mark.parametrize("object_store", STORES, indirect=True)
def test_a_stream_copies_a_table_on_an_object_store_to_another_each_row_once(
    spark: SparkSession, object_store: Gateway, tmp_path: Path
) -> None:
    source, copy, options = object_store.url("orders"), object_store.url("copy"), object_store.options
    storage = {f"storage.{name}": value for name, value in options.items()}
    for turn in range(3):
        tablefeed.append(source, pa.table({"id": [turn]}), storage_options=options)

    for _ in range(2):
        rows = spark.readStream.format("tablefeed").options(**storage, maxFilesPerTrigger="2").load(source)
        rows.writeStream.format("tablefeed").options(**storage, checkpointLocation=str(tmp_path)).trigger(
            availableNow=True
        ).start(copy).awaitTermination()
        tablefeed.append(source, pa.table({"id": [3]}), storage_options=options)

    copied = tablefeed.open_table(copy, storage_options=options).to_arrow()
    assert sorted(copied["id"].to_pylist()) == [0, 1, 2, 3]
    kept = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert kept
    assert not [text for text in kept if any(secret.encode() in text for secret in object_store.secrets)]
