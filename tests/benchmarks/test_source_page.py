from __future__ import annotations

from benchmarks.source import as_markdown


def page(*samples: dict[str, float]) -> str:
    return as_markdown(samples, rounds=len(samples), told="cores 2")


def test_a_figure_is_the_median_of_its_runs_beside_what_they_went_between() -> None:
    told = page({"follow_p50_ms": 12.0}, {"follow_p50_ms": 1.0}, {"follow_p50_ms": 2.0})

    assert "| from a local commit to `follow`, p50 | ms | 2 | 1-12 | <= 3 | met |" in told


def test_a_goal_is_missed_where_the_median_is_over_it() -> None:
    assert "| 513 | 513-513 | <= 512 | missed |" in page({"task_peak_mb": 513.0})


def test_what_was_not_measured_has_no_line() -> None:
    assert [line for line in page({"snapshot_batch_ms": 5.0}).splitlines() if line.startswith("| ")][2:] == [
        "| each later batch, planned | ms | 5 | 5-5 |  |  |"
    ]
