"""A program: the queries of a soak, until the file FOLDER/drain appears; then until they have read everything.

    python -m soak.queries spark|model FOLDER

One copies `events` with the source and the sink. One applies the events to `target`. One applies the change feed of
`ledger` to `mirror`. `model` runs them without a JVM, under support.micro_batches, the tests' model of Spark's batches.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import tablefeed
from soak.steps import COPY, EVENTS, HOW, LEDGER, MIRROR, TARGET

SOURCES = {COPY: EVENTS, TARGET: EVENTS, MIRROR: LEDGER}
"""The source of each query, which has the name of its target."""


def _options(target: str) -> dict[str, str]:
    feed = {"readChangeFeed": "true", "startingVersion": "0"} if target == MIRROR else {}
    return {"consumerId": target, "maxFilesPerTrigger": "50", **feed}


def on_spark(folder: Path) -> None:
    """Runs the queries as a user would write them."""
    from pyspark.sql.streaming.query import StreamingQuery

    import tablefeed.spark as ours
    from support.session import start_session

    session = start_session("the queries of a soak", scratch=folder / "spark")
    trigger = {"processingTime": "500 milliseconds"}
    queries: list[StreamingQuery] = []
    for target, source in SOURCES.items():
        rows = session.readStream.format("tablefeed").options(**_options(target)).load(str(folder / source))
        place, checkpoint = str(folder / target), str(folder / f"checkpoint-{target}")
        if target == COPY:
            writer = rows.writeStream.format("tablefeed").option("checkpointLocation", checkpoint)
            queries.append(writer.trigger(**trigger).start(place))
        else:
            query = ours.apply_changes(rows, place, **HOW[target], checkpoint_location=checkpoint, trigger=trigger)
            assert isinstance(query, StreamingQuery)
            queries.append(query)
        # The first streams of a JVM must not start at the same time: faults/failpoints.py says why.
        while queries[0].isActive and queries[0].lastProgress is None:
            time.sleep(0.05)
    while not (folder / "drain").exists() and all(query.isActive for query in queries):
        time.sleep(0.2)
    for query in queries:
        query.processAllAvailable()
    for query in queries:
        query.stop()


def on_a_model(folder: Path) -> None:
    """Runs the queries without a JVM."""
    from support.micro_batches import Batch, SparkModel

    def sink(target: str) -> Callable[[Batch, int], None]:
        place, app = str(folder / target), f"query-{target}"

        def put(batch: Batch, batch_id: int) -> None:
            if target == COPY:
                tablefeed.append(place, batch.rows, app_id=app, txn_version=batch_id)
            else:
                tablefeed.apply_changes(place, batch.rows, **HOW[target], app_id=app, txn_version=batch_id)

        return put

    queries = []
    for target, source in SOURCES.items():
        rows = SparkModel().readStream.format("tablefeed").options(**_options(target)).load(str(folder / source))
        writer = rows.writeStream.foreachBatch(sink(target))
        queries.append(writer.option("checkpointLocation", str(folder / f"checkpoint-{target}")).start())
    stops = False
    while not stops:
        stops = (folder / "drain").exists()
        for query in queries:
            query.processAllAvailable()
        time.sleep(0.2)


if __name__ == "__main__":
    {"spark": on_spark, "model": on_a_model}[sys.argv[1]](Path(sys.argv[2]))
