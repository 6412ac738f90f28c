"""A declarative pipeline: change events of orders, applied to a Delta table with one row for each order.

    cd examples/pipeline && spark-pipelines run

The tables of events and of orders must exist, the second with `delta.feature.domainMetadata`. It needs tablefeed and
`pyspark[pipelines]`, and no JAR.
"""

from pyspark import pipelines
from pyspark.sql import DataFrame, SparkSession

spark = SparkSession.active()
lake = spark.conf.get("orders.lake")

pipelines.create_sink(
    "orders",
    "tablefeed",
    {
        "path": f"{lake}/orders",
        "keys": "id",
        "sequenceBy": "ts",
        "applyAsDeletes": "op = 'd'",
        "exceptColumnList": "op",
    },
)


@pipelines.append_flow(target="orders")
def order_events() -> DataFrame:
    """Every event, in the order of the commits."""
    return spark.readStream.format("tablefeed").load(f"{lake}/order_events")
