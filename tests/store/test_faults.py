"""A store that fails when told to: what was done, what was said, and what was asked."""

from __future__ import annotations

import pytest

from support.faulty_store import Fault, FaultyStore, StoreCall
from tablefeed.errors import StoreError
from tablefeed.store.memory import MemoryStore


def a_store(*faults: Fault) -> FaultyStore:
    return FaultyStore(MemoryStore(), faults=faults)


def test_without_faults_it_is_the_inner_store_and_keeps_the_calls() -> None:
    store = a_store()
    store.put_if_absent("log/0", b"x")
    store.read("log/0")
    list(store.list("log", start="0"))
    with store.create("f") as file:
        file.write(b"y")

    assert store.read("f") == b"y"
    assert store.calls == [
        StoreCall("put_if_absent", "log/0"),
        StoreCall("read", "log/0"),
        StoreCall("list", "log"),
        StoreCall("create", "f"),
        StoreCall("read", "f"),
    ]


def test_a_fault_before_a_put_leaves_nothing_done() -> None:
    store = a_store(Fault(operation="put_if_absent"))

    with pytest.raises(StoreError, match="was not done"):
        store.put_if_absent("log/0", b"x")
    assert not store.exists("log/0")
    assert store.put_if_absent("log/0", b"x")


def test_a_fault_after_a_put_loses_the_answer_and_not_the_put() -> None:
    store = a_store(Fault(operation="put_if_absent", at=2, when="after"))

    assert store.put_if_absent("log/0", b"x")
    with pytest.raises(StoreError, match="its answer was lost"):
        store.put_if_absent("log/1", b"y")
    assert store.read("log/1") == b"y"
    assert not store.put_if_absent("log/1", b"z")


def test_a_fault_after_a_creation_leaves_the_file() -> None:
    store = a_store(Fault(operation="create", when="after"))

    with pytest.raises(StoreError), store.create("f") as file:
        file.write(b"x")
    assert store.read("f") == b"x"


def test_a_fault_counts_the_calls_of_its_operation_and_name_only() -> None:
    store = a_store(Fault(operation="read", at=2, name="checkpoint"))
    for name in ("log/0", "log/checkpoint"):
        store.replace(name, b"x")
    store.read("log/checkpoint")
    store.read("log/0")
    store.stat("log/checkpoint")

    with pytest.raises(StoreError):
        store.read("log/checkpoint")


def test_a_short_read_gives_half_and_a_short_listing_misses_the_last() -> None:
    store = a_store(*(Fault(operation=o, when="short") for o in ("read", "open_input", "list")))
    for name in ("log/0", "log/1"):
        store.replace(name, b"12345678")

    assert (store.read("log/0"), store.read("log/0")) == (b"1234", b"12345678")
    assert store.open_input("log/0").read() == b"1234"
    assert [[entry.name for entry in store.list("log")] for _ in range(2)] == [["0"], ["0", "1"]]


def test_a_hook_lets_another_writer_in_before_the_put() -> None:
    inner = MemoryStore()
    rival = Fault(operation="put_if_absent", hook=lambda: inner.replace("log/0", b"rival"))
    store = FaultyStore(inner, faults=[rival])

    assert not store.put_if_absent("log/0", b"ours")
    assert store.read("log/0") == b"rival"


def test_a_fault_that_could_never_strike_cannot_be_planned() -> None:
    with pytest.raises(ValueError, match="from 1"):
        Fault(operation="read", at=0)
    with pytest.raises(ValueError, match="short"):
        Fault(operation="put_if_absent", when="short")
