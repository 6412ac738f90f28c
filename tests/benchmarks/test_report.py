from __future__ import annotations

import json

import pytest
from benchmarks.questions import (
    GROWTH,
    IDLE,
    LATENCY,
    SINK_BATCH,
    SINK_ROWS,
    SINK_TASK,
    SOURCE_ADD_BATCH,
    SOURCE_BATCH,
    Setting,
    Side,
)
from benchmarks.report import Answer, Report, Sample, as_json, as_markdown


def a_report(key: str, *pairs: tuple[float, float], first: int = 1, setting: Setting = Setting.DEFAULT) -> Report:
    """`pairs` are (ours, the JAR's), one a round, from the round `first` on."""
    samples = [
        Sample(round=number, setting=setting, side=side, numbers={key: value})
        for number, pair in enumerate(pairs, first)
        for side, value in zip((Side.OURS, Side.JAR), pair, strict=True)
    ]
    return a_report_of(samples)


def a_report_of(samples: list[Sample]) -> Report:
    return Report(
        date="2026-11-21", workload=["two rows"], versions={"Java": "17"}, machine={"cores": 2}, samples=samples
    )


def only_answer(report: Report) -> Answer:
    (answer,) = report.answers
    return answer


def test_the_ratio_is_our_median_over_the_jars() -> None:
    answer = only_answer(a_report(SINK_ROWS.key, (30.0, 20.0), (10.0, 10.0), (40.0, 25.0)))

    assert answer.beside is not None
    assert (answer.ours.median, answer.beside.median, answer.ratio) == (30.0, 20.0, 1.5)


def test_each_side_has_its_smallest_and_largest_number_and_the_ratio_those_of_one_round() -> None:
    answer = only_answer(a_report(SINK_ROWS.key, (30.0, 20.0), (10.0, 10.0), (40.0, 25.0)))

    assert answer.beside is not None
    assert (answer.ours.low, answer.ours.high) == (10.0, 40.0)
    assert (answer.beside.low, answer.beside.high) == (10.0, 25.0)
    assert (answer.pair_ratios, answer.round_count) == ((1.0, 1.6), 3)


def test_the_warm_up_round_is_reported_and_not_counted() -> None:
    answer = only_answer(a_report(SINK_ROWS.key, (1.0, 9.0), (30.0, 20.0), first=0))

    assert answer.beside is not None
    assert (answer.ours.cold, answer.beside.cold) == (1.0, 9.0)
    assert (answer.ratio, answer.pair_ratios, answer.round_count) == (1.5, (1.5, 1.5), 1)


def test_a_run_that_was_broken_off_in_the_warm_up_answers_nothing() -> None:
    assert a_report(SINK_ROWS.key, (1.0, 9.0), first=0).answers == []


def test_a_round_that_one_side_did_not_finish_is_not_counted() -> None:
    report = a_report(SINK_ROWS.key, (30.0, 20.0), (1000.0, 1.0))

    assert only_answer(a_report_of(list(report.samples[:-1]))).ratio == 1.5


def test_a_round_is_compared_within_its_setting() -> None:
    one = a_report(SINK_BATCH.key, (20.0, 100.0))
    other = a_report(SINK_BATCH.key, (30.0, 100.0), setting=Setting.ADVISED)

    both = a_report_of([*one.samples, *other.samples])

    assert [(a.setting, a.ratio) for a in both.answers] == [(Setting.DEFAULT, 0.2), (Setting.ADVISED, 0.3)]


def test_a_number_that_our_session_measured_beside_ours_takes_the_place_of_the_jars() -> None:
    numbers = {SINK_TASK.key: 80.0, str(SINK_TASK.beside): 100.0}
    answer = only_answer(a_report_of([Sample(round=1, setting=Setting.DEFAULT, side=Side.OURS, numbers=numbers)]))

    assert (answer.ratio, answer.verdict) == (0.8, "missed")


@pytest.mark.parametrize(
    ("key", "setting", "ours", "verdict"),
    [
        (SINK_ROWS.key, Setting.DEFAULT, 1.1, "met"),
        (SINK_ROWS.key, Setting.DEFAULT, 1.09, "missed"),
        (SOURCE_BATCH.key, Setting.DEFAULT, 1.3, "met"),
        (SOURCE_BATCH.key, Setting.ADVISED, 1.3, "missed"),
        (SOURCE_BATCH.key, Setting.ADVISED, 0.86, "missed"),
        (SOURCE_BATCH.key, Setting.ADVISED, 0.85, "met"),
        (SINK_BATCH.key, Setting.DEFAULT, 0.31, "missed"),
        (LATENCY.key, Setting.ADVISED, 0.65, "met"),
        (SOURCE_ADD_BATCH.key, Setting.DEFAULT, 9.0, ""),
    ],
)
def test_a_goal_bounds_the_ratio_in_its_setting(key: str, setting: Setting, ours: float, verdict: str) -> None:
    assert only_answer(a_report(key, (ours, 1.0), setting=setting)).verdict == verdict


def test_a_goal_of_our_number_bounds_it_whatever_the_jars_is() -> None:
    answer = only_answer(a_report(GROWTH.key, (1.2, 5.0)))

    assert (answer.goal_text, answer.verdict) == ("ours <= 1.1", "missed")


def test_a_goal_of_our_number_needs_no_number_beside_it() -> None:
    sample = Sample(round=1, setting=Setting.DEFAULT, side=Side.OURS, numbers={IDLE.key: 1.4})

    assert only_answer(a_report_of([sample])).verdict == "met"


def test_the_page_has_both_numbers_with_their_spread_the_ratio_and_the_goal_side_by_side() -> None:
    pairs = (1_000_000.0, 500_000.0), (3_600_000.0, 2_400_000.0), (3_000_000.0, 2_500_000.0)
    page = as_markdown(a_report(SINK_ROWS.key, *pairs, first=0))

    row = next(line for line in page.splitlines() if line.startswith("| the same 10 M rows into"))
    assert row == (
        "| the same 10 M rows into the sink, one batch | rows/s | 3,300,000 (3,000,000-3,600,000) | 1,000,000 "
        "| Delta JAR | 2,450,000 (2,400,000-2,500,000) | 500,000 | 1.35 | 1.20-1.50 (2) | >= 1.1 | met |"
    )


def test_the_page_gives_small_numbers_with_their_fractions() -> None:
    page = as_markdown(a_report(GROWTH.key, (1.018, 5.0)))

    assert "| times | 1.02 (1.02-1.02) |  | Delta JAR | 5 (5-5) |" in page


def test_the_page_names_workload_versions_and_machine() -> None:
    page = as_markdown(a_report(SINK_ROWS.key, (3.0, 2.0)))

    assert "- two rows\n" in page
    assert "Versions: Java 17." in page
    assert "Machine: cores 2." in page


def test_the_json_keeps_every_sample() -> None:
    kept = json.loads(json.dumps(as_json(a_report(SINK_BATCH.key, (20.0, 100.0), (30.0, 110.0)))))

    assert [(s["round"], s["side"], s["numbers"]) for s in kept["samples"]] == [
        (1, "tablefeed", {"sink_batch_ms": 20.0}),
        (1, "jar", {"sink_batch_ms": 100.0}),
        (2, "tablefeed", {"sink_batch_ms": 30.0}),
        (2, "jar", {"sink_batch_ms": 110.0}),
    ]
    assert kept["answers"][0]["goal"] == "<= 0.25"
