"""S3 through what users set: read and written exclusively, whatever becomes of a request; or refused."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from support.s3 import Gateway
from tablefeed.errors import NotExclusiveError, ObjectNotFoundError, StoreError
from tablefeed.store import Store, open_store
from tablefeed.store.s3 import PART_BYTES, PUTS


def once(told: str) -> Callable[[str], bool]:
    """Says yes to the first request that is `told`."""
    left = [told]

    def matches(request: str) -> bool:
        if left and request.startswith(left[0]):
            left.clear()
            return True
        return False

    return matches


def writer(gateway: Gateway) -> Store:
    return open_store(f"s3://{gateway.bucket}/t", gateway.options)


def test_a_table_on_s3_is_read_with_the_options_of_object_store(gateway: Gateway) -> None:
    writing = writer(gateway)
    for name in ("0", "1", "2"):
        writing.replace(f"_delta_log/{name}.json", b"0123456789")
    writing.replace("p=a%20b/f.parquet", b"PAR1")
    store = open_store(f"s3a://{gateway.bucket}/t", {name.upper(): value for name, value in gateway.options.items()})

    assert store.url == f"s3://{gateway.bucket}/t"
    assert [entry.name for entry in store.list("_delta_log", start="1")] == ["1.json", "2.json"]
    assert list(store.list("nothing/here")) == []
    assert store.read("_delta_log/0.json", start=2, end=5) == b"234"
    assert store.read("_delta_log/0.json", start=10) == b""
    assert store.read("p=a%20b/f.parquet") == b"PAR1"
    assert store.read(f"s3a://{gateway.bucket}/t/_delta_log/0.json") == b"0123456789"
    with store.open_input("_delta_log/1.json") as file:
        assert (file.seek(8), file.read()) == (8, b"89")
    assert not store.exists("_delta_log/3.json")
    writing.replace("_delta_log/3.json", b"x")
    assert store.exists("_delta_log/3.json")
    assert [entry.size_bytes for entry in store.list("_delta_log", start="3")] == [1]
    assert open_store(f"s3://{gateway.bucket}/t/_delta_log/0.json", gateway.options).is_file_at_root()
    with pytest.raises(ObjectNotFoundError):
        store.read("none")


def test_a_probe_for_what_is_absent_is_one_request(gateway: Gateway) -> None:
    store = writer(gateway)
    before = len(gateway.requests)

    assert not store.exists("_delta_log/00000000000000000007.json")
    assert gateway.requests[before:] == [f"HEAD /{gateway.bucket}/t/_delta_log/00000000000000000007.json"]


def test_a_listing_asks_for_nothing_before_its_start_and_goes_on_page_by_page(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOTO_S3_DEFAULT_MAX_KEYS", "20")
    store = writer(gateway)
    names = [f"{version:020}.json" for version in range(43)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: store.replace(f"log/{name}", b"x"), names))
    store.replace("log/deeper/0.json", b"x")
    before = len(gateway.requests)

    assert [entry.name for entry in store.list("log")] == names
    assert len(gateway.requests) == before + 3
    assert [entry.name for entry in store.list("log", start=names[41])] == names[41:]
    assert len(gateway.requests) == before + 4


def test_directories_are_what_names_of_objects_make(gateway: Gateway) -> None:
    store = writer(gateway)
    for name in ("a", "p=b/1", "p=a b/q=%3A/2", "_delta_log/4"):
        store.replace(name, b"x")

    assert list(store.directories("")) == ["_delta_log", "p=a b", "p=b"]
    assert list(store.directories("p=a b")) == ["q=%3A"]
    assert list(store.directories("none")) == []


@pytest.mark.parametrize("size", [0, 1, PART_BYTES, 3 * PART_BYTES + 1])
def test_a_file_that_is_written_is_there_whole_when_its_block_ends(gateway: Gateway, size: int) -> None:
    store = writer(gateway)

    with store.create("f") as file:
        for begin in range(0, size, 1_000_000):
            file.write(b"x" * min(1_000_000, size - begin))
        assert not store.exists("f")

    assert store.read("f") == b"x" * size


def test_of_a_file_whose_block_raises_no_part_is_kept(gateway: Gateway) -> None:
    store = writer(gateway)

    def interrupted() -> None:
        with store.create("f") as file:
            file.write(b"x" * 2 * PART_BYTES)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()

    assert not store.exists("f")
    assert [r for r in gateway.requests if r.startswith("DELETE") and "uploadId" in r]


def test_a_put_whose_answer_was_lost_says_that_the_name_is_taken_and_stands(gateway: Gateway) -> None:
    store = writer(gateway)
    gateway.loses = once(f"PUT /{gateway.bucket}/t/log/0.json")

    assert not store.put_if_absent("log/0.json", b"ours")
    assert store.read("log/0.json") == b"ours"


def test_a_request_that_is_throttled_is_sent_again(gateway: Gateway) -> None:
    store = writer(gateway)
    gateway.throttles = once(f"PUT /{gateway.bucket}/t/log/0.json")

    assert store.put_if_absent("log/0.json", b"ours")


def test_a_put_that_met_another_request_for_the_name_is_put_again_and_decided_then(gateway: Gateway) -> None:
    store = writer(gateway)
    gateway.contends = once(f"PUT /{gateway.bucket}/t/log/0.json")
    assert store.put_if_absent("log/0.json", b"ours")

    gateway.contends = once(f"PUT /{gateway.bucket}/t/log/0.json")
    assert not store.put_if_absent("log/0.json", b"again")
    assert store.read("log/0.json") == b"ours"


def test_a_put_that_meets_others_for_good_is_an_error_after_a_few(gateway: Gateway) -> None:
    store = writer(gateway)
    assert store.put_if_absent("log/0.json", b"ours")
    gateway.contends = lambda told: told.startswith("PUT") and "log/1" in told
    before = len(gateway.requests)

    with pytest.raises(StoreError, match=r"Could not put log/1.json at s3://lake-.*/t: .*conflicting operation"):
        store.put_if_absent("log/1.json", b"ours")
    assert len(gateway.requests) == before + PUTS
    assert not store.exists("log/1.json")


def test_a_server_that_throttles_for_good_is_an_error_that_names_the_object(gateway: Gateway) -> None:
    impatient = {"config_kwargs": '{"retries": {"max_attempts": 0}}'}
    store = open_store(f"s3://{gateway.bucket}/t", {**gateway.options, **impatient})
    assert store.put_if_absent("log/0.json", b"ours")
    gateway.throttles = lambda _: True

    with pytest.raises(StoreError, match=r"Could not put log/1.json at s3://lake-.*/t: .*reduce your request rate"):
        store.put_if_absent("log/1.json", b"ours")


def test_a_server_that_passes_over_the_condition_is_refused_before_anything_stands(gateway: Gateway) -> None:
    gateway.passes_conditions_over = True
    store = writer(gateway)

    with pytest.raises(NotExclusiveError, match="ignores 'If-None-Match"), store.create("part-0.parquet"):
        pytest.fail("the block must not run")
    with pytest.raises(NotExclusiveError, match="ignores 'If-None-Match"):
        store.put_if_absent("log/0.json", b"x")
    assert list(store.list("")) == []
    assert list(store.list("log")) == []
