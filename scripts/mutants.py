"""Breaks `src` in a fixed sample of places, one at a time, and records which of them the tests notice.

    python scripts/mutants.py OUT [0/2]         all places of the sample, or each second one

Run from the root of the repository with PYTHONPATH=src. OUT is a folder. Verdicts are appended to OUT/verdicts.jsonl; a
place that has one is passed over. A place is in the body of a function. The tests that run are those of the files
nearest to it, up to the first failure: `survived` says that none of these fails.
"""

from __future__ import annotations

import ast
import importlib
import json
import os
import random
import signal
import sys
import time
from functools import cache
from importlib.machinery import SourceFileLoader
from pathlib import Path

import pytest

SEED, COUNT = 20261122, 300
MOST_SECONDS, MOST_FILES = 200, 7
PAIRS = [
    (ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.In, ast.NotIn), (ast.Is, ast.IsNot),
    (ast.And, ast.Or), (ast.Add, ast.Sub), (ast.Mult, ast.FloorDiv),
]  # fmt: skip
SWAPPED = {one: other for pair in PAIRS for one, other in (pair, pair[::-1])} | {ast.BitOr: ast.BitAnd}


def broken(node: ast.AST) -> ast.AST | None:
    """The node with another operator or constant, its condition negated, or removed; None where it is no place."""
    match node:
        case ast.Compare(left, [op], right) if type(op) in SWAPPED:
            return ast.Compare(left, [SWAPPED[type(op)]()], right)
        case ast.BoolOp(op, values) if type(op) in SWAPPED:
            return ast.BoolOp(SWAPPED[type(op)](), values)
        case ast.BinOp(left, op, right) if type(op) in SWAPPED:
            return ast.BinOp(left, SWAPPED[type(op)](), right)
        case ast.Constant(bool() | int() as value):
            return ast.Constant(not value if isinstance(value, bool) else value + 1)
        case ast.If(test, body, orelse):
            return ast.If(ast.UnaryOp(ast.Not(), test), body, orelse)
        case ast.Return(ast.AST()):
            return ast.Return()
        case ast.Continue():
            return ast.Break()
        case ast.Expr(ast.Call()) | ast.AugAssign() | ast.Raise():
            return ast.Pass()
    return None


class Break(ast.NodeTransformer):
    """Breaks one node of a tree."""

    def __init__(self, target: ast.AST) -> None:
        self.target = target

    def visit(self, node: ast.AST) -> ast.AST | None:
        """Gives the node, broken if it is the target."""
        return broken(node) if node is self.target else self.generic_visit(node)


def places_of(node: ast.AST, *, inside: bool = False) -> list[ast.AST]:
    """Every node in the bodies of functions below this one that can be broken, in the order of the source."""
    found = [node] if inside and broken(node) else []
    function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    for name, value in ast.iter_fields(node):
        if name not in ("annotation", "returns", "decorator_list") and not (function and name == "args"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    found += places_of(child, inside=inside or (function and name == "body"))
    return found


def sample() -> list[dict]:
    """The places to break, the same in each run on the same source."""
    files = sorted(Path("src").rglob("*.py"))
    numbered = [(file, enumerate(places_of(ast.parse(file.read_text())))) for file in files]
    places = [
        (str(file.relative_to("src")), n, type(node).__name__, node.lineno) for file, of in numbered for n, node in of
    ]
    chosen = sorted(random.Random(SEED).sample(places, COUNT))  # noqa: S311 - a sample is no secret
    return [{"number": n, "file": f, "place": i, "kind": k, "line": line} for n, (f, i, k, line) in enumerate(chosen)]


def import_broken(place: dict) -> None:
    """Lets this process import the module of a place with the place broken."""
    of_whole, file = SourceFileLoader.source_to_code, str(Path("src", place["file"]).resolve())

    def of_broken(self, data, path, **more):
        if path == file:
            data = ast.parse(data)
            data = ast.fix_missing_locations(Break(places_of(data)[place["place"]]).visit(data))
        return of_whole(self, data, path, **more)

    SourceFileLoader.source_to_code = of_broken
    sys.pycache_prefix, sys.dont_write_bytecode = os.devnull, True


def module_of(file: Path) -> str:
    """The name by which the file's module is imported."""
    return ".".join(file.with_suffix("").parts).removesuffix(".__init__")


def tests_of(place: dict) -> list[str]:
    """The test files nearest to a place: named after its module, then of its room, then whichever import the module."""
    file = Path(place["file"])
    room = next(each for each in Path("tests", *file.parts[1:]).parents if each.is_dir())
    found = []
    for test in Path("tests").rglob("test_*.py"):
        imports, here = imported(test), test.is_relative_to(room)
        sources = [
            path for name in imported(test) if (path := Path("src", *name.split(".")).with_suffix(".py")).exists()
        ]
        near = any(module_of(file) in imported(source) for source in sources)
        points = (
            8 * (here and file.stem.removesuffix("s") in test.stem) + 4 * (module_of(file) in imports) + 2 * near + here
        )
        if points and not {"spark", "peer", "faults"} & set(test.parts):
            found.append((-points, test.stat().st_size, str(test)))
    return [test for _, _, test in sorted(found)[:MOST_FILES]]


@cache
def imported(file: Path) -> frozenset[str]:
    """The names that a file imports: modules, and what it takes from them."""
    nodes = list(ast.walk(ast.parse(file.read_text())))
    plain = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    given = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    return frozenset(
        plain.union(*({str(node.module), *(f"{node.module}.{a.name}" for a in node.names)} for node in given))
    )


def verdict(place: dict, tests: list[str], out: Path) -> dict:
    """Runs the tests with the place broken, in a process of their own whose output stays in OUT."""
    log, begun = out / f"log.{place['number']}", time.monotonic()
    child = os.fork()
    if child == 0:
        os.setsid()
        sink = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
        os.dup2(sink, 1)
        os.dup2(sink, 2)
        import_broken(place)
        os._exit(int(pytest.main(["-q", "-x", "-p", "no:cacheprovider", "--hypothesis-seed=0", *tests])))
    while (ended := os.waitpid(child, os.WNOHANG))[0] == 0:
        if time.monotonic() - begun > MOST_SECONDS:
            os.killpg(child, signal.SIGKILL)
        time.sleep(0.05)
    word = {0: "survived", -signal.SIGKILL: "timed out"}.get(os.waitstatus_to_exitcode(ended[1]), "killed")
    failed = [line for line in log.read_text(errors="replace").splitlines() if line.startswith(("FAILED ", "ERROR "))]
    by = failed[0].partition(" ")[2].partition(" - ")[0] if failed else None
    return {**place, "verdict": word, "by": by, "files": tests, "seconds": round(time.monotonic() - begun, 1)}


def main(out: Path, share: str = "0/1") -> None:
    """Writes the verdicts on the places of a share that have none yet."""
    for name in ("pyarrow.dataset", "pyarrow.parquet", "pyspark.sql", "fsspec", "deltalake", "duckdb", "sqlglot"):
        importlib.import_module(name)  # once, not for each place
    verdicts = out / "verdicts.jsonl"
    done = {json.loads(line)["number"] for line in verdicts.read_text().splitlines()} if verdicts.exists() else set()
    first, of = map(int, share.split("/"))
    for place in sample():
        if place["number"] % of == first and place["number"] not in done:
            found = verdict(place, tests_of(place), out)
            with verdicts.open("a") as file:
                file.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), *sys.argv[2:])
