"""The state of a table to which change events are applied: what must be remembered besides its rows.

The state is in Parquet files below `STATE_DIR`. A metadata domain of the table's log names these files, so one commit
changes rows and state together. A file that no commit names has no effect. Each file has the state of some keys. If
several files have a key, the newest of them counts. Files are merged like the levels of a log-structured merge tree, so
that a key is written few times and a batch reads few files. VACUUM skips folders whose name begins with `_`.
"""

from __future__ import annotations

import base64
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tablefeed.delta import features, names
from tablefeed.delta.schema.arrow_schema import arrow_type, from_arrow
from tablefeed.errors import TABLE, DataFileError, LogError, ObjectNotFoundError, UnsupportedFeatureError
from tablefeed.feed.rows.events import Order, key_numbers
from tablefeed.feed.rows.folding import DELETED_AT, MADE_AT, SEQUENCE, SET, Folding
from tablefeed.feed.snapshot.table_files import TableFiles
from tablefeed.feed.snapshot.table_log import Snapshot
from tablefeed.feed.write.orphans import delete_orphans
from tablefeed.model.actions import DomainMetadata
from tablefeed.model.schema import DataType, Decimal, Primitive, widens
from tablefeed.store import Store, Within

DOMAIN = "tablefeed.applyChanges"

STATE_DIR = "_tablefeed/apply_changes"

MOST_FILES = 8
"""If there are more files, the newest ones are merged into one."""

GROWTH = 4
"""A file is merged with the newer ones unless it has more than this many times their rows."""

MOST_FOLDED_ROWS = 5_000_000
"""The most rows that are merged into one file, because they are in memory then."""

_GONE = "__GONE"
"""The column that marks a key of which nothing is remembered any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateFile:
    """A file of the state, newest last in a `State`; it has `row_count` rows."""

    path: str
    row_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The state that the log of a table names. `how` says how events were folded, as `fingerprint` gives it.

    `snapshot_at` is the version of the newest snapshot that was applied; None for change events. `forgotten_at` is the
    greatest sequence of the deletes that were forgotten.
    """

    how: Mapping[str, object] = field(default_factory=dict)
    files: tuple[StateFile, ...] = ()
    truncated_at: pa.Scalar | None = None
    snapshot_at: pa.Scalar | None = None
    forgotten_at: pa.Scalar | None = None


def fingerprint(how: Folding) -> dict[str, object]:
    """Gives what must stay the same from batch to batch, in words that JSON can hold."""
    return {
        "keys": list(how.keys),
        _KEY_TYPES: [str(how.schema.field(name).type) for name in how.keys],
        _SEQUENCE_TYPE: str(how.sequence),
        "sequenceColumn": how.sequence_column,
        "scdType": how.scd_type,
        "sparseColumns": list(how.sparse),
        "trackedColumns": None if how.tracked is None else list(how.tracked),
        "untrackedColumns": list(how.untracked),
        **({} if how.snapshot_at is None else {"snapshots": True}),
    }


_KEY_TYPES, _SEQUENCE_TYPE = "keyTypes", "sequenceType"
"""Names in the fingerprint; their values are Arrow's texts of types."""

_COLUMNS = "columns"
"""Beside the fingerprint: the columns that the table had, where the fingerprint names some."""

_LISTS = ("sparseColumns", "trackedColumns", "untrackedColumns")


def with_columns(how: Folding, names: list[str]) -> dict[str, object]:
    """Gives the fingerprint of `how` for a table with the columns `names`."""
    found = fingerprint(how)
    return {**found, _COLUMNS: names} if any(found[name] for name in _LISTS) else found


def drift(state: State, how: Folding, columns: Sequence[str]) -> dict[str, tuple[object, object]]:
    """Gives the arguments that differ: their old and their new value. The table has `columns`.

    Columns may have been added to the table, or dropped from it. A new column beside one that is gone may be the same
    column with another name, of which nothing would be remembered: then the one that is gone counts as a difference.
    Keys and the sequence may have been widened. The versions of snapshots must keep their type.
    """
    known, asked = state.how.get(_COLUMNS), fingerprint(how)
    was = {name: value for name, value in state.how.items() if name != _COLUMNS}
    types = [how.schema.field(name).type for name in how.keys]
    if isinstance(then := was.get(_KEY_TYPES), list) and len(then) == len(types) and all(map(_widens, then, types)):
        was[_KEY_TYPES] = asked[_KEY_TYPES]
    if how.snapshot_at is None and _widens(was.get(_SEQUENCE_TYPE), how.sequence):
        was[_SEQUENCE_TYPE] = asked[_SEQUENCE_TYPE]
    if isinstance(known, list):
        for name in _LISTS:
            if isinstance(now := asked[name], list):
                asked[name] = [each for each in now if each in known]
            if isinstance(then := was.get(name), list) and all(each in known for each in columns):
                was[name] = [each for each in then if each in columns]
    return {name: (was.get(name), asked.get(name)) for name in {**asked, **was} if was.get(name) != asked.get(name)}


