"""Who may import whom, and what the pure rooms may not touch, read from sources without running them.

The rooms are those of CONTRIBUTING.md, "The house". A module's source counts as a whole: imports for type checking
or inside functions are arrows like any other, since they say what the module knows.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

Sources = Mapping[str, str]
"""Dotted module name -> source text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """The rooms and third-party packages that a room may import; a `pure` one has no clock, no chance and no I/O."""

    rooms: frozenset[str] = frozenset()
    packages: frozenset[str] = frozenset()
    pure: bool = False


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


HOUSE: Mapping[str, Room] = {
    "errors": Room(pure=True),
    "_version": Room(pure=True),
    "wording": Room(pure=True),
    "parquet_footer": Room(packages=_names("pyarrow"), pure=True),
    "model": Room(rooms=_names("errors wording"), pure=True),
    "log": Room(rooms=_names("errors model"), packages=_names("pyarrow"), pure=True),
    "delta": Room(rooms=_names("errors model parquet_footer"), packages=_names("orjson pyarrow pyroaring"), pure=True),
    "indextables": Room(rooms=_names("errors model"), packages=_names("orjson pyarrow fastavro"), pure=True),
    "catalog": Room(rooms=_names("errors")),
    "store": Room(rooms=_names("errors catalog"), packages=_names("fsspec s3fs gcsfs azure watchfiles pyarrow")),
    "data": Room(
        rooms=_names("errors model indextables parquet_footer"),
        packages=_names("pyarrow pyroaring duckdb sqlglot tantivy"),
    ),
    "feed": Room(
        rooms=_names("_version errors wording model log delta indextables catalog store data"),
        packages=_names("pyarrow orjson pyroaring sqlglot pandas"),
    ),
    "spark": Room(
        rooms=_names("_version errors wording model log data feed"),
        packages=_names("pyspark pyarrow prometheus_client opentelemetry openlineage"),
    ),
    "tablefeed": Room(rooms=_names("_version errors model feed"), packages=_names("pyarrow")),
    "report": Room(rooms=_names("_version errors wording feed"), packages=_names("pyarrow")),
    "cli": Room(
        rooms=_names("_version errors wording model tablefeed feed report"),
        packages=_names("typer rich orjson pyarrow"),
    ),
    "__main__": Room(rooms=_names("cli")),
    "pyspark_tablefeed": Room(rooms=_names("spark"), packages=_names("pyspark")),
}

FEED: Mapping[str, frozenset[str]] = {
    "snapshot": _names(""),
    "scan": _names("snapshot"),
    "changes": _names("scan snapshot"),
    "stream": _names("changes scan snapshot"),
    "write": _names("scan snapshot"),
    "commit": _names("write scan snapshot"),
    "rows": _names("commit write scan snapshot"),
    "replication": _names("rows commit write scan snapshot"),
    "upkeep": _names("rows commit write scan snapshot"),
    "api": _names("upkeep replication rows commit write stream changes scan snapshot"),
}
"""The rooms within `feed`, each with those that it may import. Modules beside the rooms may be imported by all."""

MOST_MODULES = 25
"""More modules than this in one folder of `src` are too many to find one's way among."""

_OURS = frozenset({"tablefeed", "pyspark_tablefeed"})

_IMPURE = _names(
    "glob http os random secrets shutil socket subprocess tempfile threading time urllib.request open io.open"
    " pathlib.Path uuid.uuid1 uuid.uuid4 datetime.date.today datetime.datetime.now datetime.datetime.today"
    " datetime.datetime.utcnow pyarrow.OSFile pyarrow.dataset pyarrow.fs pyarrow.memory_map"
)
"""Names that reach for the world; with each goes all that is below it."""


def read_sources(src: Path) -> Sources:
    """Every module below `src` by its dotted name."""
    sources: dict[str, str] = {}
    for path in sorted(src.rglob("*.py")):
        parts = path.relative_to(src).with_suffix("").parts
        sources[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path.read_text(encoding="utf-8")
    return sources


def violations(sources: Sources) -> list[str]:
    """What breaks the rules of the house, each as a line that names the module; empty where all is well."""
    found: list[str] = []
    graph: dict[str, set[str]] = {}
    for module, source in sources.items():
        tree = ast.parse(source)
        imported = set(_imports(module, tree, sources))
        graph[module] = {target for target in imported if target in sources and target != module}
        room = HOUSE.get(room_of(module))
        if room is None:
            found.append(f"{module} is in no room of the house")
            continue
        found += (f"{module} imports {target}" for target in sorted(imported) if not _may_import(module, room, target))
        found += (f"{module} imports {target}" for target in sorted(imported) if not _may_pass_in_feed(module, target))
        if room.pure:
            found += (f"{module} uses {name}" for name in sorted(set(_uses(tree))) if _is_below(name, _IMPURE))
    rooms: dict[str, set[str]] = {}
    for module, targets in graph.items():
        rooms.setdefault(room_of(module), set()).update({room_of(target) for target in targets} - {room_of(module)})
    return found + _cycles(graph) + _cycles(rooms)


def room_of(module: str) -> str:
    """The room that a module of ours stands in: the package or module right below `tablefeed`."""
    package, _, rest = module.partition(".")
    return rest.partition(".")[0] if package == "tablefeed" and rest else package


def _may_import(module: str, room: Room, target: str) -> bool:
    top = target.partition(".")[0]
    if top in _OURS:
        return room_of(target) in room.rooms or room_of(target) == room_of(module)
    return top in room.packages or top in sys.stdlib_module_names


def _may_pass_in_feed(module: str, target: str) -> bool:
    """Says whether the rooms within `feed` allow it. `cli` and `report` import only `api`."""
    to, origin = _room_in_feed(target), _room_in_feed(module)
    if room_of(module) in ("cli", "report"):
        return room_of(target) != "feed" or to == "api"
    return to is None or to == origin or room_of(module) != "feed" or (origin is not None and to in FEED[origin])


def _room_in_feed(module: str) -> str | None:
    parts = module.split(".")
    return parts[2] if parts[:2] == ["tablefeed", "feed"] and len(parts) > 2 and parts[2] in FEED else None


def _imports(module: str, tree: ast.Module, sources: Sources) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = _origin(module, node, sources)
            # `from package import module` is an arrow to the module, `from module import name` to where the name is.
            yield from (name if (name := f"{origin}.{alias.name}") in sources else origin for alias in node.names)


def _origin(module: str, node: ast.ImportFrom, sources: Sources) -> str:
    if node.level == 0:
        return node.module or ""
    is_package = any(other.startswith(f"{module}.") for other in sources)
    parts = module.split(".")
    parts = parts[: len(parts) - node.level + is_package]
    return ".".join([*parts, *([node.module] if node.module else [])])


def _uses(tree: ast.Module) -> Iterator[str]:
    """The names that the source imports or calls built-in, in full: `dt.now` says what was imported as dt."""
    full = {"open": "open"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
            for alias in node.names:
                top = alias.name.partition(".")[0]
                full[alias.asname or top] = alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
            full.update({alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names})
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Name):
            first, _, rest = ast.unparse(node).partition(".")
            if first in full:
                yield f"{full[first]}.{rest}" if rest else full[first]


def _is_below(name: str, roots: frozenset[str]) -> bool:
    return any(name == root or name.startswith(f"{root}.") for root in roots)


def _cycles(graph: Mapping[str, set[str]]) -> list[str]:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return [f"a cycle: {' <- '.join(error.args[1])}"]
    return []
