"""A page of HTML as tests read it: its elements with their attributes, its text, and its tables by their captions."""

from __future__ import annotations

from html.parser import HTMLParser


class Page(HTMLParser):
    """The elements of a page in their order, and what is within them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.tables: dict[str, list[list[str]]] = {}
        self.words: list[str] = []
        self._open: list[str] = []
        self._caption = ""
        self.feed(text)
        self.close()
        assert not self._open, "elements are not closed"

    def named(self, tag: str) -> list[dict[str, str | None]]:
        """Gives the attributes of each element of a kind."""
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def text(self) -> str:
        """What is to be read, style and script left out."""
        return "\n".join(self.words)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "br"):
            self._open.append(tag)
        if tag == "caption":
            self._caption = ""
        if tag == "tr":
            self.tables[self._caption].append([])
        if tag in ("th", "td"):
            self.tables[self._caption][-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag
        if tag == "caption":
            self.tables[self._caption] = []

    def handle_data(self, data: str) -> None:
        if "caption" in self._open:
            self._caption += data
        elif self._open and self._open[-1] in ("th", "td"):
            self.tables[self._caption][-1][-1] += data
        if self._open and self._open[-1] not in ("style", "script"):
            self.words.append(data)
