"""The kinds of schedules, each made up from a seed."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from simulation.actors import Asked
from simulation.change_laws import RECORDS
from simulation.schedule import CHANGED, MERGED, OVERWRITTEN, STREAMED, Schedule, Step
from simulation.world import Calls, FaultKind, Form, Strike

KEEPS = {
    "delta.logRetentionDuration": "interval 1 days",
    "delta.deletedFileRetentionDuration": "interval 72 hours",
}
"""A cleanup keeps the log of a day, back to midnight."""
FAULTS: tuple[FaultKind, ...] = ("fail", "lose", "down", "late", "repeat", "short", "die", "die after")


def schedule_of(seed: int) -> Schedule:
    """Makes up a schedule."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    keeps = KEEPS | {"delta.checkpointInterval": str(chance.choice([2, 2, 3]))}
    if chance.random() < 0.2:
        keeps["delta.checkpointPolicy"] = "v2"
    if chance.random() < 0.2:
        keeps["delta.enableInCommitTimestamps"] = "true"
    tables = STREAMED if chance.random() < 0.9 else chance.choice([CHANGED, MERGED])
    theme = chance.choice([*THEMES])
    disturbed = chance.choice(tables)
    return Schedule(
        seed=seed,
        tables=tables,
        folders=chance.random() < 0.5,
        asked=Asked(
            starts=chance.choice(["snapshot", "version 0", "latest"]),
            files=chance.choice([None, 1, 2]),
            is_consumer=chance.random() < 0.3,
        ),
        properties=keeps,
        vectors=chance.random() < 0.5,
        skew_ms=chance.choice([0, 0, -20_000, 20_000]),
        steps=tuple(_step(chance, tables, THEMES[theme], disturbed) for _ in range(chance.randint(*_steps(tables)))),
    )


def _steps(tables: Sequence[str]) -> tuple[int, int]:
    """The fewest and the most steps. A stream drains at the end: with more steps it finds less in the same time."""
    return (4, 8) if tables == STREAMED else (5, 12)


def schedule_without_txns(seed: int) -> Schedule:
    """Makes up a schedule in which one appender, or both, record no transactions, and few checkpoints are written."""
    schedule = schedule_of(seed)
    properties = {**schedule.properties, "delta.checkpointInterval": "10"}
    return replace(schedule, txns=seed % 2, properties=properties)


THEMES: Mapping[str, Mapping[str, int]] = {
    "races": {"write": 55, "upkeep": 16, "fold": 14, "check": 6, "read": 5, "jump": 3, "tear": 2, "compact": 2},
    "age": {"write": 50, "upkeep": 8, "fold": 8, "check": 5, "clean": 16, "jump": 13, "tear": 5},
    "replaced": {"write": 50, "upkeep": 16, "fold": 4, "check": 4, "copy": 6, "restore": 8, "delete": 5, "recreate": 7},
}
"""How often a step is of which kind. Copies, tears and the like are of one table."""


AIMED: Mapping[str, Mapping[str, int]] = {
    "late": {"write": 40, "upkeep": 8, "check": 14, "clean": 22, "jump": 16},
    "torn": {"write": 34, "tear": 12, "check": 12, "clean": 24, "jump": 18},
}
"""The same for schedules whose steps pause for long, and fail, only where they touch the log."""


def schedule_aimed(seed: int) -> Schedule:
    """Makes up a schedule whose steps pause and fail only where they list or change the log, and pause for longer."""
    schedule, chance = schedule_of(seed), random.Random(f"aimed {seed}")  # noqa: S311 - no secret
    weights, disturbed = AIMED[chance.choice([*AIMED])], chance.choice(schedule.tables)
    steps = [_step(chance, schedule.tables, weights, disturbed) for _ in range(chance.randint(5, 10))]
    strikes = [() if step.who in ("clock", "operator") else _at_the_log(chance) for step in steps]
    aimed = (replace(step, strikes=found) for step, found in zip(steps, strikes, strict=True))
    return replace(schedule, steps=tuple(aimed))


INDEXED: Mapping[str, Mapping[str, int]] = {
    "races": {"write": 58, "upkeep": 8, "check": 8, "compact": 14, "read": 5, "jump": 3, "tear": 4},
    "age": {"write": 50, "upkeep": 6, "compact": 8, "check": 7, "clean": 14, "jump": 11, "tear": 4},
    "replaced": {
        "write": 52,
        "upkeep": 6,
        "check": 5,
        "compact": 8,
        "copy": 7,
        "restore": 9,
        "delete": 5,
        "recreate": 8,
    },
}
"""The same for schedules with IndexTables tables, whose splits another writer merges ("compact")."""

