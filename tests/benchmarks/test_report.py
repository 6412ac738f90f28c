from __future__ import annotations

import json
from itertools import count

import pytest
from benchmarks.questions import (
    GROWTH,
    LATENCY_P50,
    SINK_BATCH,
    SINK_ROWS_OF_PARQUET,
    SOURCE_BATCH,
    SOURCE_ROWS,
    Setting,
    Side,
)
from benchmarks.report import Answer, Report, Sample, as_json, as_markdown


def a_report(key: str, *pairs: tuple[float, float], setting: Setting = Setting.DEFAULT) -> Report:
    """`pairs` are (ours, the JAR's), one a round."""
    samples = [
        Sample(round=number, setting=setting, side=side, numbers={key: value})
        for number, pair in zip(count(), pairs, strict=False)
        for side, value in zip((Side.OURS, Side.JAR), pair, strict=True)
    ]
    return Report(
        date="2026-11-21", workload=["two rows"], versions={"Java": "17"}, machine={"cores": 2}, samples=samples
    )


def only_answer(report: Report) -> Answer:
    (answer,) = report.answers
    return answer


def test_the_ratio_is_our_median_over_the_jars() -> None:
    answer = only_answer(a_report(SOURCE_ROWS.key, (30.0, 20.0), (10.0, 10.0), (40.0, 25.0)))

    assert (answer.ours, answer.jar, answer.ratio) == (30.0, 20.0, 1.5)


def test_the_spread_is_the_smallest_and_the_largest_ratio_of_one_round() -> None:
    answer = only_answer(a_report(SOURCE_ROWS.key, (30.0, 20.0), (10.0, 10.0), (40.0, 25.0)))

    assert (answer.pair_ratios, answer.pair_count) == ((1.0, 1.6), 3)


def test_a_round_that_one_side_did_not_finish_is_not_counted() -> None:
    report = a_report(SOURCE_ROWS.key, (30.0, 20.0), (1000.0, 1.0))
    broken_off = Report(
        date=report.date,
        workload=report.workload,
        versions=report.versions,
        machine=report.machine,
        samples=report.samples[:-1],
    )

    assert only_answer(broken_off).ratio == 1.5


def test_a_round_is_compared_within_its_setting() -> None:
    one = a_report(SINK_BATCH.key, (20.0, 100.0))
    other = a_report(SINK_BATCH.key, (30.0, 100.0), setting=Setting.UNIX_SOCKET)
    both = Report(
        date=one.date,
        workload=one.workload,
        versions=one.versions,
        machine=one.machine,
        samples=[*one.samples, *other.samples],
    )

    assert [(a.setting, a.ratio) for a in both.answers] == [(Setting.DEFAULT, 0.2), (Setting.UNIX_SOCKET, 0.3)]


@pytest.mark.parametrize(
    ("key", "setting", "ours", "verdict"),
    [
        (SOURCE_ROWS.key, Setting.DEFAULT, 1.3, "met"),
        (SOURCE_ROWS.key, Setting.DEFAULT, 1.29, "missed"),
        (SOURCE_BATCH.key, Setting.DEFAULT, 1.3, "met"),
        (SOURCE_BATCH.key, Setting.UNIX_SOCKET, 1.3, "missed"),
        (SOURCE_BATCH.key, Setting.UNIX_SOCKET, 0.86, "missed"),
        (SOURCE_BATCH.key, Setting.UNIX_SOCKET, 0.85, "met"),
        (SINK_BATCH.key, Setting.DEFAULT, 0.31, "missed"),
        (LATENCY_P50.key, Setting.UNIX_SOCKET, 0.65, "met"),
        (SINK_ROWS_OF_PARQUET.key, Setting.DEFAULT, 0.1, ""),
    ],
)
def test_a_goal_bounds_the_ratio_in_its_setting(key: str, setting: Setting, ours: float, verdict: str) -> None:
    assert only_answer(a_report(key, (ours, 1.0), setting=setting)).verdict == verdict


def test_of_a_number_that_is_a_ratio_itself_the_goal_bounds_ours_whatever_the_jars_is() -> None:
    answer = only_answer(a_report(GROWTH.key, (1.2, 5.0)))

    assert (answer.goal_text, answer.verdict) == ("ours <= 1.1", "missed")


def test_the_page_has_both_numbers_the_ratio_and_the_goal_side_by_side() -> None:
    page = as_markdown(a_report(SOURCE_ROWS.key, (3_600_000.0, 2_400_000.0)))

    row = next(line for line in page.splitlines() if line.startswith("| the bulk table to"))
    assert row == (
        "| the bulk table to `noop`, one batch | rows/s | 3,600,000 | 2,400,000 | 1.50 | 1.50-1.50 (1) | >= 1.3 | met |"
    )


def test_the_page_gives_small_numbers_with_their_fractions() -> None:
    page = as_markdown(a_report(GROWTH.key, (1.018, 5.0)))

    assert "| times | 1.02 | 5 | 0.20 |" in page


def test_the_page_names_workload_versions_and_machine() -> None:
    page = as_markdown(a_report(SOURCE_ROWS.key, (3.0, 2.0)))

    assert "- two rows\n" in page
    assert "Versions: Java 17." in page
    assert "Machine: cores 2." in page


def test_the_json_keeps_every_sample() -> None:
    kept = json.loads(json.dumps(as_json(a_report(SINK_BATCH.key, (20.0, 100.0), (30.0, 110.0)))))

    assert [(s["round"], s["side"], s["numbers"]) for s in kept["samples"]] == [
        (0, "tablefeed", {"sink_batch_ms": 20.0}),
        (0, "jar", {"sink_batch_ms": 100.0}),
        (1, "tablefeed", {"sink_batch_ms": 30.0}),
        (1, "jar", {"sink_batch_ms": 110.0}),
    ]
    assert kept["answers"][0]["goal"] == "<= 0.25"
