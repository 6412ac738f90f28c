"""What a user sees of a mistake: one readable line, an exit code, and no secret."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pyarrow as pa
import pytest

import tablefeed
from support.command_line import run


@pytest.mark.parametrize(
    ("arguments", "code", "line"),
    [
        (["cat", "{none}"], 3, "Error: [DELTA_TABLE_NOT_FOUND] There is no "),
        (["cat", "{t}", "--at", "9"], 3, "Error: [DELTA_VERSION_NOT_FOUND] Version 9 of "),
        (
            ["cat", "{t}", "--at", "noon"],
            3,
            "Error: [DELTA_TIMESTAMP_INVALID] Invalid value 'noon' for option '--at': it must be a version from 0 or a "
            "timestamp such as",
        ),
        (
            ["cat", "{t}", "--where", "id >"],
            3,
            "Error: [DELTA_ILLEGAL_OPTION] Invalid value 'id >' for option '--where'",
        ),
        (["cat", "{t}", "--columns", "id,nope"], 3, "Error: {t} has no column 'nope'. It has id, name, day."),
        (["cat", "{t}", "--format", "parquet", "--json"], 2, "Error: Invalid value for --json: contradicts --format"),
        (["cat", "{t}", "--format", "xml"], 2, "Error: Invalid value for '--format': 'xml' is not one of 'table',"),
        (["cat", "{t}", "-o", "rows"], 2, "Error: Invalid value for --output: give --format"),
        (["cat", "{t}", "-o", "{none}/rows.csv"], 2, "Error: Invalid value for --output: cannot write "),
        (["cat", "{t}", "-o", "{text}/rows.csv"], 2, "Error: Invalid value for --output: cannot write {text}/"),
        (["cat", "{t}", "-o", "{none}" + "x" * 300 + ".csv"], 2, "Error: Invalid value for --output: cannot write "),
        (["cat", "{t}", "-o", "{loop}.csv"], 2, "Error: Invalid value for --output: cannot write {loop}.csv: Too many"),
        (["report", "{t}", "-o", "{text}/page"], 2, "Error: Invalid value for --output: cannot write {text}/page: Not"),
        (["cat", "{t}", "--storage-option", "key"], 2, "Error: Invalid value for --storage-option: must be NAME=VALUE"),
        (["cat"], 2, "Error: Missing argument"),
        (["catt", "{t}"], 2, "Error: No such command 'catt'. Did you mean 'cat'?"),
        (["log", "{t}", "1-3"], 2, "Error: Invalid value for RANGE: '1-3' must be VERSION, A..B, A.. or ..B"),
        (
            ["tail", "{t}", "--from", "noon"],
            3,
            "Error: [DELTA_TIMESTAMP_INVALID] Invalid value 'noon' for option '--from'",
        ),
        (["delete", "{t}", ""], 3, "Error: [DELTA_ILLEGAL_OPTION] Invalid value '' for option 'WHERE'"),
        (
            ["consumers", "register", "{t}", "a", "--version", "9"],
            3,
            "Error: [DELTA_ILLEGAL_OPTION] Invalid value '9' for option '--version'",
        ),
        (
            ["consumers", "register", "{t}", "a", "--expires-after-days", "-1"],
            3,
            "Error: [DELTA_ILLEGAL_OPTION] Invalid value '-1 days' for option '--expires-after-days'",
        ),
        (
            ["optimize", "{t}", "--target-size", "0"],
            3,
            "Error: [DELTA_ILLEGAL_OPTION] Invalid value '0' for option '--target-size'",
        ),
        (
            ["tail", "{t}", "--poll-interval", "nan"],
            3,
            "Error: [DELTA_ILLEGAL_OPTION] Invalid value 'nan' for option '--poll-interval'",
        ),
        (
            ["tail", "{t}", "--from", "99"],
            3,
            "Error: [DELTA_ILLEGAL_OPTION] Invalid value '99' for option '--from': it must be at most 4, the",
        ),
        (["log", "{t}", "3..1"], 2, "Error: Invalid value for RANGE: '3..1' ends before it begins"),
        (["log", "{t}", "99.."], 2, "Error: Invalid value for RANGE: '99..' begins after the newest version, 3"),
        (["consumers", "list", "{none}"], 3, "Error: [DELTA_TABLE_NOT_FOUND] There is no "),
        (["consumers", "remove", "{none}", "a"], 3, "Error: [DELTA_TABLE_NOT_FOUND] There is no "),
        (
            ["replicate", "{t}", "{none}", "--until", "9" * 20],
            3,
            f"Error: [DELTA_ILLEGAL_OPTION] Invalid value '{'9' * 20}' for option '--until': it must be a whole number "
            "of at least 0, at most 9223372036854775807",
        ),
        (
            ["offsets", "show", "\udcff"],
            3,
            "Error: [DELTA_ILLEGAL_OPTION] Invalid value '\\\\udcff' for option 'CHECKPOINT'",
        ),
        (["changes", "{t}", "--from", "3", "--to", "1"], 3, "Error: [DELTA_INVALID_CDC_RANGE] "),
        (["changes", "{t}", "--from", "8"], 3, "Error: [DELTA_CDC_START_VERSION_AFTER_LATEST] "),
        (["inspect", "hdfs://x/y"], 3, "Error: HDFS is not supported"),
        (["diff", "{t}", "x", "3"], 3, "Error: [DELTA_TIMESTAMP_INVALID] Invalid value 'x' for option 'A'"),
        (["diff", "{t}", "1", "x"], 3, "Error: [DELTA_TIMESTAMP_INVALID] Invalid value 'x' for option 'B'"),
        (
            ["verify", "{t}", "{t}", "--at", "1", "--other-at", "x"],
            3,
            "Error: [DELTA_TIMESTAMP_INVALID] Invalid value 'x' for option '--other-at'",
        ),
        (
            ["replicate", "{t}", "\udcff"],
            3,
            "Error: [DELTA_ILLEGAL_OPTION] Invalid value '\\\\udcff' for option 'TARGET'",
        ),
        (["lag", "\udcff"], 3, "Error: [DELTA_ILLEGAL_OPTION] Invalid value '\\\\udcff' for option 'CHECKPOINT'"),
        (
            ["report", "{t}/none", "--table", "\udcff"],
            3,
            "Error: {t}/none is neither a table nor the checkpoint of a query",
        ),
        (["replicate", "{t}", "{none}", "--target-storage-option", "x"], 2, "Error: Invalid value for --target-"),
        (
            ["append", "{none}", "{nulls}.csv"],
            3,
            "Error: [DELTA_NULL_SCHEMA_IN_STREAMING_WRITE] Column 'note' of the rows has the type void, which no "
            "column of {none} can have. The file has no value in it that says another type. Create the table",
        ),
        (
            ["apply-changes", "{t}", "{nulls}.csv", "--keys", "id", "--sequence-by", "id"],
            3,
            "Error: [DELTA_METADATA_MISMATCH] The changes have columns that {t} lacks: note. Nothing was committed. "
            "List them in --except-column-list, or let apply_changes add them: --merge-schema.",
        ),
        (
            ["changes", "{plain}"],
            3,
            "Error: [DELTA_MISSING_CHANGE_DATA] The changes of versions 0 to 0 of {plain} cannot be read: version 0 "
            "did not record them. Read a range in which the property delta.enableChangeDataFeed is true, or "
            "let tablefeed.changes compute them from the files with --deduplication-mode=dropCarryovers.",
        ),
    ],
)
def test_a_mistake_is_one_line_and_a_code(
    arguments: list[str], code: int, line: str, orders: Path, tmp_path: Path
) -> None:
    places = {name: str(tmp_path / name) for name in ("none", "text", "loop", "nulls", "plain")} | {"t": str(orders)}
    (tmp_path / "text").touch()
    (tmp_path / "nulls.csv").write_text("id,note\n1,\n")
    tablefeed.append(tmp_path / "plain", pa.table({"id": [1]}))
    (tmp_path / "loop.csv").symlink_to(tmp_path / "loop.csv")

    done = run(*(argument.format(**places) for argument in arguments))

    assert done.code == code
    assert done.out == ""
    assert done.err.splitlines()[-1].startswith(line.format(**places))
    assert "Traceback" not in done.err
    if code == 3:
        assert len(done.err.splitlines()) == 1


class _Refusing(BaseHTTPRequestHandler):
    """A store that lets nobody in: unlike one that is not there, it is not asked again."""

    def do_GET(self) -> None:
        self.send_error(403)

    do_HEAD = do_GET  # noqa: N815 - as above

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the base's
        """Says nothing."""


@pytest.fixture
def refusing() -> Iterator[str]:
    """The URL of such a store."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Refusing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_no_secret_of_the_environment_or_the_command_line_is_printed(refusing: str) -> None:
    secret = {"TABLEFEED_STORAGE_OPTIONS": '{"aws_secret_access_key": "s3cr3t-of-env", "aws_access_key_id": "AKIA0"}'}
    target = ["s3://bucket/none", "--storage-option", f"aws_endpoint_url={refusing}"]

    for options in ([], ["--storage-option", "aws_session_token=s3cr3t-token"], ["--storage-option", "nope=1"]):
        done = run("inspect", *target, *options, env=secret)

        assert done.code == 3
        assert done.err.startswith("Error: ")
        assert "s3cr3t" not in done.err + done.out
        assert "AKIA0" not in done.err + done.out