FORMS: tuple[Form, ...] = ("new", "new", "commits", "checkpoints", "states", "native")


def schedule_indexed(seed: int) -> Schedule:
    """Makes up a schedule whose source or target, or both, are IndexTables tables."""
    schedule, chance = schedule_of(seed), random.Random(f"indexed {seed}")  # noqa: S311 - no secret
    of = chance.choice([("source",), ("target",), ("target",), STREAMED])
    weights, disturbed = INDEXED[chance.choice([*INDEXED])], chance.choice(of)
    steps = [_step(chance, STREAMED, weights, disturbed) for _ in range(chance.randint(5, 12))]
    if chance.random() < 0.3:
        steps = [s if s.who in ("clock", "operator") else replace(s, strikes=_at_the_log(chance)) for s in steps]
    forms = {table: chance.choice(FORMS) for table in of}
    return replace(schedule, tables=STREAMED, steps=tuple(steps), forms=forms, txns=chance.choice([2, 2, 1, 0]))


def schedule_overwritten(seed: int) -> Schedule:
    """Makes up a schedule of a table that is appended to and overwritten: a Delta table, or an IndexTables table."""
    schedule, chance = schedule_of(seed), random.Random(f"overwritten {seed}")  # noqa: S311 - no secret
    form = chance.choice(("delta", "delta", "delta", *FORMS))
    themes = THEMES if form == "delta" else INDEXED
    weights, forms = themes[chance.choice([*themes])], {} if form == "delta" else {OVERWRITTEN[0]: form}
    steps = [_step(chance, OVERWRITTEN, weights, *OVERWRITTEN) for _ in range(chance.randint(4, 8))]
    return replace(schedule, tables=OVERWRITTEN, steps=tuple(steps), forms=forms)


def schedule_recorded(seed: int) -> Schedule:
    """Makes up a schedule of a table whose changes are recorded and tracked, and of a stream of them."""
    schedule, chance = schedule_of(seed), random.Random(f"recorded {seed}")  # noqa: S311 - no secret
    tables = chance.choice([CHANGED, MERGED, MERGED, OVERWRITTEN])
    weights = THEMES[chance.choice([*THEMES])]
    steps = [_step(chance, tables, weights, *tables) for _ in range(chance.randint(4, 8))]
    if chance.random() < 0.2:
        steps = [s if s.who in ("clock", "operator") else replace(s, strikes=_at_the_log(chance)) for s in steps]
    if chance.random() < 0.5:
        back = Step(who="keeper 2", does=f"return_to {tables[0]}", strikes=_strikes(chance))
        steps.insert(chance.randint(2, len(steps)), back)
    steps = [
        replace(s, who="stream", does="batch") if s.does == "change" and chance.random() < 0.3 else s for s in steps
    ]
    return replace(schedule, tables=tables, steps=tuple(steps), properties={**schedule.properties, **RECORDS})


BEFORE = (
    (),
    ("append",),
    ("append", "append"),
    ("append", "append", "append", "checkpoint"),
    ("append", "append", "append", "jump"),
    ("stream", "append"),
    ("append", "stream", "append"),
)
"""What was done before, each append by another writer than the last; without the stream where there is none."""

DISTURBED = ("append", "append", "stream", "checkpoint", "upkeep", "cleanup", "optimize", "vacuum")

EVENTS: Mapping[tuple[str, ...], int] = {
    ("restore",): 8,
    ("restore", "append"): 8,
    ("restore", "append", "append"): 4,
    ("delete", "restore"): 2,
    ("delete",): 2,
    ("delete", "append"): 2,
    ("delete", "append", "append"): 2,
    ("recreate",): 2,
    ("recreate", "append"): 2,
    ("append",): 1,
    ("append", "checkpoint"): 2,
    ("append", "append", "cleanup"): 2,
    ("jump", "append", "cleanup"): 4,
    ("tear",): 1,
    ("compact",): 2,
    ("compact", "checkpoint"): 2,
}
"""What happens meanwhile, and how often."""

AGAIN = (
    ("append",),
    ("append", "append"),
    ("restore",),
    ("recreate", "append"),
    ("checkpoint",),
    ("append", "append", "cleanup"),
    ("jump", "append", "cleanup"),
    ("compact",),
    ("optimize",),
)
"""What happens in a second pause."""


