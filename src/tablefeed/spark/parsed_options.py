"""The options of a read or write as values. options.py parses them; the value goes to tasks without its parser."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedOptions:
    """The option values by name with defaults filled in, the store's options, and the properties of a new table."""

    values: Mapping[str, Any]
    storage: Mapping[str, str] = field(repr=False)
    properties: Mapping[str, str] = field(default_factory=dict)
    index_as: Mapping[str, str] = field(default_factory=dict)
    """How columns are to be indexed, by column name; the case of a name does not matter."""

    def __getitem__(self, name: str) -> Any:
        return self.values[name]
