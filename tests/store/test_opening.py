"""Paths, URLs and options as users write them; what is shown of them; and what is refused, by name."""

from __future__ import annotations

import re
import subprocess
import sys
import traceback
import uuid
from pathlib import Path

import fsspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablefeed.errors import NotExclusiveError, StoreConfigError, StoreError
from tablefeed.store import FsspecStore, LocalStore, open_store
from tablefeed.store.address import Address, credentials, parse_address, shown
from tablefeed.store.options import for_fsspec, masked, secrets, shown_cause


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("/a/b", "/a/b"),
        ("/a/b/", "/a/b"),
        ("/a%20b/ü c", "/a%20b/ü c"),
        ("file:/a/b", "/a/b"),
        ("file:///a/b/", "/a/b"),
        ("FILE://localhost/a", "/a"),
        ("file:///a%20b/%C3%BC%25", "/a b/ü%"),
        ("file:///a?b#c", "/a?b#c"),
    ],
)
def test_a_path_is_taken_literally_and_a_file_url_is_percent_decoded(text: str, path: str) -> None:
    assert parse_address(text) == Address(scheme="file", location=path)
    assert open_store(text).url == path


def test_a_relative_path_is_of_the_directory_it_was_opened_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    assert open_store("a/b").url == f"{tmp_path}/a/b"
    assert open_store(Path("a")).url == f"{tmp_path}/a"
    assert open_store("./~/a").url == f"{tmp_path}/~/a"
    assert open_store("~a").url == f"{tmp_path}/~a"
    assert open_store("10:30/a").url == f"{tmp_path}/10:30/a"


@pytest.mark.parametrize(
    ("text", "scheme", "location"),
    [
        ("s3://b/t", "s3", "s3://b/t"),
        ("s3a://b/t", "s3", "s3://b/t"),
        ("S3N://b/t", "s3", "s3://b/t"),
        ("gs://b/t", "gs", "gs://b/t"),
        ("abfss://c@a.dfs.core.windows.net/t", "abfs", "abfs://c@a.dfs.core.windows.net/t"),
        ("wasbs://c@a.blob.core.windows.net/t", "abfs", "abfs://c@a.blob.core.windows.net/t"),
        ("az://c/t", "abfs", "abfs://c/t"),
        ("memory://x/t", "memory", "memory://x/t"),
        ("hdfs://namenode:8020/t", "hdfs", "hdfs://namenode:8020/t"),
    ],
)
def test_hadoops_schemes_are_those_of_fsspec(text: str, scheme: str, location: str) -> None:
    assert parse_address(text) == Address(scheme=scheme, location=location)
    assert shown(location) == location


@pytest.mark.parametrize(
    "text",
    [
        "",
        "s3:bucket/t",
        "s3a:/bucket/t",
        "memory:x",
        "dbfs:/t",
        "file:a",
        "file://host/a",
        "1s://b",
        "a::s3://b",
        "a\0b",
        "s3://a\0b",
        "file:///a%00b",
        "file:///a%ffb",
    ],
)
def test_what_is_neither_path_nor_url_is_refused_and_makes_no_directory(text: str) -> None:
    with pytest.raises(StoreConfigError):
        open_store(text)


@pytest.mark.parametrize("url", ["hdfs://namenode:8020/t", "webhdfs://namenode/t", "viewfs://cluster/t"])
def test_hdfs_is_refused_by_name(url: str) -> None:
    with pytest.raises(StoreConfigError, match=f"HDFS is not supported, and {url} was neither read nor written"):
        open_store(url)


@pytest.mark.parametrize(
    "url", ["s3://lake--use1-az4--x-s3/t", "s3a://lake--use1-az4--x-s3", "s3://p--use1-az4--xa-s3/t"]
)
def test_a_directory_bucket_of_s3_is_refused_by_name(url: str) -> None:
    with pytest.raises(
        StoreConfigError, match=r"Directory buckets .* and s3://.*--xa?-s3\S* was neither read nor writ"
    ):
        open_store(url)


