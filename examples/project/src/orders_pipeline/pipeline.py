"""One run of the pipeline: applies the events that came since the last run to the table of orders, exactly once.

    orders-pipeline s3://lake/order_events s3://lake/orders

Run it as often as you like, from cron or a scheduler. The table of orders records the version of the events up to which
they are applied, in the commit that applies them. So a run that is killed is repeated, and one that is repeated changes
nothing.
"""

from __future__ import annotations

import sys

import pyarrow as pa

import tablefeed

APP_ID = "orders-pipeline"

ORDERS = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("state", pa.string()),
        pa.field("at", pa.timestamp("us", tz="UTC")),
    ]
)


def create_orders(orders: str) -> None:
    """Creates the table of orders: one row for each order. It records its own changes for whoever comes next."""
    properties = {"delta.feature.domainMetadata": "supported", "delta.enableChangeDataFeed": "true"}
    tablefeed.create(orders, ORDERS, properties=properties)


def run(events: str, orders: str) -> int:
    """Applies the new commits of the table `events` to the table `orders`, and says how many there were."""
    newest = tablefeed.open_table(events).version
    applied = tablefeed.open_table(orders).txn_version(APP_ID)
    first = 0 if applied is None else applied + 1
    if first > newest:
        return 0
    rows = tablefeed.appends(events, start_version=first, end_version=newest)
    tablefeed.apply_changes(
        orders,
        rows,
        keys="id",
        sequence_by="at",
        apply_as_deletes="state = 'deleted'",
        app_id=APP_ID,
        txn_version=newest,
    )
    return newest - first + 1


def main() -> None:
    """Runs the pipeline for the two tables that the command line names."""
    events, orders = sys.argv[1:]
    try:
        commits = run(events, orders)
    except tablefeed.TablefeedError as error:
        sys.exit(f"orders-pipeline: {error}")
    sys.stdout.write(f"applied {commits} commits of {events} to {orders}\n")