@pytest.mark.parametrize(
    "arguments",
    [
        ["{url}"],
        ["offsets", "{url}"],
        ["offsets", "show", "{t}", "{url}"],
        ["consumers", "{url}"],
        ["report", "{t}", "--table", "{url}"],
        ["report", "{t}", "--table={url}"],
        ["cat", "{t}", "--format={url}"],
        ["log", "{t}", "{url}"],
    ],
)
def test_an_error_shows_a_url_that_was_typed_without_its_password(arguments: list[str], orders: Path) -> None:
    places = {"t": str(orders), "url": "s3://user:s3cr3t%2Ft@bucket/x?sig=s3cr3t"}

    done = run(*(argument.format(**places) for argument in arguments))

    assert done.code in (2, 3)
    assert "s3://bucket/x" in done.err
    assert "s3cr3t" not in done.err


@pytest.mark.parametrize("text", ["{", "[]", '{"aws_secret_access_key": 5}', "s3cr3t"])
def test_storage_options_of_the_environment_that_are_no_texts_are_refused_unseen(text: str, orders: Path) -> None:
    done = run("inspect", orders, env={"TABLEFEED_STORAGE_OPTIONS": text})

    assert (done.code, done.out) == (2, "")
    assert done.err.splitlines()[-1] == (
        "Error: Invalid value for TABLEFEED_STORAGE_OPTIONS: must be a JSON object whose values are texts"
    )


def test_a_name_cannot_move_the_cursor_of_a_terminal(tmp_path: Path) -> None:
    schema = pa.schema([("a\x1b[2J", pa.int64())])
    tablefeed.create(tmp_path / "t", schema, properties={"delta.columnMapping.mode": "name"})

    assert run("cat", tmp_path / "t", "--format", "table").out == "a\\x1b[2J\n"
    assert run("cat", tmp_path / "t", "--columns", "b").err.endswith("has no column 'b'. It has a\\x1b[2J.\n")


def test_each_warning_of_the_library_is_one_line(orders: Path) -> None:
    tablefeed.checkpoint(orders)
    (checkpoint,) = (orders / "_delta_log").glob("*.checkpoint.parquet")
    checkpoint.write_bytes(b"damaged")

    done = run("checkpoint", orders)

    assert done.code == 0
    lines = done.err.splitlines()
    assert lines
    assert all(line.startswith("Warning: ") and checkpoint.name in line for line in lines)
