"""Queries whose checkpoint goes from one implementation to the other, and what their batches were."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Batches = dict[int, list[int]]
"""The ids that each batch delivered, a batch that ran twice once."""


def drain(session: SparkSession, by: str, table: Path, checkpoint: Path, **options: str) -> Batches:
    """Streams `table` with the format `by`, a file a batch, until it is done; gives what this run delivered."""
    batches: Batches = {}

    def keep(rows: DataFrame, batch_id: int) -> None:
        batches[batch_id] = sorted(row["id"] for row in rows.collect())

    stream = session.readStream.format(by).options(maxFilesPerTrigger="1", **options).load(str(table))
    writer = stream.writeStream.foreachBatch(keep).option("checkpointLocation", str(checkpoint))
    writer.trigger(availableNow=True).start().awaitTermination()
    return batches


def copy(session: SparkSession, by: str, source: Path, target: Path) -> Path:
    """Streams `source` into `target`, both with the format `by`, until it is done; gives the checkpoint."""
    checkpoint = target.with_name(f"{target.name}-checkpoint")
    stream = session.readStream.format(by).load(str(source))
    writer = stream.writeStream.format(by).option("checkpointLocation", str(checkpoint))
    writer.trigger(availableNow=True).start(str(target)).awaitTermination()
    return checkpoint


def forget_last_commit(checkpoint: Path) -> None:
    """Makes the last batch one that Spark must run again: it was planned, and never done."""
    last = max(int(file.name) for file in (checkpoint / "commits").glob("[0-9]*"))
    for name in (f"{last}", f".{last}.crc"):
        (checkpoint / "commits" / name).unlink(missing_ok=True)


def offsets(checkpoint: Path) -> list[dict[str, Any]]:  # Any: JSON
    """The source's end offset of each batch, as it stands in the checkpoint, with its keys in order."""
    return [json.loads(text) for text in offset_texts(checkpoint)]


def offset_texts(checkpoint: Path) -> list[str]:
    """The same as it is written there."""
    logged = sorted((checkpoint / "offsets").glob("[0-9]*"), key=lambda file: int(file.name))
    return [file.read_text(encoding="utf-8").splitlines()[-1] for file in logged]


def copied(checkpoint: Path, into: Path, *, committed: int, planned: int | None = None) -> Path:
    """A copy as it stood when batches up to `committed` were done, and up to `planned` at least begun."""
    shutil.copytree(checkpoint, into)
    for folder, last in (("commits", committed), ("offsets", committed if planned is None else planned)):
        for file in (into / folder).iterdir():
            # Hadoop keeps a checksum beside each file: `.7.crc`.
            if int(file.name.strip(".").removesuffix(".crc")) > last:
                file.unlink()
    return into
