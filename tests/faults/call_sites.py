"""The calls at which a process can die, found in the code by its syntax tree, and a way to watch them.

A *store site* is a call of a method of `tablefeed.store.Store`. Its name is `feed/commit/transaction.py:Put.read`
after its file, its function and the method, with `#2` for the second such call of the function. A *disk site* is a
call that changes the disk, in a module of the local store. `watch` compiles tablefeed so that each of these calls goes
through a function of the caller's. Nothing else of the code changes.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

PACKAGE = Path(__file__).parents[2] / "src" / "tablefeed"

CHANGING = frozenset({"put_if_absent", "create", "publish", "copy", "replace", "delete", "sweep"})
"""The methods of a store that change it."""


def _methods_of_store() -> frozenset[str]:
    """The methods of `Store` by its text: tablefeed must not be imported before `watch`."""
    contract = ast.parse((PACKAGE / "store" / "base.py").read_text())
    (store,) = (node for node in contract.body if isinstance(node, ast.ClassDef) and node.name == "Store")
    return frozenset(node.name for node in store.body if isinstance(node, ast.FunctionDef) and not node.decorator_list)


METHODS = _methods_of_store() - {"close"}
"""All methods of a store that reach its disk."""

OF_STORES_ALONE = frozenset({"put_if_absent", "publish", "sweep", "directories", "is_file_at_root", "open_input"})
"""Methods whose names nothing else in the package has, except `TableFiles`, which forwards one."""

DISK_MODULES = ("store/local.py", "store/durable.py", "store/local_copies.py")

DISK_CALLS = frozenset(
    {
        "os.copy_file_range",
        "os.fsync",
        "os.link",
        "os.makedirs",
        "os.mkdir",
        "os.open",
        "os.replace",
        "os.sendfile",
        "os.unlink",
        "os.utime",
        "os.write",
        "pa.OSFile",
    }
)
"""The calls of the local store that change a disk, or may."""

QUIET_CALLS = frozenset({"os.close", "os.fstat", "os.listdir", "os.scandir", "os.stat", "os.major", "os.minor"})
"""The other calls of `os` there: they change nothing on a disk."""

Watch = Callable[[str, Callable[..., Any]], Callable[..., Any]]  # Any: the calls of any function
_WATCH = "__tablefeed_watch__"


def modules() -> list[str]:
    """The modules of the package, relative to it."""
    return sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))


def is_a_store(module: str) -> bool:
    """Whether the module is a store itself: what its methods call of one another is no store site."""
    return (module.startswith("store/") and module != "store/base.py") or module == "feed/snapshot/catalog_log.py"


def store_sites() -> list[str]:
    """The names of all store sites of the package."""
    return [name for module in modules() if not is_a_store(module) for name in _sites(module).found if _is_sure(name)]


def disk_sites() -> list[str]:
    """The names of all disk sites."""
    return [name for module in DISK_MODULES for name in _sites(module).found]


def unknown_calls() -> list[str]:
    """The calls of `os` in the local store's modules of which nobody said whether they change a disk."""
    known = DISK_CALLS | QUIET_CALLS
    calls = (
        ast.unparse(node.func)
        for module in DISK_MODULES
        for node in ast.walk(ast.parse((PACKAGE / module).read_text()))
        if isinstance(node, ast.Call)
    )
    return [call for call in calls if call.startswith("os.") and not call.startswith("os.path.") and call not in known]


def methods_as_values() -> list[str]:
    """Methods of stores that are passed on and not called: no site would name their call."""
    return [f"{module}: {text}" for module in modules() for text in _sites(module).values]


def watch(watched: Watch) -> None:
    """Has every later import of tablefeed call `watched(site, function)` and then what it returns."""
    setattr(builtins, _WATCH, watched)
    sys.meta_path.insert(0, _Finder())


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] != "tablefeed":
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.origin is not None and _sites(_module_of(spec.origin)).found:
            spec.loader = _Loader(fullname, spec.origin)
        return spec


class _Loader(SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        sites = _Sites(_module_of(path), rewriting=True)
        tree = ast.fix_missing_locations(sites.visit(ast.parse(Path(path).read_text())))
        return compile(tree, path, "exec", dont_inherit=True)


def _module_of(path: str) -> str:
    return Path(path).resolve().relative_to(PACKAGE).as_posix()


def _sites(module: str) -> _Sites:
    sites = _Sites(module, rewriting=False)
    sites.visit(ast.parse((PACKAGE / module).read_text()))
    return sites


_MAYBE = "?"
"""Marks a call that has a method's name, on an object of which the text does not show that it is a store."""


def _is_sure(name: str) -> bool:
    return f":{_MAYBE}" not in name


class _Sites(ast.NodeTransformer):
    """Finds the calls of a module that may be sites; with `rewriting` each goes through the function of `watch`."""

    def __init__(self, module: str, *, rewriting: bool) -> None:
        self.found: list[str] = []
        self.values: list[str] = []
        self._module, self._rewriting = module, rewriting
        self._within: list[ast.FunctionDef | ast.ClassDef] = []
        self._counts: Counter[str] = Counter()
        self._called: set[int] = set()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._visit_within(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return self._visit_within(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if not is_a_store(self._module) and id(node) not in self._called and self._is_method(node):
            self.values.append(ast.unparse(node))
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self._called.add(id(node.func))
        called = self._name_of(node.func)
        if called is not None:
            name = f"{self._module}:{'.'.join(each.name for each in self._within)}:{called}"
            self._counts[name] += 1
            name = name if self._counts[name] == 1 else f"{name}#{self._counts[name]}"
            self.found.append(name)
        self.generic_visit(node)
        if called is not None and self._rewriting:
            node.func = ast.Call(ast.Name(_WATCH, ast.Load()), [ast.Constant(name), node.func], [])
        return node

    def _visit_within(self, node: ast.FunctionDef | ast.ClassDef) -> ast.AST:
        self._within.append(node)
        self.generic_visit(node)
        self._within.pop()
        return node

    def _name_of(self, function: ast.expr) -> str | None:
        if self._module in DISK_MODULES:
            text = ast.unparse(function)
            return text if text in DISK_CALLS else None
        if is_a_store(self._module) or not isinstance(function, ast.Attribute) or function.attr not in METHODS:
            return None
        return function.attr if self._is_method(function) else f"{_MAYBE}{function.attr}"

    def _is_method(self, function: ast.Attribute) -> bool:
        """Whether the text shows a store: by its method, or as `log.store`, `open_store(...)` or `x` of `x: Store`."""
        if function.attr not in METHODS:
            return False
        of = function.value.func if isinstance(function.value, ast.Call) else function.value
        name = of.attr if isinstance(of, ast.Attribute) else of.id if isinstance(of, ast.Name) else ""
        return function.attr in OF_STORES_ALONE or name.endswith("store") or name in self._parameters()

    def _parameters(self) -> set[str]:
        functions = (each for each in self._within if isinstance(each, ast.FunctionDef))
        given = (each for function in functions for each in (*function.args.args, *function.args.kwonlyargs))
        return {each.arg for each in given if each.annotation is not None and ast.unparse(each.annotation) == "Store"}
