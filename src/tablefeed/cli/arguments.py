"""Arguments and options that several commands have, and how their texts are read."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Annotated, Literal

import orjson
import typer

STORAGE_VARIABLE = "TABLEFEED_STORAGE_OPTIONS"
"""The environment variable with storage options as a JSON object of texts. `--storage-option` overrides it."""

TableName = Annotated[
    str, typer.Argument(metavar="TABLE", help="Path or URL of the table, or uc://catalog.schema.table.")
]
StorageOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--storage-option",
        metavar="NAME=VALUE",
        help=f"Option for the store; may be repeated. Put secrets into {STORAGE_VARIABLE}, as a JSON object.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Where = Annotated[
    str | None,
    typer.Option("--where", metavar="SQL", help="Only rows for which this predicate in Spark's SQL is true."),
]
Columns = Annotated[
    str | None, typer.Option("--columns", metavar="A,B", help="Only these columns, separated by commas, in this order.")
]
At = Annotated[
    str | None,
    typer.Option("--at", metavar="POINT", help="Version, or a time such as '2026-01-31 12:00'; default: the newest."),
]
From = Annotated[
    str | None, typer.Option("--from", metavar="POINT", help="First version, or a time; default: the earliest.")
]
To = Annotated[str | None, typer.Option("--to", metavar="POINT", help="Last version, or a time; default: the newest.")]


def storage(given: Sequence[str] | None, option: str = "--storage-option") -> dict[str, str]:
    """Gives the storage options of the environment and of `option` of the command line. No error shows a value."""
    found = _from_environment()
    for pair in given or ():
        name, equals, value = pair.partition("=")
        if not (name and equals):
            raise typer.BadParameter("must be NAME=VALUE", param_hint=option)
        found[name] = value
    return found


def _from_environment() -> dict[str, str]:
    text = os.environ.get(STORAGE_VARIABLE)
    if not text:
        return {}
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        found = None
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise typer.BadParameter("must be a JSON object whose values are texts", param_hint=STORAGE_VARIABLE)
    return found


def point(text: str | None, prefix: Literal["", "start_", "end_"] = "") -> dict[str, int | str]:
    """Gives a version or a time as an argument of the Python API; nothing for None."""
    if text is None:
        return {}
    return {f"{prefix}version": int(text)} if _is_version(text) else {f"{prefix}timestamp": text}


def span(text: str | None) -> tuple[int | None, int | None]:
    """Gives the bounds of A..B, each of which may be left out; a single version is both the newest and the oldest."""
    if text is None:
        return None, None
    first, dots, last = text.partition("..")
    if not dots:
        last = first
    if not all(part == "" or _is_version(part) for part in (first, last)) or text == "":
        raise typer.BadParameter(f"{text!r} must be VERSION, A..B, A.. or ..B", param_hint="RANGE")
    if first and last and int(first) > int(last):
        raise typer.BadParameter(f"{text!r} ends before it begins", param_hint="RANGE")
    oldest = int(first) + (1 if dots else 0) if first else None
    return oldest, int(last) if last else None


def names(text: str | None) -> list[str] | None:
    """Gives the names in a text that commas separate; None for None."""
    return None if text is None else [name.strip() for name in text.split(",")]


def _is_version(text: str) -> bool:
    return text.isascii() and text.isdecimal()
