"""Breaks four rooms of `src` in a fixed sample of places, one at a time, and records which the tests notice.

    python scripts/mutants.py OUT                         the sample of the four rooms (`make mutants`)
    python scripts/mutants.py OUT src/tablefeed/data      a sample of another room, for the tests of that room
    python scripts/mutants.py OUT FILE... tests/feed/api  the places of these files, for these tests

Run from the root of the repository with PYTHONPATH=src, on Linux. A place is an operator, a constant, a condition or a
statement in the body of a function. A mutant is the source with one place broken. All mutants of the sample are
compiled into the modules, each behind a switch. One process imports the modules and collects the tests. Each mutant is
a fork of this process with one switch set; as many run at a time as there are cores. A first run of all tests records
which test evaluates which switch. A mutant meets the tests that evaluate its switch: those of its own room first, quick
ones before slow ones, up to the first failure.

Verdicts are appended to OUT/verdicts.jsonl. A mutant that has one is passed over, so a run that was stopped goes on
where it stopped. tests/mutants/survivors.txt lists the mutants that no test can notice, each with the reason below it.
The run fails for any other survivor.
"""

from __future__ import annotations

import ast
import builtins
import gc
import hashlib
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

import pytest

SEED, COUNT = 20261123, 1000
ROOMS = ("src/tablefeed/log", "src/tablefeed/delta", "src/tablefeed/feed/commit", "src/tablefeed/feed/stream")
BESIDE = ("tests/scenarios", "tests/cli/test_watching.py")
"""Tests of other rooms that are also those of these four: of bad rows, and of the checkpoint of a query."""
LISTED = Path("tests/mutants/survivors.txt")
# Seconds of tests for a mutant. What survives the first meets the rest too, after all other mutants.
FIRST, REST = 5.0, float("inf")
SHARES = os.cpu_count() or 1
STALLED_SECONDS = 60  # without any processor time of a run and of what it started
MEMORY = 6 << 30
SWITCH = "_is_mutant"
NEGATED = [(ast.Eq, ast.NotEq), (ast.In, ast.NotIn), (ast.Is, ast.IsNot)]
PAIRS = [
    *NEGATED,
    (ast.Lt, ast.LtE),
    (ast.Gt, ast.GtE),
    (ast.And, ast.Or),
    (ast.Add, ast.Sub),
    (ast.Mult, ast.FloorDiv),
]
SWAPPED = {one: other for pair in PAIRS for one, other in (pair, pair[::-1])} | {ast.BitOr: ast.BitAnd}


def broken(node: ast.AST) -> ast.AST | None:
    """The node with another operator or constant, its condition negated, or without effect; None: not a place."""
    match node:
        case ast.Compare(left, [op], right) if type(op) in SWAPPED:
            return ast.Compare(left, [SWAPPED[type(op)]()], right)
        case ast.BoolOp(op, values):
            return ast.BoolOp(SWAPPED[type(op)](), values)
        case ast.BinOp(left, op, right) if type(op) in SWAPPED:
            return ast.BinOp(left, SWAPPED[type(op)](), right)
        case ast.UnaryOp(ast.Not(), operand):
            return operand
        case ast.Constant(bool() | int() as value):
            return ast.Constant(not value if isinstance(value, bool) else value + 1)
        case ast.If(test, body, orelse) if not has_its_negation(test):
            return ast.If(ast.UnaryOp(ast.Not(), test), body, orelse)
        case ast.IfExp(test, body, orelse) if not has_its_negation(test):
            return ast.IfExp(test, orelse, body)
        case ast.comprehension(target, iterated, [_, *_], is_async):
            return ast.comprehension(target, iterated, [], is_async)
        case ast.Return(ast.AST() as value) if not isinstance(value, ast.Constant):
            return ast.Return(ast.Constant(None))
        case ast.Continue():
            return ast.Break()
        case ast.Expr(ast.Call()) | ast.AugAssign() | ast.Raise():
            return ast.Pass()
    return None


def has_its_negation(test: ast.AST) -> bool:
    """Whether the condition is itself a place that, broken, gives the negation."""
    match test:
        case ast.UnaryOp(ast.Not()):
            return True
        case ast.Compare(_, [op], _):
            return any(type(op) in pair for pair in NEGATED)
    return False


