"""What follows from the samples: medians, ratios, goals met or missed, as values, as JSON and as Markdown. No I/O."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.questions import QUESTIONS, Goal, Question, Setting, Side


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The numbers of one measurement: one side in one setting of one round. Round 0 is the warm-up."""

    round: int
    setting: Setting
    side: Side
    numbers: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """A number over the rounds that count, and in the round before them, where everything was still cold."""

    low: float
    median: float
    high: float
    cold: float | None

    @classmethod
    def of(cls, by_round: Mapping[int, float]) -> Spread | None:
        """Gives the spread of the numbers of some rounds; None where only the warm-up has one."""
        warm = [value for number, value in by_round.items() if number > 0]
        if not warm:
            return None
        return cls(low=min(warm), median=statistics.median(warm), high=max(warm), cold=by_round.get(0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A question's answer in one setting: our number, the one beside it if there is one, and the ratio of one round.

    `pair_ratios` are the smallest and the largest ratio of one round: how far to trust `ratio`.
    """

    question: Question
    setting: Setting
    ours: Spread
    beside: Spread | None
    pair_ratios: tuple[float, float] | None
    round_count: int

    @property
    def ratio(self) -> float | None:
        """Our median over the other."""
        return None if self.beside is None else self.ours.median / self.beside.median

    @property
    def goal(self) -> Goal | None:
        """The bound, if the question has one in this setting."""
        return self.question.goals.get(self.setting)

    @property
    def verdict(self) -> str:
        """`met` or `missed`, and nothing where there is no goal."""
        bounded = self.ours.median if self.question.is_ours else self.ratio
        if self.goal is None or bounded is None:
            return ""
        return "met" if self.goal.is_met_by(bounded) else "missed"

    @property
    def goal_text(self) -> str:
        """The goal, and that it is of our own number where it is; nothing where there is none."""
        if self.goal is None:
            return ""
        return f"ours {self.goal}" if self.question.is_ours else str(self.goal)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All that is written down of a run."""

    date: str
    workload: Sequence[str]
    versions: Mapping[str, str]
    machine: Mapping[str, str | int]
    samples: Sequence[Sample]

    @property
    def answers(self) -> list[Answer]:
        """The answers that the samples hold, in the order of the questions; the default setting first."""
        return list(_answers(self.samples))


def as_json(report: Report) -> dict[str, Any]:
    """Gives the report with every sample, for whoever wants to compute anew."""
    # Any: a tree of JSON.
    return {
        "date": report.date,
        "workload": list(report.workload),
        "versions": dict(report.versions),
        "machine": dict(report.machine),
        "answers": [
            {
                "question": answer.question.key,
                "unit": answer.question.unit,
                "setting": answer.setting,
                "ours": asdict(answer.ours),
                "beside": answer.question.text_beside if answer.beside else None,
                "theirs": answer.beside and asdict(answer.beside),
                "ratio": answer.ratio,
                "pair_ratios": answer.pair_ratios,
                "rounds": answer.round_count,
                "goal": answer.goal_text or None,
                "verdict": answer.verdict or None,
            }
            for answer in report.answers
        ],
        "samples": [asdict(sample) for sample in report.samples],
    }


def as_markdown(report: Report) -> str:
    """Gives the report as a page: workload, one table a setting, versions and machine."""
    lines = [f"# tablefeed beside the Delta JAR, {report.date}", "", *(f"- {line}" for line in report.workload)]
    for setting in Setting:
        answers = [answer for answer in report.answers if answer.setting is setting]
        if answers:
            lines += ["", f"## {_TITLES[setting]}", "", *_HEAD, *(_row(answer) for answer in answers)]
    named = [f"{name} {version}" for name, version in report.versions.items()]
    sized = [f"{name} {value}" for name, value in report.machine.items()]
    lines += ["", f"Versions: {', '.join(named)}.", "", f"Machine: {', '.join(sized)}.", ""]
    return "\n".join(lines)


_TITLES = {
    Setting.DEFAULT: "Spark as it is",
    Setting.ADVISED: "With the settings that docs/how-to/faster.md advises",
}

_HEAD = (
    "| what | unit | tablefeed | at first | beside | its number | at first | ratio | of one round | goal | |",
    "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
)


def _row(answer: Answer) -> str:
    of_one = "" if answer.pair_ratios is None else "-".join(f"{ratio:.2f}" for ratio in answer.pair_ratios)
    cells = (
        answer.question.text,
        answer.question.unit,
        *_spread(answer.ours),
        answer.question.text_beside if answer.beside else "",
        *_spread(answer.beside),
        "" if answer.ratio is None else f"{answer.ratio:.2f}",
        f"{of_one} ({answer.round_count})".strip(),
        answer.goal_text,
        answer.verdict,
    )
    return f"| {' | '.join(cells)} |"


def _spread(spread: Spread | None) -> tuple[str, str]:
    """The median with the smallest and the largest, and the number of the warm-up."""
    if spread is None:
        return "", ""
    cold = "" if spread.cold is None else number(spread.cold)
    return f"{number(spread.median)} ({number(spread.low)}-{number(spread.high)})", cold


def number(value: float) -> str:
    """Gives a number as a reader wants it: whole where it is large, three digits where it is small."""
    return f"{value:,.0f}" if abs(value) >= 10 else f"{value:.3g}"


def _answers(samples: Sequence[Sample]) -> Iterator[Answer]:
    for setting in Setting:
        here = [s for s in samples if s.setting is setting]
        for question in QUESTIONS:
            ours = _by_round(here, Side.OURS, question.key)
            if question.beside is not None:
                theirs = _by_round(here, Side.OURS, question.beside)
            else:
                theirs = _by_round(here, Side.JAR, question.key)
            both = ours.keys() & theirs.keys() if theirs else ours.keys()
            ours, theirs = ({n: v for n, v in each.items() if n in both} for each in (ours, theirs))
            spread = Spread.of(ours)
            if spread is None or (question.beside is not None and not theirs):
                continue
            warm = [number for number in ours if number > 0]
            ratios = [ours[number] / theirs[number] for number in warm if number in theirs]
            yield Answer(
                question=question,
                setting=setting,
                ours=spread,
                beside=Spread.of(theirs),
                pair_ratios=(min(ratios), max(ratios)) if ratios else None,
                round_count=len(warm),
            )


def _by_round(samples: Sequence[Sample], side: Side, key: str) -> dict[int, float]:
    return {s.round: s.numbers[key] for s in samples if s.side is side and key in s.numbers}
