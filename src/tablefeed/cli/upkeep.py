"""Commands that change no row: optimize, vacuum, checkpoint, consumers."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

import tablefeed
from tablefeed.cli.arguments import AsJson, StorageOptions, TableName, storage
from tablefeed.cli.outcomes import print_checkpointed, print_outcome, print_vacuumed
from tablefeed.cli.output import aligned, print_json
from tablefeed.cli.progress import working
from tablefeed.wording.words import moment

if TYPE_CHECKING:
    from tablefeed import Consumer

_BYTES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def optimize(
    *,
    table: TableName,
    where: Annotated[
        str | None, typer.Option("--where", metavar="SQL", help="Only these partitions: a predicate in Spark's SQL.")
    ] = None,
    target_size: Annotated[
        str | None, typer.Option("--target-size", metavar="SIZE", help="The size of new files, such as 256m or 1g.")
    ] = None,
    as_json: AsJson = False,
    storage_option: StorageOptions = None,
) -> None:
    """Merge small files into large ones. No row changes.

    Example: tablefeed optimize /lake/orders --target-size 256m
    """
    size_bytes = None if target_size is None else _size_bytes(target_size)
    options = storage(storage_option)
    with working("merging files") as on_progress:
        done = tablefeed.optimize(
            table, where=where, target_size_bytes=size_bytes, storage_options=options, on_progress=on_progress
        )
    print_outcome(done, as_json=as_json)


def _size_bytes(text: str) -> int:
    number, unit = (text, "") if text[-1:].isdecimal() else (text[:-1], text[-1:].lower())
    if unit not in _BYTES or not (number.isascii() and number.isdecimal()):
        raise typer.BadParameter(f"{text!r} is no size such as 256m or 1g", param_hint="--target-size")
    return int(number) * _BYTES[unit]


def vacuum(
    *,
    table: TableName,
    delete: Annotated[bool, typer.Option("--delete", help="Delete the files; without this, only list them.")] = False,
    retention_hours: Annotated[
        float | None, typer.Option(metavar="H", help="Keep files that were removed less than H hours ago.")
    ] = None,
    allow_short_retention: Annotated[
        bool, typer.Option("--allow-short-retention", help="Allow less than the table's own retention.")
    ] = False,
    as_json: AsJson = False,
    storage_option: StorageOptions = None,
) -> None:
    """List the files that the table does not need any more, or delete them with --delete.

    Example: tablefeed vacuum /lake/orders
    """
    options = storage(storage_option)
    with working("looking for files") as on_progress:
        done = tablefeed.vacuum(
            table,
            dry_run=not delete,
            retention_hours=retention_hours,
            allow_short_retention=allow_short_retention,
            storage_options=options,
            on_progress=on_progress,
        )
    print_vacuumed(done, as_json=as_json)


def checkpoint(
    *,
    table: TableName,
    clean_up: Annotated[bool, typer.Option("--clean-up", help="Also delete old files of the log.")] = False,
    as_json: AsJson = False,
    storage_option: StorageOptions = None,
) -> None:
    """Write a checkpoint of the newest version into the log of a table.

    Example: tablefeed checkpoint /lake/orders
    """
    options = storage(storage_option)
    with working("writing the checkpoint") as on_progress:
        done = tablefeed.checkpoint(table, clean_up=clean_up, storage_options=options, on_progress=on_progress)
    print_checkpointed(done, as_json=as_json)


# --- consumers -------------------------------------------------------------------------------------------------------

consumers = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Show, register or remove readers that vacuum and log cleanup wait for.\n\n"
    "Example: tablefeed consumers list /lake/orders",
)
ConsumerId = Annotated[str, typer.Argument(metavar="ID", help="The id of the consumer.")]


@consumers.command("list")
def list_(*, table: TableName, as_json: AsJson = False, storage_option: StorageOptions = None) -> None:
    """List the consumers of a table.

    Example: tablefeed consumers list /lake/orders
    """
    from tablefeed.feed.api.damage import newest_readable

    options = storage(storage_option)
    found = tablefeed.consumers(table, options).list()
    if not found:
        newest_readable(table, storage_options=options, problems=[])  # an error where there is no table
    if as_json:
        for each in found:
            print_json(_facts(each))
        return
    rows = [(c.consumer_id, c.version, moment(c.reported_at_ms), moment(c.expires_at_ms)) for c in found]
    for line in aligned(("consumer", "version", "reported", "expires"), rows):
        typer.echo(line)


@consumers.command("register")
def register(
    *,
    table: TableName,
    consumer_id: ConsumerId,
    version: Annotated[
        int | None, typer.Option(metavar="N", help="It has read all versions up to N, -1: none; default: the newest.")
    ] = None,
    expires_after_days: Annotated[float, typer.Option(metavar="D", help="Forget it after D days of silence.")] = 30,
    as_json: AsJson = False,
    storage_option: StorageOptions = None,
) -> None:
    """Register a reader, or register it anew at another version.

    Example: tablefeed consumers register /lake/orders sums --version 2
    """
    try:
        expires_after = timedelta(days=expires_after_days)
    except (OverflowError, ValueError) as error:
        raise typer.BadParameter("is no number of days", param_hint="--expires-after-days") from error
    known = tablefeed.consumers(table, storage(storage_option))
    done = known.register(consumer_id, version=version, expires_after=expires_after)
    if as_json:
        print_json(_facts(done))
    else:
        typer.echo(f"{done.consumer_id} has read version {done.version}; expires {moment(done.expires_at_ms)}")


@consumers.command("remove")
def remove(
    *, table: TableName, consumer_id: ConsumerId, as_json: AsJson = False, storage_option: StorageOptions = None
) -> None:
    """Remove a consumer: nothing is kept for it any more.

    Example: tablefeed consumers remove /lake/orders sums
    """
    from tablefeed.feed.api.damage import newest_readable

    options = storage(storage_option)
    newest_readable(table, storage_options=options, problems=[])  # an error where there is no table
    tablefeed.consumers(table, options).remove(consumer_id)
    if as_json:
        print_json({"removed": consumer_id})
    else:
        typer.echo(f"{consumer_id} is no consumer of the table")


def _facts(each: Consumer) -> dict[str, Any]:
    return {
        "consumer": each.consumer_id,
        "version": each.version,
        "reported": moment(each.reported_at_ms),
        "expires": moment(each.expires_at_ms),
    }
