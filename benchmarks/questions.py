"""What is asked, in which unit, and which answer is good enough. Constants and arithmetic; nothing is run here.

A goal is a bound on the ratio of our number to the Delta JAR's, or on one that is ours alone. It is printed beside what
was measured and does not move: a goal that is missed is missed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Setting(StrEnum):
    """How the JVM and its Python workers talk: the one thing that the README recommends to set."""

    DEFAULT = "default"
    UNIX_SOCKET = "unix socket"


class Side(StrEnum):
    """Who is measured."""

    OURS = "tablefeed"
    JAR = "jar"


class Measurement(StrEnum):
    """One thing that a process runs; in the order in which it runs them."""

    SOURCE_ROWS = "source rows"
    SOURCE_BATCHES = "source batches"
    SINK_BATCHES = "sink batches"
    SINK_ROWS = "sink rows"
    SINK_ROWS_OF_PARQUET = "sink rows of parquet"
    LATENCY = "latency"
    CATCH_UP = "catch-up"
    CHANGE_FEED = "change feed"
    OLD_LOG = "old log"
    IDLE = "idle"


@dataclass(frozen=True, slots=True, kw_only=True)
class AtLeast:
    """A ratio that should not be below `bound`: for numbers of which more is better."""

    bound: float

    def is_met_by(self, ratio: float) -> bool:
        """Says whether `ratio` is good enough."""
        return ratio >= self.bound

    def __str__(self) -> str:
        return f">= {self.bound:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AtMost:
    """A ratio that should not be above `bound`: for numbers of which less is better."""

    bound: float

    def is_met_by(self, ratio: float) -> bool:
        """Says whether `ratio` is good enough."""
        return ratio <= self.bound

    def __str__(self) -> str:
        return f"<= {self.bound:g}"


Goal = AtLeast | AtMost


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One number of a measurement: its `key` in the samples, its `unit`, its goal in each setting, if it has one.

    The goals bound the ratio, or, where the number is one itself (`is_ratio`), ours.
    """

    key: str
    text: str
    unit: str
    goals: Mapping[Setting, Goal]
    is_ratio: bool = False


def _both(goal: Goal) -> dict[Setting, Goal]:
    return {Setting.DEFAULT: goal, Setting.UNIX_SOCKET: goal}


SOURCE_ROWS = Question(
    key="source_rows_per_s",
    text="the bulk table to `noop`, one batch",
    unit="rows/s",
    goals=_both(AtLeast(bound=1.3)),
)
SOURCE_BATCH = Question(
    key="source_batch_ms",
    text="one-file batches to `noop`, time of a batch",
    unit="ms",
    goals={Setting.DEFAULT: AtMost(bound=1.3), Setting.UNIX_SOCKET: AtMost(bound=0.85)},
)
SINK_BATCH = Question(
    key="sink_batch_ms",
    text="one-file batches into the sink, time of a batch, p50",
    unit="ms",
    goals=_both(AtMost(bound=0.25)),
)
SINK_BATCH_P99 = Question(
    key="sink_batch_p99_ms",
    text="one-file batches into the sink, p99",
    unit="ms",
    goals={},
)
SINK_SPREAD = Question(
    key="sink_batch_spread",
    text="the same p99 over the p50",
    unit="times",
    goals=_both(AtMost(bound=2)),
    is_ratio=True,
)
SINK_ROWS = Question(
    key="sink_rows_per_s",
    text="the bulk table into the sink, one batch",
    unit="rows/s",
    goals=_both(AtLeast(bound=1.0)),
)
SINK_ROWS_OF_PARQUET = Question(
    key="sink_rows_of_parquet_per_s",
    text="the bulk table's files into the sink, read by Spark itself on both sides",
    unit="rows/s",
    goals={},
)
LATENCY_P50 = Question(
    key="latency_p50_ms",
    text="from a commit to its row in `foreachBatch`, p50",
    unit="ms",
    goals=_both(AtMost(bound=0.65)),
)
LATENCY_P95 = Question(
    key="latency_p95_ms",
    text="from a commit to its row in `foreachBatch`, p95",
    unit="ms",
    goals=_both(AtMost(bound=0.65)),
)
CATCH_UP = Question(
    key="catch_up_files_per_s",
    text="a backlog of one-file commits to `noop`, many files a batch",
    unit="files/s",
    goals=_both(AtLeast(bound=1.5)),
)
CHANGE_FEED = Question(
    key="changes_per_s",
    text="the changes of all versions to `noop`",
    unit="rows/s",
    goals=_both(AtLeast(bound=1.0)),
)
OLD_LOG = Question(
    key="old_log_batch_ms",
    text="one-file batches late in a long log, time of a batch",
    unit="ms",
    goals={},
)
GROWTH = Question(
    key="old_log_growth",
    text="the same over a batch early in a short log",
    unit="times",
    goals=_both(AtMost(bound=1.1)),
    is_ratio=True,
)
IDLE = Question(
    key="idle_cpu_s_per_min",
    text="an idle query, processor time of all its processes in a minute",
    unit="s",
    goals=_both(AtMost(bound=1.0)),
)

QUESTIONS = (
    SOURCE_ROWS,
    SOURCE_BATCH,
    SINK_BATCH,
    SINK_BATCH_P99,
    SINK_SPREAD,
    SINK_ROWS,
    SINK_ROWS_OF_PARQUET,
    LATENCY_P50,
    LATENCY_P95,
    CATCH_UP,
    CHANGE_FEED,
    OLD_LOG,
    GROWTH,
    IDLE,
)