_OLDER: Mapping[object, DataType] = {
    str(arrow_type(kind)): kind for kind in map(Primitive, ("byte", "short", "integer", "long", "float", "date"))
}
"""The types that can be widened, by their texts in a fingerprint, without decimals."""
_DECIMAL = re.compile(r"decimal128\(([0-9]+), ([0-9]+)\)")


def _widens(then: object, now: pa.DataType) -> bool:
    """Whether the type with the text `then` is `now` or can be widened to it."""
    decimal = _DECIMAL.fullmatch(str(then))
    older = Decimal(int(decimal[1]), int(decimal[2])) if decimal else _OLDER.get(then)
    return then == str(now) or (older is not None and widens(older, from_arrow(pa.schema([("", now)])).fields[0].type))


def state_for(snapshot: Snapshot, how: Folding) -> State:
    """Gives the state that the log of `snapshot` names, with sequences of the type of `how`. Raises as `read_state`."""
    state, kind = read_state(snapshot), how.sequence
    truncated_at, forgotten_at = (
        None if mark is None else mark.cast(kind) for mark in (state.truncated_at, state.forgotten_at)
    )
    return replace(state, truncated_at=truncated_at, forgotten_at=forgotten_at)


def read_state(snapshot: Snapshot) -> State:
    """Gives the state that the log of `snapshot` names. Raises LogError where it cannot be read."""
    domain = snapshot.facts.domains.get(DOMAIN)
    return State() if domain is None else _state(domain)


def paths_of(domain: DomainMetadata) -> tuple[str, ...]:
    """Gives the paths of the files that `domain`, which is `DOMAIN`'s, names. Raises as `read_state`."""
    return tuple(file.path for file in _state(domain).files)


def as_restored(newest: Snapshot, earlier: Snapshot) -> tuple[DomainMetadata, ...]:
    """Gives what a restore of `newest` to `earlier` sets, so that the state is again that of the rows; else nothing.

    Raises DataFileError where a file of that state is gone, LogError where it cannot be read.
    """
    now, then = (snapshot.facts.domains.get(DOMAIN) for snapshot in (newest, earlier))
    if now == then:
        return ()
    if then is None:
        return () if now is None else (replace(now, removed=True),)
    for file in _state(then).files:
        if not newest.log.store.exists(file.path):
            raise _damaged(file, "VACUUM or another hand removed it")
    return (then,)


def _state(domain: DomainMetadata) -> State:
    try:
        found = orjson.loads(domain.configuration)
        truncated, how, snapshot_at = found["truncatedAt"], found["how"], found.get("snapshotAt")
        files = tuple(StateFile(path=file["path"], row_count=file["rows"]) for file in found["files"])
        is_known = type(how) is dict and all((type(f.path), type(f.row_count)) == (str, int) for f in files)
        marks = (truncated, snapshot_at, found.get("forgottenAt"))
        times = [None if text is None else _scalar(text) for text in marks]
        state = State(how=how, files=files, truncated_at=times[0], snapshot_at=times[1], forgotten_at=times[2])
    except (orjson.JSONDecodeError, LookupError, TypeError, ValueError, OSError, pa.ArrowException) as error:
        raise _unreadable(domain) from error
    if not is_known:
        raise _unreadable(domain)
    return state


def _unreadable(domain: DomainMetadata) -> LogError:
    return LogError(
        f"The log of {TABLE} does not say where the order of its changes is kept: domain {DOMAIN} has the "
        f"configuration {domain.configuration!r:.200}. Nothing was committed. Restore the table to a version "
        "before it was damaged.",
    )


