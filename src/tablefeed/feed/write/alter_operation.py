"""The operation that an alteration writes to commitInfo, with Delta-Spark's names and parameters.

A call that makes several kinds of change has the operation `ALTER TABLE`, whose one parameter lists all of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace

from tablefeed.delta import names
from tablefeed.delta.commit_info import TableChange
from tablefeed.delta.property_changes import PropertyChanges
from tablefeed.delta.schema.column_changes import ColumnChanges, part_at
from tablefeed.delta.schema.schema_faults import dotted
from tablefeed.model.schema import Array, DataType, Field, Map, Path, Struct, describe

_Operation = tuple[str, dict[str, object]]


def operation_of(
    properties: PropertyChanges,
    columns: ColumnChanges,
    after: Struct,
    *,
    added_constraints: Mapping[str, str],
    dropped_constraints: Mapping[str, str],
) -> TableChange:
    """Gives the operation; `after` is the schema after the change, `dropped_constraints` have their old SQL."""
    found = [*_of_properties(properties), *_of_columns(columns, after)]
    found += [("ADD CONSTRAINT", {"name": name, "expr": sql}) for name, sql in added_constraints.items()]
    found += [
        ("DROP CONSTRAINT", {"name": name, "expr": sql, "existed": "true"}) for name, sql in dropped_constraints.items()
    ]
    if len(found) == 1:
        name, parameters = found[0]
        return TableChange(name=name, parameters=parameters)
    changes = [{"operation": name, **parameters} for name, parameters in found]
    return TableChange(name="ALTER TABLE", parameters={"changes": _json(changes)})


def _of_properties(changes: PropertyChanges) -> Iterator[_Operation]:
    asked = {names.FEATURE_PREFIX + name: "supported" for name in changes.features}
    if assigned := {**changes.assigned, **asked}:
        yield "SET TBLPROPERTIES", {"properties": _json(assigned)}
    if changes.removed:
        yield "UNSET TBLPROPERTIES", {"properties": _json(changes.removed), "ifExists": False}


def _of_columns(changes: ColumnChanges, after: Struct) -> Iterator[_Operation]:
    if changes.added:
        columns = [{"column": _column(path, replace(field, name=path[-1]))} for path, field in changes.added.items()]
        yield "ADD COLUMNS", {"columns": _json(columns)}
    if changes.dropped:
        yield "DROP COLUMNS", {"columns": _json([dotted(path) for path in changes.dropped])}
    given = (changes.widened, changes.nullable, changes.defaults, changes.comments)
    described = [_changed(path, changes, after) for path in dict.fromkeys(path for each in given for path in each)]
    if len(described) == 1:
        yield "CHANGE COLUMN", {"column": _json(described[0])}
    elif described:
        yield "CHANGE COLUMNS", {"columns": _json(described)}
    for path, name in changes.renamed.items():
        yield "RENAME COLUMN", {"oldColumnPath": dotted(path), "newColumnPath": dotted((*path[:-1], name))}


def _changed(path: Path, changes: ColumnChanges, after: Struct) -> dict[str, object]:
    renamed = {tuple(part.lower() for part in old): name for old, name in changes.renamed.items()}
    folded = tuple(part.lower() for part in path)
    part = part_at(after, tuple(renamed.get(folded[: i + 1], name) for i, name in enumerate(path)))
    return _column(path, part.field or Field(path[-1], part.type, nullable=True))


def _column(path: Path, field: Field) -> dict[str, object]:
    """Delta-Spark's `structFieldToMap`."""
    described = {"type": _type_name(field.type), "nullable": field.nullable, "metadata": dict(field.metadata)}
    return {"name": dotted(path), **described}


def _type_name(kind: DataType) -> str:
    match kind:
        case Struct():
            return "struct"
        case Array():
            return "array"
        case Map():
            return "map"
        case _:
            return describe(kind)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