@pytest.mark.parametrize(
    ("text", "instead"),
    [
        ("dbfs:/mnt/lake/t", "write /dbfs/mnt/lake/t;"),
        ("dbfs:///mnt/lake/t", "write /dbfs/mnt/lake/t;"),
        ("dbfs:/dbfs/mnt/t", "write /dbfs/mnt/t;"),
        ("~", f"Write {str(Path.home())!r}, or './~' for a folder"),
        ("~/lake/t", f"Write {str(Path.home() / 'lake' / 't')!r}, or './~/lake/t' for a folder"),
        (Path("~/t"), f"Write {str(Path.home() / 't')!r}"),
    ],
)
def test_a_path_that_another_tool_would_expand_is_refused_with_the_path_to_write(
    text: str | Path, instead: str
) -> None:
    with pytest.raises(StoreConfigError, match=re.escape(instead)):
        open_store(text)


def test_an_unknown_scheme_is_refused_by_name() -> None:
    with pytest.raises(StoreConfigError, match="foo://bucket/t cannot be opened: Protocol not known: foo"):
        open_store("foo://bucket/t")


def test_a_missing_package_is_named_as_one_would_install_it() -> None:
    program = (
        "import sys; sys.modules['s3fs'] = sys.modules['gcsfs'] = sys.modules['adlfs'] = None\n"
        "from tablefeed.store import open_store\n"
        "from tablefeed.errors import StoreConfigError\n"
        "for url in ('s3a://b/t', 'gs://b/t', 'abfss://c@a.dfs.core.windows.net/t'):\n"
        "    try: open_store(url)\n"
        "    except StoreConfigError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.splitlines() == [
        'The store at s3://b/t needs a package: pip install "tablefeed[s3]".',
        'The store at gs://b/t needs a package: pip install "tablefeed[gcs]".',
        'The store at abfs://c@a.dfs.core.windows.net/t needs a package: pip install "tablefeed[azure]".',
    ]


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("https://user:pa55@host:8080/t?sig=t0ken#x", "https://host:8080/t"),
        ("https://user:pa/55@host/t", "https://host/t"),
        ("https://user:pa?55@host/t", "https://host/t"),
        ("hdfs://user@host:8020/t", "hdfs://host:8020/t"),
        ("abfss://c@a.dfs.core.windows.net/t?sv=1&sig=t0ken", "abfss://c@a.dfs.core.windows.net/t"),
        ("s3://bucket/t/user=x@y", "s3://bucket/t/user=x@y"),
        ("/a/b?c@d", "/a/b?c@d"),
        ("/a/10:30@b/c", "/a/10:30@b/c"),
        ("/lake/at:10:30@b/c", "/lake/at:10:30@b/c"),
        ("lake/at:10:30@b/c", "lake/at:10:30@b/c"),
        ("s3:/user:pa:55@bucket/t", "s3:/bucket/t"),
        pytest.param("ab:" * 100_000, "ab:" * 100_000, id="a text that is not searched from each of its places"),
        ("s3:/user:pa55@bucket/t", "s3:/bucket/t"),
        ("https:user:pa/55@host/t", "https:host/t"),
        ("file://user:pa55@host/t", "file://host/t"),
    ],
)
def test_a_url_is_shown_without_what_may_be_credentials(url: str, text: str) -> None:
    assert shown(url) == text
    assert not any(part in text for part in credentials(url))


def test_credentials_in_a_url_are_known_as_clients_write_them() -> None:
    found = credentials("https://user:pa55%2Bw0rd@host/t?se=2026-01&sig=t0k3n %2F")

    assert {"pa55%2Bw0rd", "pa55+w0rd", "t0k3n /", "t0k3n+%2F", "t0k3n%20/"} <= set(found)


@pytest.mark.parametrize(
    "url", ["file://user:pa55@host/t", "s3:/user:pa55@bucket/t", "dbfs:/user:pa55@t", "s3://user:pa55@b/\0"]
)
def test_a_mistake_in_a_url_with_a_password_is_reported_without_it(url: str) -> None:
    with pytest.raises(StoreConfigError) as caught:
        open_store(url)
    assert "pa55" not in f"{caught.value} {caught.value.url}"


