"""No value shows the storage options that it carries: they hold credentials, and some tools print all values."""

from __future__ import annotations

import ast
from pathlib import Path

import tablefeed

_SRC = Path(tablefeed.__file__).parent


def _is_dataclass(each: ast.AST) -> bool:
    return isinstance(each, ast.ClassDef) and any("dataclass" in ast.unparse(by) for by in each.decorator_list)


def test_a_dataclass_does_not_show_its_storage_options() -> None:
    trees = {path.relative_to(_SRC): ast.parse(path.read_text()) for path in _SRC.rglob("*.py")}
    fields = [
        (f"{path}:{each.lineno}", ast.unparse(each))
        for path, tree in trees.items()
        for kind in filter(_is_dataclass, ast.walk(tree))
        for each in ast.iter_child_nodes(kind)
        if isinstance(each, ast.AnnAssign) and ast.unparse(each.target) in ("storage_options", "storage")
    ]

    assert len(fields) > 1
    assert [place for place, field in fields if "repr=False" not in field] == []
