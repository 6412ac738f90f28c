"""Names of tables in a catalog, and the settings that lead to its server."""

from __future__ import annotations

from typing import Any

import pytest

from tablefeed.catalog.names import Server, full_name, is_name, server
from tablefeed.errors import StoreConfigError


@pytest.mark.parametrize(
    ("location", "name"),
    [
        ("uc://main.sales.orders", "main.sales.orders"),
        ("UC://main.sales.orders", "main.sales.orders"),
        ("uc://`main`.`sales-eu`.orders_2", "main.sales-eu.orders_2"),
        ("uc://m@in.Sales.`a``b`", "m@in.Sales.a`b"),
        ("uc://main.sales.größe", "main.sales.größe"),
    ],
)
def test_a_name_has_three_parts_each_bare_or_in_backticks(location: str, name: str) -> None:
    assert is_name(location)
    assert full_name(location) == name


@pytest.mark.parametrize(
    "location",
    [
        "uc://",
        "uc://orders",
        "uc://sales.orders",
        "uc://a.b.c.d",
        "uc://a..c",
        "uc://a.b.",
        "uc://a/b/c",
        "uc://a.b.c/",
        "uc://a.b.c d",
        "uc://a.b.`c.d`",
        "uc://a.b.`c",
        "uc://a.b.c`",
        "uc://a.b.``",
        "uc://a.b.c\n",
        "uc://a.b.\ud800",
    ],
)
def test_another_form_is_refused_before_anything_is_asked(location: str) -> None:
    with pytest.raises(StoreConfigError, match="names no table of a catalog") as caught:
        full_name(location)

    assert caught.value.url == location


@pytest.mark.parametrize("location", ["s3://uc/x", "/lake/uc://x", "uc:/x", "u", ""])
def test_a_path_or_a_url_is_no_name(location: str) -> None:
    assert not is_name(location)


@pytest.mark.parametrize(
    ("options", "environment", "found"),
    [
        ({"uc_uri": "http://h:8080", "uc_token": "t"}, {}, ("http://h:8080", "t")),
        ({"UC_URI": "https://h/", "UC_TOKEN": "t"}, {}, ("https://h", "t")),
        ({}, {"UC_URI": "http://h", "UC_TOKEN": "t"}, ("http://h", "t")),
        ({}, {"UC_URI": "http://h"}, ("http://h", None)),
        ({}, {"DATABRICKS_HOST": "h.example", "DATABRICKS_TOKEN": "t"}, ("https://h.example", "t")),
        ({"uc_token": "mine"}, {"UC_URI": "http://h", "UC_TOKEN": "t"}, ("http://h", "mine")),
        ({"uc_uri": "http://h/api/2.1/unity-catalog"}, {}, ("http://h", None)),
        ({"uc_uri": "https://h/gate/"}, {}, ("https://h/gate", None)),
    ],
)
def test_the_options_come_before_the_environment(
    options: dict[str, str], environment: dict[str, str], found: tuple[str, str | None]
) -> None:
    uri, token = found

    assert server(options, environment, url="uc://a.b.c") == Server(uri=f"{uri}/api/2.1/unity-catalog", token=token)


def test_a_token_goes_only_to_the_server_of_its_pair() -> None:
    environment = {"UC_TOKEN": "of uc", "DATABRICKS_HOST": "https://dbx", "DATABRICKS_TOKEN": "of dbx"}

    def sent(options: dict[str, str], **more: str) -> str | None:
        return server(options, {**environment, **more}, url="uc://a.b.c").token

    assert sent({"uc_uri": "http://other"}) is None
    assert sent({}) == "of dbx"
    assert sent({}, UC_URI="http://mine", UC_TOKEN="") is None
    assert sent({"uc_uri": "https://dbx"}) == "of dbx"


@pytest.mark.parametrize(
    "uri",
    [
        "ftp://h",
        "http://u:p@h",
        "http://:p@h",
        "http://h?token=x",
        "http://h#x",
        "http://[h",
        "http://a..h",
        "http://h:x",
        "http://h:99999",
        "http://h:0",
        "http://h/a b",
        "http://h/ä",
        "http://h\0x",
        "http:///x",
    ],
)
def test_a_server_that_is_no_plain_http_url_is_refused_and_not_shown(uri: str) -> None:
    with pytest.raises(StoreConfigError, match="uc_uri") as caught:
        server({"uc_uri": uri}, {}, url="uc://a.b.c")

    assert uri not in str(caught.value)


def test_the_name_of_a_server_may_have_letters_beyond_ascii_and_be_an_address() -> None:
    for uri in ("http://größe.example", "http://[::1]:8080", "http://127.0.0.1:1"):
        assert server({"uc_uri": uri}, {}, url="uc://a.b.c").uri == f"{uri}/api/2.1/unity-catalog"


@pytest.mark.parametrize("token", ["secret\n", "\rsecret", "secret\r\n", "secretä", "secret\u65e5"])
def test_a_token_that_cannot_be_sent_is_refused_and_not_shown(token: str) -> None:
    for options, environment in (
        ({"uc_uri": "http://h", "uc_token": token}, {}),
        ({}, {"UC_URI": "http://h", "UC_TOKEN": token}),
    ):
        with pytest.raises(StoreConfigError, match=r"The token for .* has a character") as caught:
            server(options, environment, url="uc://a.b.c")

        assert "secret" not in str(caught.value)


@pytest.mark.parametrize(("name", "value"), [("uc_uri", 1), ("UC_TOKEN", b"secret"), ("uc_table_id", ["secret"])])
def test_a_setting_that_is_no_text_is_refused_and_not_shown(name: str, value: Any) -> None:
    with pytest.raises(StoreConfigError, match=f"storage option {name.lower()} .* Give a text") as caught:
        server({"uc_uri": "http://h", name: value}, {}, url="uc://a.b.c")

    assert "secret" not in str(caught.value)


def test_without_a_server_the_error_names_the_settings() -> None:
    with pytest.raises(StoreConfigError, match=r"uc_uri \(in Spark storage.uc_uri\) or .* UC_URI"):
        server({}, {}, url="uc://a.b.c")


def test_a_server_is_shown_without_its_token() -> None:
    assert "secret" not in repr(Server(uri="http://h", token="secret"))  # noqa: S106 - shown to be hidden
