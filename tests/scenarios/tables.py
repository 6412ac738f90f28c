"""Tables whose schema changes as Delta-Spark's ALTER TABLE changes it, written by hand: log and files.

A statement is one commit. Of a mapped column the name in files stays what it was, and a column that comes new gets one
of its own, as do the numbers under which `id` mapping finds columns.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from support.logs import Action, add, metadata, protocol, put
from support.recorded import cdc, removed, vector
from tablefeed.store import LocalStore

_ARROW = {"string": pa.string(), "integer": pa.int32(), "byte": pa.int8(), "long": pa.int64()}
Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column, and for a mapped one its name and number in files. `members`: of a struct."""

    name: str
    kind: str = "string"
    physical: str | None = None
    number: int | None = None
    members: tuple[Column, ...] = ()
    more: dict[str, Any] = field(default_factory=dict)

    def json(self) -> dict[str, Any]:
        mapping = {"delta.columnMapping.id": self.number, "delta.columnMapping.physicalName": self.physical}
        kind: Any = {"type": "struct", "fields": [each.json() for each in self.members]} if self.members else self.kind
        notes = self.more | (mapping if self.physical else {})
        return {"name": self.name, "type": kind, "nullable": True, "metadata": notes}

    def arrow(self) -> pa.Field:
        kind = pa.struct([each.arrow() for each in self.members]) if self.members else _ARROW[self.kind]
        numbered = None if self.number is None else {"PARQUET:field_id": str(self.number)}
        return pa.field(self.physical or self.name, kind, metadata=numbered)


