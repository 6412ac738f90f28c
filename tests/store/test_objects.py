"""Every object store through what users set: written exclusively, whatever becomes of a request; or refused."""

from __future__ import annotations

import io
import logging
import pickle
import re
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.gateway import Gateway
from support.object_stores import BEHIND_GATEWAYS, EACH_OBJECT_STORE
from tablefeed.errors import NotExclusiveError, ObjectNotFoundError, StoreError
from tablefeed.store import Store, open_store
from tablefeed.store.azure import AzureStore
from tablefeed.store.objects import FIRST_BYTES, PART_BYTES, RENEWALS, ObjectStore

EACH = pytest.mark.parametrize("object_store", EACH_OBJECT_STORE, indirect=True)
EACH_BEHIND_A_GATEWAY = pytest.mark.parametrize("object_store", BEHIND_GATEWAYS, indirect=True)


def writer(gateway: Gateway) -> ObjectStore:
    store = open_store(gateway.url("t"), gateway.options)
    assert isinstance(store, ObjectStore)
    return store


def is_put(told: str, name: str) -> bool:
    return told.startswith(("PUT", "POST")) and name in unquote(told)


def once(name: str) -> Callable[[str], bool]:
    """Says yes to the first put of `name`."""
    left = [name]
    return lambda told: bool(left) and is_put(told, left[0]) and bool(left.pop())


@EACH_BEHIND_A_GATEWAY
def test_a_look_at_what_is_absent_is_one_request_as_is_a_put(object_store: Gateway) -> None:
    store = writer(object_store)
    store.put_if_absent("log/0.json", b"x")
    object_store.requests.clear()

    assert not store.exists("log/1.json")
    assert store.put_if_absent("log/1.json", b"x")
    assert not store.put_if_absent("log/1.json", b"x")

    assert [request.partition(" ")[0] for request in object_store.requests[1:]] in (["PUT"] * 2, ["POST"] * 2)
    assert len(object_store.requests) == 3


@EACH
def test_directories_are_what_names_of_objects_make(object_store: Gateway) -> None:
    store = writer(object_store)
    for name in ("a", "p=b/1", "p=a b/q=%3A/2", "_delta_log/4"):
        store.replace(name, b"x")

    assert list(store.directories("")) == ["_delta_log", "p=a b", "p=b"]
    assert list(store.directories("p=a b")) == ["q=%3A"]
    assert list(store.directories("none")) == []


@EACH
@pytest.mark.parametrize("name", ["a%20b", "a b+c", "über/ß", "p=a%25b %3A/x", "#1?", "a?versionid=1", "'q'", "a 🦆"])
def test_names_are_taken_literally(object_store: Gateway, name: str) -> None:
    store = writer(object_store)
    assert store.put_if_absent(f"t/{name}", name.encode())
    directory, _, base_name = f"t/{name}".rpartition("/")

    assert store.read(f"t/{name}") == name.encode()
    assert [entry.name for entry in store.list(directory)] == [base_name]
    with store.open_input(f"t/{name}") as file:
        assert file.read() == name.encode()
    store.delete(f"t/{name}")
    assert not store.exists(f"t/{name}")


@EACH_BEHIND_A_GATEWAY
def test_a_listing_begins_at_its_start_and_goes_on_page_by_page(object_store: Gateway) -> None:
    store, object_store.page_entries = writer(object_store), 20
    names = [f"{version:020}.json" for version in range(43)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: store.replace(f"log/{name}", b"x"), names))
    store.replace("log/deeper/0.json", b"x")
    object_store.requests.clear()

    assert [entry.name for entry in store.list("log")] == names
    assert len(object_store.requests) == 3
    assert [entry.name for entry in store.list("log", start=names[-2])] == names[-2:]
    assert [entry.name for entry in store.list("log", start=names[-2] + "x")] == names[-1:]
    # Azure's listings begin at the start: docs/reference/stores.md.
    assert len(object_store.requests) == (9 if object_store.scheme == "abfs" else 5)


@EACH_BEHIND_A_GATEWAY
def test_a_listing_that_gives_a_page_again_is_an_error(object_store: Gateway) -> None:
    store, object_store.page_entries, object_store.forgets_pages = writer(object_store), 2, True
    for version in range(5):
        store.replace(f"log/{version}.json", b"x")

    with pytest.raises(StoreError, match=r"list log at .* a page of the listing again"):
        list(store.list("log"))


