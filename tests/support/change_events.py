"""A table in memory to which change events are applied as a caller of the fold does it: batch after batch, with what is
known of the batch's keys only, and with the state that the batch before left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.feed.rows.fold import fold
from tablefeed.feed.rows.folding import ABSENT, KIND, SEQUENCE, Folded, Folding, Known

Event = Mapping[str, Any]
"""The fields of an event by name, with `KIND` and `SEQUENCE`; of `how.absent`, a field that is not there is absent."""


def upsert(sequence: Any, **values: Any) -> Event:
    return {KIND: "upsert", SEQUENCE: sequence, **values}


def delete(sequence: Any, **values: Any) -> Event:
    return {KIND: "delete", SEQUENCE: sequence, **values}


def truncate(sequence: Any) -> Event:
    return {KIND: "truncate", SEQUENCE: sequence}


def table_of(events: Sequence[Event], how: Folding) -> pa.Table:
    columns = {field.name: pa.array([event.get(field.name) for event in events], field.type) for field in how.schema}
    columns[KIND] = pa.array([event[KIND] for event in events], pa.string())
    columns[SEQUENCE] = pa.array([event[SEQUENCE] for event in events], how.sequence)
    if how.absent:
        absent = [{name: name not in event for name in how.absent} for event in events]
        columns[ABSENT] = pa.array(absent, pa.struct([(name, pa.bool_()) for name in how.absent]))
    return pa.table(columns)


class Target:
    """The rows of a table, and what is remembered beside them."""

    def __init__(self, how: Folding, rows: Sequence[Mapping[str, Any]] = ()) -> None:
        self.how = how
        self.rows = pa.Table.from_pylist(list(rows), schema=how.row_schema)
        self.state = how.state_schema.empty_table()
        self.truncated_at: pa.Scalar | None = None

    def apply(self, *events: Event) -> Folded:
        """One batch."""
        return self.apply_table(table_of(events, self.how))

    def apply_table(self, events: pa.Table) -> Folded:
        truncates = "truncate" in events[KIND].to_pylist()
        rows, state = (self._of_keys(events, each, every=truncates) for each in (self.rows, self.state))
        known = Known(rows=self.rows.take(rows), state=self.state.take(state), truncated_at=self.truncated_at)
        folded = fold(events, known, self.how)
        updated = set(folded.replaces.drop_null().to_pylist())
        assert len(updated) == len(folded.replaces.drop_null())
        assert updated <= set(folded.removed.to_pylist())
        self.rows = _changed(self.rows, rows.take(folded.removed), folded.inserts)
        self.state = _changed(self.state, state.take(folded.state_removed), folded.state)
        self.truncated_at = folded.truncated_at
        return folded

    def shown(self) -> list[dict[str, Any]]:
        """The rows, in one order."""
        return sorted(self.rows.to_pylist(), key=repr)

    def remembered(self) -> list[dict[str, Any]]:
        """The state, in one order."""
        truncated = [] if self.truncated_at is None else [{"truncated_at": self.truncated_at.as_py()}]
        return sorted(self.state.to_pylist(), key=repr) + truncated

    def _of_keys(self, events: pa.Table, table: pa.Table, *, every: bool) -> pa.Array:
        key = self.how.keys[0]
        if every or pa.types.is_floating(table[key].type):  # -0.0 is the key 0.0
            return pa.array(range(table.num_rows), pa.int64())
        mask = pc.is_in(table[key].combine_chunks(), value_set=events[key].combine_chunks())
        return pc.indices_nonzero(mask).cast(pa.int64())


def in_batches(how: Folding, *batches: Sequence[Event]) -> Target:
    target = Target(how)
    for batch in batches:
        target.apply(*batch)
    return target


def _changed(table: pa.Table, removed: pa.Array, added: pa.Table) -> pa.Table:
    assert len(removed.unique()) == len(removed)
    every = pa.array(range(table.num_rows), pa.int64())
    stays = table.filter(pc.invert(pc.is_in(every, value_set=removed)))
    return pa.concat_tables([stays, added]).combine_chunks()
