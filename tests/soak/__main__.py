"""`python -m soak`: an hour of writers, queries, upkeep and SIGKILLs on five tables. Is every row there once?

    python -m soak [--minutes 60] [--seed N] [--peer-jars FOLDER] [--without-spark] [--folder FOLDER]

The seed fixes what each writer writes and when whom is killed. It does not fix how the processes interleave.
"""

from __future__ import annotations

import argparse
import random
import shutil
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import tablefeed
from soak.memory import Memory
from soak.queries import SOURCES
from soak.steps import COPY, DELTA_RS, JAR, MIRROR, OURS, TABLES, TARGET
from soak.verdict import WrongError, check, newest_version
from soak.writers import shared
from support.processes import kill_session, processes_of_session

QUERIES, UPKEEP = "queries", "upkeep"

LIVES_S = {QUERIES: (15, 240), OURS: (5, 120), DELTA_RS: (5, 120), UPKEEP: (10, 120), JAR: (240, 900)}
"""How long a process lives until it is killed, in seconds: from, to. Shorter lives are the more frequent ones."""

PATIENCE_S = 600


@dataclass(slots=True, kw_only=True)
class Life:
    """One start of a program, in a session of its own."""

    program: subprocess.Popen[bytes]
    ends_at: float
    """When it is killed, on `time.monotonic`."""
    memory: Memory


@dataclass(slots=True, kw_only=True)
class Soak:
    """A run: its programs by their names, and what has happened to them."""

    folder: Path
    seed: int
    minutes: float
    jars: Path | None
    on_spark: bool
    chance: random.Random
    began: float = field(default_factory=time.monotonic)
    alive: dict[str, Life] = field(default_factory=dict)
    kills: dict[str, int] = field(default_factory=dict)
    memories: list[Memory] = field(default_factory=list)
    held: ExitStack = field(default_factory=ExitStack)
    """The tables that the queries write, shared while a query lives."""

    @property
    def names(self) -> list[str]:
        return [QUERIES, OURS, DELTA_RS, UPKEEP, *([JAR] if self.jars else [])]

    def run(self) -> None:
        """Lets all run for the time, and stops them. Raises WrongError."""
        ends = self.began + self.minutes * 60
        says_at = self.began + 60
        for name in self.names:
            self.start(name, ends)
        while time.monotonic() < ends:
            time.sleep(1)
            for name, life in self.alive.items():
                if life.program.poll() is not None:
                    raise WrongError(f"{name} ended by itself: {self.said(name)}")
                life.memory.look(processes_of_session(life.program.pid))
            for name in [name for name, life in self.alive.items() if life.ends_at < time.monotonic()]:
                self.kill(name)
                if self.chance.random() < 0.5:
                    time.sleep(self.chance.uniform(1, 5))
                self.start(name, ends)
            if time.monotonic() > says_at:
                says_at += 60
                self.say()
        (self.folder / "stop").touch()
        for name, life in sorted(self.alive.items(), key=lambda each: each[0] == QUERIES):
            if name == QUERIES:
                (self.folder / "drain").touch()  # the writers have ended
            if life.program.wait(PATIENCE_S) != 0:
                raise WrongError(f"{name} ended with {life.program.returncode}: {self.said(name)}")
            self.memories.append(life.memory)

    def start(self, name: str, ends: float) -> None:
        """Starts a program. The queries' last life is the last third of the run: then their memory is looked at."""
        if name == QUERIES:
            for table in (COPY, TARGET, MIRROR):
                self.held.enter_context(shared(self.folder, table))
            arguments = ["soak.queries", "spark" if self.on_spark else "model", str(self.folder)]
        else:
            arguments = ["soak.writers", name, str(self.folder), str(self.seed), str(self.jars or ".")]
        low, high = LIVES_S[name] if self.on_spark else (2, 30)
        life_s = low * (high / low) ** self.chance.random()
        quiet = self.began + self.minutes * 40 if name == QUERIES else ends - 1
        begins = time.monotonic()
        ends_at = begins + life_s if begins < quiet else float("inf")
        with (self.folder / f"{name}.log").open("ab") as log:
            command = [sys.executable, "-m", *arguments]
            program = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        self.alive[name] = Life(program=program, ends_at=ends_at, memory=Memory(name, program.pid))

    def kill(self, name: str) -> None:
        """Kills a program and all of its processes. Its driver goes last, for it holds the locks."""
        life = self.alive.pop(name)
        kill_session(life.program.pid, spare=life.program.pid)
        kill_session(life.program.pid)
        life.program.wait()
        self.memories.append(life.memory)
        self.kills[name] = self.kills.get(name, 0) + 1
        if name == QUERIES:
            self.held.close()

    def say(self) -> None:
        """Prints one line: the newest versions, how far the queries are, the kills, the memory."""
        newest = {table: newest_version(self.folder / table) for table in TABLES}
        behind = {}
        for target, source in SOURCES.items():
            read = [
                each.version for each in tablefeed.consumers(self.folder / source).list() if each.consumer_id == target
            ]
            behind[target] = newest[source] - (read[0] if read else -1)
        minute = round((time.monotonic() - self.began) / 60)
        facts = {"versions": newest, "behind": behind, "kills": self.kills}
        told = "; ".join(f"{what} {', '.join(f'{k} {v}' for k, v in each.items())}" for what, each in facts.items())
        print(f"minute {minute}: {told}; {self.alive[QUERIES].memory}", flush=True)

    def said(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")[-3000:]

    def end(self) -> None:
        """Kills what still lives."""
        for name in [*self.alive]:
            self.kill(name)


def main() -> None:
    """Runs a soak. Its folder is removed where all is right."""
    parser = argparse.ArgumentParser(prog="python -m soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--peer-jars", type=Path, help="the Delta JAR and what it needs; without it two writers write")
    parser.add_argument("--without-spark", action="store_true", help="no JVM: queries under a model of Spark's batches")
    parser.add_argument("--folder", type=Path, default=Path("build/soak"))
    given = parser.parse_args()
    folder = (given.folder / f"{time.strftime('%Y-%m-%d-%H%M%S')}-{given.seed}").resolve()
    folder.mkdir(parents=True)
    writers = 3 if given.peer_jars else 2
    print(f"soak: {given.minutes:g} minutes, seed {given.seed}, {writers} writers, in {folder}", flush=True)
    if not given.peer_jars:
        print("soak: without the Delta JAR (--peer-jars): delta-rs and tablefeed write", flush=True)
    retention_s = 60 + 5 * given.minutes
    (folder / "retention").write_text(str(retention_s))
    kept = {
        "delta.deletedFileRetentionDuration": f"interval {retention_s:.0f} seconds",
        "delta.logRetentionDuration": "interval 1 day",  # age_log makes files older
    }
    for table, (schema, properties) in TABLES.items():
        tablefeed.create(folder / table, schema, properties={**properties, **kept})
    soak = Soak(
        folder=folder,
        seed=given.seed,
        minutes=given.minutes,
        jars=given.peer_jars,
        on_spark=not given.without_spark,
        chance=random.Random(given.seed),
    )
    try:
        soak.run()
        commits = check(folder, given.seed, given.peer_jars, soak.memories)
    except WrongError as wrong:
        raise SystemExit(f"soak: WRONG, seed {given.seed}, the folder {folder} is kept: {wrong}") from wrong
    finally:
        soak.end()
    shutil.rmtree(folder)
    print(f"soak: {commits} commits, {sum(soak.kills.values())} kills, every row once")


if __name__ == "__main__":
    main()
