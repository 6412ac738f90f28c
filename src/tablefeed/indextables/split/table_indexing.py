"""Finds how a table's splits index its columns, from the doc mappings in its log and from the fields of one split.

Each known field of the table's splits is compared with the field that tablefeed would write under each possible choice.
A table with a field that no choice produces exactly is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import orjson
import pyarrow as pa

from tablefeed.errors import LogError, UnsupportedFeatureError
from tablefeed.indextables.split.doc_mapping import mapped
from tablefeed.indextables.split.index_schema import Json, fields
from tablefeed.indextables.split.indexing import Indexed, Indexing, Style


def indexing_of(
    doc_mappings: Iterable[str],
    schema: pa.Schema,
    *,
    partition_by: Sequence[str] = (),
    index: Sequence[Json] = (),
    url: str,
) -> Indexing:
    """How splits with these `doc_mappings` index the columns of `schema`; without any, the defaults of IndexTables.

    `index` are the fields of one of the splits, from `split_file.read_index`. Doc mappings do not have the order of the
    fields, and do not always show which of the two writers made them. Without `index` the order is taken to be the
    schema's. Where both writers are possible, it is `Style.ARROW` if partition columns are missing in the index, else
    `Style.ROWS`. Partition columns that are not in the index are left out of `columns`.

    Raises UnsupportedFeatureError where a field is indexed as tablefeed cannot write it, in two different ways, or is
    no column of `schema`; LogError for an invalid doc mapping.
    """
    found = _Found(schema, url)
    seen: set[str] = set()
    for text in doc_mappings:
        for described in _fields_of(text, url):
            found.narrow({word: described[word] for word in _WORDS if word in described}, mapped)
            seen.add(described["name"])
    for field in index:
        found.narrow(field, _as_it_is)
    first = [field["name"] for field in index]
    left_out = set(partition_by).difference(first or seen) if first or seen else set()
    return Indexing(
        style=found.style(Style.ARROW if left_out else Style.ROWS),
        strings={name: indexed for name, indexed in found.strings.items() if indexed is not Indexed.STRING},
        columns=(*first, *(name for name in schema.names if name not in first and name not in left_out)),
    )


_WORDS = ("name", "type", "tokenizer", "stored", "indexed", "fast", "expand_dots")
"""The keys of a field in a doc mapping that are compared. The members of objects are not: they depend on the rows."""

_OPTIONS = {
    "type": "typemap",
    "tokenizer": "tokenizer",
    "stored": "indexonlyfields",
    "indexed": "storeonlyfields",
    "fast": "fastfields",
    "expand_dots": "json.mode",
}
"""The option of IndexTables4Spark that changes each key. An error names this option."""

_As = Callable[[Json], Json]
"""Converts a field that tablefeed would write to the form in which the table's field is described."""


def _as_it_is(field: Json) -> Json:
    return field


class _Found:
    """The choices under which tablefeed would write exactly the fields seen so far."""

    def __init__(self, schema: pa.Schema, url: str) -> None:
        self.strings: dict[str, Indexed] = {}
        self._schema, self._url = schema, url
        self._styles = dict.fromkeys(Style)

    def narrow(self, theirs: Json, as_described: _As) -> None:
        """Keeps only the choices that produce the field `theirs`; raises UnsupportedFeatureError where none does."""
        name = theirs["name"]
        if name not in self._schema.names:
            raise self._refused(name, "is not a column of the table", "unknownField")
        ours = list(self._choices(name, as_described))
        fits = [(style, indexed) for style, indexed, field in ours if field == theirs]
        if not fits:
            nearest = max((field for _, _, field in ours), key=lambda field: _alike(field, theirs))
            raise self._refused(name, f"is {_text(theirs)}", _difference(nearest, theirs))
        ((_, indexed), *_) = fits
        if self.strings.setdefault(name, indexed) is not indexed:
            raise self._refused(name, f"is both {self.strings[name]} and {indexed}", "typemap")
        self._styles = {style: None for style, _ in fits if style in self._styles}
        if not self._styles:
            raise self._refused(name, f"is {_text(theirs)}, and other fields are by the other writer", "twoWriters")

    def style(self, default: Style) -> Style:
        """The only style that is left, or `default` where both are possible."""
        return default if default in self._styles else next(iter(self._styles))

    def _choices(self, name: str, as_described: _As) -> Iterator[tuple[Style, Indexed, Json]]:
        column = self._schema.field(name)
        ways = tuple(Indexed) if column.type == pa.string() else (Indexed.STRING,)
        for style in Style:
            for indexed in ways:
                indexing = Indexing(style=style, strings={name: indexed}, columns=(name,))
                (field,) = fields(self._schema, indexing)
                yield style, indexed, as_described(field)

    def _refused(self, name: str, what: str, feature: str) -> UnsupportedFeatureError:
        return UnsupportedFeatureError(
            f"{self._url} cannot be written: in the index of its splits {name} {what}, which tablefeed cannot write. "
            "Write to it with IndexTables, or write to another table.",
            url=self._url,
            features=(feature,),
        )


def _alike(field: Json, theirs: Json) -> int:
    return sum(theirs.get(word) == value for word, value in field.items())


def _difference(ours: Json, theirs: Json) -> str:
    for word, option in _OPTIONS.items():
        if ours.get(word) != theirs.get(word):
            return option
    return "indexOptions"


def _text(words: Json) -> str:
    try:
        return orjson.dumps(words, option=orjson.OPT_SORT_KEYS).decode()
    except TypeError:  # it could be read
        return "a field that is nested too deep to be shown"


def _fields_of(text: str, url: str) -> Iterator[Json]:
    try:
        found: Any = orjson.loads(text)  # Any: JSON that is checked here
    except orjson.JSONDecodeError as error:
        raise _bad_mapping(text, url) from error
    if not isinstance(found, list):
        raise _bad_mapping(text, url)
    for each in found:
        if not (isinstance(each, dict) and isinstance(each.get("name"), str)):
            raise _bad_mapping(text, url)
        yield each


def _bad_mapping(text: str, url: str) -> LogError:
    return LogError(
        f"The log of {url} has a doc mapping that is not a list of fields: {text!r:.80}. Restore the log from a copy.",
        url=url,
    )