def switched(node: ast.AST, number: int) -> ast.AST:
    """The node, or what it is when broken if that switch is set."""
    is_set = ast.Call(ast.Name(SWITCH, ast.Load()), [ast.Constant(number)], [])
    match node:
        case ast.If(test, body, orelse):
            return ast.If(ast.IfExp(is_set, ast.UnaryOp(ast.Not(), test), test), body, orelse)
        case ast.comprehension(target, iterated, tests, is_async):
            every = ast.BoolOp(ast.And(), [ast.Constant(value=True), *tests])
            return ast.comprehension(target, iterated, [ast.BoolOp(ast.Or(), [is_set, every])], is_async)
        case ast.Return(value):
            return ast.Return(ast.IfExp(is_set, ast.Constant(None), value))
        case ast.stmt():
            return ast.If(is_set, [broken(node)], [node])
    return ast.IfExp(is_set, broken(node), node)


class Place(NamedTuple):
    """A node that can be broken. Its name has no line number: a change elsewhere in the file does not change it."""

    file: str
    line: int
    name: str
    node: ast.AST


def places_of(file: str, tree: ast.AST) -> list[Place]:
    """Every place of a module, in the order of the source."""
    found, seen = [], Counter()

    def visit(node: ast.AST, within: str, line: int, *, inside: bool) -> None:
        match node:
            case ast.pattern() | ast.keyword("strict") | ast.Raise(ast.Call(ast.Name("AssertionError"))):
                return  # a pattern has no expressions, and the others only assert
        line = getattr(node, "lineno", line)
        if inside and (other := broken(node)):
            name = f"{file} {within}: {brief(node)} -> {brief(other)}"
            seen[name] += 1
            found.append(Place(file, line, name if seen[name] == 1 else f"{name} #{seen[name]}", node))
        function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if function or isinstance(node, ast.ClassDef):
            within = f"{within}.{node.name}".lstrip(".")
        for field, value in ast.iter_fields(node):
            if field not in ("annotation", "returns", "decorator_list") and not (function and field == "args"):
                for child in value if isinstance(value, list) else [value]:
                    if isinstance(child, ast.AST):
                        visit(child, within, line, inside=inside or (function and field == "body"))

    visit(tree, "", 0, inside=False)
    return found


def brief(node: ast.AST) -> str:
    """A node's source in one short line; of an `if` its condition."""
    text = f"if {ast.unparse(node.test)}" if isinstance(node, ast.If) else " ".join(ast.unparse(node).split())
    return text if len(text) <= 60 else text[:57] + "..."


def sample(rooms: Iterable[str]) -> list[Place]:
    """The places to break, in the order of their hashes, so that the first ones are a sample too.

    A change of a function changes only that function's part of the sample.
    """
    paths = [path for path in Path("src").rglob("*.py") if any(path.is_relative_to(room) for room in rooms)]
    places = [place for file in sorted(paths) for place in places_of(str(file), ast.parse(file.read_text()))]
    return sorted(places, key=lambda place: hashlib.sha256(f"{SEED} {place.name}".encode()).digest())[:COUNT]


class Switch:
    """What the compiled code asks at each place of the sample; remembers what it was asked."""

    def __init__(self) -> None:
        self.set_to = -1
        self.asked: set[int] = set()

    def __call__(self, number: int) -> bool:
        """Whether the place of the number is broken here."""
        self.asked.add(number)
        return number == self.set_to


class Switches(ast.NodeTransformer):
    """Puts switches into a tree."""

    def __init__(self, numbers: dict[ast.AST, int]) -> None:
        self.numbers = numbers

    def visit(self, node: ast.AST) -> ast.AST:
        """Gives the node with the switches at it and below it."""
        number, node = self.numbers.get(node), self.generic_visit(node)
        return node if number is None else switched(node, number)


def import_with_switches(places: list[Place], switch: Switch) -> None:
    """From now on this process imports the modules of the places with switches."""
    numbers = {place.name: number for number, place in enumerate(places)}
    of_source, files = SourceFileLoader.source_to_code, {str(Path(p.file).resolve()): p.file for p in places}

    def of_switched(self, data, path, **more):
        if (file := files.get(path)) is not None:
            data = ast.parse(data)
            here = {place.node: numbers[place.name] for place in places_of(file, data) if place.name in numbers}
            data = ast.fix_missing_locations(Switches(here).visit(data))
        return of_source(self, data, path, **more)

    SourceFileLoader.source_to_code = of_switched
    sys.pycache_prefix, sys.dont_write_bytecode = os.devnull, True
    setattr(builtins, SWITCH, switch)


