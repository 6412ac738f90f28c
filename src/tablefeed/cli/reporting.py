"""The command report: a page of HTML about a table or a query."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from tablefeed.cli.arguments import AsJson, StorageOptions, storage
from tablefeed.cli.exits import DIFFERENT
from tablefeed.cli.output import print_json, print_problems
from tablefeed.cli.progress import working
from tablefeed.cli.rows import whole_file
from tablefeed.cli.watching import Tables
from tablefeed.wording.words import printable, size


def report(
    *,
    source: Annotated[
        str,
        typer.Argument(metavar="TABLE|CHECKPOINT", help="A table, or the checkpointLocation of a streaming query."),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The page, which appears when complete.")
    ] = Path("report.html"),
    table: Tables = None,
    commits: Annotated[
        int, typer.Option("--commits", min=1, metavar="N", help="Show the newest N commits of the log.")
    ] = 1000,
    as_json: AsJson = False,
    storage_option: StorageOptions = None,
) -> None:
    """Make a page about a table or a query, to look at in a browser: one file, which needs no network.

    Exits with 1 where commits cannot be read: it names them, and the page shows the rest.

    Example: tablefeed report /lake/orders -o orders.html
    """
    from tablefeed.report.page import report as page_about

    with working("reading the log"):
        text, problems = page_about(
            source,
            tables=table or (),
            commits=commits,
            storage_options=storage(storage_option),
            now_ms=time.time_ns() // 1_000_000,
        )
    page = text.encode()
    with whole_file(output) as file:
        file.write(page)
    if as_json:
        print_json({"page": printable(str(output)), "size_bytes": len(page), "problems": problems})
    else:
        typer.echo(f"wrote {printable(str(output))} ({size(len(page))})")
        print_problems(problems)
    if problems:
        raise typer.Exit(DIFFERENT)
