"""A part of a page: what it is about, its most important numbers, and sections with plots and tables."""

from __future__ import annotations

from dataclasses import dataclass

from tablefeed.wording.elements import Content, Markup, element


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A heading, a sentence below it, and what follows. A wide one has the whole width of the page."""

    heading: str
    says: str
    content: Content = None
    wide: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One table or one query. `tiles` are a name, a number and a remark each; the remark may be empty.

    `problems` say what could not be read, and so is not on the page.
    """

    kind: str
    name: str
    where: str
    tiles: tuple[tuple[str, str, str], ...]
    sections: tuple[Section, ...]
    problems: tuple[str, ...] = ()

    def body(self, *, heading: str) -> Markup:
        """Gives the numbers and sections, which have the headings `heading`."""
        tiles = [
            element("div", element("dt", name), element("dd", number, element("small", remark) if remark else None))
            for name, number, remark in self.tiles
        ]
        cards = [
            element(
                "section",
                element(heading, each.heading),
                element("p", each.says) if each.says else None,
                each.content,
                class_="card wide" if each.wide else "card",
            )
            for each in self.sections
        ]
        return Markup(element("dl", tiles, class_="tiles") + element("div", cards, class_="cards"))


def name_of(url: str) -> str:
    """Gives the last part of a url that has one."""
    return url.rstrip("/").rpartition("/")[2] or url