class Mutants:
    """A plugin of pytest: runs the collected tests once, then for every mutant those that evaluate its switch."""

    def __init__(self, places: list[Place], switch: Switch, out: Path) -> None:
        self.places, self.switch, self.out = places, switch, out
        self.failed: str | None = None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remembers a failure."""
        if report.failed:
            self.failed = report.nodeid

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Writes the verdicts that are missing."""
        if session.testsfailed:
            raise session.Interrupted("some tests cannot be collected")
        session.config.pluginmanager.unregister(name="terminalreporter")
        gc.collect()
        gc.freeze()
        reached = self.reached(session.items)
        for most in (FIRST, REST):
            shared(partial(self.judge, session.items, reached, verdicts(self.out), most))
        return True

    def judge(self, items: list[pytest.Item], reached: dict, known: dict, most: float, share: int) -> None:
        """Writes the missing verdicts of one share of the mutants."""
        for number in range(share, len(self.places), SHARES):
            earlier = known.get(self.places[number].name)
            if earlier is None or (most == REST and earlier["verdict"] == "survived" and earlier["left"]):
                append(self.out / "verdicts.jsonl", self.verdict(number, items, reached, most, share))

    def reached(self, items: list[pytest.Item]) -> dict[str, tuple[float, list[int]]]:
        """By test the seconds that it takes and the switches that it evaluates; kept in OUT for this sample."""
        of_sample = hashlib.sha256("\n".join(place.name for place in self.places).encode()).hexdigest()[:8]
        kept = self.out / f"reached-{of_sample}.jsonl"
        known = {test for test, _, _ in lines_of(kept)}
        new = [item for item in items if item.nodeid not in known]

        def record(share: int) -> None:
            mine = [item for item in new if crc32(bytes(item.path)) % SHARES == share]
            for item, after in zip(mine, [*mine[1:], None], strict=True):
                self.switch.asked.clear()
                begun = time.process_time()
                self.run(item, after)
                found = (item.nodeid, time.process_time() - begun, sorted(self.switch.asked))
                if self.failed is not None:
                    found, self.failed = (item.nodeid, 0.0, []), None
                    print("fails with nothing broken, so it judges no mutant:", item.nodeid, flush=True)
                append(kept, found)

        shared(lambda share: forked(partial(record, share), REST, self.out / f"reached-{share}.log"))
        return {test: (seconds, asked) for test, seconds, asked in lines_of(kept)}

    def verdict(self, number: int, items: list[pytest.Item], reached: dict, most: float, share: int) -> dict:
        """What the tests say of a mutant, no more of them than take so many seconds."""
        place, seconds, tests = self.places[number], 0.0, []
        room = f"tests/{Path(place.file).parts[2]}/"
        of_place = [(*reached[item.nodeid], item) for item in items if number in reached[item.nodeid][1]]
        of_place.sort(key=lambda each: (not each[2].nodeid.startswith(room), each[0]))
        for each, _, item in of_place:
            if seconds < most:
                tests.append(item)
                seconds += each
        by = self.out / f"by-{share}"
        by.write_text("")

        def judge() -> None:
            self.switch.set_to = number
            for item, after in zip(tests, [*tests[1:], None], strict=True):
                self.run(item, after)
                if self.failed is not None:
                    by.write_text(self.failed)
                    os._exit(1)

        status = forked(judge, 5 * seconds + 10, self.out / f"log-{share}") if tests else 0
        word = {0: "survived", -signal.SIGKILL: "timed out"}.get(status, "killed") if tests else "unreached"
        left = len(of_place) - len(tests)
        return {"name": place.name, "verdict": word, "by": by.read_text(), "tests": len(tests), "left": left}

    def run(self, item: pytest.Item, after: pytest.Item | None) -> None:
        """Runs one test."""
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)


