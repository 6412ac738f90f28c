"""S3 is read through what users set, against a server of it on this machine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import s3fs
from moto.server import ThreadedMotoServer

from tablefeed.errors import NotExclusiveError, ObjectNotFoundError
from tablefeed.store import open_store


@pytest.fixture
def endpoint() -> Iterator[str]:
    """The URL of a server that ends with the test."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


def test_a_table_on_s3_is_read_with_the_options_of_object_store(endpoint: str) -> None:
    writer = s3fs.S3FileSystem(key="i", secret="s", endpoint_url=endpoint, client_kwargs={"region_name": "eu-west-1"})  # noqa: S106
    writer.mkdir("bucket")
    for name in ("0", "1", "2"):
        writer.pipe_file(f"bucket/t/_delta_log/{name}.json", b"0123456789")
    writer.pipe_file("bucket/t/p=a%20b/f.parquet", b"PAR1")
    options = {
        "AWS_ACCESS_KEY_ID": "AKIA-id",
        "aws_secret_access_key": "pa55w0rd",
        "aws_region": "eu-west-1",
        "aws_endpoint_url": endpoint,
    }
    store = open_store("s3a://bucket/t", options)

    assert store.url == "s3://bucket/t"
    assert [entry.name for entry in store.list("_delta_log", start="1")] == ["1.json", "2.json"]
    assert list(store.list("nothing/here")) == []
    assert store.read("_delta_log/0.json", start=2, end=5) == b"234"
    assert store.read("_delta_log/0.json", start=10) == b""
    assert store.read("p=a%20b/f.parquet") == b"PAR1"
    assert store.read("s3a://bucket/t/_delta_log/0.json") == b"0123456789"
    with store.open_input("_delta_log/1.json") as file:
        assert (file.seek(8), file.read()) == (8, b"89")
    assert not store.exists("_delta_log/3.json")
    writer.pipe_file("bucket/t/_delta_log/3.json", b"x")
    assert store.exists("_delta_log/3.json")
    assert [entry.size_bytes for entry in store.list("_delta_log", start="3")] == [1]
    assert open_store("s3://bucket/t/_delta_log/0.json", options).is_file_at_root()
    with pytest.raises(ObjectNotFoundError):
        store.read("none")
    with pytest.raises(NotExclusiveError):
        store.put_if_absent("_delta_log/4.json", b"x")
