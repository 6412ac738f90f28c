"""Whatever writers, vacuum, cleanup and consumers do in any order: a consumer can read all that it has not read."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from support.logs import LONG_ID, add, log_of, metadata, protocol, put, remove
from tablefeed.delta.intervals import DAY_MS
from tablefeed.feed.snapshot.delta_log import DeltaLog
from tablefeed.feed.upkeep.consumers import Consumers
from tablefeed.feed.upkeep.delta_checkpoint import write_checkpoint
from tablefeed.feed.upkeep.delta_cleanup import clean_up
from tablefeed.feed.upkeep.vacuum import vacuumed
from tablefeed.model.actions import Version
from tablefeed.store.memory import MemoryStore

SHORT = {"delta.deletedFileRetentionDuration": "1 days", "delta.logRetentionDuration": "1 days"}
EXPIRES = timedelta(days=6)


@dataclass
class Table:
    """A table at whose clock a day is over when the test says so; each consumer knows where it is."""

    now_ms: int = 1_800_000_000_000
    version: int = 0
    live: list[str] = field(default_factory=list)
    at: dict[str, tuple[int, int]] = field(default_factory=dict)
    log: DeltaLog = field(init=False)

    def __post_init__(self) -> None:
        self.log = log_of(MemoryStore("t", now_ms=lambda: self.now_ms))
        put(self.log.store, 0, [protocol(), metadata(LONG_ID, configuration=SHORT)])

    def write(self) -> None:
        """Adds a file and, of three, removes the oldest."""
        self.version += 1
        name = f"f{self.version}"
        self.log.store.replace(name, b"rows")
        self.live.append(name)
        gone = [remove(self.live.pop(0), deletionTimestamp=self.now_ms)] if len(self.live) > 2 else []
        put(self.log.store, self.version, [*gone, add(name, modified=self.now_ms)])

    def do(self, step: str) -> None:
        consumers, who = Consumers(self.log), step.rpartition(" ")[2]
        match step.split(" "):
            case ["write"]:
                self.write()
            case ["day"]:
                self.now_ms += DAY_MS
            case ["checkpoint"]:
                if self.version:
                    write_checkpoint(self.log.load())
            case ["vacuum"]:
                vacuumed(self.log, retention_ms=None, allow_short=False, dry_run=False, now_ms=self.now_ms)
            case ["cleanup"]:
                clean_up(self.log.load(), now_ms=self.now_ms)
            case ["register", _]:
                consumers.register(who, expires_after=EXPIRES)
                self.at[who] = (self.version, self.now_ms)
            case ["progress", _] if who in self.at and self.at[who][0] < self.version:
                consumers.progress(who, self.at[who][0] + 1)
                self.at[who] = (self.at[who][0] + 1, self.now_ms)
            case ["remove", _]:
                consumers.remove(who)
                self.at.pop(who, None)

    def check(self) -> None:
        for who, (version, reported_ms) in [*self.at.items()]:
            if self.now_ms >= reported_ms + EXPIRES // timedelta(milliseconds=1):
                del self.at[who]  # from now on anything may be gone
                continue
            assert self.log.load(Version(version)).version == version
            for each in range(version + 1, self.version + 1):
                commit = self.log.commit(Version(each))
                assert commit is not None, (who, each)
                assert [file.path for file in commit.files if not self.log.store.exists(file.path)] == [], (who, each)


STEPS = ["write", "write", "day", "checkpoint", "vacuum", "cleanup"]
OF_CONSUMERS = [f"{step} {who}" for step in ("register", "progress", "remove") for who in ("a", "b")]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(STEPS + OF_CONSUMERS), max_size=40))
def test_a_consumer_can_always_read_what_it_has_not_read(steps: list[str]) -> None:
    table = Table()
    for step in ["write", "write", "checkpoint", *steps, "day", "day", "cleanup", "vacuum"]:
        table.do(step)
        table.check()
