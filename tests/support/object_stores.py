"""The servers of object stores that the tests start here, each behind a gateway where it allows that.

moto's S3 is a Python package. The others are programs that `scripts/store_servers.sh` fetches into `.cache`; where one
is absent, its tests are skipped. No server here is the cloud itself: stores.md of docs says what that leaves open.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import random
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

import pytest

from support.gateway import Answer, Gateway, Headers, standing_before

_FOLDER = Path(__file__).parents[2] / ".cache" / "store-servers"
SERVERS = {
    "versitygw": _FOLDER / "bin" / "versitygw",
    "fake-gcs-server": _FOLDER / "bin" / "fake-gcs-server",
    "azurite": _FOLDER / "node_modules" / ".bin" / "azurite-blob",
}
"""The programs, by the names that users know them by."""

_PACKAGES = {"versitygw": "s3fs", "fake-gcs-server": "gcsfs", "azurite": "adlfs"}
BEHIND_GATEWAYS = ("s3_server", "fake_gcs_server", "azurite")
EACH_OBJECT_STORE = (*BEHIND_GATEWAYS, pytest.param("versitygw", marks=pytest.mark.every_store))
"""The fixtures of the servers; the first ones can misbehave."""

SKIPPED_WITHOUT_SERVERS = "it needs a server that is absent: scripts/store_servers.sh .cache/store-servers"
_ACCOUNT = "devstoreaccount1"
_PUBLIC_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The key of Azurite's only account, which its documentation states."""


def runs(server: str) -> bool:
    """Whether the tests of a server can run here."""
    return SERVERS[server].exists() and importlib.util.find_spec(_PACKAGES[server]) is not None


def report() -> str:
    """The line that says which servers a run has."""
    absent = [server for server in SERVERS if not runs(server)]
    here = ", ".join(["moto", *(server for server in SERVERS if server not in absent)])
    return f"object stores: {here}{'; absent: ' + ', '.join(absent) if absent else ''}"


class S3Gateway(Gateway):
    """S3: moto, or a second implementation."""

    slow_down: ClassVar[Answer] = (
        503,
        {},
        b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>",
    )
    conflict: ClassVar[Answer] = (
        409,
        {},
        b"<Error><Code>ConditionalRequestConflict</Code><Message>A conflicting operation occurred during processing of "
        b"this conditional request.</Message></Error>",
    )
    expired: ClassVar[Answer] = (
        400,
        {},
        b"<Error><Code>ExpiredToken</Code><Message>The provided token has expired.</Message></Error>",
    )
    refused: ClassVar[Answer] = (
        403,
        {},
        b"<Error><Code>SignatureDoesNotMatch</Code><Message>The signature is wrong.</Message></Error>",
    )

    @property
    def options(self) -> dict[str, str]:
        return {
            "aws_access_key_id": "AKIA-id",
            "aws_secret_access_key": "pa55w0rd",
            "aws_region": "eu-west-1",
            "aws_endpoint_url": self.endpoint,
        }

    @property
    def secrets(self) -> list[str]:
        return [self.options["aws_secret_access_key"]]

    @property
    def delta_rs(self) -> tuple[str, dict[str, str]]:
        return "s3", {**self.options, "aws_allow_http": "true"}

    def make_bucket(self) -> None:
        import s3fs  # takes half a second, which most runs of a few tests need not wait for

        s3fs.S3FileSystem(
            key="AKIA-id",
            secret="pa55w0rd",  # noqa: S106 - of a server on this machine
            endpoint_url=self.endpoint,
            client_kwargs={"region_name": "eu-west-1"},
        ).mkdir(self.bucket)


class GcsGateway(Gateway):
    """Google Cloud Storage: fake-gcs-server."""

    slow_down: ClassVar[Answer] = (429, {}, b'{"error": {"code": 429, "message": "Please reduce your request rate."}}')
    expired: ClassVar[Answer] = (401, {}, b'{"error": {"code": 401, "message": "Invalid Credentials"}}')
    refused: ClassVar[Answer] = (403, {}, b'{"error": {"code": 403, "message": "The signature is wrong."}}')

    @property
    def options(self) -> dict[str, str]:
        return {"token": "anon", "endpoint_url": self.endpoint}

    @property
    def secrets(self) -> list[str]:
        return []  # the server takes anybody

    @property
    def delta_rs(self) -> tuple[str, dict[str, str]]:
        return "gs", {"google_base_url": self.endpoint, "google_skip_signature": "true", "allow_http": "true"}

    def make_bucket(self) -> None:
        body = json.dumps({"name": self.bucket}).encode()
        asked = urllib.request.Request(f"{self.endpoint}/storage/v1/b?project=p", body)  # noqa: S310 - http
        urllib.request.urlopen(asked).close()  # noqa: S310 - http

    def without_condition(self, path: str, headers: Headers) -> tuple[str, Headers]:
        parts = urlsplit(path)
        query = [(name, value) for name, value in parse_qsl(parts.query) if name != "ifGenerationMatch"]
        return urlunsplit(parts._replace(query=urlencode(query))), headers


