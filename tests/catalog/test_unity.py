"""What Unity Catalog's server is asked, and what becomes of each of its answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from support.clocks import Clock
from support.unity import API, TOKEN, Answer, FakeCatalog
from tablefeed.catalog.names import Server
from tablefeed.catalog.unity import DEADLINE_S, CatalogTable, Credentials, Ratified, UnityCatalog
from tablefeed.errors import (
    LogError,
    StoreConfigError,
    StoreError,
    TableError,
    TablefeedError,
    TableNotFoundError,
    TableReplacedError,
    UnsupportedFeatureError,
)

NAME = "main.sales.orders"


def client(catalog: FakeCatalog, clock: Clock | None = None, token: str | None = TOKEN) -> UnityCatalog:
    clock = clock or Clock()
    return UnityCatalog(Server(uri=catalog.uri + API, token=token), clock_s=clock, sleep=clock.sleep)


def always(status: int, **answer: Any) -> Callable[[str], Answer]:
    return lambda _: (status, answer)


def test_a_table_has_the_location_and_the_id_that_the_catalog_gives(catalog: FakeCatalog) -> None:
    table_id = catalog.register(NAME, "s3://lake/orders")
    managed_id = catalog.manage("main.sales.new", "s3://lake/new", 0)

    assert client(catalog).table(NAME) == CatalogTable(
        name=NAME, table_id=table_id, location="s3://lake/orders", is_managed=False
    )
    assert client(catalog).table("main.sales.new") == CatalogTable(
        name="main.sales.new", table_id=managed_id, location="s3://lake/new", is_managed=True
    )


@pytest.mark.parametrize("feature", ["delta.feature.catalogManaged", "delta.feature.catalogOwned-preview"])
def test_a_table_is_managed_where_a_property_says_supported_in_any_case(catalog: FakeCatalog, feature: str) -> None:
    catalog.register(NAME, "s3://lake/orders", properties={feature: "Supported"})

    assert client(catalog).table(NAME).is_managed


def test_a_name_is_sent_percent_encoded(catalog: FakeCatalog) -> None:
    catalog.register("m@in.größe.a`b", "s3://lake/t")

    assert client(catalog).table("m@in.größe.a`b").location == "s3://lake/t"
    assert catalog.requests == ["GET /tables/m%40in.gr%C3%B6%C3%9Fe.a%60b"]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"table_type": "VIEW"}, "is a view"),
        ({"table_type": "METRIC_VIEW"}, "is a metric view"),
        ({"table_type": "MATERIALIZED_VIEW"}, "is a materialized view"),
        ({"table_type": "STREAMING_TABLE"}, "is a streaming table"),
        ({"data_source_format": "PARQUET"}, "is a PARQUET table"),
        ({"data_source_format": None}, "is a None table"),
    ],
)
def test_what_is_no_delta_table_with_files_is_refused_by_name(
    catalog: FakeCatalog, more: dict[str, object], said: str
) -> None:
    catalog.register(NAME, "s3://lake/orders", **more)

    with pytest.raises(UnsupportedFeatureError, match=f"{NAME} {said} in its catalog"):
        client(catalog).table(NAME)


def test_a_table_without_a_location_is_refused(catalog: FakeCatalog) -> None:
    catalog.register(NAME, "", storage_location=None)

    with pytest.raises(TableError, match=r"no location for main\.sales\.orders"):
        client(catalog).table(NAME)


@pytest.mark.parametrize(
    ("vended", "values"),
    [
        (
            {"aws_temp_credentials": {"access_key_id": "i", "secret_access_key": "s", "session_token": "t"}},
            {"access_key_id": "i", "secret_access_key": "s", "session_token": "t"},
        ),
        ({"azure_user_delegation_sas": {"sas_token": "sv=1"}, "gcp_oauth_token": None}, {"sas_token": "sv=1"}),
        ({"gcp_oauth_token": {"oauth_token": "ya29"}}, {"oauth_token": "ya29"}),
        ({}, {}),
    ],
)
def test_credentials_are_asked_for_by_the_id_to_read_or_to_write(
    catalog: FakeCatalog, vended: dict[str, Any], values: dict[str, str]
) -> None:
    table_id = catalog.register(NAME, "s3://lake/orders")
    catalog.vends = lambda _: {**vended, "expiration_time": 5}
    asking = client(catalog)

    assert asking.credentials(asking.table(NAME), to_write=False) == Credentials(values=values, expires_at_ms=5)
    asking.credentials(asking.table(NAME), to_write=True)

    assert catalog.asked == [
        {"table_id": table_id, "operation": "READ"},
        {"table_id": table_id, "operation": "READ_WRITE"},
    ]


@pytest.mark.parametrize(
    ("expiration", "expires_at_ms"),
    [(5.0, 5), ("5", 5), (None, None), ("2026-01-01", None), ("nan", None), ("inf", None), ([5], None)],
)
def test_credentials_expire_at_a_number_and_else_never(
    catalog: FakeCatalog, expiration: object, expires_at_ms: int | None
) -> None:
    catalog.register(NAME, "s3://lake/orders")
    catalog.vends = lambda _: {"expiration_time": expiration}
    asking = client(catalog)

    assert asking.credentials(asking.table(NAME), to_write=False).expires_at_ms == expires_at_ms


def test_the_ratified_commits_are_asked_for_page_by_page(catalog: FakeCatalog) -> None:
    catalog.manage(NAME, "s3://lake/orders", 9, **{f"v{version}": f"{version}.json" for version in range(4, 10)})
    catalog.page = 2
    asking = client(catalog)

    assert asking.ratified(asking.table(NAME)) == Ratified(
        latest=9, staged={version: f"{version}.json" for version in range(4, 10)}
    )
    assert [body["start_version"] for body in catalog.asked] == [0, 6, 8]


def test_commits_that_are_all_published_are_one_answer_without_any(catalog: FakeCatalog) -> None:
    catalog.manage(NAME, "s3://lake/orders", 9)
    asking = client(catalog)

    assert asking.ratified(asking.table(NAME)) == Ratified(latest=9, staged={})


def test_a_server_that_has_only_the_newer_interface_for_managed_tables_is_asked_by_it(catalog: FakeCatalog) -> None:
    catalog.manage("m@in.sales.orders", "s3://lake/orders", 3, v2="2.json", v3="3.json")
    catalog.register(NAME, "s3://lake/external")
    catalog.delta_api_only = True
    vended = {"access_key_id": "i", "secret_access_key": "s", "session_token": "t"}
    catalog.vends = lambda _: {"aws_temp_credentials": vended, "expiration_time": "5"}
    asking = client(catalog)
    table = asking.table("m@in.sales.orders")

    assert asking.ratified(table) == Ratified(latest=3, staged={2: "2.json", 3: "3.json"})
    assert asking.credentials(table, to_write=False) == Credentials(values=vended, expires_at_ms=5)
    assert asking.credentials(asking.table(NAME), to_write=False) == Credentials(values=vended, expires_at_ms=5)
    newer = "/delta/v1/catalogs/m%40in/schemas/sales/tables/orders"
    assert [request for request in catalog.requests if newer in request] == [
        f"GET {newer}",
        f"GET {newer}/credentials?operation=READ",
    ]


def test_the_newer_interface_is_asked_by_name_so_a_table_that_was_replaced_meanwhile_is_noticed(
    catalog: FakeCatalog,
) -> None:
    old_id = catalog.manage(NAME, "s3://lake/1", 0)
    old = catalog.tables[NAME]
    catalog.delta_api_only = True
    asking = client(catalog)
    table = asking.table(NAME)
    new_id = catalog.manage(NAME, "s3://lake/2", 0)
    catalog.tables["main.sales.renamed"] = old

    with pytest.raises(TableReplacedError, match=f"the id {new_id}, and gave the id {old_id}"):
        asking.ratified(table)
    with pytest.raises(TableReplacedError, match=r"gives \['s3://lake/2'\], and gave s3://lake/1"):
        asking.credentials(table, to_write=False)
    del catalog.tables[NAME]
    with pytest.raises(TableNotFoundError, match="Table not found: main"):
        asking.ratified(table)


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"metadata": {"table-uuid": 5}},
        {"commits": 5},
        {"commits": [5]},
        {"commits": [{"version": 1}]},
        {"commits": [], "latest-table-version": None},
        {"storage-credentials": 5},
        {"storage-credentials": ["x"]},
        {"storage-credentials": [{"prefix": "s3://lake/orders", "config": 5}]},
    ],
)
def test_an_answer_of_the_newer_interface_that_lacks_a_field_is_refused(
    catalog: FakeCatalog, answer: dict[str, Any]
) -> None:
    table_id = catalog.manage(NAME, "s3://lake/orders", 1)
    catalog.delta_api_only = True
    asking = client(catalog)
    table = asking.table(NAME)
    whole = {"metadata": {"table-uuid": table_id}, **answer}
    catalog.answers = lambda told: (200, whole) if "/delta/v1/" in told else None

    with pytest.raises(TablefeedError):
        asking.credentials(table, to_write=False) if "storage-credentials" in answer else asking.ratified(table)


def test_a_refusal_of_another_kind_is_not_taken_for_one_of_the_older_interface(catalog: FakeCatalog) -> None:
    catalog.register(NAME, "s3://lake/orders", properties={"delta.feature.catalogManaged": "supported"})
    asking = client(catalog)

    with pytest.raises(StoreError, match=r"400 about main\.sales\.orders: Only managed tables are supported"):
        asking.ratified(asking.table(NAME))


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ({"commits": []}, StoreError),
        ({"commits": [{"version": 1}], "latest_table_version": 1}, StoreError),
        ({"commits": [{"version": 1, "file_name": "x"}], "latest_table_version": "x"}, StoreError),
        ({"commits": 5, "latest_table_version": 1}, StoreError),
        ({"commits": ["x"], "latest_table_version": 1}, StoreError),
        ({"commits": [], "latest_table_version": -1}, StoreError),
        ({"commits": [], "latest_table_version": float("inf")}, StoreError),
        ({"commits": [], "latest_table_version": [0]}, StoreError),
        ({"commits": [{"version": -5, "file_name": "x"}], "latest_table_version": 1}, LogError),
    ],
)
def test_an_answer_about_commits_that_is_not_one_is_refused(
    catalog: FakeCatalog, answer: dict[str, Any], kind: type[TablefeedError]
) -> None:
    catalog.manage(NAME, "s3://lake/orders", 1)
    asking = client(catalog)
    table = asking.table(NAME)
    catalog.answers = always(200, **answer)

    with pytest.raises(kind):
        asking.ratified(table)


def test_a_missing_table_is_not_found_and_the_error_has_the_servers_words(catalog: FakeCatalog) -> None:
    with pytest.raises(TableNotFoundError, match=r"404 about main\.sales\.orders: Table not found: /tables/main.sales"):
        client(catalog).table(NAME)


@pytest.mark.parametrize("answer", [{"raw": "404 Not Found"}, {"raw": "<html>"}, {"message": "no such route"}])
def test_a_404_that_is_not_the_catalogs_own_is_an_error_of_the_server_and_no_dropped_table(
    catalog: FakeCatalog, answer: dict[str, Any]
) -> None:
    catalog.answers = always(404, **answer)

    with pytest.raises(StoreError, match=r"answered 404 .* Check uc_uri"):
        client(catalog).table(NAME)


@pytest.mark.parametrize(
    ("status", "remedy"), [(401, "Give a valid token as the storage option uc_token"), (403, "Ask for the permission")]
)
def test_a_refused_token_is_an_error_of_settings_that_does_not_show_it(
    catalog: FakeCatalog, status: int, remedy: str
) -> None:
    catalog.answers = always(status, message=f"token {TOKEN} is not good")

    with pytest.raises(StoreConfigError, match=remedy) as caught:
        client(catalog).table(NAME)

    assert "token *** is not good" in str(caught.value)
    assert TOKEN not in str(caught.value)
    assert len(catalog.requests) == 1


def test_a_token_at_the_end_of_a_long_text_is_not_shown_in_part(catalog: FakeCatalog) -> None:
    catalog.answers = always(403, message="x" * 290 + TOKEN)

    with pytest.raises(StoreConfigError, match=r"x\*\*\*\. Ask for the permission") as caught:
        client(catalog).table(NAME)

    assert TOKEN[:5] not in str(caught.value)


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_busy_server_is_asked_again_until_it_answers(catalog: FakeCatalog, status: int) -> None:
    catalog.register(NAME, "s3://lake/orders")
    catalog.answers = lambda _: (status, {"message": "later"}) if len(catalog.requests) < 4 else None
    clock = Clock()

    assert client(catalog, clock).table(NAME).location == "s3://lake/orders"
    assert len(catalog.requests) == 4
    assert len(clock.slept) == 3


def test_a_server_that_says_when_to_come_back_is_obeyed(catalog: FakeCatalog) -> None:
    catalog.register(NAME, "s3://lake/orders")
    busy = (429, {"message": "later", "headers": {"Retry-After": "7"}})
    catalog.answers = lambda _: busy if len(catalog.requests) < 2 else None
    clock = Clock()

    client(catalog, clock).table(NAME)

    assert clock.slept == [7.0]


def test_a_server_that_says_at_once_is_not_asked_without_a_pause(catalog: FakeCatalog) -> None:
    catalog.answers = always(429, message="later", headers={"Retry-After": "0"})
    clock = Clock()

    with pytest.raises(StoreError, match="answered 429"):
        client(catalog, clock).table(NAME)
    assert len(catalog.requests) < 50


def test_an_answer_that_ends_too_early_is_asked_for_again(catalog: FakeCatalog) -> None:
    catalog.register(NAME, "s3://lake/orders")
    cut = (200, {"raw": '{"table_id"', "headers": {"Content-Length": "1000"}})
    catalog.answers = lambda _: cut if len(catalog.requests) < 3 else None

    assert client(catalog).table(NAME).location == "s3://lake/orders"
    assert len(catalog.requests) == 3


def test_a_server_that_stays_busy_is_given_up_at_the_deadline(catalog: FakeCatalog) -> None:
    catalog.answers = always(500, message=f"down with {TOKEN}")
    clock = Clock()

    with pytest.raises(StoreError, match=r"answered 500: down with \*\*\*\. It was asked \d+ times") as caught:
        client(catalog, clock).table(NAME)

    assert TOKEN not in str(caught.value)
    assert DEADLINE_S - 5 <= clock.now_s <= DEADLINE_S


def test_a_server_that_is_not_there_is_an_error_of_ours() -> None:
    clock = Clock()
    gone = FakeCatalog(uri="http://127.0.0.1:9")  # the port that discards

    with pytest.raises(StoreError, match="cannot be reached") as caught:
        client(gone, clock).table(NAME)

    assert NAME in str(caught.value)
    assert clock.now_s <= DEADLINE_S


@pytest.mark.parametrize(
    "answer", [{"raw": "<html>"}, {"raw": ""}, {"raw": "[]"}, {"raw": "\xff"}, {"raw": "[" * 100_000}]
)
def test_an_answer_that_is_no_json_object_is_an_error_that_names_the_setting(
    catalog: FakeCatalog, answer: dict[str, Any]
) -> None:
    catalog.answers = always(200, **answer)

    with pytest.raises(StoreError, match=r"cannot be used: it is not .* Check uc_uri"):
        client(catalog).table(NAME)


@pytest.mark.parametrize("key", ["table_id", "storage_location", "properties"])
def test_an_answer_without_a_needed_field_is_refused(catalog: FakeCatalog, key: str) -> None:
    catalog.register(NAME, "s3://lake/orders", **{key: 5})

    with pytest.raises(StoreError, match=f"it has no {key}"):
        client(catalog).table(NAME)


def test_credentials_that_are_no_object_are_refused_and_not_shown(catalog: FakeCatalog) -> None:
    catalog.register(NAME, "s3://lake/orders")
    catalog.vends = lambda _: {"aws_temp_credentials": "pa55w0rd"}
    asking = client(catalog)

    with pytest.raises(StoreError, match="it has no aws_temp_credentials") as caught:
        asking.credentials(asking.table(NAME), to_write=False)
    assert "pa55w0rd" not in str(caught.value)


def test_a_redirect_is_not_followed_since_it_could_take_the_token_elsewhere(catalog: FakeCatalog) -> None:
    catalog.answers = always(302, headers={"Location": f"{catalog.uri}/elsewhere"})

    with pytest.raises(StoreError, match="answered 302"):
        client(catalog).table(NAME)

    assert len(catalog.requests) == 1


def test_without_a_token_none_is_sent(catalog: FakeCatalog) -> None:
    catalog.token = None
    catalog.register(NAME, "s3://lake/orders")

    assert client(catalog, token=None).table(NAME).location == "s3://lake/orders"


def test_credentials_do_not_show_what_they_hold() -> None:
    assert "pa55" not in repr(Credentials(values={"secret_access_key": "pa55"}, expires_at_ms=None))
