"""The page as one text: parts about a query and tables, with their style and script in the page itself.

A policy in the page forbids every request, and every script and style but these two.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from importlib import resources

from tablefeed._version import __version__
from tablefeed.errors import IllegalOptionError, MissingPathError, TableNotFoundError
from tablefeed.feed.api.query_checkpoint import QueryCheckpoint
from tablefeed.report.part import Part
from tablefeed.report.query_part import query_part
from tablefeed.report.table_part import table_part
from tablefeed.wording.elements import Markup, element
from tablefeed.wording.words import moment


def report(
    url: str, *, tables: Sequence[str] = (), commits: int, storage_options: Mapping[str, str], now_ms: int
) -> tuple[str, list[str]]:
    """Gives the page about the table at `url`, or about the query whose checkpoint is there and the `tables` it reads.

    Of a log, the newest `commits` are read. What is wrong with commits that cannot be read is on the page, and is given
    beside it. Raises as `newest_readable` and `QueryCheckpoint`.
    """
    try:
        parts = [table_part(url, commits=commits, storage_options=storage_options)]
    except TableNotFoundError as no_table:
        try:
            query = QueryCheckpoint(url, storage_options)
        except MissingPathError:
            raise MissingPathError(
                f"{no_table.url} is neither a table nor the checkpoint of a query: it has no log with a commit, and no "
                "folder `offsets` with files. Check the path."
            ) from no_table
        read = [
            table_part(table, commits=commits, storage_options=storage_options, ids=f"table{number}-")
            for number, table in enumerate(tables)
        ]
        parts = [query_part(query, tables, storage_options), *read]
    else:
        if tables:
            explain = "goes with the checkpoint of a query, but the first argument is a table"
            raise IllegalOptionError(option="table", value=tables[0], explain=explain)
    return _page(parts, now_ms), [problem for part in parts for problem in part.problems]


def _page(parts: Sequence[Part], now_ms: int) -> str:
    about = parts[0]
    style, script = _own("page.css"), _own("page.js")
    policy = f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}"
    title = f"{about.name} - {about.kind}"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        element("style", style),
    )
    top = element(
        "header",
        element("p", about.kind, class_="kind"),
        element("h1", about.name),
        element("p", about.where, class_="where"),
    )
    main = [
        [_heading(part), part.body(heading="h3")] if index else part.body(heading="h2")
        for index, part in enumerate(parts)
    ]
    made = f"Made by tablefeed {__version__} at {moment(now_ms)}. Times are in UTC."
    body = element("body", top, element("main", main), element("footer", made), element("script", script))
    return f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n"


def _heading(part: Part) -> Markup:
    text = element("h2", f"{part.kind} {part.name}", class_="part")
    return Markup(text + element("p", part.where, class_="where"))


def _own(name: str) -> Markup:
    return Markup(resources.files(__package__).joinpath(name).read_text("utf-8"))


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
