"""`PYTHONPATH=src:tests python -m benchmarks.stores`: what tablefeed's object stores cost beside obstore.

It needs the servers of `make test-stores` and `pip install obstore`. Requests are counted by the gateway of the tests;
throughput and races are measured without it. docs/reference/stores.md has the answers.
"""

from __future__ import annotations

import contextlib
import datetime
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import obstore
from obstore.store import AzureStore, GCSStore, S3Store

from support import object_stores
from support.gateway import Gateway
from tablefeed.store import open_store

SMALL, LARGE = b"x" * 1_000, b"x" * 2**20
NAMES, THREADS, RACES, ROUNDS = 100, 8, 50, 3
SERVERS = ("versitygw", "azurite", "fake-gcs-server")


class Obstore:
    """obstore behind the calls of a store that are measured."""

    def __init__(self, gateway: Gateway) -> None:
        retries = {"max_retries": 3, "retry_timeout": datetime.timedelta(seconds=20)}
        common: dict[str, Any] = {"prefix": "o", "client_options": {"allow_http": True}, "retry_config": retries}
        _, named = gateway.delta_rs
        config = {name: value for name, value in named.items() if name not in ("allow_http", "aws_allow_http")}
        match gateway.scheme:
            case "s3":
                self._store: Any = S3Store(gateway.bucket, config=config, virtual_hosted_style_request=False, **common)
            case "gs":
                self._store = GCSStore(gateway.bucket, config=config, **common)
            case _:
                self._store = AzureStore(gateway.bucket, config=config, **common)

    def put_if_absent(self, name: str, data: bytes) -> bool:
        """Creates an object once."""
        try:
            obstore.put(self._store, name, data, mode="create", use_multipart=False)
        except obstore.exceptions.AlreadyExistsError:
            return False
        return True

    def exists(self, name: str) -> bool:
        """Says whether there is an object."""
        try:
            obstore.head(self._store, name)
        except FileNotFoundError:
            return False
        return True

    def read(self, name: str) -> bytes:
        """Gives an object's bytes."""
        return bytes(obstore.get(self._store, name).bytes())

    def list(self, directory: str, *, start: str) -> Iterator[str]:
        """Yields the names from `start` on. obstore cannot begin a listing that leaves folders out."""
        for page in obstore.list(self._store, prefix=directory, offset=f"{directory}/{start}"[:-1]):
            names = [found["path"].removeprefix(f"{directory}/") for found in page]
            yield from (name for name in names if name >= start and "/" not in name)

    def create(self, name: str) -> Any:
        """Opens an upload in parts."""
        return obstore.open_writer(self._store, name, buffer_size=8 * 2**20)


def upload(store: Any, name: str, parts: int) -> None:
    """Writes a large object."""
    with store.create(name) as file:
        for _ in range(parts):
            file.write(LARGE)


def once(words: str) -> Callable[[str], bool]:
    """Says yes to the first put whose request has `words`."""
    left = [words]
    return lambda told: told.startswith(("PUT", "POST")) and bool(left) and left[0] in told and bool(left.pop())


def count_requests(side: str, store: Any, gateway: Gateway) -> None:
    """Prints the requests of one call each."""

    def counted(what: str, call: Callable[[], object]) -> None:
        gateway.requests.clear()
        answer = call()
        print(f"{gateway.scheme} {side} {what}: {len(gateway.requests)} requests, {answer}")

    store.put_if_absent("before", SMALL)
    counted("put, new", lambda: store.put_if_absent("new", SMALL))
    counted("put, taken", lambda: store.put_if_absent("new", SMALL))
    counted("look at what is absent", lambda: store.exists("none"))
    counted("read", lambda: len(store.read("new")))
    for number in range(60):
        store.put_if_absent(f"log/{number:05}", SMALL)
        store.put_if_absent(f"log/folder/{number:05}", SMALL)
    gateway.page_entries = 20
    counted("last 3 of 60 beside a folder", lambda: len(list(store.list("log", start="00057"))))
    gateway.page_entries = None
    counted("24 MiB", lambda: upload(store, "large", 24))
    gateway.contends = once("contended")
    counted("put, answered 409", lambda: store.put_if_absent("contended", SMALL))
    print(f"{gateway.scheme} {side} that object is there: {store.exists('contended')}")


def time_calls(side: str, store: Any, scheme: str) -> None:
    """Prints the throughput, and how many races have other than one winner."""

    def timed(what: str, amount: int, call: Callable[[int], object]) -> None:
        walls = []
        for turn in range(ROUNDS):
            begun = time.perf_counter()
            call(turn)
            walls.append(time.perf_counter() - begun)
        print(f"{scheme} {side} {what}: {amount / statistics.median(walls):.0f} a second", flush=True)

    store.put_if_absent("before", SMALL)
    timed("puts", NAMES, lambda turn: [store.put_if_absent(f"{turn}/{n}", SMALL) for n in range(NAMES)])
    with ThreadPoolExecutor(THREADS) as pool:
        timed("reads", NAMES, lambda turn: list(pool.map(store.read, [f"{turn}/{n}" for n in range(NAMES)])))
    timed("MiB up", 64, lambda turn: upload(store, f"large-{turn}", 64))
    timed("MiB down", 64, lambda turn: store.read(f"large-{turn}"))
    together = threading.Barrier(THREADS)

    def race(name: str) -> bool:
        together.wait()
        return bool(store.put_if_absent(name, SMALL))

    with ThreadPoolExecutor(THREADS) as pool:
        wrong = sum(sum(pool.map(race, [f"race/{turn}"] * THREADS)) != 1 for turn in range(RACES))
    print(f"{scheme} {side} races with other than one winner: {wrong} of {RACES}", flush=True)


def both(gateway: Gateway, measure: Callable[[str, Any], None]) -> None:
    """Measures the two sides at one server."""
    gateway.begin()
    measure("tablefeed", open_store(gateway.url("t"), gateway.options))
    try:
        measure("obstore", Obstore(gateway))
    except obstore.exceptions.BaseError as error:
        print(f"{gateway.scheme} obstore cannot: {str(error).splitlines()[0]}")


def main() -> None:
    """Counts requests, then measures without the gateway."""
    with object_stores.serve_s3() as gateway:
        both(gateway, lambda side, store: count_requests(side, store, gateway))
    for server in SERVERS[1:]:
        with object_stores.serve(server) as gateway:
            both(gateway, lambda side, store: count_requests(side, store, gateway))
    for server in SERVERS:
        with object_stores.serve(server, has_gateway=False) as gateway:
            both(gateway, lambda side, store: time_calls(side, store, gateway.scheme))


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
