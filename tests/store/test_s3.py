"""S3 through what users set, and what is S3's alone. What every object store promises: test_objects.py."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from support.gateway import Gateway
from tablefeed.errors import ObjectNotFoundError, StoreError
from tablefeed.store import Store, open_store
from tablefeed.store.objects import PART_BYTES
from tablefeed.store.s3 import S3Store


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


def test_a_put_that_met_another_request_for_the_name_is_put_again_and_decided_then(gateway: Gateway) -> None:
    store = writer(gateway)
    gateway.contends = once(f"PUT /{gateway.bucket}/t/log/0.json")
    assert store.put_if_absent("log/0.json", b"ours")

    gateway.contends = once(f"PUT /{gateway.bucket}/t/log/0.json")
    assert not store.put_if_absent("log/0.json", b"again")
    assert store.read("log/0.json") == b"ours"


@pytest.mark.parametrize("size", [0, 3, 2 * PART_BYTES])
def test_a_file_whose_end_met_another_request_for_the_name_is_ended_again(gateway: Gateway, size: int) -> None:
    store = writer(gateway)
    store.replace("before", b"x")

    with store.create("part-0") as file:
        file.write(b"x" * size)
        gateway.contends = once("P")

    assert not gateway.contends("P"), "the request that met another one was sent"
    assert store.read("part-0") == b"x" * size


def test_of_a_file_that_another_published_first_no_part_is_kept(gateway: Gateway) -> None:
    store = writer(gateway)

    with store.publish("log/f") as file:
        file.write(b"x" * 2 * PART_BYTES)
        store.replace("log/f", b"theirs")

    assert store.read("log/f") == b"theirs"
    assert [r for r in gateway.requests if r.startswith("DELETE") and "uploadId" in r]


def test_a_put_that_meets_others_for_good_is_an_error_after_a_few(gateway: Gateway) -> None:
    store = writer(gateway)
    assert store.put_if_absent("log/0.json", b"ours")
    gateway.contends = lambda told: told.startswith("PUT") and "log/1" in told
    before = len(gateway.requests)

    with pytest.raises(StoreError, match=r"Could not put log/1.json at s3://lake-.*/t: .*conflicting operation"):
        store.put_if_absent("log/1.json", b"ours")
    assert len(gateway.requests) == before + S3Store.tries
    assert not store.exists("log/1.json")


def test_credentials_in_a_file_that_have_expired_are_read_from_it_again(
    gateway: Gateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    credentials = tmp_path / "credentials"
    credentials.write_text("[default]\naws_access_key_id = OLD\naws_secret_access_key = s\naws_session_token = t\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(credentials))
    place = {name: gateway.options[name] for name in ("aws_region", "aws_endpoint_url")}
    store = open_store(f"s3://{gateway.bucket}/t", place)
    store.replace("before", b"x")

    def expires(_: str) -> bool:
        credentials.write_text(credentials.read_text().replace("OLD", "NEW"))
        return "Credential=OLD/" in gateway.signed[-1]

    gateway.expires = expires

    assert store.put_if_absent("log/0.json", b"ours")
    assert store.read("log/0.json") == b"ours"
    assert "Credential=NEW/" in gateway.signed[-1]


def test_absent_credentials_are_an_error_that_says_where_to_give_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    store = open_store("s3://b/absent", {"aws_endpoint_url": "http://127.0.0.1:9"})

    with pytest.raises(StoreError, match=r"Unable to locate credentials\. Give .* aws_access_key_id and aws_secret"):
        store.read("log/0.json")
