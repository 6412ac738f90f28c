"""The interface of the folds of change events: how to fold, what is known before, and the outcome.

Names and error classes are those of AUTO CDC in Databricks and Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa

from tablefeed.errors import (
    TABLE,
    ConflictingOptionsError,
    IllegalOptionError,
    SchemaMismatchError,
    UnsupportedOptionError,
)
from tablefeed.model.cached import cached_property

KIND, SEQUENCE, ABSENT = "__KIND", "__SEQUENCE", "__ABSENT"
"""Columns of events: `Folding.event_schema`."""

START_AT, END_AT = "__START_AT", "__END_AT"
"""The interval of a version (SCD type 2), half-open; a null end is open."""

DELETED_AT, SET_AT, IS_DELETE, SET, MADE_AT = "__DELETED_AT", "__SET_AT", "__IS_DELETE", "__SET", "__MADE_AT"
"""Columns of the state: `Folding.state_schema`."""

INVALID = "AUTOCDC_MICROBATCH_VALIDATION"
"""The error class of Spark for events that cannot be applied; each kind has a subclass of it."""

_RESERVED = (KIND, SEQUENCE, ABSENT, START_AT, END_AT, DELETED_AT, SET_AT, IS_DELETE, SET, MADE_AT)


class Kind(StrEnum):
    """What an event does."""

    UPSERT = "upsert"
    DELETE = "delete"
    TRUNCATE = "truncate"


class Ties(StrEnum):
    """What to do with two upserts of one key and one sequence that set a column differently."""

    FAIL = "fail"
    LAST = "last"


@dataclass(frozen=True, kw_only=True)
class Folding:
    """How events are folded into the rows of a table. An invalid value cannot be built.

    - `schema` has the columns of the target that events fill, keys included, without START_AT and END_AT.
    - `sequence` is the type of the sequence. A struct is compared member by member.
    - `sequence_column` names the column of the target that holds the sequence, if one does; for SCD type 1.
    - A null in a column of `ignore_nulls` leaves the value as it was. So does a field that the source marks as absent
      in a column of `absent`; a null there is a value, unless the column is in `ignore_nulls` too.
    - `leaves_columns` says that the target has columns that events do not fill. An update keeps their values. A row
      that comes after a delete of the same batch is a new row, which does not get these values.
    - `snapshot_at` is the version of the snapshot whose rows the events are. Nothing older can come after it, so only
      this version is remembered.
    - `forget_after_ms` is how long a delete is remembered of a key without a row; None: forever.
    - `tracked`, for SCD type 2: a change of these columns begins a version; None for all columns that are no keys.

    Raises IllegalOptionError, UnsupportedOptionError and SchemaMismatchError.
    """

    schema: pa.Schema
    keys: tuple[str, ...]
    sequence: pa.DataType
    scd_type: int = 1
    sequence_column: str | None = None
    ignore_nulls: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    tracked: tuple[str, ...] | None = None
    ties: Ties = Ties.FAIL
    leaves_columns: bool = False
    snapshot_at: pa.Scalar | None = None
    forget_after_ms: int | None = None

    def __post_init__(self) -> None:
        if not self.keys:
            raise _illegal("keys", "", "must name a column", "AUTOCDC_EMPTY_KEYS")
        if len({*self.keys}) < len(self.keys):
            raise _illegal("keys", ", ".join(self.keys), "names a column twice")
        if type(self.scd_type) is not int or self.scd_type not in (1, 2):
            raise _illegal("stored_as_scd_type", str(self.scd_type), "must be 1 or 2")
        _refuse_reserved(self.schema)
        _refuse_unknown("keys", self.keys, self.schema.names)
        _refuse_unknown("ignore_null_updates", (*self.ignore_nulls, *self.absent), self.values)
        _refuse_unknown("track_history_column_list", self.tracked or (), self.values)
        for key in self.keys:
            if not _is_ordered(kind := self.schema.field(key).type) or pa.types.is_struct(kind):
                raise _illegal("keys", key, f"has type {kind}; a key has a plain type, such as bigint or string")
        if not _is_ordered(self.sequence):
            explain = "has no order; use a number, a text, a date, a timestamp, or a struct of these"
            raise _illegal("sequence_by", str(self.sequence), explain, f"{INVALID}.NON_ORDERABLE_SEQUENCE")
        if (name := self.sequence_column) is not None:
            _refuse_unknown("sequence_by", (name,), self.schema.names)
            if (kind := self.schema.field(name).type) != self.sequence:
                raise _illegal("sequence_by", name, f"has type {kind} in the table and {self.sequence} in the changes")
        for name in self.ignore_nulls:
            if pa.types.is_struct(self.schema.field(name).type):
                raise UnsupportedOptionError(
                    option="ignore_null_updates",
                    remedy=f"Column {name} is a struct. AUTO CDC ignores nulls in each of its members, which is not "
                    "done here. List the column in ignore_null_updates_except_column_list.",
                )
        if self.tracked is not None and self.scd_type == 1:
            explain = "keeps no history. Set it to 2, or leave out which columns have a history"
            raise _illegal("stored_as_scd_type", "1", explain, "AUTOCDC_TRACK_HISTORY_REQUIRES_SCD2")

    @cached_property
    def values(self) -> tuple[str, ...]:
        """The columns that are no keys."""
        return tuple(name for name in self.schema.names if name not in self.keys)

    @cached_property
    def sparse(self) -> tuple[str, ...]:
        """The columns that an upsert may leave as they are."""
        sparse = {*self.ignore_nulls, *self.absent} - {self.sequence_column}
        return tuple(name for name in self.values if name in sparse)

    @cached_property
    def untracked(self) -> tuple[str, ...]:
        """The columns whose change begins no version."""
        return tuple(name for name in self.values if self.tracked is not None and name not in self.tracked)

    @cached_property
    def event_schema(self) -> pa.Schema:
        """What a table of events has.

        Beside the columns of the target these are KIND, a `Kind` as text, and SEQUENCE. If the source distinguishes an
        absent field from a null, there is also ABSENT, with a bool for each column of `absent`.
        """
        schema = self.schema.append(pa.field(KIND, pa.string())).append(pa.field(SEQUENCE, self.sequence))
        return pa.schema([*schema, *_struct_field(ABSENT, self.absent, pa.bool_())])

    @cached_property
    def row_schema(self) -> pa.Schema:
        """The rows of the target that `Known` and `Folded` have."""
        if self.scd_type == 1:
            return self.schema
        return self.schema.append(pa.field(START_AT, self.sequence)).append(pa.field(END_AT, self.sequence))

    @cached_property
    def state_schema(self) -> pa.Schema:
        """What is remembered beside the rows of the target, and of truncates.

        SCD type 1, one row for each key of which something is remembered:
        - SEQUENCE, of its newest upsert, unless the target has it as a column: older events must not replace the row.
        - DELETED_AT, of its newest delete, if that is newer than every truncate: older upserts must not bring the row
          back. It is also kept beside a row where columns may be left as they are, because such an upsert older than
          the delete must not fill a column of the row.
        - SET_AT, for each column that an upsert may leave as it is: the sequence that set it, null if none did. An
          older upsert must not set it again, and a later upsert that leaves it alone must not make it newer.

        SCD type 2, one row for each event that the versions in the target do not show:
        - a delete that closed no version: an upsert that comes later but is older must end there;
        - all upserts of a version that has several, with SEQUENCE and the columns that are not tracked: an event that
          comes later between them splits the version. The tracked columns are those of the version;
        - an upsert that left columns as they were. SET says which columns it set. The others have the values of the
          previous upsert, and change with them.
        IS_DELETE distinguishes deletes from upserts.

        With both types, if deletes are forgotten: MADE_AT, the time at which the delete was applied, in milliseconds
        since 1970. It is null for what is never forgotten: keys with a row (SCD type 1) and upserts (type 2).
        """
        made = [] if self.forget_after_ms is None else [pa.field(MADE_AT, pa.int64())]
        fields = [pa.field(name, self.schema.field(name).type) for name in self.keys]
        if self.scd_type == 2:
            fields += [pa.field(SEQUENCE, self.sequence), pa.field(IS_DELETE, pa.bool_())]
            fields += [pa.field(name, self.schema.field(name).type) for name in self.untracked]
            return pa.schema(fields + _struct_field(SET, self.sparse, pa.bool_()) + made)
        if self.sequence_column is None:
            fields.append(pa.field(SEQUENCE, self.sequence))
        fields.append(pa.field(DELETED_AT, self.sequence))
        return pa.schema(fields + _struct_field(SET_AT, self.sparse, self.sequence) + made)


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What the table has of the keys of a batch: its visible `rows`, the `state`, and the newest truncate.

    `rows` has `Folding.row_schema`, `state` has `Folding.state_schema`. They have every row of each key of the batch;
    of another key they may have every row or none. The keys 0.0 and -0.0 are one. A batch with a truncate needs all
    rows and the whole state, but not at once: keys may be folded in parts, each with all events of its keys, all
    truncates, and what is known of its keys.
    A row without a sequence, which another writer left there, is older than every event and every remembered delete.
    `forgotten_at` is the greatest sequence of the deletes that were forgotten; `now_ms` is the time of the batch.
    """

    rows: pa.Table
    state: pa.Table
    truncated_at: pa.Scalar | None = None
    forgotten_at: pa.Scalar | None = None
    now_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """The events of a batch: `applied` + `late` + `duplicates`.

    A duplicate has the key, the kind and the sequence of another event: of this batch, or of one that the table shows
    or remembers. A late event changed nothing because something newer was known of its key. With SCD type 2
    only a delete at the sequence of an upsert is late. An event that only a newer one of its own batch replaced counts
    as applied.

    `unguarded` counts the keys that had neither a row nor a remembered delete, and got a row by an event that is not
    newer than the newest forgotten delete. A forgotten delete of the key may have been newer than this event. With SCD
    type 2 it counts the versions that such an event begins outside the versions that its key had.
    """

    applied: int
    late: int
    duplicates: int
    unguarded: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """The changes that a batch makes to `Known`.

    `inserts` are the rows to add. `replaces` has for each of them the index of the row of `Known.rows` that it updates,
    or null. `removed` has the indices of all rows of `Known.rows` to remove, updated ones included. A row whose values
    stay equal is in none of the three. In the same way `state` is added to the state, and `state_removed` has the
    indices of the rows of `Known.state` to remove.
    """

    inserts: pa.Table
    replaces: pa.Array
    removed: pa.Array
    state: pa.Table
    state_removed: pa.Array
    truncated_at: pa.Scalar | None
    counts: Counts


