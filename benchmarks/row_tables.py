"""The tables whose rows are changed, and the change events: the same for all sides, made from a seed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import tablefeed

_NEEDED = {"delta.feature.domainMetadata": "supported"}
VECTORS = {**_NEEDED, "delta.enableDeletionVectors": "true"}
TABLES: Mapping[str, Mapping[str, str]] = {
    "vectors": VECTORS,
    "fed": {**VECTORS, "delta.enableChangeDataFeed": "true"},
    "plain": {},
}
"""The tables by name, and their properties; delta-rs cannot write those with vectors or domains."""

Order = Literal["shuffled", "ordered"]
"""Whether ids are in any file, or each file has a range of them."""

ARGUMENTS = {"keys": "id", "sequence_by": "key", "apply_as_deletes": "op = 'd'", "except_column_list": ["op"]}
"""How the events are applied. Their key is their sequence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """A table, and how many of its rows a batch of events changes."""

    rows: int
    files: int
    updates: int
    deletes: int
    inserts: int

    def after(self, batches: int) -> tuple[int, int]:
        """How many rows there are after so many batches, and the sum of their column `key`."""
        return self.rows + batches * (self.inserts - self.deletes), batches * (self.updates + self.inserts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What is measured."""

    batch: Size
    micro_batches: int
    large: Size


def make(table: Path, size: Size, properties: Mapping[str, str], order: Order) -> None:
    """Makes a table with the ids from 0 on and the key 0 in each row."""
    random = np.random.default_rng(1)
    ids = random.permutation(size.rows) if order == "shuffled" else np.arange(size.rows)
    for part in np.array_split(ids, size.files):
        tablefeed.append(table, rows_of(part, 0, random), properties=dict(properties))


def rows_of(ids: np.ndarray, key: int, random: np.random.Generator) -> pa.Table:
    """Rows with these ids and this key."""
    letters = pa.array(random.integers(0, 10**15, len(ids))).cast(pa.string())
    names = pc.utf8_slice_codeunits(pc.utf8_lpad(letters, 20, "n"), 0, 20)
    keys = np.full(len(ids), key, np.int64)
    return pa.table({"id": ids.astype(np.int64), "key": keys, "value": random.random(len(ids)), "name": names})


def events(size: Size, order: Order, number: int = 0) -> pa.Table:
    """Batch `number` of events with the key 1: updates and deletes of rows of all files, or of one; inserts of new ids.

    No two batches have an id in common. Where the ids are ordered, each batch has those of another file.
    """
    changed = size.updates + size.deletes
    if order == "shuffled":
        ids = np.random.default_rng(2).permutation(size.rows)[number * changed : (number + 1) * changed]
    else:
        in_file = size.rows // size.files
        ids = number * in_file + np.random.default_rng(2).permutation(in_file)[:changed]
    new = size.rows + number * size.inserts + np.arange(size.inserts)
    ops = ["u"] * size.updates + ["d"] * size.deletes + ["u"] * size.inserts
    rows = rows_of(np.concatenate([ids, new]), 1, np.random.default_rng(3 + number))
    return rows.append_column("op", pa.array(ops))


def copied(table: Path, to: Path) -> Path:
    """Copies a table: its log anew, its data files as links, for nobody writes into a data file that is there."""

    def copy(source: str, target: str) -> None:
        (shutil.copy2 if "_delta_log" in source else os.link)(source, target)

    shutil.copytree(table, to, copy_function=copy)
    return to


def check(table: Path, size: Size, batches: int, *, what: str) -> None:
    """Raises SystemExit where a table does not have the rows that the events make."""
    keys = tablefeed.open_table(table).to_arrow(columns=["key"])["key"]
    found = (len(keys), pc.sum(keys).as_py())
    if found != size.after(batches):
        raise SystemExit(f"{what}: {found} instead of {size.after(batches)}: its time would say nothing")