def as_domain(state: State) -> DomainMetadata:
    """Gives the action that names `state`."""
    truncated = state.truncated_at
    found = {
        "how": dict(state.how),
        "files": [{"path": file.path, "rows": file.row_count} for file in state.files],
        "truncatedAt": None if truncated is None else _text(truncated),
        **({} if state.snapshot_at is None else {"snapshotAt": _text(state.snapshot_at)}),
        **({} if state.forgotten_at is None else {"forgottenAt": _text(state.forgotten_at)}),
    }
    return DomainMetadata(domain=DOMAIN, configuration=orjson.dumps(found).decode(), removed=False)


def check_supported(snapshot: Snapshot) -> None:
    """Raises UnsupportedFeatureError where the log of the table cannot name a state."""
    if names.DOMAIN_METADATA not in features.supported_features(snapshot.protocol):
        raise UnsupportedFeatureError(
            f"Changes cannot be applied to {TABLE}: its protocol does not have the feature {names.DOMAIN_METADATA}, "
            "by which its log names the state of earlier changes. Nothing was written. Add it: alter(url, "
            f"enable_features=['{names.DOMAIN_METADATA}']) in tablefeed, or ALTER TABLE ... SET TBLPROPERTIES "
            f"('{names.FEATURE_PREFIX}{names.DOMAIN_METADATA}' = 'supported') in Spark.",
            features=(names.DOMAIN_METADATA,),
            error_class="DELTA_UNSUPPORTED_FEATURES_FOR_WRITE",
        )


def remembered(state: State, store: Store, keys: pa.Table | None, how: Folding) -> pa.Table:
    """Gives what `state` remembers of `keys` (None: of all), in the columns of `how.state_schema`."""
    opened = TableFiles(store, storage_options={})
    return _newest(state.files, opened, how, keys=keys, keeps_gone=False).drop_columns([_GONE])


def _newest(
    files: Sequence[StateFile], opened: TableFiles, how: Folding, *, keys: pa.Table | None, keeps_gone: bool
) -> pa.Table:
    """Gives what `files`, the newest last, remember of `keys` (None: of all), each key from the newest that has it."""
    kept = [_schema(how).empty_table()]
    decided: pa.Table | None = None
    for file in reversed(files):
        rows = _read(file, opened, how)
        if keys is not None:
            rows = rows.filter(has(rows, keys, how))
        if decided is not None:
            rows = rows.filter(pc.invert(has(rows, decided, how)))
        kept.append(rows if keeps_gone else rows.filter(pc.invert(rows[_GONE])))
        mine = rows.select(how.keys)
        decided = mine if decided is None else pa.concat_tables([decided, mine])
    return pa.concat_tables(kept)


def has(rows: pa.Table, keys: pa.Table, how: Folding) -> pa.Array:
    """Says of each of `rows` whether its key is among `keys`."""
    mine, theirs = key_numbers([rows.select(how.keys), keys.select(how.keys)], how.keys)
    return pc.is_in(mine, value_set=theirs)


def _read(file: StateFile, opened: TableFiles, how: Folding) -> pa.Table:
    """Gives the rows of a file. Raises DataFileError if the file is gone or damaged; it never counts as empty."""
    try:
        with opened.open_input(file.path) as source:
            rows = pq.ParquetFile(source, page_checksum_verification=True).read()
        # A column was added to the table after this file was written: no event of that time set it. It may be the first
        # that has a place in SET. A file that was written while deletes were not forgotten has no times.
        optional = (*how.untracked, SET, MADE_AT)
        late = [rows.schema.get_field_index(name) < 0 and name in optional for name in how.state_schema.names]
        have = [name for name, is_late in zip(how.state_schema.names, late, strict=True) if not is_late]
        rows = _filled(rows.select([*have, _GONE]), _schema(how))
    except (ObjectNotFoundError, pa.ArrowException, OSError, KeyError, ValueError) as error:
        raise _damaged(file, str(error)) from error
    if rows.num_rows != file.row_count:
        raise _damaged(file, f"it has {rows.num_rows} rows of {file.row_count}")
    return rows


def _damaged(file: StateFile, why: str) -> DataFileError:
    return DataFileError(
        f"The file {file.path} of {TABLE} has the state of earlier changes, and it is gone or cannot be read: "
        f"{why.rstrip('.')}. Nothing was committed, because an older event could bring back a deleted row. Restore the "
        "file from a copy.",
        path=file.path,
    )


def _schema(how: Folding) -> pa.Schema:
    return how.state_schema.append(pa.field(_GONE, pa.bool_()))


