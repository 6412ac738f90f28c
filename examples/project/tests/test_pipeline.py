"""The pipeline on tables in memory: no folder, no Spark, no clean-up."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from orders_pipeline.pipeline import ORDERS, create_orders, run

import tablefeed


@pytest.fixture
def lake() -> str:
    """Gives the URL of a new place in memory."""
    return f"mem://{uuid.uuid4()}"


def events(*rows: tuple[int, str, int]) -> pa.Table:
    """Events of orders: id, state, and the hour."""
    them = [
        {"id": number, "state": state, "at": datetime(2026, 1, 1, hour, tzinfo=UTC)} for number, state, hour in rows
    ]
    return pa.Table.from_pylist(them, schema=ORDERS)


def states(orders: str) -> dict[int, str]:
    """The state of each order."""
    rows = tablefeed.open_table(orders).to_arrow(columns=["id", "state"])
    return {row["id"]: row["state"] for row in rows.to_pylist()}


def test_the_newest_event_of_each_order_is_its_state(lake: str) -> None:
    create_orders(f"{lake}/orders")
    tablefeed.append(f"{lake}/events", events((1, "new", 1), (2, "new", 1), (3, "new", 1)))
    tablefeed.append(f"{lake}/events", events((1, "paid", 3), (3, "deleted", 2)))
    tablefeed.append(f"{lake}/events", events((1, "checked", 2)))  # it comes late

    assert run(f"{lake}/events", f"{lake}/orders") == 3
    assert states(f"{lake}/orders") == {1: "paid", 2: "new"}


def test_a_run_applies_what_came_since_the_last_one_and_nothing_twice(lake: str) -> None:
    create_orders(f"{lake}/orders")
    tablefeed.append(f"{lake}/events", events((1, "new", 1)))

    assert [run(f"{lake}/events", f"{lake}/orders") for _ in range(2)] == [1, 0]
    tablefeed.append(f"{lake}/events", events((1, "paid", 2)))
    assert run(f"{lake}/events", f"{lake}/orders") == 1
    assert states(f"{lake}/orders") == {1: "paid"}
    assert tablefeed.open_table(f"{lake}/orders").version == 2
