"""Plans a write: translates a writer's options and schema into the rules of `tablefeed.feed.write`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tablefeed.data.assignment import Assignment
from tablefeed.errors import SchemaMismatchError
from tablefeed.feed.snapshot.known_state import newest_state
from tablefeed.feed.upkeep.background import waited_for
from tablefeed.feed.write.sink import plan_write
from tablefeed.feed.write.write_plan import DeltaPlan, WritePlan
from tablefeed.feed.write.write_rules import Scope, WriteRules
from tablefeed.log.conflicts import WriteKind
from tablefeed.spark.parsed_options import ParsedOptions
from tablefeed.spark.worker import settle

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

DELTA_UPKEEP = ("compactEvery", "logCompactionEvery", "checkpointPartSize")
"""Options that have a meaning only for a Delta table."""


@waited_for()
def planned(path: str, schema: StructType, options: ParsedOptions, kind: WriteKind) -> WritePlan:
    """Plans a write of rows with Spark's `schema` to the table at `path`, as `options` ask. Raises as `plan_write`."""
    rules = WriteRules(
        merges_schema=options["mergeSchema"],
        overwrites_schema=options["overwriteSchema"],
        assignment=Assignment(policy=options["storeAssignmentPolicy"], zone=options["timeZone"]),
        properties=options.properties,
        # Only batch writes have these options. Delta-Spark refuses a column of the type void in a stream.
        takes_void="txnAppId" in options.values,
        scope=options.values.get("partitionOverwriteMode", Scope.TABLE),
        replace_where=options.values.get("replaceWhere"),
        codec=options["compression"],
        most_rows_of_a_file=options["maxRecordsPerFile"],
        gathers_files=options["optimizeWrite"],
        cluster_by=options["clusterBy"] or (),
        index_as=options.index_as,
        delta_upkeep={name: options.values.get(name) for name in DELTA_UPKEEP},
    )
    log, state = newest_state(path, dict(options.storage), table_format=options["tableFormat"])
    if not schema.fields:
        raise SchemaMismatchError(
            f"The rows for {log.url} have no columns, and Spark does not report their number to a Python sink. Nothing "
            "was written. Select a column.",
            url=log.url,
            error_class="DELTA_EMPTY_DATA",
        )
    # The schema in Spark's JSON: in the Arrow schema of the rows a variant would be a struct.
    rows = schema.json()
    plan = plan_write(log, state, rows, partition_by=options["partitionBy"] or (), kind=kind, rules=rules)
    settle()
    return plan


def planned_for_bad_rows(plan: WritePlan, options: ParsedOptions, kind: WriteKind) -> DeltaPlan | None:
    """Plans the table for the rows that are taken out of the write `plan`; None where none are."""
    if options["badRecords"] is None:
        return None
    from tablefeed.feed.write.bad_rows import plan_bad_rows

    return plan_bad_rows(options["badRecords"], dict(options.storage), of=plan, kind=kind)