class AzureGateway(Gateway):
    """Azure Blob Storage: Azurite. Signed by SAS: a shared key signs the headers, which the gateway may take away."""

    slow_down: ClassVar[Answer] = (
        503,
        {"x-ms-error-code": "ServerBusy", "Content-Type": "application/xml"},
        b"<Error><Code>ServerBusy</Code><Message>Please reduce your request rate.</Message></Error>",
    )
    expired: ClassVar[Answer] = (
        401,
        {"x-ms-error-code": "InvalidAuthenticationInfo", "Content-Type": "application/xml"},
        b"<Error><Code>InvalidAuthenticationInfo</Code><Message>The token is expired.</Message></Error>",
    )
    refused: ClassVar[Answer] = (
        403,
        {"x-ms-error-code": "AuthenticationFailed", "Content-Type": "application/xml"},
        b"<Error><Code>AuthenticationFailed</Code><Message>The signature is wrong.</Message></Error>",
    )

    @property
    def options(self) -> dict[str, str]:
        place = f"BlobEndpoint={self.endpoint}/{_ACCOUNT}"
        return {"connection_string": f"{place};SharedAccessSignature={self.signature}"}

    @property
    def secrets(self) -> list[str]:
        proof = self.signature.partition("sig=")[2].partition("&")[0]
        return [self.signature, proof, unquote(proof)]

    @property
    def signature(self) -> str:
        from azure.storage.blob import AccountSasPermissions, ResourceTypes, generate_account_sas

        if not hasattr(self, "_signature"):
            self._signature: str = generate_account_sas(
                _ACCOUNT,
                _PUBLIC_KEY,
                ResourceTypes(service=True, container=True, object=True),
                AccountSasPermissions(read=True, write=True, delete=True, list=True, add=True, create=True),
                datetime.now(UTC) + timedelta(days=1),
            )
        return self._signature

    @property
    def delta_rs(self) -> tuple[str, dict[str, str]]:
        return "az", {
            "azure_storage_account_name": _ACCOUNT,
            "azure_storage_sas_key": self.signature,
            "azure_endpoint": f"{self.endpoint}/{_ACCOUNT}",
            "allow_http": "true",
        }

    def make_bucket(self) -> None:
        from azure.storage.blob import BlobServiceClient

        with BlobServiceClient.from_connection_string(self.options["connection_string"]) as client:
            client.create_container(self.bucket).close()


@contextlib.contextmanager
def serve_s3() -> Iterator[S3Gateway]:
    """moto's server with an empty bucket; it ends with the block."""
    from moto.server import ThreadedMotoServer

    moto = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    moto.start()
    gateway = S3Gateway(scheme="s3")
    try:
        # moto looks whether an object exists, and then writes it.
        with standing_before(gateway, moto.get_host_and_port(), one_write_at_a_time=True):
            gateway.begin()
            yield gateway
    finally:
        moto.stop()


@contextlib.contextmanager
def serve_another_s3(bucket: str) -> Iterator[Gateway]:
    """moto in a process of its own, with an empty bucket of that name: servers of one process share their buckets."""
    port = free_port()
    with _running(sys.executable, ["-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)], port=port):
        gateway = S3Gateway(scheme="s3", endpoint=f"http://127.0.0.1:{port}", bucket=bucket)
        gateway.make_bucket()
        yield gateway


@contextlib.contextmanager
def serve(server: str, *, has_gateway: bool = True) -> Iterator[Gateway]:
    """Another server; it ends with the block. Where it is absent the test is skipped."""
    if not runs(server):
        pytest.skip(SKIPPED_WITHOUT_SERVERS)
    port = free_port()
    with TemporaryDirectory() as folder, contextlib.ExitStack() as ending:
        match server:
            case "versitygw":
                # Without a gateway: it checks signatures, and those are of the name that the client called.
                gateway: Gateway = S3Gateway(scheme="s3", endpoint=f"http://127.0.0.1:{port}")
                keys = {"ROOT_ACCESS_KEY": "AKIA-id", "ROOT_SECRET_KEY": "pa55w0rd"}
                arguments = ["--port", f"127.0.0.1:{port}", "--region", "eu-west-1", "--quiet", "posix", folder]
                ending.enter_context(_running(server, arguments, port=port, environment=keys))
            case "fake-gcs-server":
                gateway = GcsGateway(scheme="gs", endpoint=f"http://127.0.0.1:{port}")
                if has_gateway:
                    ending.enter_context(standing_before(gateway, ("127.0.0.1", port), one_write_at_a_time=False))
                arguments = ["-scheme", "http", "-host", "127.0.0.1", "-port", str(port), "-backend", "memory"]
                arguments += ["-external-url", gateway.endpoint, "-public-host", urlsplit(gateway.endpoint).netloc]
                arguments += ["-log-level", "error"]
                ending.enter_context(_running(server, arguments, port=port))
            case _:
                gateway = AzureGateway(scheme="abfs", endpoint=f"http://127.0.0.1:{port}")
                if has_gateway:
                    ending.enter_context(standing_before(gateway, ("127.0.0.1", port), one_write_at_a_time=False))
                arguments = ["--silent", "--inMemoryPersistence", "--disableTelemetry", "--skipApiVersionCheck"]
                arguments += ["--blobHost", "127.0.0.1", "--blobPort", str(port)]
                ending.enter_context(_running(server, arguments, port=port))
        yield gateway


@contextlib.contextmanager
def _running(
    server: str, arguments: Sequence[str], *, port: int, environment: Mapping[str, str] = {}
) -> Iterator[None]:
    """Starts a server, which ends with the block, or with this process if that is killed: its pipe closes then."""
    path = f"{Path(shutil.which('node') or 'node').parent}:/usr/bin:/bin"
    process = subprocess.Popen(
        ["/bin/sh", "-c", '"$@" & read _; kill $!; wait', "sh", SERVERS.get(server, server), *arguments],
        env={"PATH": path, **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until_s = time.monotonic() + 200
        while True:
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", port)).close()
                break
            if time.monotonic() > until_s:
                raise AssertionError(f"{server} does not answer at port {port}")
            time.sleep(0.05)  # another program's start
        yield
    finally:
        process.communicate()


def free_port() -> int:
    """Gives a port that no outgoing connection is given: a client that waits at one of those can meet itself."""
    while True:
        port = random.randrange(20_000, 32_000)  # noqa: S311 - no secret
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
