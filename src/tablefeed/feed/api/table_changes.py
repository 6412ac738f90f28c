"""`tablefeed.create`, `alter` and `restore`: creates, alters and restores Delta tables without SQL."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, TypeVar

from tablefeed.delta.alteration import Alteration
from tablefeed.delta.commit_info import TableChange
from tablefeed.delta.new_properties import is_kept
from tablefeed.delta.schema.column_changes import check_not_null_enforced, folded
from tablefeed.delta.schema.schema_faults import dotted
from tablefeed.errors import ConflictingOptionsError, IllegalOptionError, naming
from tablefeed.feed.api.append import texts
from tablefeed.feed.api.opening import table_at
from tablefeed.feed.arguments import column_names, location, store_options, text
from tablefeed.feed.commit.delta_commit import already_exists
from tablefeed.feed.commit.loop import commit
from tablefeed.feed.commit.transaction import Surroundings, Transaction
from tablefeed.feed.rows.state import as_restored
from tablefeed.feed.snapshot.delta_log import DeltaLog
from tablefeed.feed.snapshot.known_state import current_snapshot
from tablefeed.feed.snapshot.open_log import open_maintained
from tablefeed.feed.snapshot.table_log import Snapshot, TableLog
from tablefeed.feed.upkeep.after_commit import look_after, now_ms, surroundings
from tablefeed.feed.write.alteration import altered, constraint_properties
from tablefeed.feed.write.delta_plan import plan_delta_write
from tablefeed.feed.write.existing_rows import check_existing_rows
from tablefeed.feed.write.restored import restored
from tablefeed.feed.write.write_plan import DeltaPlan
from tablefeed.feed.write.write_rules import WriteRules, column_paths
from tablefeed.log.conflicts import WriteKind
from tablefeed.model.actions import Metadata, Protocol
from tablefeed.model.outcome import Committed
from tablefeed.model.schema import DataType, Field, Path, Struct

if TYPE_CHECKING:
    import pyarrow as pa


_T = TypeVar("_T")


def create(
    url: str | os.PathLike[str],
    schema: pa.Schema,
    *,
    partition_by: Sequence[str] = (),
    cluster_by: Sequence[str] = (),
    properties: Mapping[str, str] | None = None,
    constraints: Mapping[str, str] | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Committed:
    """Creates an empty Delta table with `schema` at `url`, in one commit: version 0.

    A field with `nullable=False` is NOT NULL, in structs too. Inside lists and maps it is refused, because Delta-Spark
    does not check it there. A field's metadata `comment` becomes the column's comment. `constraints` are CHECK
    constraints, SQL by name. `properties` are as for `append`: `{"delta.feature.NAME": "supported"}` adds a table
    feature. The protocol is the lowest one that supports all of this. Raises TableError (DELTA_TABLE_ALREADY_EXISTS)
    if there is a table, also if another writer creates it first; otherwise as `append`.
    """
    given = texts(properties, argument="properties")
    rules_by_property = constraint_properties(texts(constraints, argument="constraints"))
    if twice := given.keys() & rules_by_property:
        remedy = f"Both have the constraint {min(twice)}: leave one out."
        raise ConflictingOptionsError(options=("properties", "constraints"), remedy=remedy)
    given |= rules_by_property
    partition_by = _names(partition_by, "partition_by")
    rules = WriteRules(properties=given, cluster_by=_paths(cluster_by, "cluster_by"))
    log = open_maintained(location(url), store_options(storage_options))
    with naming(log.url):
        if current_snapshot(log) is not None:
            raise already_exists()
        columns = _described(schema)
    return create_table(log, columns, partition_by=partition_by, rules=rules)


def create_table(log: DeltaLog, columns: Struct, *, partition_by: Sequence[str], rules: WriteRules) -> Committed:
    """Creates the table at `log`, where none was found; see `create`."""
    with naming(log.url):
        check_not_null_enforced(columns)
        plan = plan_delta_write(log, None, columns, partition_by=partition_by, kind=WriteKind.DEFINE, rules=rules)
    parameters = {
        "isManaged": "false",
        "description": None,
        "partitionBy": plan.partition_columns,
        "clusterBy": [dotted(path) for path in rules.cluster_by],
        "properties": {name: value for name, value in plan.configuration.items() if is_kept(name)},
    }
    operation = TableChange(name="CREATE TABLE", parameters=parameters)
    return _committed(log, None, Transaction(plan=plan, files=(), kind=WriteKind.DEFINE, operation=operation))


def alter(
    url: str | os.PathLike[str],
    *,
    set_properties: Mapping[str, str] | None = None,
    unset_properties: Sequence[str] = (),
    add_columns: Iterable[pa.Field] = (),
    rename_columns: Mapping[str, str] | None = None,
    drop_columns: Sequence[str] = (),
    widen_columns: Mapping[str, pa.DataType] | None = None,
    set_not_null: Sequence[str] = (),
    drop_not_null: Sequence[str] = (),
    set_defaults: Mapping[str, str] | None = None,
    drop_defaults: Sequence[str] = (),
    set_comments: Mapping[str, str | None] | None = None,
    add_constraints: Mapping[str, str] | None = None,
    drop_constraints: Sequence[str] = (),
    enable_features: Sequence[str] = (),
    storage_options: Mapping[str, str] | None = None,
) -> Committed:
    """Changes the Delta table at `url` in one commit, without rewriting any row.

    Every argument uses the column names from before the call, in upper or lower case. A member of a struct is `a.b`,
    the elements of a list are `a.element`, and the keys and values of a map are `a.key` and `a.value`.

    - `add_columns`: fields, or a schema. They are added at the end; the field `a.b` is added to the struct `a`.
      Existing rows have null there.
    - `rename_columns` (to a name without path) and `drop_columns`: they need column mapping
      (`delta.columnMapping.mode`), which `set_properties` may turn on in the same call. A column that a constraint or a
      generated column names is neither renamed nor dropped; a partition or clustering column is not dropped.
    - `widen_columns`: only with `delta.enableTypeWidening`.
    - `set_not_null`, `add_constraints` (SQL by name): all rows are read first. If a row breaks the new rule, or another
      writer adds rows meanwhile, nothing is changed.
    - `set_defaults`: SQL for rows to come. A comment of None in `set_comments` removes the comment.

    As by ALTER TABLE in Delta-Spark, the protocol gets the features that the change uses: `changeDataFeed`,
    `deletionVectors`, `columnMapping`, `typeWidening`, `inCommitTimestamp`, `v2Checkpoint`, `checkConstraints` and the
    like for their properties, `variantType` for a new column. Older readers and writers can then no longer use the
    table. Two are only added if `enable_features` names them: `timestampNtz` and `allowColumnDefaults`. Turning on row
    tracking or Iceberg compatibility is refused, because existing files would have to change.

    Raises ConflictError if another writer changed metadata or protocol meanwhile, InvalidRowsError if a row breaks a
    new rule, and SchemaMismatchError, TableError, UnsupportedFeatureError or OptionError for a change that is refused.
    """
    log = open_maintained(location(url), store_options(storage_options))
    with naming(log.url):
        added, widened = _new_columns(add_columns), _wider_types(widen_columns)
    wanted = Alteration(
        assigned=texts(set_properties, argument="set_properties"),
        removed=_names(unset_properties, "unset_properties"),
        features=_names(enable_features, "enable_features"),
        new_constraints=texts(add_constraints, argument="add_constraints"),
        dropped_constraints=_names(drop_constraints, "drop_constraints"),
        dropped=_paths(drop_columns, "drop_columns"),
        added=added,
        widened=widened,
        nullable=_either(
            "not_null",
            dict.fromkeys(_paths(set_not_null, "set_not_null"), False),
            dict.fromkeys(_paths(drop_not_null, "drop_not_null"), True),
        ),
        defaults=_either(
            "defaults",
            _texts_by_path(set_defaults, "set_defaults"),
            dict.fromkeys(_paths(drop_defaults, "drop_defaults")),
        ),
        comments=_texts_by_path(set_comments, "set_comments", or_none=True),
        renamed={path: _name(new) for path, new in _by_path(rename_columns, "rename_columns").items()},
    )
    if wanted == Alteration():
        raise IllegalOptionError(option="alter", value="", explain="must be given at least one change")
    return alter_table(log, log.load(), wanted)


def alter_table(log: DeltaLog, state: Snapshot, wanted: Alteration) -> Committed:
    """Alters the table at `log`, which was last seen as `state`; see `alter`."""
    with naming(log.url):
        after = altered(state, wanted)
        checked = bool(after.checks or after.required)
        if checked:
            check_existing_rows(state, after.checks, after.required, now_ms=now_ms())
        plan = _plan(state, after.metadata, after.protocol)
    kind = WriteKind.DEFINE_CHECKED if checked else WriteKind.DEFINE
    return _committed(log, state, Transaction(plan=plan, files=(), kind=kind, operation=after.operation))


def restore(
    url: str | os.PathLike[str],
    *,
    version: int | None = None,
    timestamp: str | datetime | date | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Committed:
    """Restores the Delta table at `url` to an earlier `version`, or to the newest one at `timestamp`, in one commit.

    The table then has the files, the schema and the properties of that version. Files that both versions have stay.
    Other files are added and removed with `dataChange=true`; they keep their deletion vectors and row ids. The protocol
    keeps all features. The highest row id, identity value and column id never decrease. What is remembered of applied
    change events is that of the version too.

    Raises DataFileError if a file or deletion vector that is needed is gone (VACUUM), ConflictError if another writer
    commits meanwhile, AppendOnlyError for an append-only table, UnsupportedFeatureError if column mapping was changed
    or row tracking was dropped since, IllegalOptionError for a version that is not earlier; otherwise as
    `open_table`.
    """
    if version is None and timestamp is None:
        raise IllegalOptionError(option="version", value="None", explain="must be given, or `timestamp`")
    log = open_maintained(location(url), store_options(storage_options))
    _, wanted = table_at(url, version=version, timestamp=timestamp, storage_options=storage_options)
    newest = log.load_for_files()
    if wanted is None or wanted >= newest.version:
        explain = f"must name a version before the newest one, which is {newest.version}"
        given = str(version if timestamp is None else timestamp)
        error_class = "DELTA_CANNOT_RESTORE_TABLE_VERSION"
        raise IllegalOptionError(option="version", value=given, explain=explain, error_class=error_class)
    earlier = log.load_for_files(wanted)
    parameters = {"version": version, "timestamp": None if timestamp is None else str(timestamp)}
    return restore_table(newest, earlier, parameters)


def restore_table(
    newest: Snapshot, earlier: Snapshot, parameters: Mapping[str, object], around: Surroundings | None = None
) -> Committed:
    """Restores the table that was last seen as `newest`; see `restore`. `parameters` are those of the operation."""
    log = newest.log
    # The added files are not in the commit as values, so no checksum can be derived from the one before.
    around = around or replace(surroundings(), on_committed=lambda state, _commit, _removed: look_after(state))
    with naming(log.url):
        after = restored(newest, earlier, now_ms=around.now_ms())
        changes_applied = as_restored(newest, earlier)
        plan = _plan(newest, after.metadata, after.protocol)
    transaction = Transaction(
        plan=plan,
        files=(),
        kind=WriteKind.RESTORE,
        operation=TableChange(name="RESTORE", parameters=parameters, metrics=after.metrics),
        restored=after,
        domains=(*after.domains, *changes_applied),
    )
    return _committed(log, newest, transaction, around)


def _plan(state: Snapshot, metadata: Metadata, protocol: Protocol) -> DeltaPlan:
    plan = plan_delta_write(state.log, state, state.schema, kind=WriteKind.OPTIMIZE)
    return replace(plan, metadata=metadata, protocol=None if protocol == state.protocol else protocol)


def _committed(
    log: TableLog, state: Snapshot | None, transaction: Transaction, around: Surroundings | None = None
) -> Committed:
    outcome, _ = commit(log, state, transaction, around or surroundings())
    if not isinstance(outcome, Committed):
        raise TypeError(f"a commit without txn was {outcome!r}")
    return outcome


# --- arguments -------------------------------------------------------------------------------------------------------


def _described(schema: object) -> Any:
    import pyarrow as pa

    from tablefeed.delta.schema.arrow_schema import from_arrow_described

    if not isinstance(schema, pa.Schema):
        raise IllegalOptionError(option="schema", value=str(schema), explain="must be a pyarrow schema")
    return from_arrow_described(schema)


def _new_columns(given: object) -> dict[Path, Field]:
    import pyarrow as pa

    fields = list(given) if isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping) else None
    if fields is None or not all(isinstance(field, pa.Field) for field in fields):
        explain = "must be a pyarrow schema or a list of pyarrow fields"
        raise IllegalOptionError(option="add_columns", value=str(given), explain=explain)
    found: dict[Path, Field] = {}
    for field in fields:
        path = _path(field.name, "add_columns")
        if path in found:
            raise IllegalOptionError(option="add_columns", value=field.name, explain="names a column twice")
        found[path] = _described(pa.schema([field.with_name(path[-1])])).fields[0]
    return found


def _wider_types(given: Mapping[str, pa.DataType] | None) -> dict[Path, DataType]:
    return {path: _type(kind, dotted(path)) for path, kind in _by_path(given, "widen_columns").items()}


def _type(kind: object, name: str) -> Any:
    import pyarrow as pa

    if not isinstance(kind, pa.DataType):
        raise IllegalOptionError(option="widen_columns", value=str(kind), explain="must map names to pyarrow types")
    return _described(pa.schema([pa.field(name, kind)])).fields[0].type


def _path(name: object, argument: str) -> Path:
    given = text(name, argument=argument)
    paths = column_paths(given, argument)
    if len(paths) != 1:
        raise IllegalOptionError(option=argument, value=given, explain="must have one column in each text")
    if "`" not in given and ".".join(paths[0]) != given:  # without the blank it would be another column
        explain = "has a name that begins or ends with a blank: put it between backticks"
        raise IllegalOptionError(option=argument, value=given, explain=explain)
    return paths[0]


def _paths(given: object, argument: str) -> tuple[Path, ...]:
    return tuple(_path(name, argument) for name in _names(given, argument))


def _either(what: str, set_: Mapping[Path, _T], dropped: Mapping[Path, _T]) -> dict[Path, _T]:
    both = set(map(folded, set_)) & set(map(folded, dropped))
    if both:
        options = (f"set_{what}", f"drop_{what}")
        raise ConflictingOptionsError(options=options, remedy=f"Both name {dotted(both.pop())}: leave one out.")
    return {**set_, **dropped}


def _name(new: object) -> str:
    if not text(new, argument="rename_columns"):
        raise IllegalOptionError(option="rename_columns", value="", explain="must give each column a name")
    return str(new)


def _names(given: object, argument: str) -> tuple[str, ...]:
    found = column_names((given,) if isinstance(given, str) else given, argument=argument)
    if len({name.lower() for name in found}) < len(found):
        raise IllegalOptionError(option=argument, value=", ".join(found), explain="has a name twice")
    return found


def _by_path(given: object, argument: str) -> dict[Path, Any]:
    if given is not None and not isinstance(given, Mapping):
        raise IllegalOptionError(option=argument, value=str(given), explain="must be a mapping by name")
    found = {_path(name, argument): value for name, value in (given or {}).items()}
    if len(set(map(folded, found))) < len(given or {}):
        raise IllegalOptionError(option=argument, value=", ".join(given or {}), explain="names a column twice")
    return found


def _texts_by_path(given: object, argument: str, *, or_none: bool = False) -> dict[Path, str | None]:
    found = _by_path(given, argument).items()
    return {
        path: None if or_none and given is None else text(given, argument=f"{argument}[{dotted(path)!r}]")
        for path, given in found
    }