SECRET = st.text(st.characters(codec="ascii", categories=["L", "N", "P"]), min_size=8).map(lambda s: f"<{s}>")


@given(secret=SECRET, scheme=st.sampled_from(["https", "s3a", "abfss", "ftp"]))
def test_no_password_in_a_url_is_ever_shown(secret: str, scheme: str) -> None:
    url = f"{scheme}://user:{secret}@host/table"

    assert secret not in shown(url)
    assert "user" not in shown(url)


@pytest.mark.parametrize(
    "url",
    [
        "s3a://AKIAXX:pa55w0rd@bucket/t",
        "s3://AKIAXX:pa55/w0rd@bucket/t",
        "gs://pa55w0rd@b/t",
        "abfss://c:pa55w0rd@a.dfs.core.windows.net/t",
        "abfss://c@a.dfs.core.windows.net/t?sv=1&sig=pa55w0rd",
        "az://c/t?sig=pa55w0rd",
    ],
)
def test_credentials_in_the_url_of_a_bucket_are_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(StoreConfigError, match="storage options") as caught:
        open_store(url)
    assert "AKIA" not in str(caught.value)
    assert "pa55" not in str(caught.value)


def test_object_stores_names_of_options_are_s3fs_arguments_in_any_case() -> None:
    given = {
        "AWS_ACCESS_KEY_ID": "id",
        "aws_secret_access_key": "secret",
        "Aws_Session_Token": "token",
        "aws_region": "eu-west-1",
        "aws_endpoint_url": "http://127.0.0.1:9000",
        "aws_allow_http": "true",
        "aws_skip_signature": "False",
        "client_kwargs": '{"verify": false}',
        "default_block_size": "1000",
    }

    assert for_fsspec("s3", given, url="s3://b") == {
        "key": "id",
        "secret": "secret",
        "token": "token",
        "endpoint_url": "http://127.0.0.1:9000",
        "anon": False,
        "client_kwargs": {"region_name": "eu-west-1", "verify": False},
        "default_block_size": "1000",
    }


@pytest.mark.parametrize(
    ("scheme", "given", "arguments"),
    [
        ("gs", {"GOOGLE_SERVICE_ACCOUNT": "/key.json"}, {"token": "/key.json"}),
        ("gs", {"google_service_account_key": '{"type": "x"}'}, {"token": {"type": "x"}}),
        ("gs", {"token": "anon", "google_base_url": "http://h"}, {"token": "anon", "endpoint_url": "http://h"}),
        (
            "abfs",
            {"azure_storage_account_name": "a", "AZURE_STORAGE_SAS_TOKEN": "sig=x", "allow_http": "true"},
            {"account_name": "a", "sas_token": "sig=x"},
        ),
        ("abfs", {"account_name": "a", "anon": "true"}, {"account_name": "a", "anon": True}),
    ],
)
def test_object_stores_names_of_options_are_understood_for_google_and_azure_too(
    scheme: str, given: dict[str, str], arguments: dict[str, object]
) -> None:
    assert for_fsspec(scheme, given, url=f"{scheme}://b") == arguments


@pytest.mark.parametrize(
    ("url", "option", "near"),
    [
        ("gs://b/t", "google_service_acount", "google_service_account"),
        ("abfs://c@a.dfs.core.windows.net/t", "azure_storage_acount_key", "azure_storage_account_key"),
    ],
)
def test_an_unknown_option_of_a_cloud_is_refused_with_the_nearest_known_one(url: str, option: str, near: str) -> None:
    with pytest.raises(StoreConfigError, match=f"{option}.*Did you mean {near!r}"):
        open_store(url, {option: "x"})


@pytest.mark.parametrize(
    ("name", "value", "part"),
    [
        ("connection_string", "BlobEndpoint=h;AccountKey=c2VjcmV0Kw==;x=y", "c2VjcmV0Kw=="),
        ("connection_string", "BlobEndpoint=h;SharedAccessSignature=sv=1&sig=a%2Fb%3D&se=2", "a/b="),
        ("sas_token", "sv=1&sig=a%2Fb%3D&se=2", "a%2Fb%3D"),
        ("token", '{"type": "service_account", "private_key": "pa55"}', "pa55"),
    ],
)
def test_a_part_of_an_option_that_is_a_credential_is_hidden_too(name: str, value: str, part: str) -> None:
    assert {value, part} <= set(secrets({name: value}))


