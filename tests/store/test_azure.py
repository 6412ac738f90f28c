"""What is Azure's alone. What every object store promises: test_objects.py."""

from __future__ import annotations

import pytest

from tablefeed.errors import StoreConfigError
from tablefeed.store import open_store

ITS_OWN = "DefaultEndpointsProtocol=https;AccountName=test;AccountKey=c2VjcmV0;EndpointSuffix=core.windows.net"
EMULATED = "BlobEndpoint=http://127.0.0.1:1/test;AccountName=test;AccountKey=c2VjcmV0"
BY_NAME = {"azure_storage_account_name": "test", "azure_storage_account_key": "c2VjcmV0"}


@pytest.fixture(autouse=True)
def _with_the_client() -> None:
    pytest.importorskip("adlfs")


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
