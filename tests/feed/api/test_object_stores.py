"""A table on each object store, from its first commit to its vacuum; delta-rs reads it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

import tablefeed
from support.gateway import Gateway
from support.micro_batches import Batch, SparkModel
from support.object_stores import EACH_OBJECT_STORE
from support.writers import all_at_once, by_tablefeed
from tablefeed.model.outcome import Committed
from tablefeed.store import Store, open_store

pytestmark = pytest.mark.parametrize("object_store", EACH_OBJECT_STORE, indirect=True)


STATE_OF_CHANGES = {"delta.feature.domainMetadata": "supported"}


def rows(location: str, gateway: Gateway) -> list[int]:
    found = tablefeed.open_table(location, storage_options=gateway.options).to_arrow()
    return sorted(found["id"].to_pylist())


def rows_by_delta_rs(table: str, gateway: Gateway) -> list[int]:
    scheme, options = gateway.delta_rs
    found = DeltaTable(f"{scheme}://{gateway.bucket}/{table}", storage_options=options).to_pyarrow_table()
    return sorted(found["id"].to_pylist())


@pytest.mark.in_turn
def test_a_table_is_appended_to_changed_folded_and_vacuumed_and_delta_rs_reads_it(object_store: Gateway) -> None:
    location, options = object_store.url("orders"), object_store.options
    first = pa.table({"id": [1, 2], "name": ["a", "b"]})
    tablefeed.append(location, first, properties=STATE_OF_CHANGES, storage_options=options)
    tablefeed.append(location, pa.table({"id": [3], "name": ["c"]}), storage_options=options)
    changes = pa.table({"id": [1, 2, 4], "name": ["A", None, "d"], "op": ["u", "d", "i"], "at": [1, 2, 3]})

    tablefeed.apply_changes(
        location,
        changes,
        keys=["id"],
        sequence_by="at",
        apply_as_deletes="op = 'd'",
        except_column_list=["op", "at"],
        storage_options=options,
    )
    assert rows(location, object_store) == rows_by_delta_rs("orders", object_store) == [1, 3, 4]

    folded = tablefeed.optimize(location, storage_options=options)
    assert folded.files_added == 1
    gone = tablefeed.vacuum(location, retention_hours=0, allow_short_retention=True, storage_options=options)
    assert len(gone.paths) > 0
    tablefeed.checkpoint(location, storage_options=options)
    assert rows(location, object_store) == rows_by_delta_rs("orders", object_store) == [1, 3, 4]


@pytest.mark.in_turn
def test_a_stream_gives_each_row_once_over_restarts_and_no_file_or_log_line_has_credentials(
    object_store: Gateway, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="tablefeed")
    location, delivered = object_store.url("orders"), list[int]()
    storage = {f"storage.{name}": value for name, value in object_store.options.items()}

    def keep(batch: Batch, _: int) -> None:
        delivered.extend(batch.toArrow()["id"].to_pylist())

    for turn in range(3):
        for row in range(2):
            tablefeed.append(location, pa.table({"id": [2 * turn + row]}), storage_options=object_store.options)
        rows = (
            SparkModel()
            .readStream.format("tablefeed")
            .options(**storage, maxFilesPerTrigger="1", consumerId="sums")
            .load(location)
        )
        checkpointed = rows.writeStream.foreachBatch(keep).option("checkpointLocation", str(tmp_path))
        checkpointed.trigger(availableNow=True).start().awaitTermination(60)

    assert delivered == list(range(6))
    store = open_store(location, object_store.options)
    kept = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    kept += [store.read(name) for name in names_below(store)]
    kept += [repr(tablefeed.open_table(location, storage_options=object_store.options)).encode()]
    kept += [record.getMessage().encode() for record in caplog.records if record.name.startswith("tablefeed")]
    assert len(kept) > 20
    assert not [text for text in kept if any(secret.encode() in text for secret in object_store.secrets)]


def names_below(store: Store, directory: str = "") -> Iterator[str]:
    """Every object of a table."""
    for entry in store.list(directory):
        yield f"{directory}/{entry.name}".removeprefix("/")
    for below in store.directories(directory):
        yield from names_below(store, f"{directory}/{below}".removeprefix("/"))


def test_a_commit_whose_answer_was_lost_is_acknowledged_and_there_once(object_store: Gateway) -> None:
    location, lost = object_store.url("orders"), list[str]()
    tablefeed.append(location, pa.table({"id": [1]}), storage_options=object_store.options)

    def loses_the_first(told: str) -> bool:
        if told.startswith(("PUT", "POST")) and "00001.json" in told:
            lost.append(told)
        return len(lost) == 1

    object_store.loses = loses_the_first
    outcome = tablefeed.append(location, pa.table({"id": [2]}), storage_options=object_store.options)

    assert isinstance(outcome, Committed)
    assert outcome.version == 1
    assert len(lost) == 2 or not object_store.requests, "only a server behind a gateway loses answers"
    assert rows(location, object_store) == rows_by_delta_rs("orders", object_store) == [1, 2]


@pytest.mark.every_store
def test_of_processes_that_append_at_once_exactly_one_wins_each_version(object_store: Gateway) -> None:
    location = object_store.url("orders")
    empty = pa.table({"id": pa.array([], pa.int64())})
    tablefeed.append(location, empty, storage_options=object_store.options)
    by_us = partial(by_tablefeed, storage_options=object_store.options)

    versions = all_at_once(location, [(by_us, range(5 * n, 5 * n + 5)) for n in range(2)])

    assert sorted(versions) == list(range(1, 11)), "every version was acknowledged to one writer"
    assert rows(location, object_store) == rows_by_delta_rs("orders", object_store) == list(range(10))
