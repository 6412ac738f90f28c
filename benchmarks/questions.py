"""What is asked, in which unit, and which answer is good enough. Constants and arithmetic; nothing is run here.

A goal is a bound on the ratio of our number to another: the Delta JAR's, or one that our own session measured beside
it. Or it is a bound on our number itself. It is printed beside what was measured and does not move: a goal that is
missed is missed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Setting(StrEnum):
    """Spark's defaults, or what docs/how-to/faster.md advises for large batches and for starts of queries."""

    DEFAULT = "default"
    ADVISED = "advised"


class Side(StrEnum):
    """Who is measured."""

    OURS = "tablefeed"
    JAR = "jar"


class Measurement(StrEnum):
    """One thing that each session measures once a round; in the order in which a round does."""

    SOURCE_ROWS = "source rows"
    SINK_ROWS = "sink rows"
    SINK_ROWS_OF_PARQUET = "sink rows of parquet"
    SINK_TASK = "sink task"
    CHANGE_FEED = "change feed"
    SOURCE_BATCHES = "source batches"
    SINK_BATCHES = "sink batches"
    LATENCY = "latency"
    NOTHING_NEW = "nothing new"
    IDLE = "idle"
    COLD = "cold"
    CATCH_UP = "catch-up"
    OLD_LOG = "old log"


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
    """One number of a measurement: its `key` in the samples, its `unit`, its goals in each setting.

    `goals` bound the ratio of our number to the Delta JAR's, or to the number of our session that `beside` names, or,
    with `is_ours`, our number itself. `text_beside` says what `beside` is.
    """

    key: str
    text: str
    unit: str
    goals: Mapping[Setting, Goal]
    beside: str | None = None
    text_beside: str = "Delta JAR"
    is_ours: bool = False


def _both(goal: Goal) -> dict[Setting, Goal]:
    return {Setting.DEFAULT: goal, Setting.ADVISED: goal}


READY = "ready-made batches of a trivial Python source"
"""What `benchmarks.ready` gives: the least that any Python source costs."""

PARQUET = "Spark's own Parquet source"

