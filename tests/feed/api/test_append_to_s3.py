"""Tables on S3: commits of several writers, each once, over a server that throttles and loses answers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from typing import Any, Literal

import pyarrow as pa
import pytest
from deltalake import DeltaTable

import tablefeed
from support.gateway import Gateway
from support.writers import all_at_once, by_tablefeed
from tablefeed.errors import NotExclusiveError
from tablefeed.model.outcome import Committed

WRITERS = 3


def rows(gateway: Gateway) -> list[int]:
    table = tablefeed.open_table(f"s3://{gateway.bucket}/orders", storage_options=gateway.options).to_arrow()
    return sorted(table["id"].to_pylist())


@pytest.mark.slow
@pytest.mark.parametrize(("table_format", "commits"), [("delta", 2), ("indextables", 2)])
def test_commits_of_several_writers_stand_once_each_whatever_the_server_loses(
    gateway: Gateway, table_format: Literal["delta", "indextables"], commits: int
) -> None:
    location, first, options = f"s3://{gateway.bucket}/orders", pa.table({"id": [-1]}), gateway.options
    tablefeed.append(location, first, table_format=table_format, storage_options=options)
    puts, requests = count(), count()
    gateway.loses = lambda told: told.startswith("PUT") and ".json" in told and next(puts) % 3 == 2
    gateway.throttles = lambda _: table_format == "delta" and next(requests) % 13 == 12

    def write(writer: int) -> None:
        for turn in range(commits):
            batch, app_id = pa.table({"id": [writer * commits + turn]}), f"writer {writer}"
            outcome = tablefeed.append(location, batch, app_id=app_id, txn_version=turn, storage_options=options)
            assert isinstance(outcome, Committed)

    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(write, range(WRITERS)))

    gateway.loses = gateway.throttles = lambda _: False
    assert rows(gateway) == [-1, *range(WRITERS * commits)]
    if table_format == "delta":
        read_by_others = DeltaTable(location, storage_options={**options, "aws_allow_http": "true"})
        assert sorted(read_by_others.to_pyarrow_table()["id"].to_pylist()) == rows(gateway)


@pytest.mark.slow
def test_of_the_commits_of_processes_none_fails_though_the_server_says_of_many_that_others_came_between(
    gateway: Gateway,
) -> None:
    location = f"s3://{gateway.bucket}/orders"
    tablefeed.append(location, pa.table({"id": pa.array([], pa.int64())}), storage_options=gateway.options)
    puts = count()
    gateway.contends = lambda told: told.startswith("PUT") and "_delta_log" in told and next(puts) % 3 == 2
    by_us = partial(by_tablefeed, storage_options=gateway.options)

    versions = all_at_once(location, [(by_us, range(5 * n, 5 * n + 5)) for n in range(3)])

    assert sorted(versions) == list(range(1, 16)), "every version was acknowledged to one writer"
    assert rows(gateway) == list(range(15))


def test_small_files_are_folded_and_what_nobody_needs_is_deleted(gateway: Gateway) -> None:
    location, options = f"s3://{gateway.bucket}/orders", gateway.options
    for n in range(3):
        tablefeed.append(location, pa.table({"id": [n], "p": [n % 2]}), partition_by="p", storage_options=options)

    done = tablefeed.optimize(location, storage_options=options)
    assert (done.version, done.files_removed, done.files_added) == (3, 2, 1)
    assert rows(gateway) == [0, 1, 2]

    everything: dict[str, Any] = {"retention_hours": 0, "allow_short_retention": True, "storage_options": options}
    found = tablefeed.vacuum(location, dry_run=True, **everything)
    gone = tablefeed.vacuum(location, **everything)
    assert sorted(gone.paths.to_pylist()) == sorted(found.paths.to_pylist())
    assert [path.partition("/")[0] for path in gone.paths.to_pylist()] == ["p=0", "p=0"]
    assert rows(gateway) == [0, 1, 2]
    assert len(tablefeed.vacuum(location, **everything).paths) == 0


def test_a_table_on_a_server_without_conditional_puts_is_not_written(gateway: Gateway) -> None:
    gateway.passes_conditions_over = lambda _: True

    with pytest.raises(NotExclusiveError, match="If-None-Match"):
        tablefeed.append(f"s3://{gateway.bucket}/orders", pa.table({"id": [1]}), storage_options=gateway.options)
    assert not [
        told for told in gateway.requests if told.startswith("PUT") and "orders/" in told and "exclusive" not in told
    ]
