"""What is Google Cloud Storage's alone. What every object store promises: test_objects.py."""

from __future__ import annotations

from typing import Any

import pytest

from support.gateway import Gateway
from tablefeed.store.objects import ObjectStore


class Rotating:
    """Credentials of google.auth, as far as gcsfs asks of them: each token is another."""

    expiry = None

    def __init__(self) -> None:
        self.token: str | None = "token-0"  # noqa: S105 - of nobody
        self.asked = 0

    @property
    def valid(self) -> bool:
        return self.token is not None

    def refresh(self, _: object) -> None:
        self.asked += 1
        self.token = f"token-{self.asked}"

    def apply(self, headers: dict[str, Any]) -> None:
        headers["Authorization"] = f"Bearer {self.token}"


@pytest.mark.parametrize("object_store", ["fake_gcs_server"], indirect=True)
def test_a_token_that_the_server_calls_expired_is_not_used_again(object_store: Gateway) -> None:
    from gcsfs.core import GCSFileSystem

    from tablefeed.store.gcs import GcsStore

    filesystem = GCSFileSystem(token="anon", endpoint_url=object_store.endpoint, skip_instance_cache=True)  # noqa: S106
    filesystem.credentials.credentials = Rotating()
    store: ObjectStore = GcsStore(filesystem, object_store.url("t"))
    store.replace("before", b"x")
    object_store.expires = lambda _: "token-0" in object_store.signed[-1]

    assert store.put_if_absent("log/0.json", b"ours")
    assert store.read("log/0.json") == b"ours"
    assert object_store.signed[-1] == "Bearer token-1"