@dataclass(slots=True)
class Table:
    """The table at `path`, as its newest version has it."""

    path: Path
    columns: tuple[Column, ...] = ()
    configuration: dict[str, str] = field(default_factory=dict)
    partition_columns: tuple[str, ...] = ()
    version: int = -1
    protocol: Action = field(default_factory=protocol)
    live: dict[str, Row] = field(default_factory=dict)
    """Each file that is live, and the first of its rows."""
    vectors: dict[str, tuple[int, ...]] = field(default_factory=dict)
    _numbers: int = 0
    _files: int = 0

    @property
    def is_mapped(self) -> bool:
        return "delta.columnMapping.mode" in self.configuration

    def commit(self, *actions: Action) -> int:
        self.version += 1
        put(LocalStore(str(self.path)), self.version, actions)
        return self.version

    def create(self, *columns: str | Column, mapping: str = "", kind: str = "string", **configuration: str) -> Table:
        """Version 0, without rows. `configuration`: properties without their `delta.`."""
        self.configuration = {f"delta.{key}": value for key, value in configuration.items()}
        self.columns = tuple(Column(name=each, kind=kind) if isinstance(each, str) else each for each in columns)
        if mapping:
            self._map(mapping)
        self.protocol = protocol(2, 5) if mapping else protocol(1, 4)
        self.commit(self.protocol, self.metadata)
        return self

    def append(self, *rows: Row | int) -> int:
        """One commit of one file for each row; a number stands for a row that has it in every column, as text.

        Gives the version of the last.
        """
        for row in rows:
            self.commit(self.added(self._row(row)))
        return self.version

    def append_at_once(self, *rows: Row | int) -> int:
        """One commit of a file for each row."""
        return self.commit(*(self.added(self._row(row)) for row in rows))

    def update(self, *changes: tuple[Row, Row]) -> int:
        """Rewrites the file of each row with another in its place, and says in a file of changes what became of it."""
        actions = []
        for number, (before, after) in enumerate(changes):
            name = f"_change_data/cdc-{self.version + 1}-{number}.parquet"
            images = pa.table({"_change_type": ["update_preimage", "update_postimage"]})
            for column, then, now in zip(self.columns, before, after, strict=True):
                if column.name not in self.partition_columns:
                    images = images.append_column(column.arrow(), pa.array([then, now], column.arrow().type))
            (self.path / name).parent.mkdir(exist_ok=True)
            pq.write_table(images, self.path / name)
            actions += [
                cdc(name, partition_values=self._partition_values(before)),
                self._removed(self._file_of(before)),
            ]
            actions.append(self.added(after))
        return self.commit(*actions)

    def delete_by_vector(self, *positions: tuple[str, Sequence[int]]) -> int:
        """Deletes rows of files by vectors: each file's name, and all of its positions that are deleted since."""
        actions = []
        for name, deleted in positions:
            then = {"deletionVector": vector(*self.vectors[name])} if name in self.vectors else {}
            values = self._partition_values(self.live[name])
            actions.append(removed(name, partitionValues=values, **then))
            actions.append(add(name, partitionValues=values, deletionVector=vector(*deleted)))
            self.vectors[name] = tuple(deleted)
        return self.commit(*actions)

    def append_file(self, *rows: Row) -> str:
        """One commit of one file that has the rows; gives its name."""
        action = self.added(rows[0], *rows[1:])
        self.commit(action)
        name: str = action["add"]["path"]
        return name

    def write_metadata(self) -> int:
        """A commit of the columns and properties as they are in this object."""
        return self.commit(self.metadata)

    def add_column(self, name: str, kind: str = "string") -> int:
        return self._alter((*self.columns, self._new(Column(name=name, kind=kind))))

    def rename(self, old: str, new: str, *, within: str | None = None) -> int:
        return self._alter(
            self._changed(within, lambda these: tuple(replace(c, name=new) if c.name == old else c for c in these))
        )

    def drop(self, name: str, *, within: str | None = None) -> int:
        return self._alter(self._changed(within, lambda these: tuple(c for c in these if c.name != name)))

    def widen(self, name: str, kind: str) -> int:
        return self._alter(tuple(replace(c, kind=kind) if c.name == name else c for c in self.columns))

    def upgrade(self) -> int:
        """Turns mapping by name on: the names in files are those that the columns have."""
        self._map("name")
        self.protocol = protocol(2, 5)
        return self.commit(self.protocol, self.metadata)

    def set_protocol(self, protocol: Action) -> int:
        self.protocol = protocol
        return self.commit(protocol)

    def downgrade(self) -> int:
        """Turns mapping off, as Delta-Spark does: every file is written again under the columns' own names."""
        rewritten = [removed(name, dataChange=False) for name in self.live]
        rows, self.live = list(self.live.values()), {}
        names = [column.name for column in self.columns]
        self.columns = tuple(Column(name=column.name, kind=column.kind) for column in self.columns)
        del self.configuration["delta.columnMapping.mode"]
        kept = [dict(zip(names, row, strict=False)) for row in rows]
        again = [self.added(tuple(row.get(name) for name in names), data_change=False) for row in kept]
        return self.commit(self.metadata, *rewritten, *again)

    def overwrite_schema(self, *columns: Column, partition_columns: Sequence[str] = ()) -> int:
        """An overwrite with no rows under other columns; those of a mapped table keep their names in files."""
        self.columns, self.partition_columns = (columns or self.columns), tuple(partition_columns)
        gone = [removed(name) for name in self.live]
        self.live = {}
        return self.commit(self.metadata, *gone)

    def _alter(self, columns: tuple[Column, ...]) -> int:
        self.columns = columns
        return self.commit(self.metadata)

    def _changed(self, within: str | None, change: Any) -> tuple[Column, ...]:  # Any: of columns to columns
        if within is None:
            changed: tuple[Column, ...] = change(self.columns)
            return changed
        return tuple(replace(c, members=change(c.members)) if c.name == within else c for c in self.columns)

    def _new(self, column: Column) -> Column:
        if not self.is_mapped:
            return column
        self._numbers += 1
        return replace(column, physical=f"col-{self._numbers}", number=self._numbers)

    def _map(self, mode: str) -> None:
        self.configuration["delta.columnMapping.mode"] = mode
        self.columns = tuple(self._mapped(column) for column in self.columns)

    def _mapped(self, column: Column) -> Column:
        self._numbers += 1
        number = self._numbers
        members = tuple(self._mapped(each) for each in column.members)
        return replace(column, physical=column.name, number=number, members=members)

    @property
    def metadata(self) -> Action:
        text = json.dumps({"type": "struct", "fields": [column.json() for column in self.columns]})
        return metadata(text, configuration=self.configuration, partition_columns=self.partition_columns)

    def _row(self, row: Row | int) -> Row:
        return row if isinstance(row, tuple) else tuple(_filled(column, row) for column in self.columns)

    def _file_of(self, row: Row) -> str:
        return next(name for name, held in self.live.items() if held == row)

    def _removed(self, name: str) -> Action:
        return removed(name, partitionValues=self._partition_values(self.live.pop(name)))

    def _partition_values(self, row: Row) -> dict[str, str | None]:
        return {
            column.physical or column.name: None if value is None else str(value)
            for column, value in zip(self.columns, row, strict=True)
            if column.name in self.partition_columns
        }

    def added(self, row: Row, *more: Row, data_change: bool = True) -> Action:
        """Writes a file of these rows for the next commit, and gives the action that adds it."""
        self._files += 1
        name = f"{self.version + 1}-{self._files}.parquet"
        kept = [
            (column.arrow(), values)
            for column, *values in zip(self.columns, row, *more, strict=True)
            if column.name not in self.partition_columns
        ]
        arrays = [pa.array([_stored(column, value) for value in values], column.type) for column, values in kept]
        self.path.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_arrays(arrays, schema=pa.schema([column for column, _ in kept])), self.path / name)
        self.live[name] = row
        return add(
            name,
            size=(self.path / name).stat().st_size,
            data_change=data_change,
            modified=self.version + 1,
            partitionValues=self._partition_values(row),
        )


def _filled(column: Column, number: int) -> Any:
    if column.members:
        return tuple(_filled(each, number) for each in column.members)
    return str(number) if column.kind == "string" else number


def _stored(column: pa.Field, value: Any) -> Any:
    if not pa.types.is_struct(column.type) or value is None:
        return value
    return {each.name: _stored(each, member) for each, member in zip(column.type, value, strict=True)}
