"""The command explain: what an error in Spark's output means."""

from __future__ import annotations

from typing import Annotated

import typer

from tablefeed.cli.arguments import AsJson
from tablefeed.cli.exits import DIFFERENT
from tablefeed.cli.output import print_json
from tablefeed.wording.spark_errors import messages_in
from tablefeed.wording.words import printable


def explain(
    *,
    log: Annotated[
        typer.FileText,
        typer.Argument(
            metavar="FILE", help="The output of Spark, or a traceback; - is stdin.", encoding="utf-8", errors="replace"
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Print tablefeed's messages in the output of Spark, each once and in one line.

    Example: tablefeed explain query.log
    """
    found = False
    for message in messages_in(log.read()):
        found = True
        if as_json:
            print_json({"message": message})
        else:
            typer.echo(printable(message))
    if not found:
        typer.echo(f"{log.name} has no error of tablefeed.", err=True)
        raise typer.Exit(DIFFERENT)
