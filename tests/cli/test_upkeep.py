"""optimize, vacuum, checkpoint and consumers: what they say, and that vacuum deletes only when asked."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import tablefeed
from cli.tables import rows
from support.command_line import run, run_without_rights


def test_optimize_says_what_became_of_the_files(orders: Path) -> None:
    tablefeed.append(orders, rows(6, 7))

    done = run("optimize", orders, "--target-size", "1m", "--json")

    (found,) = done.records
    assert (found["outcome"], found["version"]) == ("Optimized", 5)
    assert found["files_added"] == 2
    assert run("optimize", orders).out == "nothing to merge\n"


@pytest.mark.parametrize("text", ["", "m", "1x", "-1m"])
def test_a_size_that_is_none_is_wrong_usage(text: str, orders: Path) -> None:
    assert run("optimize", orders, f"--target-size={text}").code == 2


def test_vacuum_deletes_only_when_it_is_asked_to(orders: Path) -> None:
    asked = ["vacuum", orders, "--retention-hours", "0", "--allow-short-retention"]
    before = sorted(orders.rglob("*.parquet"))

    listed = run(*asked)
    kept = sorted(orders.rglob("*.parquet"))
    deleted = run(*asked, "--delete", "--json")

    assert kept == before
    assert len(listed.out.splitlines()) == 1
    assert "would be deleted; add --delete" in listed.err
    assert deleted.records[0]["paths"] == listed.out.splitlines()
    assert len(sorted(orders.rglob("*.parquet"))) == len(before) - 1


def test_vacuum_names_a_folder_that_it_may_not_list_and_goes_on(orders: Path) -> None:
    closed, unneeded = orders / "lost+found", orders / "unneeded.parquet"
    closed.mkdir()
    for file in (closed / "whose.parquet", unneeded):
        file.write_bytes(b"x")
        os.utime(file, (0, 0))
    closed.chmod(0)

    done = run_without_rights("vacuum", orders, "--delete")
    closed.chmod(0o700)

    assert (done.code, done.out) == (0, "unneeded.parquet\n"), done.err
    assert "folder=lost+found" in done.err.splitlines()[0]
    assert (unneeded.exists(), (closed / "whose.parquet").exists()) == (False, True)


def test_a_retention_that_is_too_short_is_refused_with_the_option_of_the_command(orders: Path) -> None:
    done = run("vacuum", orders, "--retention-hours", "1", "--delete")

    assert done.code == 3
    assert "'--retention-hours'" in done.err


def test_a_checkpoint_is_written_once(orders: Path) -> None:
    assert run("checkpoint", orders).out == "version 3 has a new checkpoint\n"
    assert run("checkpoint", orders, "--json").records[0]["written"] is False


def test_consumers_are_registered_listed_and_removed(orders: Path) -> None:
    assert run("consumers", "register", orders, "sums", "--version", "1").code == 0
    assert [(c["consumer"], c["version"]) for c in run("consumers", "list", orders, "--json").records] == [("sums", 1)]
    assert run("consumers", "list", orders).out.splitlines()[1].startswith("sums")

    assert run("consumers", "remove", orders, "sums").code == 0
    assert run("consumers", "list", orders, "--json").records == []


def test_a_name_of_a_file_cannot_move_the_cursor_of_a_terminal(orders: Path) -> None:
    (orders / "a\x1b[2J.parquet").write_text("x")
    os.utime(orders / "a\x1b[2J.parquet", (0, 0))

    assert run("vacuum", orders).out == "a\\x1b[2J.parquet\n"
