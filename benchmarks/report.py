"""What follows from the samples: medians, ratios, goals met or missed, as values, as JSON and as Markdown. No I/O."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.questions import QUESTIONS, Goal, Question, Setting, Side


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The numbers of one process: one side in one setting of one round."""

    round: int
    setting: Setting
    side: Side
    numbers: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A question's answer in one setting: both sides' medians, and the ratio of ours to the JAR's.

    `pair_ratios` are the smallest and the largest ratio of one round: how far to trust `ratio`.
    """

    question: Question
    setting: Setting
    ours: float
    jar: float
    pair_ratios: tuple[float, float]
    pair_count: int

    @property
    def ratio(self) -> float:
        """Our median over the JAR's."""
        return self.ours / self.jar

    @property
    def goal(self) -> Goal | None:
        """The bound on the ratio, if the question has one in this setting."""
        return self.question.goals.get(self.setting)

    @property
    def verdict(self) -> str:
        """`met` or `missed`, and nothing where there is no goal."""
        if self.goal is None:
            return ""
        return "met" if self.goal.is_met_by(self.ours if self.question.is_ratio else self.ratio) else "missed"

    @property
    def goal_text(self) -> str:
        """The goal, and that it is of our own number where it is; nothing where there is none."""
        if self.goal is None:
            return ""
        return f"ours {self.goal}" if self.question.is_ratio else str(self.goal)


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
                "ours": answer.ours,
                "jar": answer.jar,
                "ratio": answer.ratio,
                "pair_ratios": list(answer.pair_ratios),
                "pairs": answer.pair_count,
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
    Setting.UNIX_SOCKET: "With `spark.python.unix.domain.socket.enabled=true`",
}

_HEAD = (
    "| what | unit | tablefeed | Delta JAR | ratio | of one pair | goal | |",
    "| --- | --- | --- | --- | --- | --- | --- | --- |",
)


def _row(answer: Answer) -> str:
    low, high = answer.pair_ratios
    cells = (
        answer.question.text,
        answer.question.unit,
        number(answer.ours),
        number(answer.jar),
        f"{answer.ratio:.2f}",
        f"{low:.2f}-{high:.2f} ({answer.pair_count})",
        answer.goal_text,
        answer.verdict,
    )
    return f"| {' | '.join(cells)} |"


def number(value: float) -> str:
    """Gives a number as a reader wants it: whole where it is large, three digits where it is small."""
    return f"{value:,.0f}" if abs(value) >= 10 else f"{value:.3g}"


def _answers(samples: Sequence[Sample]) -> Iterator[Answer]:
    for setting in Setting:
        for question in QUESTIONS:
            pairs = _pairs([s for s in samples if s.setting is setting], question.key)
            if not pairs:
                continue
            ratios = [ours / jar for ours, jar in pairs]
            yield Answer(
                question=question,
                setting=setting,
                ours=statistics.median(ours for ours, _ in pairs),
                jar=statistics.median(jar for _, jar in pairs),
                pair_ratios=(min(ratios), max(ratios)),
                pair_count=len(pairs),
            )


def _pairs(samples: Sequence[Sample], key: str) -> list[tuple[float, float]]:
    """Gives (ours, the JAR's) for each round in which both sides answered."""
    by_side = {side: {s.round: s.numbers[key] for s in samples if s.side is side and key in s.numbers} for side in Side}
    ours, jar = by_side[Side.OURS], by_side[Side.JAR]
    return [(ours[number], jar[number]) for number in sorted(ours.keys() & jar.keys())]