@EACH_BEHIND_A_GATEWAY
@pytest.mark.parametrize("data", [b"", b"<html>Please sign in.</html>"])
def test_an_answer_that_is_no_listing_is_an_error_and_no_empty_directory(object_store: Gateway, data: bytes) -> None:
    store = writer(object_store)
    store.replace("log/0.json", b"x")
    object_store.answers = lambda told: (200, {}, data) if object_store.in_pages(told) else None
    object_store.page_entries = 100

    with pytest.raises(StoreError, match="Could not list log at "):
        list(store.list("log"))


def answered(gateway: Gateway, status: int, span: str, data: bytes) -> None:
    """Lets the gateway answer each read of an object in this way."""
    headers = {"Content-Range": span} if span else {}
    is_read = re.compile("GET .*alt=media" if gateway.scheme == "gs" else "GET ")
    gateway.answers = lambda told: (status, headers, data) if is_read.match(told) else None


@pytest.mark.parametrize("object_store", ["s3_server", "fake_gcs_server"], indirect=True)
def test_a_range_is_taken_from_the_whole_object_where_a_server_answers_with_that(object_store: Gateway) -> None:
    store = writer(object_store)
    store.replace("f", b"012345678")
    answered(object_store, 200, "", b"012345678")

    assert (store.read("f", start=2, end=5), store.read("f", start=7)) == (b"234", b"78")


@pytest.mark.parametrize("object_store", ["s3_server", "fake_gcs_server"], indirect=True)
@pytest.mark.parametrize(("span", "data"), [("bytes 2-3/9", b"23"), ("bytes 0-2/9", b"012")])
def test_a_range_that_was_not_asked_for_is_an_error(object_store: Gateway, span: str, data: bytes) -> None:
    store = writer(object_store)
    store.replace("f", b"012345678")
    answered(object_store, 206, span, data)

    with pytest.raises(StoreError, match="another part of the object"):
        store.read("f", start=2, end=5)


@EACH
@pytest.mark.every_store
@pytest.mark.timeout(1_800)
def test_a_listing_of_more_objects_than_one_answer_holds_gives_each_once_and_all_can_be_deleted(
    object_store: Gateway,
) -> None:
    store = writer(object_store)
    names = [f"{n:05} %.json" for n in range(5_001 if object_store.scheme == "abfs" else 1_001)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: store.replace(f"log/{name}", b"x"), names))

    assert [entry.name for entry in store.list("log")] == names
    assert [entry.name for entry in store.list("log", start=names[-2])] == names[-2:]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: store.delete(f"log/{name}"), names))
    assert list(store.list("log")) == []


