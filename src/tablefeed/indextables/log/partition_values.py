"""Partition values of an IndexTables table: values of columns that a split does not store, from the texts in its add.

The writer by Arrow does not store partition columns in the documents, and writes their text to the add unchanged. The
writer by rows stores them in both, and escapes most texts in the adds so that they cannot be restored: there the
documents count, and no text is parsed. The two spell timestamps differently (PartitionUtils.scala,
arrow_ffi_import.rs).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from tablefeed.errors import TablefeedError
from tablefeed.indextables.names import HIVE_DEFAULT_PARTITION
from tablefeed.indextables.split.indexing import Style
from tablefeed.model.spark_texts import DAY_US, date_text, exact_decimal, read_decimal, time_text

Refusal = Callable[[str], TablefeedError]
"""Makes the error for a reason. The caller knows the names of the table and the split."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Constants(Mapping[str, pa.Scalar]):
    """The value of each of the partition `columns` by its name, in the column's type; null where `texts` has none.

    Timestamps are in UTC. A text is parsed when its value is needed; if it is not a value of its column's type, the
    error that `refuse` makes is raised. Values in `known` replace those of `texts`.
    """

    texts: Mapping[str, str | None]
    columns: pa.Schema
    refuse: Refusal
    known: Mapping[str, pa.Scalar] = field(default_factory=dict)

    def __getitem__(self, name: str) -> pa.Scalar:
        if name in self.known:
            return self.known[name]
        if name not in self.columns.names:
            raise KeyError(name)
        return _scalar(self.columns.field(name), self.texts.get(name), self.refuse)

    def __contains__(self, name: object) -> bool:
        return name in self.known or name in self.columns.names

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self.known, *self.columns.names)))

    def __len__(self) -> int:
        return len({*self.known, *self.columns.names})


def timestamp_text(micros: int, style: Style) -> str:
    """The text of a timestamp, in microseconds since 1970, as the writer of splits of that style writes it.

    By rows it is Java's `Instant`: `T`, `Z`, and a fraction of no, three or six digits. By Arrow it has a space, no
    zone and whole seconds: the fraction is lost.
    """
    days, of_day_us = divmod(micros, DAY_US)
    if style is Style.ARROW:
        return f"{date_text(days)} {time_text(of_day_us)}"
    fraction = f".{of_day_us % 1_000_000:06d}".removesuffix("000").removesuffix(".000")
    return f"{date_text(days)}T{time_text(of_day_us)}{fraction}Z"


def _scalar(column: pa.Field, text: str | None, refuse: Refusal) -> pa.Scalar:
    if text is None or text == HIVE_DEFAULT_PARTITION:
        return pa.scalar(None, column.type)
    try:
        return _parsed(text, column.type)
    except (pa.ArrowException, ValueError) as error:
        raise refuse(f"the partition value {text!r:.80} of {column.name} is not of type {column.type}") from error


_PLAIN = {
    "integer": re.compile(r"[+-]?[0-9]+", re.ASCII),
    "floating": re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|NaN|[+-]?(inf|Infinity)", re.ASCII),
    "boolean": re.compile(r"true|false"),
}


def _parsed(text: str, kind: pa.DataType) -> pa.Scalar:
    is_a = pa.types
    if is_a.is_string(kind):
        return pa.scalar(text, kind)
    for name, form in _PLAIN.items():
        # Arrow accepts other texts too, such as hexadecimal numbers.
        if getattr(is_a, f"is_{name}")(kind) and not form.fullmatch(text):
            raise ValueError(text)
    if is_a.is_timestamp(kind):
        if kind.tz is None and _PLAIN["integer"].fullmatch(text):  # as Spark holds it: microseconds
            return pa.scalar(text).cast(pa.int64()).cast(kind)
        return pa.scalar(text.removesuffix("Z")).cast(pa.timestamp("us")).cast(pa.int64()).cast(kind)
    if is_a.is_decimal(kind):
        return pa.scalar(exact_decimal(read_decimal(text), kind.precision, kind.scale), kind)
    return pa.scalar(text).cast(kind)