def increment(store: Store, changed: pa.Table, forgotten: pa.Table, how: Folding) -> StateFile | None:
    """Writes the changes of a batch to the state into a new file, durable when this returns; None for no change.

    `changed` is the whole new state of some keys. The other keys in `forgotten` have no state any more. The caller
    deletes the file if it commits nothing.
    """
    gone = forgotten.filter(pc.invert(has(forgotten, changed, how))) if forgotten.num_rows else forgotten
    rows = _with_gone(changed, how, is_gone=False)
    if gone.num_rows:
        rows = pa.concat_tables([rows, _marks(gone, how)])
    return _written(rows, store, how) if rows.num_rows else None


def grown(
    state: State, new: Sequence[StateFile], store: Store, *, truncated_at: pa.Scalar | None, how: Folding, now_ms: int
) -> State:
    """Gives `state` with the files `new`, no two of which have a key in common. Merges the newest of too many files.

    Deletes that are old enough at `now_ms` to be forgotten are left out. Files of `new` that were merged are deleted,
    because no commit names them.
    """
    files, forgotten_at = [*state.files, *new], state.forgotten_at
    if len(files) > MOST_FILES:
        folded = [files.pop()]
        rows = folded[0].row_count
        while files and files[-1].row_count <= GROWTH * rows and rows + files[-1].row_count <= MOST_FOLDED_ROWS:
            folded.append(files.pop())
            rows += folded[-1].row_count
        if len(folded) > 1:
            kept = _newest(folded[::-1], TableFiles(store, storage_options={}), how, keys=None, keeps_gone=bool(files))
            if how.forget_after_ms is not None:
                expired = pc.fill_null(
                    pc.less_equal(kept[MADE_AT], max(now_ms - how.forget_after_ms, -1)), pa.scalar(value=False)
                )
                gone, kept = kept.filter(expired), kept.filter(pc.invert(expired))
                forgotten_at = _greatest(gone[DELETED_AT if how.scd_type == 1 else SEQUENCE], forgotten_at, how)
                if files:  # an older file may have what was known of the key before
                    kept = pa.concat_tables([kept, _marks(gone.filter(pc.invert(has(gone, kept, how))), how)])
            files += [_written(kept, store, how)] if kept.num_rows else []
            delete_orphans(store, (file.path for file in folded if file in new))
        else:
            files += folded
    if not new and truncated_at == state.truncated_at:
        return state
    return State(how=fingerprint(how), files=tuple(files), truncated_at=truncated_at, forgotten_at=forgotten_at)


def _greatest(sequences: pa.ChunkedArray, other: pa.Scalar | None, how: Folding) -> pa.Scalar | None:
    order = Order.of([sequences, pa.chunked_array([[] if other is None else [other]], how.sequence)])
    at = pc.index(pa.concat_arrays(order.ranks), pa.scalar(order.greatest, pa.int64())).as_py()
    return order.values[at] if order.greatest else None


def _written(rows: pa.Table, store: Store, how: Folding) -> StateFile:
    path = f"{STATE_DIR}/{uuid.uuid4()}.parquet"
    with store.create(path, within=Within(directory="")) as handle:
        ordered = rows.sort_by([(name, "ascending") for name in how.keys])
        pq.write_table(ordered, handle, compression="zstd", write_page_checksum=True)
    return StateFile(path=path, row_count=rows.num_rows)


def _with_gone(rows: pa.Table, how: Folding, *, is_gone: bool) -> pa.Table:
    marks = pa.repeat(pa.scalar(is_gone), rows.num_rows)
    return rows.select(how.state_schema.names).append_column(_GONE, marks).cast(_schema(how))


def _marks(gone: pa.Table, how: Folding) -> pa.Table:
    keys = pa.table({name: gone[name] for name in how.keys})
    return _with_gone(_filled(keys, how.state_schema), how, is_gone=True)


def _filled(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    columns = [
        rows[column.name].cast(column.type)
        if column.name in rows.column_names
        else pa.nulls(rows.num_rows, column.type)
        for column in schema
    ]
    return pa.table(columns, schema=schema)


def _text(value: pa.Scalar) -> str:
    batch = pa.record_batch({"at": pa.repeat(value, 1)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write(batch)
    return base64.b64encode(sink.getvalue().to_pybytes()).decode()


def _scalar(text: str) -> pa.Scalar:
    batch = pa.ipc.open_file(base64.b64decode(text)).get_batch(0)
    batch.validate(full=True)
    return batch["at"][0]