def shared(work: Callable[[int], object]) -> None:
    """Does each share of the work in a fork of this process, all at the same time."""
    children = []
    for share in range(SHARES):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                work(share)
                status = 0
            finally:
                os._exit(status)
        children.append(child)
    ends = [os.waitpid(child, 0)[1] for child in children]
    if any(ends):
        raise RuntimeError("the work of a core ended early; run again to go on")


def forked(work: Callable[[], None], most_seconds: float, log: Path) -> int:
    """Does the work in a fork of this process that has its own temporary folder, and gives the exit code."""
    folder = tempfile.mkdtemp(prefix="mutant")
    child = os.fork()
    if child == 0:
        status = 2
        try:
            os.setpgrp()
            for stream in (1, 2):
                os.dup2(os.open(log, os.O_CREAT | os.O_WRONLY | os.O_TRUNC), stream)
            resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
            os.environ["TMPDIR"] = tempfile.tempdir = folder
            work()
            status = 0
        finally:
            os._exit(status)
    seen, stalled, next_look = 0, False, time.monotonic() + STALLED_SECONDS
    while (ended := os.waitpid(child, os.WNOHANG))[0] == 0:
        time.sleep(0.02)
        ticks = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[11:13]
        if time.monotonic() > next_look:
            with suppress(OSError):  # a process ended meanwhile: look again
                before, seen, next_look = seen, ticks_of_group(child), time.monotonic() + STALLED_SECONDS
                stalled = seen == before
        if stalled or sum(map(int, ticks)) > most_seconds * os.sysconf("SC_CLK_TCK"):
            os.kill(child, signal.SIGKILL)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # what it started
    shutil.rmtree(folder, ignore_errors=True)
    return os.waitstatus_to_exitcode(ended[1])


def ticks_of_group(leader: int) -> int:
    """The processor time of the processes in a group, and of their children that ended."""
    stats = [file.read_text().rpartition(")")[2].split() for file in Path("/proc").glob("[0-9]*/stat")]
    return sum(sum(map(int, stat[11:15])) for stat in stats if int(stat[2]) == leader)


def append(file: Path, value: object) -> None:
    """Adds a line to a file."""
    with file.open("a") as lines:
        lines.write(json.dumps(value) + "\n")


def lines_of(file: Path) -> list:
    """The values of a file's lines; none where there is no file."""
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def verdicts(out: Path) -> dict[str, dict]:
    """The last verdict on each mutant, by its name."""
    return {found["name"]: found for found in lines_of(out / "verdicts.jsonl")}


def report(places: list[Place], out: Path, rooms: Iterable[str]) -> bool:
    """Prints the numbers and the survivors that are not listed, and gives whether there are none."""
    found, listed = verdicts(out), set(LISTED.read_text().splitlines())
    print(f"{'room':28}{'mutants':>8}{'killed':>8}{'listed':>8}{'others':>8}")
    for room in (*rooms, ""):
        here = [(place, found[place.name]) for place in places if place.file.startswith(room) and place.name in found]
        alive = [(place, one) for place, one in here if one["verdict"] in ("survived", "unreached")]
        others = [(place, one) for place, one in alive if place.name not in listed]
        numbers = (len(here), len(here) - len(alive), len(alive) - len(others), len(others))
        print(f"{room or 'all':28}" + "".join(f"{number:8}" for number in numbers))
    for place, one in sorted(others, key=lambda each: each[0].name):
        print(f"{one['verdict']} (line {place.line}, {one['tests']} tests): {place.name}")
    return not others


def main(out: Path, *paths: str) -> None:
    """Writes the verdicts that are missing, and prints all of them."""
    out.mkdir(parents=True, exist_ok=True)
    rooms = [path for path in paths if path.startswith("src/")] or ROOMS
    places, switch = sample(rooms), Switch()
    import_with_switches(places, switch)
    of_rooms = [*(f"tests/{Path(room).parts[2]}" for room in rooms), *(BESIDE if rooms is ROOMS else ())]
    tests = [path for path in paths if path.startswith("tests/")] or of_rooms
    options = ["-q", "-p", "no:cacheprovider", "--timeout=0", "--every-case", "--hypothesis-profile=mutants"]
    options += ["--hypothesis-seed=0", "-m", "not spark and not peer and not slow"]
    pytest.main([*options, *sorted(set(tests))], plugins=[Mutants(places, switch, out)])
    sys.exit(0 if report(places, out, rooms) else 1)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), *sys.argv[2:])
