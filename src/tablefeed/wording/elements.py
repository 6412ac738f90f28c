"""HTML and SVG elements. Only `Markup` is put into a page as it is; every other text is escaped.

So a name, a value or a message of a table cannot become an element, an attribute or a script. Characters that are not
printable, such as those that reverse the direction of text, are shown as escapes.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from tablefeed.wording.words import printable


class Markup(str):
    """HTML that is safe to put into a page: made by `element`, or written in a source file."""

    __slots__ = ()


Content = str | int | float | None | Iterable["Content"]
"""What an element holds. None is nothing; a str that is no Markup is text."""

_VOID = frozenset({"meta", "br", "wbr"})


def element(name: str, /, *content: Content, **attributes: str | float | None) -> Markup:
    """Gives an element. In the name of an attribute `_` is `-`, and none at its end; one that is None is left out."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_escaped(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{given}>" if name in _VOID else f"<{name}{given}>{joined(content)}</{name}>")


def joined(content: Content) -> Markup:
    """Gives contents one after the other."""
    match content:
        case None:
            return Markup("")
        case Markup():
            return content
        case str() | int() | float():
            return Markup(_escaped(content))
        case _:
            return Markup("".join(map(joined, content)))


def fact_sheet(title: str, facts: Iterable[tuple[str, Iterable[str]]]) -> str:
    """Gives a small table of names and lines of text, as notebooks show an object."""
    left = "text-align:left"
    rows = [
        element(
            "tr",
            element("th", name, scope="row", style=f"{left};vertical-align:top"),
            element("td", [[element("br") if index else None, line] for index, line in enumerate(lines)], style=left),
        )
        for name, lines in facts
    ]
    caption = element("caption", title, style=f"{left};font-weight:bold;caption-side:top")
    return str(element("table", caption, element("tbody", rows)))


def _escaped(value: str | float) -> str:
    return f"{value:.7g}" if isinstance(value, float) else escape(printable(str(value)))
