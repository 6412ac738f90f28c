"""How notebooks show a value: a small table of its fields, with every text escaped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

from tablefeed.model.shown import shown


class InNotebooks:
    """A frozen dataclass that notebooks show as a table. Nothing is read for that."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        from tablefeed.wording.elements import fact_sheet

        facts = ((each.name, getattr(self, each.name)) for each in fields(self))  # type: ignore[arg-type]  # a dataclass
        shown = [(name.removesuffix("_ms").replace("_", " "), _words(name, value)) for name, value in facts]
        return fact_sheet(type(self).__name__, shown)


def _words(name: str, value: object) -> list[str]:
    """The text of a field, one for each line."""
    from tablefeed.wording.words import cut, moment, size

    match value:
        case None:
            return ["none"]
        case bool():
            return ["yes" if value else "no"]
        case int() if name.endswith("_ms"):
            return [moment(value)]
        case int() if "bytes" in name:
            return [size(value)]
        case int():
            return [f"{value:,}"]
        case Mapping():
            texts = {key: each if isinstance(each, str) else shown(each) for key, each in value.items()}
            return [cut(f"{key}: {text}", 200) for key, text in texts.items()] or ["none"]
        case tuple():
            return [str(each) for each in value] or ["none"]
        case _:
            return [cut(str(value), 200)]