def test_a_credential_is_hidden_as_a_url_spells_it() -> None:
    assert secrets({"token": "a/b+c"}) == ("a%2Fb%2Bc", "a/b+c")


@pytest.mark.parametrize(
    ("url", "given", "said"),
    [
        ("s3://", {}, r"s3:// names no bucket or container. Write it after the scheme: s3://BUCKET/FOLDER\."),
        ("gs:///t", {}, "names no bucket or container"),
        ("az://c/t", {}, r"abfs://c/t names no storage account\. Write abfss://CONTAINER@ACCOUNT"),
        ("gs://b/t", {"token": "/nowhere/account.json"}, "/nowhere/account.json, which is not on this machine"),
    ],
)
def test_what_a_cloud_needs_is_named_before_its_client_asks_for_it(
    url: str, given: dict[str, str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_CONNECTION_STRING"):
        monkeypatch.delenv(name, raising=False)

    with pytest.raises(StoreConfigError, match=said):
        open_store(url, given)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("client_kwargs", '{"aws_secret_access_key": "pa55", "region_name": "eu-west-1"}'),
        ("client_kwargs", '{"headers": {"Authorization": "pa55"}}'),
        ("config", '{"proxy-password":"pa55"}'),
    ],
)
def test_a_credential_within_another_option_is_hidden_and_nothing_else_of_it(name: str, value: str) -> None:
    assert secrets({name: value}) == ("pa55",)


def test_an_unknown_aws_option_is_refused_with_the_nearest_known_one() -> None:
    with pytest.raises(StoreConfigError, match=r"'aws_acces_key_id' .* Did you mean 'aws_access_key_id'"):
        open_store("s3://b/t", {"aws_acces_key_id": "x"})


@pytest.mark.parametrize("url", ["s3a://b/t", "/a/local/table"])
@pytest.mark.parametrize(
    ("hadoops", "ours"),
    [
        ("fs.s3a.access.key", "'aws_access_key_id'"),
        ("spark.hadoop.fs.s3a.secret.key", "'aws_secret_access_key'"),
        ("fs.s3a.endpoint", "'aws_endpoint_url'"),
        ("fs.azure.account.key.x", "aws_region"),
    ],
)
def test_hadoops_options_are_refused_with_the_name_of_ours(url: str, hadoops: str, ours: str) -> None:
    with pytest.raises(StoreConfigError, match=ours) as caught:
        open_store(url, {hadoops: "pa55w0rd"})
    assert hadoops in str(caught.value)
    assert "pa55w0rd" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Could not list test-bucket/tests of test at h", "Could not list test-bucket/tests of *** at h"),
        ("user:test@h?sig=test&x=a, key a", "user:***@h?sig=***&x=***, key ***"),
        ("no latest_test; pa55w0rds", "no latest_test; ***s"),
    ],
)
def test_a_short_secret_is_hidden_where_it_stands_alone_and_a_long_one_everywhere(text: str, shown: str) -> None:
    assert masked(text, ("pa55w0rd", "test", "a")) == shown


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("s3://b/t", "aws_access_key_id"),
        ("s3://b/t", "aws_region"),
        ("gs://b/t", "google_base_url"),
        ("abfs://c@a.dfs.core.windows.net/t", "AZURE_STORAGE_ACCOUNT_KEY"),
    ],
)
@pytest.mark.parametrize("value", [538, 5.38, b"538"], ids=["int", "float", "bytes"])
def test_an_option_that_is_a_number_or_bytes_is_named_and_not_repeated(url: str, name: str, value: object) -> None:
    with pytest.raises(StoreConfigError, match=f"option '{name}' for {url} is a {type(value).__name__}") as caught:
        for_fsspec(url.partition(":")[0], {name: value}, url=url)
    assert "538" not in str(caught.value)