def chosen_columns(
    option: str, among: Sequence[str], *, every: bool = False, only: Sequence[str] | None, but: Sequence[str] | None
) -> tuple[str, ...] | None:
    """Gives the columns that `option`, `option`_column_list and `option`_except_column_list choose of `among`.

    None where none of the three is set. Raises ConflictingOptionsError, and IllegalOptionError for another column.
    """
    listed, excepted = f"{option}_column_list", f"{option}_except_column_list"
    is_set = {option: every, listed: only is not None, excepted: but is not None}
    given = tuple(name for name in is_set if is_set[name])
    if len(given) > 1:
        raise ConflictingOptionsError(options=given, remedy="Set one of them.", error_class=_EXCLUSIVE.get(option))
    _refuse_unknown(listed, only or (), among)
    _refuse_unknown(excepted, but or (), among)
    if not given:
        return None
    return tuple(name for name in among if name not in (but or ()) and (only is None or name in only))


_EXCLUSIVE = {
    "ignore_null_updates": "AUTOCDC_CONFLICTING_IGNORE_NULL_UPDATES_OPTIONS",
    "track_history": "AUTOCDC_BOTH_TRACK_HISTORY_COLUMN_LIST_AND_EXCEPT_COLUMN_LIST",
}


def _struct_field(name: str, members: Sequence[str], kind: pa.DataType) -> list[pa.Field]:
    # Parquet cannot hold a struct without members.
    return [pa.field(name, pa.struct([pa.field(member, kind) for member in members]))] if members else []


