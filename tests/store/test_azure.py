"""What is Azure's alone. What every object store promises: test_objects.py."""

from __future__ import annotations

import pytest

from support.gateway import Gateway
from tablefeed.errors import StoreConfigError
from tablefeed.store import open_store

ITS_OWN = "DefaultEndpointsProtocol=https;AccountName=test;AccountKey=c2VjcmV0;EndpointSuffix=core.windows.net"
EMULATED = "BlobEndpoint=http://127.0.0.1:1/test;AccountName=test;AccountKey=c2VjcmV0"
BY_NAME = {"azure_storage_account_name": "test", "azure_storage_account_key": "c2VjcmV0"}


@pytest.fixture(autouse=True)
def _with_the_client() -> None:
    pytest.importorskip("adlfs")


@pytest.mark.parametrize("object_store", ["azurite"], indirect=True)
@pytest.mark.parametrize("mark", ["hdi_isfolder", "Hdi_isfolder"])
def test_a_blob_that_marks_a_directory_is_no_file(object_store: Gateway, mark: str) -> None:
    from azure.storage.blob import BlobServiceClient

    with BlobServiceClient.from_connection_string(object_store.options["connection_string"]) as client:
        for name in ("t/log", "t/log/deeper"):
            client.get_blob_client(object_store.bucket, name).upload_blob(b"", metadata={mark: "true"})
    store = open_store(object_store.url("t"), object_store.options)
    store.replace("log/0.json", b"x")
    store.replace("log/deeper/1.json", b"")

    assert [entry.name for entry in store.list("")] == []
    assert [entry.name for entry in store.list("log")] == ["0.json"]
    assert [entry.name for entry in store.list("log/deeper")] == ["1.json"]
    assert list(store.directories("")) == ["log"]
    assert not store.exists("log")


@pytest.mark.parametrize(
    ("host", "options"),
    [
        ("orders.dfs.core.windows.net", {"connection_string": ITS_OWN}),
        ("orders.dfs.core.windows.net", {"connection_string": EMULATED}),
        ("test.dfs.core.chinacloudapi.cn", BY_NAME),
        ("orders", BY_NAME),
    ],
)
def test_a_url_of_another_account_than_that_of_the_options_is_refused_by_name(
    host: str, options: dict[str, str]
) -> None:
    with pytest.raises(StoreConfigError, match=rf"names the storage account {host}, but .* lead to .*test") as caught:
        open_store(f"abfss://lake@{host}/t", options)
    assert "c2VjcmV0" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("abfss://lake@test.dfs.core.windows.net/t", {"connection_string": ITS_OWN}),
        ("abfss://lake@test.dfs.core.windows.net/t", {"connection_string": EMULATED}),
        ("wasbs://lake@TEST.blob.core.windows.net/t", {"connection_string": ITS_OWN}),
        ("abfss://lake@test.dfs.core.windows.net/t", BY_NAME),
        (
            "abfss://lake@test.dfs.core.chinacloudapi.cn/t",
            {**BY_NAME, "account_host": "test.blob.core.chinacloudapi.cn"},
        ),
        ("abfss://lake@test/t", BY_NAME),
        ("az://lake/t", {"connection_string": ITS_OWN}),
    ],
)
def test_a_url_of_the_same_account_or_of_none_is_opened(url: str, options: dict[str, str]) -> None:
    assert open_store(url, options).url.endswith("/t")
