"""Tables and queries of the tests marked `spark`: what another writer commits, and what a query made of it.

Commits come from delta-rs, so that no test rests on our writer alone; what a checkpoint or a log holds is read as
text.
"""

from __future__ import annotations

import json
import queue
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.errors import PySparkException, StreamingQueryException

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

PATIENCE_S = 120

Action = dict[str, Any]  # Any: JSON


def grow(table: Path, *files: list[int]) -> None:
    """Commits each list of ids as one file, one version."""
    for ids in files:
        write_deltalake(str(table), pa.table({"id": pa.array(ids, pa.int64())}), mode="append")


def reader(spark: SparkSession, table: Path, **options: object) -> DataFrame:
    """The stream of `table`."""
    texts = {key: str(value) for key, value in options.items()}
    return spark.readStream.format("tablefeed").options(**texts).load(str(table))


def finish(writer: DataStreamWriter) -> str:
    """Runs a query on what is there now, to its end; raises what ended it. Gives its id."""
    query = writer.trigger(availableNow=True).start()
    ended = query.awaitTermination(PATIENCE_S)
    if not ended:
        query.stop()
    assert ended, "the query did not end"
    return str(query.id)


def drain(spark: SparkSession, table: Path, checkpoint: Path, **options: object) -> list[list[int]]:
    """What a query over what is there now delivers: the ids of each batch, without empty batches."""
    return drained(reader(spark, table, **options), checkpoint)


def drained(stream: DataFrame, checkpoint: Path, *, fail_in: int | None = None) -> list[list[int]]:
    """The same of a stream that was made before; with `fail_in` it fails in that batch, before it is done."""
    batches: dict[int, list[int]] = {}

    def keep(rows: DataFrame, batch_id: int) -> None:
        if batch_id == fail_in:
            raise InterruptedError(f"batch {batch_id} was to fail")
        batches[batch_id] = ids_of(rows)

    writer = stream.writeStream.foreachBatch(keep).option("checkpointLocation", str(checkpoint))
    if fail_in is None:
        finish(writer)
    else:
        with pytest.raises(StreamingQueryException, match="was to fail"):
            finish(writer)
    return [ids for _, ids in sorted(batches.items()) if ids]


def copy(spark: SparkSession, source: Path, target: Path, checkpoint: Path, **options: object) -> str:
    """Copies what is there now by a query with these writer options; gives its id."""
    return write_out(reader(spark, source), target, checkpoint, **options)


def write_out(stream: DataFrame, target: Path, checkpoint: Path, **options: object) -> str:
    """Writes a stream to `target` to its end; gives the query's id."""
    texts = {key: str(value) for key, value in options.items()}
    writer = stream.writeStream.format("tablefeed").options(**texts)
    return finish(writer.option("checkpointLocation", str(checkpoint)).option("path", str(target)))


@contextmanager
def tailing(stream: DataFrame, checkpoint: Path) -> Iterator[tuple[StreamingQuery, queue.Queue[list[int]]]]:
    """A query that runs until the block ends; its non-empty batches come in order."""
    batches: queue.Queue[list[int]] = queue.Queue()

    def put(rows: DataFrame, _batch_id: int) -> None:
        if ids := ids_of(rows):
            batches.put(ids)

    writer = stream.writeStream.foreachBatch(put).option("checkpointLocation", str(checkpoint))
    query = writer.trigger(processingTime="0 seconds").start()
    try:
        yield query, batches
    finally:
        query.stop()


def refusal(call: Callable[[], object]) -> str:
    """The text of the exception that the user sees."""
    with pytest.raises(PySparkException) as caught:
        call()
    return str(caught.value)


def ids_of(rows: DataFrame) -> list[int]:
    """The ids of a DataFrame, sorted."""
    return sorted(rows.toArrow()["id"].to_pylist())


def ids_by_delta_rs(table: Path) -> list[int]:
    """The ids of a table, sorted, as delta-rs reads them."""
    return sorted(DeltaTable(str(table)).to_pyarrow_table()["id"].to_pylist())


def offsets(checkpoint: Path) -> list[dict[str, Any]]:  # Any: JSON
    """The source's end offset of each batch as it stands in the checkpoint, keys in order."""
    logged = sorted((checkpoint / "offsets").glob("[0-9]*"), key=lambda file: int(file.name))
    return [json.loads(file.read_text().splitlines()[-1]) for file in logged]


def log_file(table: Path, version: int) -> Path:
    """The commit of `version`."""
    return table / "_delta_log" / f"{version:020d}.json"


def newest_version(table: Path) -> int:
    """The newest version by the names in the log, -1 where there is none."""
    return max((int(file.stem) for file in (table / "_delta_log").glob("[0-9]*.json")), default=-1)


def actions(table: Path, version: int) -> list[tuple[str, Action]]:
    """The actions of one version in log order, each with its kind."""
    lines = log_file(table, version).read_text(encoding="utf-8").splitlines()
    return [(kind, action) for line in lines for kind, action in json.loads(line).items()]


def action(table: Path, version: int, kind: str) -> Action:
    """The one action of its kind in a version."""
    [found] = [action for found, action in actions(table, version) if found == kind]
    return found


def data_files(table: Path) -> set[str]:
    """The data files that lie there, named by the log or not."""
    return {str(file.relative_to(table)) for file in table.rglob("*.parquet") if "_delta_log" not in file.parts}