SOURCE = Question(
    key="source_s",
    text="10 M rows to `noop`, one batch",
    unit="s",
    goals=_both(AtMost(bound=0.9)),
)
SOURCE_ADD_BATCH = Question(
    key="source_add_batch_s",
    text="its `addBatch`",
    unit="s",
    goals={},
)
SOURCE_ADD_BATCH_OVER_READY = Question(
    key="source_add_batch_s",
    text="its `addBatch`",
    unit="s",
    goals=_both(AtMost(bound=1.15)),
    beside="ready_add_batch_s",
    text_beside=READY,
)
SOURCE_ADD_BATCH_OVER_PARQUET = Question(
    key="source_add_batch_s",
    text="its `addBatch`",
    unit="s",
    goals={},
    beside="parquet_add_batch_s",
    text_beside=PARQUET,
)
SINK_ROWS = Question(
    key="sink_rows_per_s",
    text="the same 10 M rows into the sink, one batch",
    unit="rows/s",
    goals=_both(AtLeast(bound=1.1)),
)
SINK_ROWS_OF_PARQUET = Question(
    key="sink_rows_of_parquet_per_s",
    text=f"these rows into the sink, read by {PARQUET} on both sides",
    unit="rows/s",
    goals=_both(AtLeast(bound=1.1)),
)
SINK_TASK = Question(
    key="sink_task_rows_per_s",
    text="one task of the sink, rows in memory",
    unit="rows/s",
    goals=_both(AtLeast(bound=0.85)),
    beside="write_dataset_rows_per_s",
    text_beside="`pyarrow.dataset.write_dataset`, one thread",
)
CHANGE_FEED = Question(
    key="changes_per_s",
    text="20 M rows of changes of all versions to `noop`",
    unit="rows/s",
    goals=_both(AtLeast(bound=1.3)),
)
SOURCE_BATCH = Question(
    key="source_batch_ms",
    text="one-file batches to `noop`, p50",
    unit="ms",
    goals={Setting.DEFAULT: AtMost(bound=1.3), Setting.ADVISED: AtMost(bound=0.85)},
)
SOURCE_BATCH_OWN = Question(
    key="source_batch_own_ms",
    text="the same less Spark's two log writes, p50",
    unit="ms",
    goals={},
    beside="ready_batch_own_ms",
    text_beside=READY,
)
SINK_BATCH = Question(
    key="sink_batch_ms",
    text="one-file batches into the sink, p50",
    unit="ms",
    goals=_both(AtMost(bound=0.25)),
)
SINK_BATCH_OWN = Question(
    key="sink_batch_own_ms",
    text="the same less Spark's two log writes, p50",
    unit="ms",
    goals={},
)
SINK_SPREAD = Question(
    key="sink_batch_spread",
    text="one-file batches into the sink, p99 over p50",
    unit="times",
    goals=_both(AtMost(bound=2)),
    is_ours=True,
)
LATENCY = Question(
    key="latency_ms",
    text="from a commit to its row in `foreachBatch`, p50",
    unit="ms",
    goals=_both(AtMost(bound=0.65)),
)
LATENCY_OWN = Question(
    key="latency_own_ms",
    text=f"the same less that of {READY}",
    unit="ms",
    goals=_both(AtMost(bound=25)),
    is_ours=True,
)
NOTHING_NEW = Question(
    key="nothing_new_s",
    text="a warm `availableNow` run with nothing new, to `noop`",
    unit="s",
    goals={},
)
NOTHING_NEW_OVER_READY = Question(
    key="nothing_new_s",
    text="a warm `availableNow` run with nothing new, to `noop`",
    unit="s",
    goals=_both(AtMost(bound=1.1)),
    beside="ready_nothing_new_s",
    text_beside="a trivial Python source",
)
NOTHING_NEW_TO_TABLE = Question(
    key="nothing_new_to_table_s",
    text="the same, to a table",
    unit="s",
    goals={},
)
NOTHING_NEW_TO_TABLE_OVER_READY = Question(
    key="nothing_new_to_table_s",
    text="the same, to a table",
    unit="s",
    goals=_both(AtMost(bound=1.1)),
    beside="ready_nothing_new_to_ready_s",
    text_beside="a trivial Python source and sink",
)
IDLE = Question(
    key="idle_cpu_s_per_min",
    text="an idle query, processor time of all its processes in a minute",
    unit="s",
    goals=_both(AtMost(bound=1.5)),
    is_ours=True,
)
COLD = Question(
    key="cold_s",
    text="a new session, one `availableNow` run of 10 files, process start to end",
    unit="s",
    goals=_both(AtMost(bound=0.7)),
)
CATCH_UP = Question(
    key="catch_up_files_per_s",
    text="a backlog of one-file commits to `noop`, many files a batch",
    unit="files/s",
    goals=_both(AtLeast(bound=1.5)),
)
OLD_LOG = Question(
    key="old_log_batch_ms",
    text="one-file batches late in a long log, p50",
    unit="ms",
    goals={},
)
GROWTH = Question(
    key="old_log_growth",
    text="the same over a batch early in a short log",
    unit="times",
    goals=_both(AtMost(bound=1.1)),
    is_ours=True,
)

QUESTIONS = (
    SOURCE,
    SOURCE_ADD_BATCH,
    SOURCE_ADD_BATCH_OVER_READY,
    SOURCE_ADD_BATCH_OVER_PARQUET,
    SINK_ROWS,
    SINK_ROWS_OF_PARQUET,
    SINK_TASK,
    CHANGE_FEED,
    SOURCE_BATCH,
    SOURCE_BATCH_OWN,
    SINK_BATCH,
    SINK_BATCH_OWN,
    SINK_SPREAD,
    LATENCY,
    LATENCY_OWN,
    NOTHING_NEW,
    NOTHING_NEW_OVER_READY,
    NOTHING_NEW_TO_TABLE,
    NOTHING_NEW_TO_TABLE_OVER_READY,
    IDLE,
    COLD,
    CATCH_UP,
    OLD_LOG,
    GROWTH,
)
