"""What a task of a write reports to its commit."""

from __future__ import annotations

from dataclasses import dataclass, field

from pyspark.sql.datasource import WriterCommitMessage

from tablefeed.feed.write.write_plan import DeltaPlan, WritePlan
from tablefeed.model.actions import AddFile, Txn
from tablefeed.spark.release import RELEASE, Release


@dataclass(frozen=True, slots=True, kw_only=True)
class Written(WriterCommitMessage):
    """The files that one task wrote, the plan that it followed, and the transaction to record, if any.

    `bad_files` have the rows that the task took out of the batch (the option `badRecords`), under `bad_plan`.
    `release` is first, so that another version of tablefeed refuses the report.
    """

    release: Release = field(default=RELEASE, init=False, repr=False)
    plan: WritePlan
    files: tuple[AddFile, ...]
    txn: Txn | None = None
    bad_plan: DeltaPlan | None = None
    bad_files: tuple[AddFile, ...] = ()
