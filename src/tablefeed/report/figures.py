"""Plots and tables of a page: SVG that stretches with it, text beside that in HTML, the same numbers in a table.

A mark of a plot has its numbers in a `<title>`, which browsers show where the pointer is; `page.js` shows it at once.
For a screen reader a plot is one image with a name and a description; the table below has the numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tablefeed.wording.elements import Content, Markup, element
from tablefeed.wording.words import cut

MOST_ROWS = 60
"""Of a table of the page."""

MOST_BARS = 12
"""Of a plot with a row for each bar."""

SERIES = 6
"""The colours of page.css. The last one is for what is left over."""

_LONGEST = 60
"""The most characters of a text from a table in a cell or a label."""
_ROW = 28
"""The height in pixels of a row of `bar_plot`, as in page.css."""
_LEAST = 1.5
"""The least height of a mark that is not zero, in hundredths of the plot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """The values of one column or bar, one for each series, and what is shown where the pointer is."""

    label: str
    values: tuple[float, ...]
    tip: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """What both kinds of plots have: a name that is an id on the page, a title, a description, and what is drawn."""

    name: str
    title: str
    says: str
    series: tuple[str, ...]
    marks: Sequence[Mark]
    shown: Callable[[float], str]
    """Gives a value as text."""


def column_plot(plot: Plot, *, top: Callable[[float], float], labels: Sequence[str]) -> Markup:
    """Draws columns side by side, the series of each stacked. `labels` are spread below; `top` rounds the scale up."""
    highest = top(max((sum(mark.values) for mark in plot.marks), default=0))
    marks = []
    for index, mark in enumerate(plot.marks):
        parts, below = [element("rect", class_="hit", x=index * 10, y=0, width=10, height=100)], 100.0
        for number, value in enumerate(mark.values):
            if value > 0:
                height = max(value / highest * 100, _LEAST)
                below -= height
                parts.append(_rect(number, x=index * 10 + 1.0, y=max(below, 0.0), width=8.0, height=height))
        marks.append(_group(mark, parts))
    scale = [highest, highest / 2, 0.0] if plot.shown(highest / 2) != plot.shown(highest) else [highest, 0.0]
    lines = [element("line", class_="line", x1=0, x2=len(marks) * 10, y1=y, y2=y) for y in (0, 50, 100)]
    image = _image(plot, [lines, marks], viewBox=f"0 0 {len(marks) * 10} 100")
    return element(
        "figure",
        _legend(plot),
        element(
            "div",
            element("div", [element("span", plot.shown(value)) for value in scale], class_="scale", aria_hidden="true"),
            image,
            element("div", [element("span", label) for label in labels], class_="below", aria_hidden="true"),
            class_=f"columns {_narrow(len(marks))}".rstrip(),
        ),
    )


def _narrow(columns: int) -> str:
    """The class of a plot with so few columns that they would be broad."""
    return "two" if columns <= 2 else "few" if columns <= 8 else ""


def bar_plot(plot: Plot) -> Markup:
    """Draws a row for each mark: its label, a bar for each series, and the values."""
    highest = max((value for mark in plot.marks for value in mark.values), default=0) or 1
    height = (_ROW - 8) / max(len(plot.series), 1)
    marks = []
    for index, mark in enumerate(plot.marks):
        parts = [element("rect", class_="hit", x=0, y=index * _ROW, width=100, height=_ROW)]
        for number, value in enumerate(mark.values):
            if value > 0:
                y, width = index * _ROW + 4 + number * height, max(value / highest * 100, _LEAST / 2)
                parts.append(_rect(number, x=0.0, y=y, width=width, height=height - 1))
        marks.append(_group(mark, parts))
    tall = len(marks) * _ROW
    labels = [element("span", shortened(mark.label)) for mark in plot.marks]
    values = [element("span", " / ".join(map(plot.shown, mark.values))) for mark in plot.marks]
    return element(
        "figure",
        _legend(plot),
        element(
            "div",
            element("div", labels, class_="names", aria_hidden="true"),
            _image(plot, marks, viewBox=f"0 0 100 {tall}", height=tall),
            element("div", values, class_="values", aria_hidden="true"),
            class_="bars",
        ),
    )


def _image(plot: Plot, drawn: Content, **size: str | int) -> Markup:
    ids = f"{plot.name}-title", f"{plot.name}-desc"
    words = element("title", plot.title, id=ids[0]), element("desc", plot.says, id=ids[1])
    labelled = {"aria_labelledby": ids[0], "aria_describedby": ids[1]}
    return element("svg", *words, drawn, role="img", preserveAspectRatio="none", **labelled, **size)


def _group(mark: Mark, parts: Sequence[Markup]) -> Markup:
    return element("g", element("title", mark.tip), *parts, class_="m")


def _rect(series: int, *, x: float, y: float, width: float, height: float) -> Markup:
    return element("rect", class_=f"s{series}", x=x, y=y, width=width, height=height)


def _legend(plot: Plot) -> Markup | None:
    if len(plot.series) < 2:
        return None
    keys = [
        element("li", element("span", class_=f"key b{index}"), shortened(name))
        for index, name in enumerate(plot.series)
    ]
    return element("ul", keys, class_="legend", aria_hidden="true")


def data_table(caption: str, headings: Sequence[str], rows: Sequence[Sequence[str]], *, texts: int = 1) -> Markup:
    """Gives a table that scrolls. The first `texts` columns have text; the others numbers, on the right."""
    kinds = [None if index < texts else "n" for index in range(len(headings))]
    head = element("tr", [element("th", h, scope="col", class_=k) for h, k in zip(headings, kinds, strict=True)])
    body = []
    for row in rows[:MOST_ROWS]:
        first, *others = map(shortened, row)
        cells = [element("td", cell, class_=kind) for cell, kind in zip(others, kinds[1:], strict=True)]
        body.append(element("tr", element("th", first, scope="row"), cells))
    table = element("table", element("caption", caption), element("thead", head), element("tbody", body))
    return element("div", table, class_="scroll", role="region", tabindex="0", aria_label=caption)


def folded(summary: str, content: Content) -> Markup:
    """Gives what is shown when its summary is clicked."""
    return element("details", element("summary", summary), content)


def with_table(plot: Markup, caption: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Markup:
    """Gives a plot and below it, folded away, the table of its numbers."""
    return Markup(plot + folded(f"Table: {caption}", data_table(caption, headings, rows)))


def shortened(text: str) -> str:
    """Gives a text of a table, cut where it is long."""
    return cut(text, _LONGEST)


# --- the top of a scale ----------------------------------------------------------------------------------------------


def round_number(highest: float) -> float:
    """Gives a number with one digit, or 1.5, times a power of ten: the least such number not below `highest`."""
    if not 0 < highest < math.inf:
        return 1.0
    power: float = 10.0 ** math.floor(math.log10(highest))
    return next((step * power for step in (1, 1.5, 2, 3, 4, 5, 6, 8) if step * power >= highest), 10 * power)


def round_count(highest: float) -> float:
    """Gives a round number, not below `highest`, whose half is whole."""
    found = math.ceil(round_number(highest))
    return float(found + found % 2)
