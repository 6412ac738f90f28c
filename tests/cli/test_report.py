"""report: a page that has the table's numbers, needs nothing else, and takes no text of a table for markup."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow as pa
import pytest

import tablefeed
from cli.tables import a_checkpoint
from support.command_line import Ran, run
from support.html_page import Page
from support.logs import change_actions
from tablefeed._version import __version__
from tablefeed.feed.stream.spark_checkpoint import offset_text
from tablefeed.model.actions import Version
from tablefeed.model.offset import Offset
from tablefeed.report.buckets import MOST
from tablefeed.report.figures import MOST_ROWS

ELEMENTS = {
    *("html", "head", "meta", "title", "style", "body", "header", "main", "footer", "section", "div", "p", "span"),
    *("h1", "h2", "h3", "dl", "dt", "dd", "small", "strong", "ul", "li", "figure", "svg", "desc", "g", "rect", "line"),
    *("details", "summary", "table", "caption", "thead", "tbody", "tr", "th", "td", "script"),
}
"""None of them fetches anything."""


def page_of(source: Path, *options: object) -> Page:
    output = source.parent / "page.html"
    done = run("report", source, "-o", output, *options)
    assert done.code == 0, done.err
    return Page(output.read_text(encoding="utf-8"))


def with_info(table: Path, version: int, **fields: object) -> None:
    """Puts fields into the commitInfo of a version."""
    change_actions(table, version, lambda action: action.get("commitInfo", {}).update(fields))


def a_query(folder: Path, table: Path, *versions: int, unfinished: int = 0) -> Path:
    """The checkpoint of a query whose batches end before these versions; a batch takes two seconds."""
    table_id = tablefeed.open_table(table).table_id
    ends = [offset_text(Offset(table_id=table_id, version=Version(version))) for version in versions]
    a_checkpoint(folder, *ends, unfinished=unfinished)
    for file in folder.glob("*/[0-9]*"):
        at = 1_790_000_000 + 60 * int(file.name) + 2 * (file.parent.name == "commits")
        os.utime(file, (at, at))
    return folder


def test_the_page_has_the_commits_rows_files_partitions_and_writers_of_the_table(orders: Path) -> None:
    with_info(orders, 2, userName="ada", engineInfo="other/1")

    tables = page_of(orders).tables

    assert tables["rows and files by operation"] == [
        ["operation", "commits", "rows", "files added", "files removed"],
        ["WRITE", "2", "5", "4", "0"],
        ["CREATE TABLE", "1", "0", "0", "0"],
        ["DELETE", "1", "0", "0", "1"],
    ]
    assert sorted([row[0], *row[2:]] for row in tables["partitions"]) == [
        ["day=2026-01-01", "1", "1", "1"],
        ["day=2026-01-02", "2", "2", "3"],
        ["partition", "files", "small files", "rows"],
    ]
    assert [row[:3] for row in tables["commits by writer"]][1:] == [
        [f"tablefeed/{__version__}", "3", "3"],
        ["other/1", "1", "2"],
    ]
    assert [row[:3] for row in tables["commits by user"]][1:] == [["ada", "1", "2"]]
    assert tables["transactions"][1:] == [["loader", "1", "7", "1"]]


def test_what_doctor_finds_is_on_the_page(orders: Path) -> None:
    found = run("doctor", orders, "--json").records

    text = page_of(orders).text

    assert len(found) > 5
    assert [each["text"] for each in found if each["text"] not in text] == []
    assert "3 of 3 files smaller than 64.0 MiB" in text


def test_a_damaged_commit_is_named_on_the_page_and_by_the_command_and_the_rest_is_shown(orders: Path) -> None:
    output, damaged = orders.parent / "page.html", f"{2:020d}.json"
    (orders / "_delta_log" / damaged).write_text('{"add": {')

    needed = run("report", orders, "-o", output)
    page = Page(output.read_text(encoding="utf-8"))

    assert (needed.code, damaged in needed.err, page.text.count(damaged)) == (1, True, 1)
    assert page.tables["rows and files by operation"][1:] == [
        ["CREATE TABLE", "1", "0", "0", "0"],
        ["WRITE", "1", "3", "2", "0"],
    ]


def test_a_damaged_commit_that_only_the_history_needs_is_named_on_the_page(orders: Path) -> None:
    output, damaged = orders.parent / "page.html", f"{1:020d}.json"
    tablefeed.checkpoint(orders)
    (orders / "_delta_log" / damaged).write_text('{"add": {')

    done = run("report", orders, "-o", output, "--json")
    page = Page(output.read_text(encoding="utf-8"))

    assert (done.code, damaged in done.records[0]["problems"][0], page.text.count(damaged)) == (1, True, 1)
    assert "rows and files by operation" in page.tables


def test_every_plot_has_a_name_a_description_and_a_table_and_the_page_is_small(orders: Path) -> None:
    page = page_of(orders)

    ids = [attributes["id"] for name, attributes in page.elements if attributes.get("id")]
    plots = page.named("svg")
    assert len(plots) == 6
    assert len(set(ids)) == len(ids) == 2 * len(plots)
    assert {plot["role"] for plot in plots} == {"img"}
    assert {plot["aria-labelledby"] for plot in plots} | {plot["aria-describedby"] for plot in plots} == set(ids)
    assert len(page.tables) == len(plots) + 1
    assert (orders.parent / "page.html").stat().st_size < 200_000


def test_the_page_fetches_nothing_and_its_policy_forbids_what_is_not_its_own(orders: Path) -> None:
    page = page_of(orders)
    text = (orders.parent / "page.html").read_text(encoding="utf-8")

    (policy,) = [m["content"] for m in page.named("meta") if m.get("http-equiv") == "Content-Security-Policy"]
    assert str(policy).startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in str(policy)
    assert [word for word in ("http://", "https://", "url(", "@import", "src=", "href=") if word in text] == []


def test_no_text_of_a_table_becomes_markup(tmp_path: Path) -> None:
    evil = "</script></style></title><script>alert(1)</script><img src=x onerror=alert(1)>\"'\u202e"
    table, schema = tmp_path / "t", pa.schema([("id", pa.int64()), (f"p{evil[:20]}".replace(" ", ""), pa.string())])
    tablefeed.create(table, schema, partition_by=[schema.names[1]], properties={"delta.columnMapping.mode": "name"})
    tablefeed.append(table, pa.table([[1], [evil]], schema=schema), app_id=evil, txn_version=1)
    with_info(table, 1, userName=evil, engineInfo=evil, operation=evil)

    page = page_of(table)

    assert {name for name, _ in page.elements} <= ELEMENTS
    assert len(page.named("script")) == len(page.named("style")) == 1
    assert [key for _, attributes in page.elements for key in attributes if key.startswith("on")] == []
    assert page.tables["commits by user"][1][0].startswith("</script></style></title><script>alert(1)")
    assert page.tables["transactions"][1][0].startswith("</script>")
    assert "\u202e" not in page.text


def test_the_page_does_not_grow_with_the_number_of_commits_beyond_its_bounds(tmp_path: Path) -> None:
    tablefeed.create(tmp_path / "t", pa.schema([("id", pa.int64())]), properties={"delta.checkpointInterval": "9999"})
    log = tmp_path / "t" / "_delta_log"
    for version in range(1, 200):
        info = {"timestamp": 1, "operation": f"op {version % 70}", "engineInfo": f"e {version}", "userName": version}
        txn = {"appId": f"app {version}", "version": 1}
        file = log / f"{version:020d}.json"
        file.write_text(f"{json.dumps({'commitInfo': info})}\n{json.dumps({'txn': txn})}\n")
        os.utime(file, (version * 7919, version * 7919))

    page = page_of(tmp_path / "t")

    assert {caption: len(found) for caption, found in page.tables.items() if len(found) > MOST_ROWS + 1} == {}
    assert sum(len(names) > 1 for names in page.tables["commits over time"]) <= MOST + 1
    assert page.tables["commits over time"][0][-1] == "other operations"
    assert sum(int(n) for row in page.tables["commits over time"][1:] for n in row[1:]) == 200
    assert (tmp_path / "page.html").stat().st_size < 150_000


def test_a_page_of_a_query_has_its_lag_its_batch_times_and_its_table(orders: Path, tmp_path: Path) -> None:
    query = a_query(tmp_path / "checkpoint", orders, 1, 2, 3, unfinished=1)

    page = page_of(query, "--table", orders)

    assert [row[2] for row in page.tables["how far each source is behind"]] == ["versions behind", "2"]
    assert page.tables["batch times, the newest first"][1:] == [
        ["2", "everything before version 3 is delivered", "2026-09-21 14:15:20", "not done"],
        ["1", "everything before version 2 is delivered", "2026-09-21 14:14:20", "2.0 s"],
        ["0", "everything before version 1 is delivered", "2026-09-21 14:13:20", "2.0 s"],
    ]
    assert "partitions" in page.tables


def test_without_its_tables_the_page_of_a_query_says_how_to_name_them(orders: Path, tmp_path: Path) -> None:
    page = page_of(a_query(tmp_path / "checkpoint", orders, 1))

    assert "Name the table (on the command line: --table)" in page.text
    assert "batch times, the newest first" in page.tables


@pytest.mark.parametrize("wrong", [["nothing"], ["orders", "--table", "orders"]])
def test_a_wrong_input_is_one_line_and_leaves_the_older_page(wrong: list[str], orders: Path) -> None:
    output = orders.parent / "page.html"
    output.write_text("older")
    first, *options = wrong

    done: Ran = run("report", orders.parent / first, "-o", output, *options)

    assert (done.code, len(done.err.splitlines())) == (3, 1)
    assert output.read_text() == "older"
