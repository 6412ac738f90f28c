"""What one call of `alter` changes about a table, and the operation of its commit, in Delta-Spark's words.

A call that makes several kinds of change has the operation `ALTER TABLE`, whose one parameter lists all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from tablefeed.delta import names
from tablefeed.delta.commit_info import TableChange
from tablefeed.delta.schema.column_changes import folded, part_at
from tablefeed.delta.schema.schema_faults import dotted
from tablefeed.model.schema import DataType, Field, Nested, Path, Struct, describe


@dataclass(frozen=True, slots=True, kw_only=True)
class Alteration:
    """The changes to a table. Every part names columns as they are before the call, in any case.

    `features` are added to the protocol. `added` has a new column for each path; the last name is its own. A default or
    comment of None is removed.
    """

    assigned: Mapping[str, str] = field(default_factory=dict)
    removed: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    new_constraints: Mapping[str, str] = field(default_factory=dict)
    dropped_constraints: tuple[str, ...] = ()
    dropped: tuple[Path, ...] = ()
    added: Mapping[Path, Field] = field(default_factory=dict)
    widened: Mapping[Path, DataType] = field(default_factory=dict)
    nullable: Mapping[Path, bool] = field(default_factory=dict)
    defaults: Mapping[Path, str | None] = field(default_factory=dict)
    comments: Mapping[Path, str | None] = field(default_factory=dict)
    renamed: Mapping[Path, str] = field(default_factory=dict)


def constraint(name: str) -> str:
    """Gives the table property of a CHECK constraint. As in Delta-Spark it has the name in lower case."""
    return names.CHECK_CONSTRAINT_PREFIX + name.lower()


def spelled_in(properties: Mapping[str, str], name: str) -> str:
    """Gives the property `name`, which is in lower case, as `properties` spell it; "" where they lack it."""
    return next((key for key in properties if key.lower() == name), "")


def operation_of(wanted: Alteration, before: Mapping[str, str], after: Struct) -> TableChange:
    """Gives the operation; `before` are the table's properties before the change, `after` is its schema afterwards."""
    found = [TableChange(name=name, parameters=given) for name, given in _changes(wanted, before, after)]
    if len(found) == 1:
        return found[0]
    changes = [{"operation": change.name, **change.operation[1]} for change in found]
    return TableChange(name="ALTER TABLE", parameters={"changes": changes})


def _changes(wanted: Alteration, before: Mapping[str, str], after: Struct) -> Iterator[tuple[str, dict[str, object]]]:
    asked = {names.FEATURE_PREFIX + name: "supported" for name in wanted.features}
    if assigned := {**wanted.assigned, **asked}:
        yield "SET TBLPROPERTIES", {"properties": assigned}
    if wanted.removed:
        yield "UNSET TBLPROPERTIES", {"properties": wanted.removed, "ifExists": False}
    if wanted.added:
        columns = [{"column": _column(path, replace(column, name=path[-1]))} for path, column in wanted.added.items()]
        yield "ADD COLUMNS", {"columns": columns}
    if wanted.dropped:
        yield "DROP COLUMNS", {"columns": [dotted(path) for path in wanted.dropped]}
    changed = {
        path: None for each in (wanted.widened, wanted.nullable, wanted.defaults, wanted.comments) for path in each
    }
    described = [_changed(path, wanted.renamed, after) for path in changed]
    if len(described) == 1:
        yield "CHANGE COLUMN", {"column": described[0]}
    elif described:
        yield "CHANGE COLUMNS", {"columns": described}
    for path, name in wanted.renamed.items():
        yield "RENAME COLUMN", {"oldColumnPath": dotted(path), "newColumnPath": dotted((*path[:-1], name))}
    for name, sql in wanted.new_constraints.items():
        yield "ADD CONSTRAINT", {"name": name, "expr": sql}
    for name in wanted.dropped_constraints:
        expr = before[spelled_in(before, constraint(name))]
        yield "DROP CONSTRAINT", {"name": name, "expr": expr, "existed": "true"}


def _changed(path: Path, renamed: Mapping[Path, str], after: Struct) -> dict[str, object]:
    new_names = {folded(old): name for old, name in renamed.items()}
    part = part_at(after, tuple(new_names.get(folded(path[: i + 1]), name) for i, name in enumerate(path)))
    return _column(path, part.field or Field(path[-1], part.type, nullable=True))


def _column(path: Path, column: Field) -> dict[str, object]:
    """Delta-Spark's `structFieldToMap`."""
    kind = type(column.type).__name__.lower() if isinstance(column.type, Nested) else describe(column.type)
    return {"name": dotted(path), "type": kind, "nullable": column.nullable, "metadata": dict(column.metadata)}
