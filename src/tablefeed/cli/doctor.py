"""The command doctor: what can be done with a table, by whom, and what is wrong with it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from tablefeed.cli.arguments import AsJson, StorageOptions, TableName, storage
from tablefeed.cli.exits import DIFFERENT
from tablefeed.cli.output import print_json, styled
from tablefeed.wording.words import printable

_COLOURS = {"ok": "green", "warning": "yellow", "problem": "red"}


def doctor(
    *,
    table: TableName,
    files: Annotated[
        bool, typer.Option("--files", help="Also ask the store for each data file: a request for each.")
    ] = False,
    as_json: AsJson = False,
    storage_option: StorageOptions = None,
) -> None:
    """Say what can be done with a table, by tablefeed, the Delta JAR and delta-rs, and what is wrong with it.

    Exits with 1 where it finds a problem; a warning is none.

    Example: tablefeed doctor /lake/orders
    """
    from tablefeed.feed.api.health import diagnose

    found_problem = False
    for finding in diagnose(table, check_files=files, storage_options=storage(storage_option)):
        found_problem |= finding.status == "problem"
        if as_json:
            print_json(asdict(finding))
            continue
        status = styled(f"{finding.status:<9}", fg=_COLOURS[finding.status])
        typer.echo(f"{status}{finding.topic:<13}{printable(' '.join(finding.text.split()))}")
        if finding.remedy is not None:
            typer.echo(f"{'':<22}{finding.remedy}")
    if found_problem:
        raise typer.Exit(DIFFERENT)
