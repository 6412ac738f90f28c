"""The doc mappings of a table, each under its hash: what `docMappingRef` refers to.

A doc mapping is JSON that says how the columns are indexed. The JSON log keeps it in the metadata's configuration as
`docMappingSchema.<hash>`, states under the bare hash (Scala) or that same key (native); the text is kept as written.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from tablefeed.indextables import names

_HASH_CHARACTERS = 16


def registry_of(entries: Mapping[str, str]) -> dict[str, str]:
    """The doc mappings by hash in a state's registry, whose keys have two forms."""
    return {key.removeprefix(names.DOC_MAPPING_PREFIX): text for key, text in entries.items()}


def registry_of_configuration(configuration: Mapping[str, str]) -> dict[str, str]:
    """The doc mappings by hash in the metadata's configuration, which has other keys too."""
    prefix = names.DOC_MAPPING_PREFIX
    return {key.removeprefix(prefix): text for key, text in configuration.items() if key.startswith(prefix)}


def doc_mapping_hash(doc_mapping: str) -> str:
    """The hash of a doc mapping: SHA-256 of its canonical form, in URL-safe base64, cut off at 16 characters.

    Raises ValueError where it is not JSON.
    """
    return _hash(canonical(doc_mapping))


def canonical(doc_mapping: str) -> str:
    """The canonical form: keys sorted, lists of named objects sorted by name, no spaces, characters as themselves."""
    try:
        value = _sorted(json.loads(doc_mapping))
        return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    except RecursionError as error:
        raise ValueError("it is too deep") from error


class DocMappings:
    """The doc mappings of a table while a state of it is written. New ones of entries are added to `registry`.

    `registry` has the doc mappings by hash. With `renormalise`, each gets the hash of its canonical form and equal ones
    become one, because some writers hash the text as they received it.
    """

    def __init__(self, registry: Mapping[str, str], *, renormalise: bool = False) -> None:
        self._moved = {key: _key(text) for key, text in registry.items()} if renormalise else {}
        self.registry: dict[str, str] = {}
        for key, text in sorted(registry.items()):
            self.registry.setdefault(self._moved.get(key, key), text)

    def by_hash(self, text: str | None, key: str | None) -> str | None:
        """The hash by which an entry refers to its doc mapping, given as text, by hash, or as both."""
        if text is None:
            return None if key is None else self._moved.get(key, key)
        found = self._moved.get(key, key) if key is not None else _key(text)
        self.registry.setdefault(found, text)
        return found

    def inline(self, text: str | None, key: str | None) -> str | None:
        """The text of a doc mapping, given as text, by hash, or as both; None where it is not known."""
        return text if text is not None or key is None else self.registry.get(self._moved.get(key, key))


@lru_cache(maxsize=64)  # of many entries alike
def _key(text: str) -> str:
    """The hash of a doc mapping. If it is not JSON, the hash of its text, as in IndexTables."""
    try:
        return doc_mapping_hash(text)
    except ValueError:
        return _hash(text)


def _hash(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode()[:_HASH_CHARACTERS]


@lru_cache(maxsize=256)
def plain_texts(doc_mapping: str) -> Mapping[str, bool] | None:
    """Whether each column of an index with this mapping is stored as the text that was written; None: not known.

    JSON and addresses are parsed and stored in another spelling. A text that is cut into words may be stored in part.
    """
    try:
        mapped = json.loads(doc_mapping)
    except (ValueError, RecursionError):
        return None
    match mapped:
        case list() if all(isinstance(each, dict) and isinstance(each.get("name"), str) for each in mapped):
            return {each["name"]: (each.get("type"), each.get("tokenizer")) == ("text", "raw") for each in mapped}
    return None  # Quickwit's form, or the default of 0.5.3 for a split without a mapping


def _sorted(value: Any) -> Any:  # Any: JSON
    match value:
        case dict():
            return {key: _sorted(member) for key, member in value.items()}
        case list() if value and all(isinstance(each, dict) and isinstance(each.get("name"), str) for each in value):
            return sorted((_sorted(each) for each in value), key=lambda each: each["name"])
        case list():
            return [_sorted(each) for each in value]
        case _:
            return value
