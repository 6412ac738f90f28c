"""What commands print: JSON, pairs, aligned columns. Text from a table cannot move the cursor of a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import islice
from typing import Any, TypeVar

import orjson
import typer

from tablefeed.wording.words import cut, json_value, printable

_MOST_CHARACTERS = 60
"""Of a cell in aligned columns. JSON and CSV have whole values."""


_Each = TypeVar("_Each")


def first_of(each: Iterable[_Each], limit: int | None) -> Iterator[_Each]:
    """Gives the first `limit` of `each`, or all. A limit can be larger than any number that `islice` takes."""
    return islice(each, None if limit is None else min(limit, sys.maxsize))


def print_json(value: object) -> None:
    """Prints `value` as one line of JSON, at once."""
    typer.echo(json_line(value))
    sys.stdout.flush()


def json_line(value: object) -> str:
    """Gives `value` as JSON; see `json_value`."""
    return orjson.dumps(json_value(value), option=orjson.OPT_NON_STR_KEYS).decode()


def print_pairs(pairs: Iterable[tuple[str, object]]) -> None:
    """Prints names and values in two columns. A value that is a list has a line for each of its members."""
    for name, value in pairs:
        lines = value if isinstance(value, list) else [value]
        for at, line in enumerate(lines or ["none"]):
            label = f"{'' if at else name:<18}"
            typer.echo(f"{styled(label, bold=True)}{printable(str(line))}".rstrip())


def print_problems(problems: Iterable[str]) -> None:
    """Prints on stderr what a command found that cannot be read, one line each."""
    for problem in problems:
        typer.echo(f"Error: {printable(problem)}", err=True)


def aligned(names: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """Gives the lines of a table with a header. Numbers are on the right."""
    cells = [[cell(value) for value in row] for row in rows]
    values = list(rows) if isinstance(rows, list) else []
    right = [bool(values) and all(isinstance(row[i], int | float | Decimal) for row in rows) for i in range(len(names))]
    widths = [max(map(_width, column)) for column in zip([*map(printable, names)], *cells, strict=True)]
    return [
        "  ".join(_padded(*each) for each in zip(line, widths, right, strict=True)).rstrip()
        for line in ([*map(printable, names)], *cells)
    ]


def _padded(text: str, width: int, right: bool) -> str:  # noqa: FBT001 - a column of numbers
    blanks = " " * (width - _width(text))
    return blanks + text if right else text + blanks


def _width(text: str) -> int:
    """The cells of a terminal that `text` takes: two for a character of Chinese, none for an accent of its own."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def cell(value: object) -> str:
    """Gives a value as the short text of one cell."""
    if value is None:
        return "null"
    text = value if isinstance(value, str) else _cell_text(value)
    return cut(printable(text), _MOST_CHARACTERS)


def _cell_text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return json_line(value) if isinstance(value, bytes | list | tuple | dict) else str(value)


def styled(text: str, **style: Any) -> str:  # Any: typer's colours
    """Gives `text` with the style on a terminal where NO_COLOR is not set."""
    plain = not text or os.environ.get("NO_COLOR") or not sys.stdout.isatty()
    return text if plain else typer.style(text, **style)
