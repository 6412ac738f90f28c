"""What the snippets of a page need before they run: tables, and the names that a page explains in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """Code that runs before the snippets of a page, and texts of the page that are replaced, as a user would.

    Paths below `/lake` are in a folder of the test, in pages and here.
    """

    code: str = ""
    replaced: Mapping[str, str] = field(default_factory=dict)


ORDERS = """
import datetime
import pyarrow as pa
import tablefeed
import tablefeed.spark

columns = {"id": pa.int64(), "item": pa.string(), "day": pa.date32()}
columns |= {"price": pa.float64(), "status": pa.string(), "ts": pa.int64()}
properties = {"delta.enableChangeDataFeed": "true", "delta.feature.domainMetadata": "supported"}

def rows_of(*ids, ts=1):
    day = datetime.date(2026, 11, 1)
    rows = [{"id": n, "item": "tea", "day": day, "price": 1.0, "status": "new", "ts": ts} for n in ids]
    return pa.Table.from_pylist(rows, schema=pa.schema(list(columns.items())))

def orders(path, commits=1):
    tablefeed.create(path, pa.schema(list(columns.items())), properties=properties)
    for number in range(commits):
        tablefeed.append(path, rows_of(number + 1))
"""


def first_commit(url: str) -> dict[str, str]:
    """Replaces the loop over the commits of `url`, which never ends, by one over the first of them."""
    return {
        f'in tablefeed.follow("{url}"):': f'in __import__("itertools").islice(tablefeed.follow("{url}", after=-1), 1):'
    }


ATTACHED = {"spark.streams.addListener(": "listener = ("}
"""A listener is made, and not attached: it would stay in the session of the tests."""

SETUPS = {
    "README.md": Setup(
        code=ORDERS + "orders('/lake/orders', 50)\nrows = rows_of(60)\nevents = rows_of(61, ts=2)",
        replaced=first_commit("/lake/orders"),
    ),
    "docs/index.md": Setup(code=ORDERS + "orders('/lake/orders')"),
    "docs/how-to/bad-rows.md": Setup(
        code=ORDERS
        + "orders('/lake/orders')\n"
        + "rows = {'id': [7, 8], 'item': ['tea', 'cup'], 'price': ['1.5', '1,5']}\n"
        + "tablefeed.append('/lake/events', pa.table(rows))\n"
        + "events = spark.readStream.format('tablefeed').load('/lake/events')"
    ),
    "docs/how-to/connect.md": Setup(
        code=ORDERS + "orders('/lake/orders')",
        # The session of the tests; those of tests/spark with the fixture `session` run as clients of a server.
        replaced={'.remote("sc://localhost:15002")': ""},
    ),
    "docs/how-to/consumers.md": Setup(code=ORDERS + "orders('/lake/orders', 60)"),
    "docs/how-to/lost-checkpoint.md": Setup(
        code=ORDERS
        + "orders('/lake/orders', 2)\ntablefeed.append('/lake/orders', rows_of(3, 4))\n"
        + "tablefeed.append('/lake/orders', rows_of(5, 6))\n"
        + "orders('/lake/orders_copy', 2)\ntablefeed.append('/lake/orders_copy', rows_of(3))"
    ),
    "docs/how-to/maintenance.md": Setup(
        code=ORDERS
        + "tablefeed.append('/lake/orders', rows_of(1), partition_by=['day'])\norders('/lake/events')\n"
        + "path = '/lake/copy'\norders = spark.readStream.format('tablefeed').load('/lake/orders')",
        replaced={'"checkpointLocation", "..."': '"checkpointLocation", "/lake/_checkpoints/compact"'},
    ),
    "docs/how-to/migrating.md": Setup(
        code=ORDERS
        + "orders('/lake/orders')\norders('/lake/changed')\n"
        + "path, checkpoint = '/lake/counts', '/lake/_checkpoints/counts'\n"
        + "changed = spark.readStream.format('tablefeed').load('/lake/changed')\n"
        + "counts = changed.groupBy('item').count()"
    ),
    "docs/how-to/replicate.md": Setup(
        code=ORDERS + "orders('/lake/orders', 3)",
        replaced={"/backup/": "/lake/backup/", **first_commit("s3://lake/orders")},
    ),
    "docs/how-to/row-changes.md": Setup(
        code=ORDERS + "orders('/lake/orders')\nrows = pa.table({'id': [1], 'op': ['u'], 'price': [2.0]})"
    ),
    "docs/how-to/apply-changes.md": Setup(
        code=ORDERS
        + "for name in ('shop', 'snapshots', 'snapshots_2'):\n    orders(f'/lake/{name}')\n"
        + "rows = rows_of(1, 2)\n"
        + "events = pa.table({'id': [1], 'price': [3.0], 'ts': [2], 'op': ['u']})\n"
        + "tablefeed.append('/lake/order_events', events)\n"
        + "def next_snapshot(latest):\n"
        + "    return None if latest else (spark.read.format('tablefeed').load('/lake/shop'), 1)\n",
        replaced={
            '"/lake/orders", (rows, 7)': '"/lake/snapshots", (rows, 7)',
            'next_snapshot, "/lake/orders"': 'next_snapshot, "/lake/snapshots_2"',
            '"/checkpoints/orders")\n    .start': '"/checkpoints/orders_2")\n    .start',
            "/checkpoints/": "/lake/_checkpoints/",
        },
    ),
    "docs/how-to/change-sources.md": Setup(
        code=ORDERS
        + "orders('/lake/orders')\norders('/lake/orders_copy')\n"
        + 'event = b\'{"op": "c", "after": {"id": 1, "item": "tea"}, "source": {}}\'\n'
        + "kafka = {'key': [b'{\"id\": 1}'], 'value': [event], 'partition': [0], 'offset': [0]}\n"
        + "tablefeed.append('/lake/kafka', pa.table(kafka))\n",
        replaced={
            """format("kafka")
    .option("kafka.bootstrap.servers", "broker:9092")
    .option("subscribe", "shop.public.orders")
    .option("startingOffsets", "earliest")
    .load()""": 'format("tablefeed").load("/lake/kafka")',
        },
    ),
    "docs/how-to/schema-changes.md": Setup(code=ORDERS + "orders('/lake/orders', 2)"),
    "docs/how-to/scheduled-runs.md": Setup(code=ORDERS + "orders('/lake/orders')"),
    "docs/how-to/monitoring.md": Setup(replaced=ATTACHED),
    "docs/how-to/openlineage.md": Setup(code=ORDERS + "orders('/lake/orders')\nrows = rows_of(2)", replaced=ATTACHED),
    "docs/how-to/sql.md": Setup(
        code=ORDERS
        + "orders('/lake/orders', 50)\n"
        + "spark.createDataFrame([('tea', 'drinks')], 'item string, kind string').createOrReplaceTempView('items')\n"
    ),
    "docs/how-to/tables.md": Setup(
        code="""
import datetime

def yesterday(url):
    _, before_the_newest = tablefeed.open_table(url).history(2)
    return datetime.datetime.fromtimestamp(before_the_newest.committed_at_ms / 1000, datetime.UTC)
""",
        replaced={
            "version=41)": "version=1)",
            'timestamp="2026-11-01 08:00:00")': 'timestamp=yesterday("/lake/orders"))',
        },
    ),
    "docs/how-to/object-stores.md": Setup(
        replaced={"gs://lake/": "/lake/gs/", "abfss://container@account.dfs.core.windows.net/": "/lake/azure/"}
    ),
}
"""A page that is not here has no setup."""

NOT_RUN = {
    "docs/how-to/catalogs.md": "needs the server of a catalog: tests/catalog has a fake one",
    "docs/tutorial/first-pipeline.md": "tests/new_user runs it, with the wheel",
}
