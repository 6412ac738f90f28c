"""Logs for the tests of the feed, written as JSON by hand: what other writers put, not what our codec makes of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from support.faulty_store import FaultyStore
from tablefeed.feed.arguments import Bound
from tablefeed.feed.snapshot.delta_log import DeltaLog
from tablefeed.feed.snapshot.open_log import open_log
from tablefeed.feed.snapshot.table_log import TableLog, required_commit
from tablefeed.feed.stream.source import StreamSource
from tablefeed.feed.stream.source_options import SourceOptions
from tablefeed.log.plan import Limits
from tablefeed.model.actions import Commit, Version
from tablefeed.model.logfile import LogFileKind
from tablefeed.model.offset import Offset
from tablefeed.store import Store
from tablefeed.store.memory import MemoryStore

Action = dict[str, Any]  # Any: JSON

TABLE_ID = "11111111-1111-1111-1111-111111111111"
LONG_ID = '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}}]}'
ID = pa.schema([("id", pa.int64())])
NOW_MS = 1_700_000_000_000
VECTOR = {
    "storageType": "u",
    "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^",
    "offset": 4,
    "sizeInBytes": 40,
    "cardinality": 6,
}
"""The deletion vector of PROTOCOL.md's example, and the file that it is in."""
VECTOR_FILE = "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"


def protocol(reader: int = 1, writer: int = 2, **features: Sequence[str]) -> Action:
    return {"protocol": {"minReaderVersion": reader, "minWriterVersion": writer, **features}}


def metadata(
    schema: str = LONG_ID,
    *,
    table_id: str = TABLE_ID,
    partition_columns: Sequence[str] = (),
    configuration: Mapping[str, str] | None = None,
) -> Action:
    return {
        "metaData": {
            "id": table_id,
            "format": {"provider": "parquet", "options": {}},
            "schemaString": schema,
            "partitionColumns": list(partition_columns),
            "configuration": dict(configuration or {}),
        }
    }


def col(
    name: str,
    kind: object = "long",
    *,
    nullable: bool = True,
    notes: Mapping[str, object] | None = None,
    **mapping: object,
) -> dict[str, object]:
    """A column of a schema; `mapping` is its id and its physicalName, `notes` the rest of its metadata."""
    mapped = {f"delta.columnMapping.{key}": value for key, value in mapping.items()}
    return {"name": name, "type": kind, "nullable": nullable, "metadata": {**mapped, **(notes or {})}}


def struct(*columns: dict[str, object]) -> dict[str, object]:
    return {"type": "struct", "fields": list(columns)}


def meta(*columns: dict[str, object], **more: Any) -> Action:
    """The metadata of a table with these columns."""
    return metadata(json.dumps(struct(*columns)), **more)


def add(path: str, *, size: int = 10, data_change: bool = True, modified: int = 0, **more: object) -> Action:
    values = {"path": path, "partitionValues": {}, "size": size, "modificationTime": modified}
    return {"add": {**values, "dataChange": data_change, **more}}


def remove(path: str, *, data_change: bool = True, **more: object) -> Action:
    return {"remove": {"path": path, "dataChange": data_change, "deletionTimestamp": 1, **more}}


def txn(app_id: str, version: int) -> Action:
    return {"txn": {"appId": app_id, "version": version}}


def info(**fields: object) -> Action:
    return {"commitInfo": fields}


def commit_path(version: int) -> str:
    return f"_delta_log/{version:020d}.json"


def json_lines(*actions: Action) -> bytes:
    return "".join(json.dumps(action) + "\n" for action in actions).encode()


def put(store: Store, version: int, actions: Sequence[Action]) -> None:
    """Another writer's commit; replaces what is there."""
    store.replace(commit_path(version), json_lines(*actions))


def log_of(store: Store) -> DeltaLog:
    return DeltaLog(store, location=store.url, storage_options={})


def a_log(store: Store | None = None, **versions: Sequence[Action]) -> DeltaLog:
    """`a_log(v0=[...], v1=[...])`: a log with these commits, in memory unless a `store` is given."""
    store = MemoryStore("orders") if store is None else store
    for name, actions in versions.items():
        put(store, int(name.removeprefix("v")), actions)
    return log_of(store)


def a_table(store: Store | None = None) -> DeltaLog:
    """A table with one column and no file."""
    return a_log(store, v0=[protocol(), metadata()])


def actions_of(log: TableLog, version: int) -> list[Action]:
    return [json.loads(line) for line in log.store.read(commit_path(version)).splitlines()]


def change_actions(table: Path | str, version: int, change: Callable[[Action], object]) -> None:
    """Changes each action of a commit on the disk."""
    file = Path(table) / commit_path(version)
    actions = [json.loads(line) for line in file.read_text().splitlines()]
    for action in actions:
        change(action)
    file.write_bytes(json_lines(*actions))


def said(log: TableLog | Path, version: int, kind: str) -> list[Any]:  # Any: JSON
    """What the actions of one kind say in a commit."""
    actions = actions_of(open_log(str(log)) if isinstance(log, Path) else log, version)
    return [action[kind] for action in actions if kind in action]


def commits_of(log: TableLog) -> list[Commit]:
    listing = (log_file for log_file in log.listing() if log_file.kind is LogFileKind.COMMIT)
    return [required_commit(log, log_file) for log_file in listing]


def live_paths(log: TableLog, version: int | None = None) -> list[str]:
    snapshot = log.load(None if version is None else Version(version))
    return sorted(path for batch in snapshot.live_files() for path in batch["log_path"].to_pylist())


def a_source(log: TableLog, *, clock: Callable[[], float] = lambda: 0.0, **options: Any) -> StreamSource:
    """The feed of `log` for a query that begins now; `options` are those of `source_options`."""
    return StreamSource(log, read_schema=log.load().schema, options=source_options(**options), clock=clock)


def source_options(**options: Any) -> SourceOptions:
    """SourceOptions, whose bounds may be given as `starting_version`, `ending_bound_inclusive` and so on."""
    zone = options.pop("time_zone", None)
    for field, side in (("start", "starting"), ("end", "ending")):
        names = {"version": f"{side}_version", "timestamp": f"{side}_timestamp", "inclusive": f"{side}_bound_inclusive"}
        given = {name: options.pop(option) for name, option in names.items() if option in options}
        options[field] = Bound(**given, time_zone=zone)
    return SourceOptions(**options)


def at(version: int, file_index: int = 0, *, in_snapshot: bool = False) -> Offset:
    return Offset(table_id=TABLE_ID, version=Version(version), file_index=file_index, in_snapshot=in_snapshot)


def delivered(source: StreamSource, start: Offset, end: Offset) -> list[str]:
    """The files between two offsets; how they are spread over tasks is not looked at."""
    return sorted(file.path for task in source.tasks(start, end) for file in task.files)


def batches(source: StreamSource, start: Offset, limits: Limits) -> list[tuple[Offset, list[str]]]:
    """Every batch from `start` on, until nothing is new: where it ends, and its files."""
    found = []
    while (end := source.latest(start, limits)) != start:
        found.append((end, delivered(source, start, end)))
        start = end
    return found


def asked(store: FaultyStore, since: int) -> list[str]:
    """What the store was asked after its first `since` calls, not what was written to it."""
    asks = {"list", "exists", "is_file_at_root", "read", "stat", "open_input"}
    return [f"{call.operation} {call.name}" for call in store.calls[since:] if call.operation in asks]
