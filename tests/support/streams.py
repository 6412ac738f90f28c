"""The corpus's recordings of Delta-Spark's own stream source: unpacked, run on a Spark of one's choice, and judged.

The recorder and its judge are the corpus's (streams/scenarios.py). A stream is right where its rows, batches, last
offset and error class are those of the recording.
"""

from __future__ import annotations

import gc
import json
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.corpus import corpus_folder, corpus_module

Scenario = Mapping[str, Any]  # Any: the recorder's JSON
Run = list[dict[str, Any]]  # what came of a scenario's stages, in the recorder's words
Rows = list[Any]

DECIDED_BY_SPARK = [
    "append/user_schema_equal",
    "append/user_schema_not_null",
    "append/user_schema_reordered",
    "cdf/cdf_user_schema",
]
"""Streams with a user's `.schema(...)`, which only Spark can parse and hand to a source: they run on Spark alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedStreams:
    """The recorded tables in `folder`, and each scenario by its id."""

    recorder: Any  # a module without types
    folder: Path
    scenarios: Mapping[str, Scenario]
    table_names: Mapping[str, str]

    def run(self, spark: Any, name: str, *, scratch: Path) -> Run:  # Any: a session, or the model of one
        """Runs a scenario on `spark`."""
        with leaving_files_open():
            found: Run = self.recorder.run_scenario(
                spark, "tablefeed", self.scenarios[name], str(self.folder), str(scratch), self.table_names
            )
        return found

    def run_all(self, spark: Any, names: Iterable[str], *, scratch: Path, at_once: int) -> dict[str, Run]:
        """Runs scenarios on the session `spark`, `at_once` of them side by side."""
        found: dict[str, Run] = {}

        def keep(scenario: Scenario, run: Run, _seconds: float) -> None:
            found[scenario["id"]] = run

        chosen = [self.scenarios[name] for name in names]
        with leaving_files_open():
            self.recorder.run_all(
                spark, "tablefeed", chosen, str(self.folder), str(scratch), self.table_names, at_once, keep
            )
            gc.collect()  # where threads left them
        return found

    def judge(self, name: str, run: Run) -> tuple[str, str]:
        """Gives the recorder's verdict on a run, `right` or another word, and its reason."""
        loss_free = self.recorder.NO_LOSS.get(name)  # Delta-Spark's own stream lost rows that this one has
        rows = self.recorded_rows(loss_free) if loss_free else None
        verdict: tuple[str, str] = self.recorder.judge(self.scenarios[name]["expect"], run, rows)
        return verdict

    def rows(self, run: Run) -> Rows:
        """Gives the number of rows of a run and their digest, whatever their order and batches."""
        found: Rows = self.recorder.total([batch for stage in run for batch in stage["batches"]])
        return found

    def recorded_rows(self, name: str) -> Rows:
        """Gives `rows` of the recording."""
        return self.rows(self.scenarios[name]["expect"])


def unpack_streams(corpus: Path, into: Path) -> RecordedStreams:
    """Unpacks the recorded tables into the folder `into`, which must not be there."""
    recorder = corpus_module(corpus / "streams" / "scenarios.py")
    with leaving_files_open():
        recorded = recorder.load(str(corpus / "streams"))
        recorder.unpack(str(corpus / "streams"), str(into), recorded["rebase"])
    return RecordedStreams(
        recorder=recorder,
        folder=into,
        scenarios={scenario["id"]: scenario for scenario in recorded["scenarios"]},
        table_names={facts["id"]: name for name, facts in recorded["tables"].items()},
    )


def recorded_names() -> list[str]:
    """The ids of all scenarios, for a test of each; none where the corpus is absent."""
    folder = corpus_folder()
    if folder is None:
        return []
    recorded = json.loads((folder / "streams" / "expected.json").read_text(encoding="utf-8"))
    return [scenario["id"] for scenario in recorded["scenarios"]]


@contextmanager
def leaving_files_open() -> Iterator[None]:
    """Lets the recorder leave files open, which closes none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        yield
