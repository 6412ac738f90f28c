"""What the log has of long work: how far it is, every ten seconds."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tablefeed
from tablefeed.errors import IllegalOptionError
from tablefeed.feed.progress_lines import logged
from tablefeed.model.progress import Progress

LOGGER = "tablefeed.feed.progress_lines"


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == LOGGER]


def test_work_that_takes_long_is_logged_every_ten_seconds_and_all_of_it_is_reported(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now_s, heard = 0.0, list[Progress]()
    report = logged(heard.append, url="/t", clock=lambda: now_s)

    with caplog.at_level(logging.INFO, logger=LOGGER):
        for now_s in (1.0, 9.9, 10.0, 12.0, 19.9, 40.0):  # the clock reads it
            report(Progress(step="files read", done=int(now_s), total=None if now_s < 20 else 50))

    assert lines(caplog) == [
        "progress table=/t step=files read done=10",
        "progress table=/t step=files read done=40 total=50",
    ]
    assert [progress.done for progress in heard] == [1, 9, 10, 12, 19, 40]


@pytest.mark.parametrize(
    ("work", "line"),
    [
        (lambda url: tablefeed.open_table(url).to_arrow(), "step=files read done=2"),
        (tablefeed.optimize, "step=files merged done=2 total=2"),
        (lambda url: tablefeed.vacuum(url, dry_run=True), "step=files listed done=2"),
        (tablefeed.checkpoint, "step=log entries written done=2 total=2"),
    ],
    ids=["a read", "optimize", "vacuum", "checkpoint"],
)
def test_reads_and_upkeep_log_without_a_callback(
    work: Callable[[Path], object],
    line: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(f"{LOGGER}.INTERVAL_S", 0)
    for number in range(2):
        tablefeed.append(tmp_path, pa.table({"id": [number]}))

    with caplog.at_level(logging.INFO, logger=LOGGER):
        work(tmp_path)

    assert f"progress table={tmp_path} {line}" in lines(caplog)


@pytest.mark.parametrize("given", [0, "print", [print]])
def test_what_is_no_function_is_refused_by_its_name(tmp_path: Path, given: Any) -> None:
    tablefeed.append(tmp_path / "t", pa.table({"id": [1]}))
    works: list[Callable[[], object]] = [
        lambda: tablefeed.optimize(tmp_path / "t", on_progress=given),
        lambda: tablefeed.vacuum(tmp_path / "t", on_progress=given),
        lambda: tablefeed.checkpoint(tmp_path / "t", on_progress=given),
        lambda: tablefeed.open_table(tmp_path / "t").to_arrow(on_progress=given),
    ]

    for work in works:
        with pytest.raises(IllegalOptionError, match="'on_progress': it must be a function"):
            work()
    with pytest.raises(IllegalOptionError, match="'copy_files': it must be a function"):
        tablefeed.replicate(tmp_path / "t", tmp_path / "copy", copy_files=given)
