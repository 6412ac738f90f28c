"""The Python API on tables that a catalog names: the same calls as for a path."""

from __future__ import annotations

import logging
import pickle
from pathlib import Path

import pyarrow as pa
import pytest

import tablefeed
from support.gateway import Gateway
from support.unity import TOKEN, FakeCatalog
from tablefeed.errors import StoreConfigError, TableNotFoundError
from tablefeed.feed.snapshot.open_log import open_log

NAME = "main.sales.orders"
URL = f"uc://{NAME}"


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": ids})


def test_a_table_is_written_read_and_followed_by_its_name(catalog: FakeCatalog, tmp_path: Path) -> None:
    catalog.register(NAME, f"file://{tmp_path}")
    options = catalog.options

    tablefeed.append(URL, rows(1, 2), properties={"delta.enableChangeDataFeed": "true"}, storage_options=options)
    tablefeed.append(URL, rows(3), app_id="a", txn_version=1, storage_options=options)
    tablefeed.delete(URL, "id = 2", storage_options=options)

    assert sorted(tablefeed.open_table(URL, storage_options=options).to_arrow()["id"].to_pylist()) == [1, 3]
    assert tablefeed.open_table(URL, version=0, storage_options=options).to_arrow()["id"].to_pylist() == [1, 2]
    changes = tablefeed.changes(URL, start_version=1, storage_options=options).read_all()
    assert changes.select(["id", "_change_type"]).to_pylist() == [
        {"id": 3, "_change_type": "insert"},
        {"id": 2, "_change_type": "delete"},
    ]
    following = tablefeed.follow(URL, after=0, storage_options=options)
    assert [next(following).version, next(following).version] == [1, 2]
    assert sorted(tablefeed.open_table(tmp_path).to_arrow()["id"].to_pylist()) == [1, 3]


def test_the_server_and_the_token_may_come_from_the_environment(
    catalog: FakeCatalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog.register(NAME, f"file://{tmp_path}")
    monkeypatch.setenv("UC_URI", catalog.uri)
    monkeypatch.setenv("UC_TOKEN", TOKEN)

    tablefeed.append(URL, rows(1))

    assert tablefeed.open_table(URL).to_arrow()["id"].to_pylist() == [1]


def test_a_table_on_s3_needs_no_credentials_of_the_user(catalog: FakeCatalog, gateway: Gateway) -> None:
    catalog.register(NAME, f"s3://{gateway.bucket}/t")
    catalog.vends = lambda _: {
        "aws_temp_credentials": {"access_key_id": "ASIA", "secret_access_key": "s", "session_token": "t"},
        "expiration_time": 4_000_000_000_000,
    }
    server = {name: gateway.options[name] for name in ("aws_region", "aws_endpoint_url")}
    options = {**server, **catalog.options}

    tablefeed.append(URL, rows(1, 2), storage_options=options)

    assert tablefeed.open_table(URL, storage_options=options).to_arrow()["id"].to_pylist() == [1, 2]
    assert tablefeed.open_table(f"s3://{gateway.bucket}/t", storage_options=gateway.options).version == 0


def test_a_task_has_what_it_needs_to_open_the_same_table_elsewhere(catalog: FakeCatalog, tmp_path: Path) -> None:
    table_id = catalog.register(NAME, f"file://{tmp_path}")
    tablefeed.append(URL, rows(1), storage_options=catalog.options)

    log = open_log(URL, catalog.options)

    assert (log.location, dict(log.storage_options)) == (
        URL,
        {
            "uc_uri": f"{catalog.uri}/api/2.1/unity-catalog",
            "uc_token": TOKEN,
            "uc_table_id": table_id,
            "uc_location": f"file://{tmp_path}",
        },
    )


def test_the_token_is_in_no_log_no_offset_no_commit_and_no_error(
    catalog: FakeCatalog, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    catalog.register(NAME, f"file://{tmp_path}/t")
    tablefeed.append(URL, rows(1), storage_options=catalog.options)
    tablefeed.open_table(URL, storage_options=catalog.options).to_arrow()
    catalog.tables.clear()
    with pytest.raises(TableNotFoundError) as caught:
        tablefeed.open_table(URL, storage_options=catalog.options)

    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert TOKEN.encode() not in written
    assert TOKEN not in caplog.text
    assert TOKEN.encode() not in pickle.dumps(caught.value)


def test_a_name_that_is_not_registered_is_not_found_and_nothing_is_made(catalog: FakeCatalog) -> None:
    for use in (
        lambda: tablefeed.open_table(URL, storage_options=catalog.options),
        lambda: tablefeed.append(URL, rows(1), storage_options=catalog.options),
        lambda: tablefeed.create(URL, rows(1).schema, storage_options=catalog.options),
    ):
        with pytest.raises(TableNotFoundError, match="404 about main"):
            use()


def test_a_wrong_token_is_refused_before_the_store_is_asked(catalog: FakeCatalog, tmp_path: Path) -> None:
    catalog.register(NAME, f"file://{tmp_path}")

    with pytest.raises(StoreConfigError, match="answered 401") as caught:
        tablefeed.open_table(URL, storage_options={"uc_uri": catalog.uri, "uc_token": "old-token"})

    assert "old-token" not in str(caught.value)
