"""`tablefeed.spark.replicate`: `tablefeed.replicate` with Spark's tasks, which copy the files of each commit.

The driver reads the log of the source, finds the files that the target lacks, and commits when all tasks have ended.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tablefeed.errors import ObjectNotFoundError
from tablefeed.feed.api.replicate import replicate as replicated
from tablefeed.feed.arguments import from_any_folder, location, store_options
from tablefeed.feed.snapshot.open_log import open_maintained

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tablefeed.model.outcome import Replicated

FILES_OF_A_TASK = 16
"""The files that one task copies. The driver itself copies up to as many, because a Spark job takes longer."""


def replicate(spark: SparkSession, source: str, target: str, **asked: Any) -> Replicated:
    """Does as `tablefeed.replicate`, with its arguments. Spark's tasks copy the files of a commit, about 16 each.

    The driver copies commits of up to 16 files, compares for `verify`, and does the whole of a copy by rows. Tasks
    need the same access to both places as the driver. If a task fails, its version is not committed, Spark's error is
    raised, and the next call continues.
    """
    options, given = store_options(asked.get("storage_options")), asked.get("target_storage_options")
    to = options if given is None else store_options(given, argument="target_storage_options")
    from_, into = location(source, argument="source"), location(target, argument="target")
    copied = _Task(source=(from_any_folder(from_), options), target=(from_any_folder(into), to))

    def copy_files(files: Sequence[str]) -> None:
        if len(files) <= FILES_OF_A_TASK:
            copied.copy(files)
            return
        named = spark.createDataFrame(pa.table({"file": pa.array(files, pa.string())}))
        divided = named.repartition(-(-len(files) // FILES_OF_A_TASK))
        for gone in divided.mapInArrow(copied, "url string, file string").toArrow().to_pylist():
            raise ObjectNotFoundError(url=gone["url"], name=gone["file"])

    return replicated(source, target, copy_files=copy_files, **asked)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    """Copies files from one place to another; each has a location and storage options."""

    source: tuple[str, Mapping[str, str]] = field(repr=False)
    target: tuple[str, Mapping[str, str]] = field(repr=False)

    def copy(self, files: Sequence[str]) -> None:
        """Copies `files`. Raises ObjectNotFoundError if the source has lost one."""
        source, target = open_maintained(*self.source), open_maintained(*self.target)
        target.store.copy(files, source.store)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Copies the named files in a task of Spark. Gives a file that a place lacks, with the place's URL, if any."""
        for batch in batches:
            try:
                self.copy(batch["file"].to_pylist())
            except ObjectNotFoundError as error:
                yield pa.record_batch({"url": pa.array([error.url]), "file": pa.array([error.name])})
