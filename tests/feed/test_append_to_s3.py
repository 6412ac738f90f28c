"""Tables on S3: commits of several writers, each once, over a server that throttles and loses answers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import count

import pyarrow as pa
import pytest
from deltalake import DeltaTable

import tablefeed
from support.s3 import Gateway
from tablefeed.errors import NotExclusiveError
from tablefeed.model.outcome import Committed

WRITERS, COMMITS = 3, 4


def rows(gateway: Gateway) -> list[int]:
    table = tablefeed.open_table(f"s3://{gateway.bucket}/orders", storage_options=gateway.options).to_arrow()
    return sorted(table["id"].to_pylist())


@pytest.mark.slow
def test_commits_of_several_writers_stand_once_each_whatever_the_server_loses(gateway: Gateway) -> None:
    tablefeed.append(f"s3://{gateway.bucket}/orders", pa.table({"id": [-1]}), storage_options=gateway.options)
    puts = count()
    gateway.loses = lambda told: told.startswith("PUT") and "_delta_log" in told and next(puts) % 5 == 4
    requests = count()
    gateway.throttles = lambda _: next(requests) % 13 == 12

    def write(writer: int) -> None:
        for turn in range(COMMITS):
            batch = pa.table({"id": [writer * COMMITS + turn]})
            outcome = tablefeed.append(
                f"s3://{gateway.bucket}/orders",
                batch,
                app_id=f"writer {writer}",
                txn_version=turn,
                storage_options=gateway.options,
            )
            assert isinstance(outcome, Committed)

    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(write, range(WRITERS)))

    gateway.loses = gateway.throttles = lambda _: False
    assert rows(gateway) == [-1, *range(WRITERS * COMMITS)]
    options = {**gateway.options, "aws_allow_http": "true"}
    read_by_others = DeltaTable(f"s3://{gateway.bucket}/orders", storage_options=options).to_pyarrow_table()
    assert sorted(read_by_others["id"].to_pylist()) == rows(gateway)


def test_a_table_on_a_server_without_conditional_puts_is_not_written(gateway: Gateway) -> None:
    gateway.passes_conditions_over = True

    with pytest.raises(NotExclusiveError, match="If-None-Match"):
        tablefeed.append(f"s3://{gateway.bucket}/orders", pa.table({"id": [1]}), storage_options=gateway.options)
    assert not [
        told for told in gateway.requests if told.startswith("PUT") and "orders/" in told and "exclusive" not in told
    ]
