from __future__ import annotations

import sys

import pytest

from support.index_log import SYNC, IndexLog, add, json_log
from tablefeed.errors import StoreConfigError
from tablefeed.indextables import names

A_STATE = b'Obj\x01\x02\x16avro.schema\x0c"null"\x00' + SYNC + b"\x02\x00" + SYNC
"""A container of one record, as far as its blocks go."""


@pytest.fixture(autouse=True)
def _without_fastavro(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastavro", None)


def test_a_log_of_states_says_what_to_install() -> None:
    log = IndexLog({**json_log({0: ()}), names.state_name(1): A_STATE})

    with pytest.raises(StoreConfigError, match=r'pip install "tablefeed\[indextables\]"'):
        log.snapshot()


def test_a_log_of_commits_alone_needs_no_avro() -> None:
    assert IndexLog(json_log({0: (), 1: [add("a")]})).snapshot().files.keys() == {"a"}
