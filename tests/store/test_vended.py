"""The store of a table that a catalog names: its credentials are asked for as they are needed, and renewed in time."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from support.gateway import Gateway
from support.unity import TOKEN, FakeCatalog
from tablefeed.catalog.names import Server
from tablefeed.catalog.unity import CatalogTable, Credentials, UnityCatalog
from tablefeed.errors import StoreConfigError, StoreError, TableNotFoundError
from tablefeed.store import LocalStore, Store, open_store
from tablefeed.store.memory import MemoryStore
from tablefeed.store.vended import KEPT_STORES, VendedStore, file_system_options

NAME = "main.sales.orders"
TABLE = CatalogTable(name=NAME, table_id="1", location="s3://lake/orders", is_managed=False)


class Vending(UnityCatalog):
    """Vends credentials that are good for an hour, numbered from 1 for reading and for writing."""

    def __init__(self, clock: list[int]) -> None:
        super().__init__(Server(uri="http://none", token=None))
        self.clock, self.vended = clock, list[str]()
        self.valid_ms: int | None = 3_600_000

    def credentials(self, table: CatalogTable, *, to_write: bool) -> Credentials:
        assert table.name == NAME
        self.vended.append("write" if to_write else "read")
        ends_ms = None if self.valid_ms is None else self.clock[0] + self.valid_ms
        return Credentials(
            values={"access_key_id": str(len(self.vended)), "secret_access_key": "s", "session_token": "t"},
            expires_at_ms=ends_ms,
        )


class Bucket:
    """Opens one memory as a store again and again; remembers with which options."""

    def __init__(self) -> None:
        self.content, self.opened = MemoryStore("lake"), list[Mapping[str, Any]]()

    def open(self, location: str, options: Mapping[str, Any]) -> Store:
        assert location == TABLE.location
        self.opened.append(options)
        return Opened(self, len(self.opened))


class Opened(MemoryStore):
    """The memory of `bucket` under one set of credentials. Files are read on until the next set is used."""

    def __init__(self, bucket: Bucket, number: int) -> None:
        super().__init__("lake")
        self._objects, self._bucket, self._number = bucket.content._objects, bucket, number

    def open_input(self, name: str) -> BinaryIO:
        return Expiring(self.read(name), lambda: len(self._bucket.opened) > self._number)


class Expiring(io.BytesIO):
    def __init__(self, data: bytes, has_expired: Callable[[], bool]) -> None:
        super().__init__(data)
        self._has_expired = has_expired

    def read(self, size: int | None = -1, /) -> bytes:
        assert not self._has_expired(), "read with credentials that have ended"
        return super().read(size)


def test_credentials_are_asked_for_once_to_read_and_only_for_a_write_to_write() -> None:
    now, bucket = [0], Bucket()
    catalog = Vending(now)
    store = VendedStore(catalog, TABLE, {"aws_region": "eu-west-1"}, bucket.open, clock_ms=lambda: now[0])

    assert catalog.vended == []
    assert not store.exists("a")
    assert list(store.list("")) == []
    assert catalog.vended == ["read"]
    assert store.put_if_absent("a", b"1")
    store.replace("b", b"2")
    assert store.read("a") == b"1"
    assert catalog.vended == ["read", "write"]
    vended = {
        "skip_instance_cache": True,
        "aws_secret_access_key": "s",
        "aws_session_token": "t",
        "aws_region": "eu-west-1",
    }
    assert bucket.opened == [{**vended, "aws_access_key_id": "1"}, {**vended, "aws_access_key_id": "2"}]


def test_credentials_of_the_catalog_take_the_place_of_the_users() -> None:
    now, bucket = [0], Bucket()
    store = VendedStore(Vending(now), TABLE, {"aws_access_key_id": "mine"}, bucket.open, clock_ms=lambda: now[0])

    store.exists("a")

    assert bucket.opened[0]["aws_access_key_id"] == "1"


def test_credentials_are_renewed_when_half_of_their_time_is_over() -> None:
    now, bucket = [0], Bucket()
    catalog = Vending(now)
    store = VendedStore(catalog, TABLE, {}, bucket.open, clock_ms=lambda: now[0])

    for now[0] in (0, 1_799_999, 1_800_000, 3_599_999, 3_600_000):
        store.exists("a")

    assert catalog.vended == ["read", "read", "read"]


def test_credentials_without_an_end_are_never_renewed() -> None:
    now, bucket = [0], Bucket()
    catalog = Vending(now)
    catalog.valid_ms = None
    store = VendedStore(catalog, TABLE, {}, bucket.open, clock_ms=lambda: now[0])
    store.exists("a")
    now[0] = 10**12
    store.exists("a")

    assert catalog.vended == ["read"]


def test_where_the_clocks_differ_credentials_are_asked_for_at_most_once_a_second() -> None:
    now, bucket = [0], Bucket()
    catalog = Vending(now)
    catalog.valid_ms = -3_600_000
    store = VendedStore(catalog, TABLE, {}, bucket.open, clock_ms=lambda: now[0])

    for now[0] in range(0, 3000, 100):
        store.exists("a")

    assert catalog.vended == ["read"] * 3


def test_a_file_that_is_being_read_goes_on_with_new_credentials_where_it_was() -> None:
    now, bucket = [0], Bucket()
    catalog = Vending(now)
    store = VendedStore(catalog, TABLE, {}, bucket.open, clock_ms=lambda: now[0])
    content = bytes(range(256)) * 1024
    bucket.content.replace("big", content)
    with store.open_input("big") as file:
        begun = file.read(100_000)
        now[0] = 1_800_000
        rest = file.read()
        assert file.seek(-3, io.SEEK_END) == len(content) - 3
        assert file.read() == content[-3:]

    assert begun + rest == content
    assert catalog.vended == ["read", "read"]


def test_a_file_that_was_replaced_when_credentials_were_renewed_is_not_read_on() -> None:
    now, bucket = [0], Bucket()
    store = VendedStore(Vending(now), TABLE, {}, bucket.open, clock_ms=lambda: now[0])
    bucket.content.replace("big", b"a" * 100_000)
    with store.open_input("big") as file:
        file.read(1)
        bucket.content.replace("big", b"b" * 100_001)
        now[0] = 1_800_000
        with pytest.raises(StoreError, match="was replaced while it was read"):
            file.read()


def test_a_file_is_opened_although_another_thread_closes_the_store_meanwhile() -> None:
    bucket = Bucket()
    bucket.content.replace("a", b"1")
    store = VendedStore(Vending([0]), TABLE, {}, bucket.open, clock_ms=lambda: 0)

    class Lock(AbstractContextManager[None]):
        """Whenever it is free, another thread closes the store."""

        def __exit__(self, *_: object) -> None:
            store._opened.clear()

    store._lock = Lock()  # type: ignore[assignment]  # a lock with the other thread in it

    with store.open_input("a") as file:
        assert file.read() == b"1"


@pytest.mark.parametrize(
    ("location", "values", "options"),
    [
        (
            "s3a://lake/t",
            {"access_key_id": "i", "secret_access_key": "s", "session_token": "t"},
            {"aws_access_key_id": "i", "aws_secret_access_key": "s", "aws_session_token": "t"},
        ),
        (
            "s3://lake/t",
            {"access_key_id": "i", "secret_access_key": "s"},
            {"aws_access_key_id": "i", "aws_secret_access_key": "s"},
        ),
        ("abfss://c@account.dfs.core.windows.net/t", {"sas_token": "sv=1&sig=x"}, {"sas_token": "sv=1&sig=x"}),
        ("file:///lake/t", {}, {}),
        ("file:///lake/t", {"access_key_id": "i", "secret_access_key": "s"}, {}),
    ],
)
def test_credentials_become_the_options_of_the_store_at_the_location(
    location: str, values: dict[str, str], options: dict[str, str]
) -> None:
    found = file_system_options(location, values, name=NAME)

    assert found.pop("skip_instance_cache", None) is (True if options else None)
    assert found == options


def test_a_token_of_google_becomes_credentials_that_are_used_as_they_are() -> None:
    credentials = pytest.importorskip("google.oauth2.credentials")

    token = file_system_options("gs://lake/t", {"oauth_token": "ya29"}, name=NAME)["token"]

    assert isinstance(token, credentials.Credentials)
    assert (token.token, token.valid) == ("ya29", True)


@pytest.mark.parametrize(
    ("location", "values"),
    [
        ("s3://lake/t", {}),
        ("s3://lake/t", {"access_key_id": "i"}),
        ("s3://lake/t", {"sas_token": "x"}),
        ("gs://lake/t", {"access_key_id": "i", "secret_access_key": "s"}),
        ("abfss://c@a.dfs.core.windows.net/t", {"oauth_token": "x"}),
        ("hdfs://h/t", {"access_key_id": "i", "secret_access_key": "s"}),
        ("uc://a.b.c", {}),
    ],
)
def test_a_store_is_not_opened_without_credentials_of_its_own(location: str, values: dict[str, str]) -> None:
    with pytest.raises(StoreConfigError, match=f"no credentials for {NAME}"):
        file_system_options(location, values, name=NAME)


def test_a_name_opens_the_store_of_its_table_with_the_options_of_the_catalog(
    catalog: FakeCatalog, tmp_path: Path
) -> None:
    catalog.register(NAME, f"file://{tmp_path}")
    (tmp_path / "a").write_bytes(b"1")

    store = open_store(f"uc://{NAME}", catalog.options)

    assert store.read("a") == b"1"
    assert store.url == LocalStore(str(tmp_path)).url
    assert catalog.requests == [f"GET /tables/{NAME}", "POST /temporary-table-credentials"]


def test_errors_can_name_the_location_though_the_catalog_gives_no_credentials(
    catalog: FakeCatalog, tmp_path: Path
) -> None:
    catalog.register(NAME, f"file://{tmp_path}/a/../b")
    store = open_store(f"uc://{NAME}", catalog.options)
    catalog.tables.clear()

    assert store.url == f"{tmp_path}/b"


def test_a_task_opens_the_table_that_was_looked_up_also_when_the_name_means_another(
    catalog: FakeCatalog, tmp_path: Path
) -> None:
    table_id = catalog.register("main.sales.was_orders", f"file://{tmp_path}")
    (tmp_path / "a").write_bytes(b"1")
    pinned = {**catalog.options, "uc_table_id": table_id, "uc_location": f"file://{tmp_path}"}

    assert open_store(f"uc://{NAME}", pinned).read("a") == b"1"
    assert catalog.requests == ["POST /temporary-table-credentials"]


def test_a_task_of_a_table_that_was_dropped_is_refused(catalog: FakeCatalog, tmp_path: Path) -> None:
    pinned = {**catalog.options, "uc_table_id": "gone", "uc_location": f"file://{tmp_path}"}

    with pytest.raises(TableNotFoundError, match="dropped and created again"):
        open_store(f"uc://{NAME}", pinned).read("a")


def test_the_next_opening_of_a_table_uses_the_same_credentials_until_they_are_renewed() -> None:
    now, bucket, shared = [0], Bucket(), dict[tuple[object, ...], tuple[Store, int | None]]()
    catalog = Vending(now)

    def batch(**given: str) -> None:
        store = VendedStore(catalog, TABLE, given, bucket.open, shared=shared, clock_ms=lambda: now[0])
        store.exists("a")
        store.put_if_absent("a", b"1")
        store.close()

    batch()
    batch()
    assert catalog.vended == ["read", "write"]
    batch(aws_region="eu-west-1")
    assert catalog.vended == ["read", "write"] * 2
    now[0] = 1_800_000
    batch()
    assert catalog.vended == ["read", "write"] * 3
    for number in range(100):
        batch(region=str(number))
    assert len(shared) == KEPT_STORES


def test_a_folder_of_this_machine_is_opened_each_time_since_a_store_has_one_watch() -> None:
    shared: dict[tuple[object, ...], tuple[Store, int | None]] = {}
    local = CatalogTable(name=NAME, table_id="1", location="file:///lake", is_managed=False)

    stores = [VendedStore(Vending([0]), local, {}, open_store, shared=shared)._to_read() for _ in range(2)]

    assert stores[0] is not stores[1]
    assert shared == {}


def test_old_credentials_leave_no_file_system_behind(catalog: FakeCatalog, gateway: Gateway) -> None:
    import s3fs

    catalog.register(NAME, f"s3://{gateway.bucket}/t")
    number = iter(range(100))
    catalog.vends = lambda _: {
        "aws_temp_credentials": {"access_key_id": f"A{next(number)}", "secret_access_key": "s", "session_token": "t"},
        "expiration_time": 4_000_000_000_000,
    }
    options = {name: gateway.options[name] for name in ("aws_region", "aws_endpoint_url")}
    before = len(s3fs.S3FileSystem._cache)

    for _ in range(5):
        assert not open_store(f"uc://{NAME}", {**options, **catalog.options}).exists("a")

    assert len(s3fs.S3FileSystem._cache) == before
    assert len(catalog.asked) == 1


def test_options_of_the_catalog_do_not_reach_another_store(gateway: Gateway) -> None:
    store = open_store(f"s3://{gateway.bucket}/t", {**gateway.options, "uc_uri": "http://h", "uc_token": TOKEN})

    assert store.put_if_absent("a", b"1")


def test_a_table_on_s3_is_read_and_written_with_the_vended_credentials(catalog: FakeCatalog, gateway: Gateway) -> None:
    catalog.register(NAME, f"s3://{gateway.bucket}/t")
    catalog.vends = lambda asked: {
        "aws_temp_credentials": {
            "access_key_id": f"ASIA{asked['operation']}",
            "secret_access_key": "vended-secret",
            "session_token": "vended-token",
        },
        "expiration_time": 4_000_000_000_000,
    }
    options = {name: gateway.options[name] for name in ("aws_region", "aws_endpoint_url")}
    store = open_store(f"uc://{NAME}", {**options, **catalog.options})

    assert store.put_if_absent("a", b"1")
    assert not store.put_if_absent("a", b"2")
    with store.create("b") as file:
        file.write(b"x" * 100)
    with store.open_input("b") as read:
        assert read.read() == b"x" * 100
    assert store.url == f"s3://{gateway.bucket}/t"
    assert [body["operation"] for body in catalog.asked] == ["READ_WRITE", "READ"]
    with pytest.raises(StoreError) as caught:
        store.read("none")
    assert "vended" not in str(caught.value)