def schedule_disturbed(seed: int) -> Schedule:
    """Makes up a schedule of one step that pauses once, and of what happens to its table meanwhile.

    In half of them it pauses a second time at a later call, and more happens, or that call fails. A cleanup does not
    pause right before it deletes: nothing can be done about a table that is replaced just then
    (docs/explanation/background-work.md).
    """
    schedule, chance = schedule_of(seed), random.Random(f"disturbed {seed}")  # noqa: S311 - no secret
    tables = chance.choice([STREAMED, STREAMED, STREAMED, OVERWRITTEN, OVERWRITTEN, CHANGED, MERGED])
    form = chance.choice(("delta", *FORMS)) if tables in (STREAMED, OVERWRITTEN) else "delta"
    table, writers = tables[0], itertools.cycle([1, 2])

    def step(does: str, *strikes: Strike) -> Step:
        match does:
            case "append":
                who, what = ("appender", does) if tables == STREAMED else ("changer", "change")
                return Step(who=f"{who} {next(writers)}", does=what, strikes=strikes)
            case "stream":
                return Step(who=does, does="batch", strikes=strikes)
            case "upkeep":
                return Step(who="anybody", does=does, strikes=strikes)
            case "jump":
                return Step(who="clock", does=does, number=50)
            case "checkpoint" | "cleanup" | "optimize" | "vacuum":
                return Step(who=f"keeper {1 if strikes else 2}", does=f"{does} {table}", strikes=strikes)
        return Step(who="operator", does=f"{does} {table}")

    before = [step(does) for does in chance.choice(BEFORE) if does != "stream" or tables == STREAMED]
    before.insert(chance.randint(0, len(before)), step("copy"))
    disturbed = chance.choice([each for each in DISTURBED if each != "stream" or tables == STREAMED])
    events = chance.choices([*EVENTS], [*EVENTS.values()])[0]
    calls: Calls
    calls, most = ("effect", 6) if chance.random() < 0.5 else ("any", 25)
    if disturbed in ("cleanup", "upkeep"):
        calls, most = "ask", 40
    at, again = chance.randint(1, most), tuple[str, ...]()
    strikes = [Strike(kind=len(events) + 1, calls=calls, at=at)]
    if chance.random() < 0.5:
        again = chance.choice(AGAIN) if chance.random() < 0.6 else ()
        later = at + chance.randint(1, 4 if calls == "effect" else 12)
        strikes.append(Strike(kind=len(again) or chance.choice(FAULTS), calls=calls, at=later))
    paused = step(disturbed, *strikes)
    after = [step(does) for does in (("stream", "append", "stream") if tables == STREAMED else ("append", "append"))]
    steps = (*before, paused, *map(step, events), *map(step, again), *after)
    return replace(schedule, tables=tables, steps=steps, forms={} if form == "delta" else {table: form})


def _at_the_log(chance: random.Random) -> tuple[Strike, ...]:
    found = []
    if chance.random() < 0.4:
        found.append(Strike(kind=chance.choice([2, 4, 8, 12]), calls="log", at=chance.randint(1, 4)))
    if chance.random() < 0.15:
        found.append(Strike(kind=chance.choice(FAULTS), calls="log", at=chance.randint(1, 4)))
    return tuple(found)


def _step(chance: random.Random, tables: Sequence[str], weights: Mapping[str, int], disturbed: str) -> Step:
    what = chance.choices([*weights], [*weights.values()])[0]
    table = chance.choice(tables)
    match what:
        case "jump":
            return Step(who="clock", does="jump", number=chance.choice([1, 26, 50, 50]))
        case "copy" | "restore" | "delete" | "recreate" | "tear" | "compact":
            return Step(who="operator", does=f"{what} {disturbed}")
        case "fold" | "check" | "clean" | "read":
            does = {"fold": "optimize", "check": "checkpoint", "read": "read"}.get(what)
            does = does or chance.choice(["cleanup", "cleanup", "vacuum"])
            table = disturbed if what == "clean" else table
            return Step(who=chance.choice(["keeper 1", "keeper 2"]), does=f"{does} {table}", strikes=_strikes(chance))
        case "upkeep":
            return Step(who="anybody", does="upkeep", strikes=_strikes(chance))
    who = chance.choice(["appender 1", "appender 2", "stream"] if tables == STREAMED else ["changer 1", "changer 2"])
    does = "batch" if who == "stream" else "append" if tables == STREAMED else "change"
    return Step(who=who, does=does, strikes=_strikes(chance))


def _strikes(chance: random.Random) -> tuple[Strike, ...]:
    found = []
    if chance.random() < 0.4:
        found.append(Strike(kind=chance.choice([1, 2, 3, 4, 8]), **_where(chance)))
    if chance.random() < 0.3:
        found.append(Strike(kind=chance.choice(FAULTS), **_where(chance)))
    return tuple(found)


def _where(chance: random.Random) -> dict[str, Any]:
    calls = chance.choice(["any", "ask", "effect", "effect"])
    return {"calls": calls, "at": chance.randint(1, 4 if calls == "effect" else 25)}
