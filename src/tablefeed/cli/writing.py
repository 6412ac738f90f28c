"""Commands that write rows: append, delete, apply-changes, replicate. Each makes whole commits or none."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

import tablefeed
from tablefeed.cli.arguments import AsJson, StorageOptions, TableName, storage
from tablefeed.cli.arguments import names as names_in
from tablefeed.cli.incoming import InputFormat, opened_rows
from tablefeed.cli.outcomes import print_outcome
from tablefeed.cli.progress import counted, working

Files = Annotated[
    list[str],
    typer.Argument(metavar="FILE...", help="CSV, JSON lines, Parquet or Arrow; - is stdin. One commit for all."),
]
AppId = Annotated[
    str | None, typer.Option("--app-id", metavar="ID", help="With --txn-version: commit once, however often it runs.")
]
TxnVersion = Annotated[
    int | None, typer.Option("--txn-version", metavar="N", help="A number that grows, with --app-id.")
]
TimeZone = Annotated[
    str | None,
    typer.Option(
        metavar="ZONE",
        help="The zone, such as Europe/Berlin, for the table's rules and for values whose type has no zone.",
    ),
]
MergeSchema = Annotated[bool, typer.Option("--merge-schema", help="Add columns that the table does not have.")]


def append(
    *,
    table: TableName,
    files: Files,
    shape: InputFormat = None,
    mode: Annotated[Literal["append", "overwrite"], typer.Option(help="Keep or replace the rows.")] = "append",
    partition_by: Annotated[
        str | None, typer.Option(metavar="A,B", help="The partition columns of a new table.")
    ] = None,
    merge_schema: MergeSchema = False,
    time_zone: TimeZone = None,
    app_id: AppId = None,
    txn_version: TxnVersion = None,
    user_metadata: Annotated[str | None, typer.Option(metavar="TEXT", help="A text for the commit.")] = None,
    as_json: AsJson = False,
    storage_option: StorageOptions = None,
) -> None:
    """Append the rows of files to a table, in one commit. Creates the table where there is none.

    Example: tablefeed append /lake/orders new.csv --app-id loader --txn-version 42
    """
    options = storage(storage_option)
    with counted("read") as on_rows, opened_rows(files, shape, table, options, on_rows) as rows:
        done = tablefeed.append(
            table,
            rows,
            mode=mode,
            partition_by=names_in(partition_by) or (),
            merge_schema=merge_schema,
            time_zone=time_zone,
            app_id=app_id,
            txn_version=txn_version,
            user_metadata=user_metadata,
            storage_options=options,
        )
    print_outcome(done, as_json=as_json)


def delete(
    *,
    table: TableName,
    where: Annotated[str, typer.Argument(metavar="WHERE", help="A predicate in Spark's SQL; 'true' deletes all rows.")],
    app_id: AppId = None,
    txn_version: TxnVersion = None,
    as_json: AsJson = False,
    storage_option: StorageOptions = None,
) -> None:
    """Delete the rows for which a predicate is true, in one commit.

    Example: tablefeed delete /lake/orders "id = 5"
    """
    options = storage(storage_option)
    with working("deleting rows"):
        done = tablefeed.delete(table, where, app_id=app_id, txn_version=txn_version, storage_options=options)
    print_outcome(done, as_json=as_json)


def apply_changes(
    *,
    table: TableName,
    files: Files,
    keys: Annotated[str, typer.Option(metavar="A,B", help="The columns that identify a row.")],
    sequence_by: Annotated[
        str | None, typer.Option(metavar="A,B", help="The columns that order the events of a key.")
    ] = None,
    source: Annotated[
        Literal["tablefeed", "changes", "debezium"] | None,
        typer.Option(help="The system that the events come from; sets the other options."),
    ] = None,
    apply_as_deletes: Annotated[
        str | None, typer.Option(metavar="SQL", help="An event for which this is true deletes its key.")
    ] = None,
    apply_as_truncates: Annotated[
        str | None, typer.Option(metavar="SQL", help="An event for which this is true deletes all older rows.")
    ] = None,
    column_list: Annotated[str | None, typer.Option(metavar="A,B", help="The columns that the table gets.")] = None,
    except_column_list: Annotated[str | None, typer.Option(metavar="A,B", help="The columns that it does not.")] = None,
    ignore_null_updates: Annotated[bool, typer.Option("--ignore-null-updates", help="Null keeps a value.")] = False,
    stored_as_scd_type: Annotated[int, typer.Option(min=1, max=2, help="2 keeps the history of each row.")] = 1,
    ties: Annotated[Literal["fail", "last"], typer.Option(help="What equal sequences of a key mean.")] = "fail",
    merge_schema: MergeSchema = False,
    time_zone: TimeZone = None,
    shape: InputFormat = None,
    app_id: AppId = None,
    txn_version: TxnVersion = None,
    as_json: AsJson = False,
    storage_option: StorageOptions = None,
) -> None:
    """Apply change events to a table, in one commit: the newest event of each key counts.

    Example: tablefeed apply-changes /lake/state events.jsonl --keys id --sequence-by ts --apply-as-deletes "op = 'd'"
    """
    options = storage(storage_option)
    asked: dict[str, Any] = {  # Any: arguments of `apply_changes`
        "sequence_by": names_in(sequence_by),
        "source": source,
        "apply_as_deletes": apply_as_deletes,
        "apply_as_truncates": apply_as_truncates,
        "column_list": names_in(column_list),
        "except_column_list": names_in(except_column_list),
        "ignore_null_updates": ignore_null_updates,
        "stored_as_scd_type": stored_as_scd_type,
        "ties": ties,
        "merge_schema": merge_schema,
        "time_zone": time_zone,
        "app_id": app_id,
        "txn_version": txn_version,
    }
    with counted("read") as on_rows, opened_rows(files, shape, table, options, on_rows) as events:
        done = tablefeed.apply_changes(table, events, keys=names_in(keys) or (), storage_options=options, **asked)
    print_outcome(done, as_json=as_json)


def replicate(
    *,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="Path or URL of the table to copy.")],
    target: Annotated[str, typer.Argument(metavar="TARGET", help="Path or URL of the copy; no other may write it.")],
    starting_version: Annotated[int | None, typer.Option(metavar="N", help="The version to begin with.")] = None,
    until: Annotated[int | None, typer.Option(metavar="N", help="The last version; default: the newest.")] = None,
    verify: Annotated[bool, typer.Option("--verify", help="Read and compare both at the end.")] = False,
    resync: Annotated[bool, typer.Option("--resync", help="Copy a whole version where commits are gone.")] = False,
    by_rows: Annotated[bool, typer.Option("--by-rows", help="Write rows anew, instead of copying files.")] = False,
    consumer_id: Annotated[str | None, typer.Option(metavar="ID", help="Be a consumer of the source.")] = None,
    as_json: AsJson = False,
    storage_option: StorageOptions = None,
    target_storage_option: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Option for the target's store."),
    ] = None,
) -> None:
    """Copy a table commit by commit, or bring a copy up to date. Run it again to copy later commits.

    Example: tablefeed replicate /lake/orders /backup/orders --verify
    """
    options = storage(storage_option)
    to = storage(target_storage_option, "--target-storage-option") if target_storage_option else None
    with working("copying"):
        done = tablefeed.replicate(
            source,
            target,
            starting_version=starting_version,
            until=until,
            verify=verify,
            resync=resync,
            by_rows=by_rows,
            consumer_id=consumer_id,
            storage_options=options,
            target_storage_options=to,
        )
    print_outcome(done, as_json=as_json)