def _is_ordered(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        # Arrow has a variant as a struct of two binaries, which PySpark marks.
        members = [kind.field(i) for i in range(kind.num_fields)]
        marked = any(b"variant" in (member.metadata or {}) for member in members)
        return bool(members) and not marked and all(_is_ordered(member.type) for member in members)
    return any(is_kind(kind) for is_kind in _ORDERED) and not pa.types.is_float16(kind)


_ORDERED: tuple[Callable[[pa.DataType], bool], ...] = (
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_decimal,
    pa.types.is_boolean,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_fixed_size_binary,
    pa.types.is_date,
    pa.types.is_timestamp,
    pa.types.is_time,
    pa.types.is_duration,
)


def _refuse_reserved(schema: pa.Schema) -> None:
    taken = [name for name in schema.names if name.upper() in _RESERVED]
    if taken:
        raise SchemaMismatchError(
            f"{TABLE} cannot take changes: its column {taken[0]} has a name that apply_changes uses itself. Rename it.",
            url=TABLE,
            error_class="AUTOCDC_RESERVED_COLUMN_NAME_CONFLICT",
        )


def _refuse_unknown(option: str, names: Sequence[str], among: Sequence[str]) -> None:
    for name in names:
        if name not in among:
            explain = f"must name columns among {', '.join(among)}"
            raise _illegal(option, name, explain, "AUTOCDC_COLUMNS_NOT_FOUND_IN_SCHEMA")


def _illegal(option: str, value: str, explain: str, error_class: str | None = None) -> IllegalOptionError:
    return IllegalOptionError(option=option, value=value, explain=explain, error_class=error_class)