def test_an_option_that_is_broken_json_is_named_and_not_repeated() -> None:
    with pytest.raises(StoreConfigError, match="client_kwargs") as caught:
        open_store("s3://b", {"client_kwargs": '{"password": "pa55'})
    assert "pa55" not in f"{caught.value} {caught.value.__cause__}"


class Chatty:
    """A file system, as far as fsspec asks of one, whose errors repeat its credentials."""

    def _strip_protocol(self, path: str) -> str:
        return path.removeprefix("chatty://")

    def invalidate_cache(self, path: str) -> None:
        """Keeps none."""

    def info(self, path: str) -> dict[str, object]:
        raise RuntimeError(f"{path}: the key pa55w0rd was refused, as was t0k3n")


def test_what_a_file_system_says_of_our_credentials_is_not_repeated() -> None:
    store = FsspecStore(Chatty(), "chatty://b/t?sig=t0k3n", hidden=("pa55w0rd", "t0k3n"))

    with pytest.raises(StoreError, match=r"look at f at chatty://b/t: .* the key \*\*\* was refused") as caught:
        store.stat("f")
    traceback_text = "".join(traceback.format_exception(caught.value))
    assert "pa55w0rd" not in traceback_text
    assert "t0k3n" not in traceback_text


def test_an_error_is_our_cause_unless_a_traceback_would_show_credentials_with_it() -> None:
    first, second, noted = OSError("first"), OSError("second"), OSError("noted")
    first.__cause__, second.__context__ = second, first  # as after `raise first from second`, when both were raised
    noted.add_note("with pa55w0rd")

    assert shown_cause(first, ["pa55w0rd"]) is first
    assert shown_cause(first, ["second"]) is None
    assert shown_cause(noted, ["pa55w0rd"]) is None


class Remembering(Chatty):
    """A file system that keeps listings although it was asked not to."""

    def __init__(self) -> None:
        self.there = ["b/t/1"]
        self.kept: list[str] | None = None

    def invalidate_cache(self, path: str) -> None:  # noqa: ARG002 - all of it
        self.kept = None

    def ls(self, path: str, *, detail: bool) -> list[dict[str, object]]:  # noqa: ARG002 - fsspec's signature
        if self.kept is None:
            self.kept = list(self.there)
        return [{"name": name, "type": "file", "size": 1, "mtime": 1.5} for name in self.kept]


def test_a_listing_that_a_file_system_keeps_is_not_believed() -> None:
    filesystem = Remembering()
    store = FsspecStore(filesystem, "chatty://b/t")
    before = list(store.list(""))
    filesystem.there.append("b/t/2")

    assert [(entry.name, entry.modified_ms) for entry in before] == [("1", 1500)]
    assert [entry.name for entry in store.list("")] == ["1", "2"]


def test_a_file_system_that_tells_no_times_is_refused() -> None:
    class Timeless(Chatty):
        def info(self, path: str) -> dict[str, object]:
            return {"name": path, "type": "file", "size": 1}

    with pytest.raises(StoreError, match="does not report the size and the modification time of f"):
        FsspecStore(Timeless(), "chatty://b/t").stat("f")


def test_a_store_that_is_not_known_to_be_exclusive_is_not_written() -> None:
    root = f"memory://{uuid.uuid4().hex}"
    store = open_store(root)
    for write in (
        lambda: store.put_if_absent("log/0.json", b"x"),
        lambda: store.replace("log/_last_checkpoint", b"x"),
        lambda: store.create("f"),
        lambda: store.delete("f"),
    ):
        with pytest.raises(NotExclusiveError, match=f"{root} can be read but not written"):
            write()
    assert fsspec.filesystem("memory").find(root) == []


def test_options_of_a_local_store_are_kept_for_what_its_log_names_elsewhere(tmp_path: Path) -> None:
    store = open_store(tmp_path, {"aws_acces_key_id": "x"})

    assert isinstance(store, LocalStore)
    with pytest.raises(StoreConfigError, match="aws_acces_key_id"):
        store.read("s3://bucket/f")
