"""Commands that compare: diff two versions of a table, verify two tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tablefeed.cli.arguments import AsJson, At, Columns, StorageOptions, TableName, Where, point, storage
from tablefeed.cli.arguments import names as names_in
from tablefeed.cli.exits import DIFFERENT
from tablefeed.cli.output import aligned, print_json
from tablefeed.cli.progress import counted
from tablefeed.cli.rows import Format, Output, chosen_format, values, write_rows
from tablefeed.wording.words import printable

if TYPE_CHECKING:
    from tablefeed.feed.api.differences import Differences

_SHOWN = 10

Rows = Annotated[bool, typer.Option("--rows", help="Print all rows that differ, and only these, in --format.")]
Examples = Annotated[int, typer.Option("--limit", "-n", min=0, metavar="N", help="Show at most N rows that differ.")]


def diff(
    *,
    table: TableName,
    before: Annotated[str, typer.Argument(metavar="A", help="Version, or a time.")],
    after: Annotated[str, typer.Argument(metavar="B", help="Version, or a time.")],
    where: Where = None,
    columns: Columns = None,
    rows: Rows = False,
    limit: Examples = _SHOWN,
    shape: Format = None,
    output: Output = None,
    as_json: AsJson = False,
    storage_option: StorageOptions = None,
) -> None:
    """Show what two versions of a table do not have in common: columns and rows.

    Exits with 1 where they differ.

    Example: tablefeed diff /lake/orders 1 3
    """
    asked = {
        **_side("left", before),
        **_side("right", after),
        "columns": names_in(columns),
        "filter": where,
        "storage_options": storage(storage_option),
    }
    _compare(table, table, asked, rows=rows, limit=limit, how=(shape, output, as_json))


def verify(
    *,
    left: Annotated[str, typer.Argument(metavar="A", help="Path or URL of a table.")],
    right: Annotated[str, typer.Argument(metavar="B", help="Path or URL of the other table.")],
    at: At = None,
    other_at: Annotated[
        str | None, typer.Option("--other-at", metavar="POINT", help="The same for B; default: the newest.")
    ] = None,
    where: Where = None,
    columns: Columns = None,
    rows: Rows = False,
    limit: Examples = _SHOWN,
    shape: Format = None,
    output: Output = None,
    as_json: AsJson = False,
    storage_option: StorageOptions = None,
    other_storage_option: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Option for the store of B; default: those for A."),
    ] = None,
) -> None:
    """Check that two tables have the same columns and rows, and show where they do not.

    Exits with 1 where they differ.

    Example: tablefeed verify /lake/orders /lake/copy
    """
    asked = {
        **_side("left", at),
        **_side("right", other_at),
        "columns": names_in(columns),
        "filter": where,
        "storage_options": storage(storage_option),
        "right_storage_options": storage(other_storage_option, "--other-storage-option")
        if other_storage_option
        else None,
    }
    _compare(left, right, asked, rows=rows, limit=limit, how=(shape, output, as_json))


def _side(name: str, text: str | None) -> dict[str, Any]:
    return {f"{name}_{argument}": value for argument, value in point(text).items()}


def _compare(
    left: str, right: str, asked: dict[str, Any], *, rows: bool, limit: int, how: tuple[Any, Any, bool]
) -> None:
    from tablefeed.feed.api.differences import differences

    shape, output, as_json = how
    if not rows and (shape is not None or output is not None):
        raise typer.BadParameter("needs --rows", param_hint="--format" if shape else "--output")
    written = chosen_format(shape, output, as_json=as_json) if rows else None
    with counted("compared") as on_rows:
        found = differences(left, right, **asked, on_rows=on_rows)
    if written is not None:
        write_rows(found.rows.to_reader(), written, output=output, limit=None)
    else:
        _print(found, limit=limit, as_json=as_json)
    if not found.is_equal:
        raise typer.Exit(DIFFERENT)


def _print(found: Differences, *, limit: int, as_json: bool) -> None:
    sides = found.rows["_difference"].to_pylist()
    examples = [
        row for batch in found.rows.slice(0, min(limit, found.rows.num_rows)).to_batches() for row in values(batch)
    ]
    if as_json:
        print_json(
            {
                "equal": found.is_equal,
                "left_version": found.left_version,
                "right_version": found.right_version,
                "schema": found.schema,
                "rows_removed": sides.count("removed"),
                "rows_added": sides.count("added"),
                "rows_compared": [found.left_rows, found.right_rows],
                "examples": examples,
            }
        )
        return
    typer.echo(f"version {found.left_version} and version {found.right_version}: ", nl=False)
    if found.is_equal:
        typer.echo("equal")
        return
    typer.echo(f"{sides.count('removed')} rows removed, {sides.count('added')} rows added")
    for line in found.schema:
        typer.echo(printable(line))
    for line in aligned(found.rows.schema.names, [tuple(row.values()) for row in examples]) if examples else []:
        typer.echo(line)
    if len(sides) > len(examples):
        typer.echo(f"... and {len(sides) - len(examples)} more rows: --rows prints all", err=True)