@EACH
@pytest.mark.parametrize("size", [0, 1, PART_BYTES, PART_BYTES + 1])
def test_a_file_that_is_written_is_there_whole_when_its_block_ends(object_store: Gateway, size: int) -> None:
    store = writer(object_store)
    content = bytes(range(256)) * (size // 256 + 1)

    with store.create("f") as file:
        for begin in range(0, size, 1_000_000):
            file.write(content[begin : min(begin + 1_000_000, size)])
        assert not store.exists("f")

    assert store.read("f") == content[:size]
    assert store.read("f", start=size // 2) == content[size // 2 : size]
    with store.open_input("f") as read:
        assert read.read() == content[:size]


@EACH_BEHIND_A_GATEWAY
@pytest.mark.parametrize(("size", "requests"), [(1, 1), (FIRST_BYTES, 1), (FIRST_BYTES + 1, 2)])
def test_a_file_is_opened_with_its_first_mebibyte_by_one_request(
    object_store: Gateway, size: int, requests: int
) -> None:
    store, content = writer(object_store), (bytes(range(251)) * (size // 251 + 1))[:size]
    store.replace("f", content)
    object_store.requests.clear()

    with store.open_input("f") as read:
        assert (read.seek(-1, io.SEEK_END), read.read()) == (size - 1, content[-1:])
        assert (read.seek(0), read.read()) == (0, content)
    assert len(object_store.requests) == requests + (size > FIRST_BYTES), "the second range, before the first"


@EACH_BEHIND_A_GATEWAY
def test_small_files_are_created_by_one_request(object_store: Gateway) -> None:
    store = writer(object_store)
    with store.create("another") as file:  # the server is tested
        file.write(b"x")
    object_store.requests.clear()

    with store.create("f") as file:
        file.write(b"x" * 1000)
    assert len(object_store.requests) == 1


@EACH
def test_pyarrow_writes_and_reads_a_file_of_several_parts(object_store: Gateway) -> None:
    store, table = writer(object_store), pa.table({"a": list(range(2_000_000))})

    with store.create("p=1/f.parquet") as file:
        pq.write_table(table, file, compression="none", row_group_size=500_000)

    with store.open_input("p=1/f.parquet") as read:
        assert pq.ParquetFile(read).read().equals(table)


@EACH
@pytest.mark.parametrize("size", [3, 2 * PART_BYTES])
def test_of_two_that_publish_one_name_at_once_one_file_stays_whole(object_store: Gateway, size: int) -> None:
    store = writer(object_store)

    with store.publish("log/f") as first, store.publish("log/f") as second:
        first.write(b"1" * size)
        second.write(b"2" * size)
        first.write(b"1" * size)
        second.write(b"2" * size)

    assert store.read("log/f") == b"2" * 2 * size


@EACH
def test_a_large_put_is_exclusive_too(object_store: Gateway) -> None:
    store, data = writer(object_store), b"x" * (2 * PART_BYTES + 1)

    assert store.put_if_absent("log/0.json", data)
    assert not store.put_if_absent("log/0.json", b"y" * len(data))
    assert store.read("log/0.json") == data


@EACH_BEHIND_A_GATEWAY
@pytest.mark.parametrize("size", [3, 2 * PART_BYTES])
def test_a_put_whose_answer_was_lost_gives_false_and_its_object_is_there(object_store: Gateway, size: int) -> None:
    store, data = writer(object_store), b"x" * size
    seen = 0

    def is_last(told: str) -> bool:
        nonlocal seen
        seen += is_put(told, "log/0.json") and "blockid" not in told
        return seen == 1

    object_store.loses = is_last

    assert not store.put_if_absent("log/0.json", data)
    assert store.read("log/0.json") == data


@EACH_BEHIND_A_GATEWAY
def test_a_request_that_is_throttled_is_sent_again(object_store: Gateway) -> None:
    store = writer(object_store)
    object_store.throttles = once("log/0.json")

    assert store.put_if_absent("log/0.json", b"ours")


@EACH_BEHIND_A_GATEWAY
def test_a_server_that_throttles_for_good_is_an_error_that_says_so(object_store: Gateway) -> None:
    store = open_store(object_store.url("t"), {**object_store.options, **IMPATIENT.get(object_store.scheme, {})})
    assert store.put_if_absent("log/0.json", b"ours")
    store._sleep = lambda _: None  # type: ignore[attr-defined]  # ObjectStore's
    object_store.throttles = lambda _: True

    with pytest.raises(StoreError, match=r"Could not put log/1.json at .*/t: .*reduce your request rate"):
        store.put_if_absent("log/1.json", b"ours")


IMPATIENT = {"s3": {"config_kwargs": '{"retries": {"max_attempts": 0}}'}}


@EACH_BEHIND_A_GATEWAY
def test_a_part_of_a_file_that_is_throttled_for_good_is_an_error_that_names_the_file(object_store: Gateway) -> None:
    store = open_store(object_store.url("t"), {**object_store.options, **IMPATIENT.get(object_store.scheme, {})})
    store.put_if_absent("before", b"x")
    store._sleep = lambda _: None  # type: ignore[attr-defined]  # ObjectStore's

    def write() -> None:
        with store.create("part-0") as file:
            object_store.throttles = lambda told: told.startswith(("PUT", "POST"))
            file.write(b"x" * 2 * PART_BYTES)

    with pytest.raises(StoreError, match=r"Could not write part-0 at .*/t: .*reduce your request rate"):
        write()

    object_store.throttles = lambda _: False
    assert not store.exists("part-0")


@EACH_BEHIND_A_GATEWAY
def test_any_range_of_an_empty_object_is_empty_and_none_of_an_absent_one_is(object_store: Gateway) -> None:
    store = writer(object_store)
    store.replace("empty", b"")

    for start, end in ((0, None), (0, 0), (0, 10), (5, None), (5, 10)):
        assert store.read("empty", start=start, end=end) == b""
        with pytest.raises(ObjectNotFoundError):
            store.read("none", start=start, end=end)


@EACH_BEHIND_A_GATEWAY
def test_a_server_that_does_not_answer_is_an_error_after_the_deadline(object_store: Gateway) -> None:
    store = writer(object_store)
    assert store.put_if_absent("log/0.json", b"ours")
    store._deadline_s = 1.0
    object_store.stalls = lambda told: is_put(told, "log/1.json")
    begun_s = time.monotonic()

    with pytest.raises(StoreError, match=r"Could not put log/1.json at .*no answer within 1 s, so whether it was done"):
        store.put_if_absent("log/1.json", b"ours")

    assert time.monotonic() - begun_s < 30
    assert store.put_if_absent("log/2.json", b"ours")


@EACH_BEHIND_A_GATEWAY
def test_a_request_whose_credentials_have_expired_is_sent_again_with_renewed_ones(object_store: Gateway) -> None:
    store = writer(object_store)
    object_store.expires = once("log/0.json")

    assert store.put_if_absent("log/0.json", b"ours")
    assert store.read("log/0.json") == b"ours"


@EACH_BEHIND_A_GATEWAY
@pytest.mark.parametrize("size", [0, 3, 2 * PART_BYTES])
def test_a_file_while_whose_credentials_expire_is_written_with_renewed_ones(object_store: Gateway, size: int) -> None:
    store = writer(object_store)
    store.replace("before", b"x")
    puts = 0

    def each_first_time(told: str) -> bool:
        nonlocal puts
        puts += told.startswith(("PUT", "POST"))
        return told.startswith(("PUT", "POST")) and puts % 2 == 1

    with store.create("part-0") as file:
        object_store.expires = each_first_time
        file.write(b"x" * size)

    assert puts > 1
    assert store.read("part-0") == b"x" * size


@EACH_BEHIND_A_GATEWAY
def test_credentials_that_have_expired_for_good_are_an_error_that_says_so(object_store: Gateway) -> None:
    store = writer(object_store)
    store.replace("log/0.json", b"x")
    store._sleep = lambda _: None
    object_store.expires = lambda _: True
    before = len(object_store.requests)

    with pytest.raises(StoreError, match=r"Could not list log at .*/t: the server refuses the credentials, also renew"):
        list(store.list("log"))
    with pytest.raises(StoreError, match=r"Could not read log/0.json at .*/t: the server refuses the credentials"):
        store.read("log/0.json")
    assert len(object_store.requests) - before == 2 * (1 + RENEWALS)


@EACH_BEHIND_A_GATEWAY
def test_credentials_that_are_wrong_are_an_error_at_once_and_no_object_is_taken_for_absent(
    object_store: Gateway,
) -> None:
    store = writer(object_store)
    store.replace("log/0.json", b"x")
    object_store.refuses = lambda _: True
    before = len(object_store.requests)

    for operation in (
        lambda: list(store.list("log")),
        lambda: store.exists("log/0.json"),
        lambda: store.read("log/0.json"),
        lambda: store.replace("log/0.json", b"y"),
        lambda: store.delete("log/0.json"),
    ):
        with pytest.raises(StoreError, match=r"Could not .* at .*/t: .*([Ff]orbidden|signature is wrong)") as caught:
            operation()
        assert not isinstance(caught.value, ObjectNotFoundError)
    assert len(object_store.requests) - before == 5


@pytest.mark.parametrize("object_store", [EACH_OBJECT_STORE[-1], "azurite"], indirect=True)
def test_a_server_that_checks_signatures_refuses_a_wrong_one_by_name(object_store: Gateway) -> None:
    keys = ("aws_secret_access_key", "connection_string")
    wrong = {n: v[:-5] + "AAAAA" if n in keys else v for n, v in object_store.options.items()}
    store = open_store(object_store.url("t"), wrong)

    with pytest.raises(
        StoreError, match=r"Could not put _tablefeed_exclusive_.* at .*/t: .*([Ss]ignature|authenti).* Give credentials"
    ):
        store.put_if_absent("log/0.json", b"x")
    with pytest.raises(
        StoreError, match=r"Could not list log at .*/t: .*([Ss]ignature|authenti).* Give credentials that allow it"
    ):
        list(store.list("log"))


@EACH
def test_a_bucket_that_does_not_exist_is_an_error_that_names_it(object_store: Gateway) -> None:
    absent = object_store.url("t").replace(object_store.bucket, "no-such-lake")
    store = open_store(absent, object_store.options)

    for operation in (
        lambda: list(store.list("log")),
        lambda: list(store.directories("")),
        lambda: store.put_if_absent("log/0.json", b"x"),
        lambda: store.replace("log/0.json", b"x"),
    ):
        with pytest.raises(StoreError, match=r"no bucket or container no-such-lake\. Create it, or") as caught:
            operation()
        assert not isinstance(caught.value, ObjectNotFoundError)
    with pytest.raises(StoreError, match="no-such-lake"), store.create("f"):
        pytest.fail("the block must not run")


@EACH_BEHIND_A_GATEWAY
@pytest.mark.parametrize("size", [3, 2 * PART_BYTES])
def test_a_file_whose_last_answer_was_lost_is_there(object_store: Gateway, size: int) -> None:
    store = writer(object_store)
    store.replace("before", b"x")
    seen = 0

    def is_last(told: str) -> bool:
        nonlocal seen
        seen += told.startswith(("PUT", "POST")) and "partNumber" not in told and "blockid" not in told
        return seen == 1

    with store.create("part-0") as file:
        file.write(b"x" * size)
        object_store.loses = is_last

    assert seen > 1
    assert store.read("part-0") == b"x" * size


@EACH_BEHIND_A_GATEWAY
def test_a_server_that_passes_over_the_condition_is_refused_before_anything_is_written(object_store: Gateway) -> None:
    object_store.passes_conditions_over = lambda _: True
    store = writer(object_store)
    ignored = "ignores '(If-None-Match: .|ifGenerationMatch=0)'"

    with pytest.raises(NotExclusiveError, match=ignored), store.create("part-0.parquet"):
        pytest.fail("the block must not run")
    with pytest.raises(NotExclusiveError, match=ignored):
        store.put_if_absent("log/0.json", b"x")
    assert list(store.list("")) == []
    assert list(store.list("log")) == []


@EACH_BEHIND_A_GATEWAY
def test_pieces_are_put_whole_on_a_server_that_passes_over_the_condition_of_uploads(object_store: Gateway) -> None:
    parts = re.compile("uploadId=|uploadType=resumable|comp=blocklist")
    object_store.passes_conditions_over = lambda told: parts.search(told) is not None
    store, won = writer(object_store), list[bool]()
    if isinstance(store, AzureStore):
        pytest.skip("it puts more than a mebibyte in blocks")
    theirs = [b"theirs"] * 3

    class Pieces:
        size_bytes = 2 * PART_BYTES + 4

        def __iter__(self) -> Iterator[bytes]:
            yield bytes(2 * PART_BYTES)
            won.append(store.put_if_absent("log/0.json", b"".join(theirs)))
            yield b"ours"

    won.append(store.put_if_absent("log/0.json", Pieces()))

    assert won == [True, False]
    assert store.read("log/0.json") == b"".join(theirs)
    assert store.put_if_absent("log/1.json", Pieces())
    assert [entry.name for entry in store.list("")] == []


@EACH_BEHIND_A_GATEWAY
def test_pieces_cost_a_part_each_and_a_look_once_the_server_is_tested(object_store: Gateway) -> None:
    store = writer(object_store)

    class Pieces:
        size_bytes = 3 * PART_BYTES

        def __iter__(self) -> Iterator[bytes]:
            yield from (bytes(PART_BYTES) for _ in range(3))

    assert store.put_if_absent("log/0.json", Pieces())
    object_store.requests.clear()

    assert store.put_if_absent("log/1.json", Pieces())
    assert len(object_store.requests) == {"s3": 6, "gs": 5, "abfs": 5}[object_store.scheme]
    object_store.requests.clear()
    assert not store.put_if_absent("log/1.json", Pieces())
    assert len(object_store.requests) == 1
    assert [entry.name for entry in store.list("")] == []


@EACH_BEHIND_A_GATEWAY
def test_of_an_upload_whose_block_raises_nothing_appears(object_store: Gateway) -> None:
    store = writer(object_store)

    def interrupted() -> None:
        with store.create("f") as file:
            file.write(b"x" * 2 * PART_BYTES)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()

    assert not store.exists("f")
    assert list(store.list("")) == []
    ended = [r for r in object_store.requests if r.startswith("DELETE") and "uploadId" in r]
    assert len(ended) == (object_store.scheme == "s3"), "S3 keeps the parts of an upload that is not ended"


@EACH_BEHIND_A_GATEWAY
def test_no_error_log_or_pickle_shows_credentials(object_store: Gateway, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    store = writer(object_store)
    store.put_if_absent("log/0.json", b"x")
    store._sleep, store._deadline_s = (lambda _: None), 1.0
    texts = []

    def attempt(operation: Callable[[Store], object]) -> None:
        with pytest.raises((StoreError, TypeError)) as caught:
            operation(store)
        texts.append("".join(traceback.format_exception(caught.value)))
        texts.append(repr(pickle.dumps(caught.value)))

    attempt(lambda store: store.read("none"))
    attempt(pickle.dumps)
    object_store.stalls = lambda _: True
    attempt(lambda store: store.put_if_absent("log/1.json", b"x"))
    object_store.stalls = lambda _: False
    object_store.contends = lambda _: True
    attempt(lambda store: store.replace("log/1.json", b"x"))
    assert store._fs is not None

    shown = "\n".join([*texts, *(record.getMessage() for record in caplog.records), store.url, repr(store)])
    assert [secret for secret in object_store.secrets if secret in shown] == []
