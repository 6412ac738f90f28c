"""Mistakes of users, and the words of the error that say what is wrong and what to do. One table; no mistake writes."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest

import tablefeed
from tablefeed.errors import TablefeedError
from tablefeed.feed.arguments import store_options

ROWS = pa.table({"id": [1, 2], "day": [date(2026, 1, 1)] * 2})


@pytest.fixture
def table(tmp_path: Path) -> Path:
    url = tmp_path / "t"
    tablefeed.append(url, ROWS)
    return url


def changed(url: Path) -> object:
    tablefeed.update(url, {"id": "id + 1"}, "id = 1")
    return tablefeed.appends(url, start_version=1).read_all()


def deleted(url: Path) -> object:
    tablefeed.delete(url, "true")
    return tablefeed.appends(url, start_version=1).read_all()


@pytest.mark.parametrize(
    ("mistake", "words"),
    [
        (lambda url: tablefeed.append(url, ROWS, app_id="a"), ["Option 'app_id' needs 'txn_version'. Set both"]),
        (
            lambda url: tablefeed.append(url, pa.table({"day": ["soon"]})),
            ["column 'day'", "stored as date (", "'soon'"],
        ),
        (lambda url: tablefeed.append(url, pa.table({"id": ["x"]})), ["column 'id'", "stored as long ("]),
        (changed, ["with tablefeed.changes", "skip_change_commits=True", "ignore_changes=True"]),
        (deleted, ["with tablefeed.changes", "skip_change_commits=True or ignore_deletes=True"]),
        (lambda url: tablefeed.changes(url, start_version=0), ["alter(url, set_properties={...})", "TBLPROPERTIES"]),
        (lambda url: tablefeed.append(url / "_delta_log", ROWS), ["is in the log of a table", "/t"]),
        (lambda url: tablefeed.open_table(url / "_delta_log" / "_sidecars"), ["is in the log of a table", "/t"]),
        (lambda url: tablefeed.restore(url), ["'version': it must be given, or `timestamp`."]),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_a_mistake_is_named_with_what_to_do(mistake: Callable[[Path], object], words: list[str], table: Path) -> None:
    with pytest.raises(TablefeedError) as caught:
        mistake(table)

    text = str(caught.value)
    assert [word for word in words if word not in text] == [], text
    assert "=true" not in text


def test_a_property_that_lacks_only_its_prefix_is_stored_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        tablefeed.create(tmp_path, ROWS.schema, properties={"appendonly": "true", "owner": "me"})

    (warning,) = caplog.messages
    assert warning.startswith("The property 'appendonly' has no effect: the table's own is 'delta.appendOnly'.")


def test_a_storage_option_that_is_a_dict_is_taken_as_its_json() -> None:
    given = {"key": "id", "client_kwargs": {"verify": False}, "default_block_size": 1000}

    assert store_options(given) == {"key": "id", "client_kwargs": '{"verify": false}', "default_block_size": 1000}
    for odd in [{"session": object()}, bytearray(b"id"), (["id"],)]:
        with pytest.raises(TablefeedError, match="must be JSON or a text"):
            store_options({"client_kwargs": odd})
