"""What the writers of a soak do, step by step, and the rows that all their steps make: a plain model.

A step depends on the seed, the table, the writer and its number alone. Each commit records the number of its step in a
txn. So a killed writer continues where it was, and at the end the txns of a table say which steps its rows come from.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

EVENTS, LEDGER, COPY, TARGET, MIRROR = "events", "ledger", "copy", "target", "mirror"
OURS, DELTA_RS, JAR = "ours", "delta-rs", "jar"

SENDERS = ((EVENTS, OURS), (EVENTS, DELTA_RS), (EVENTS, JAR), (COPY, OURS), (COPY, DELTA_RS), (TARGET, OURS))
"""Which writers send events, and to which table."""

LEDGER_WRITERS = (OURS, DELTA_RS, JAR)
"""Each changes the rows of its own keys: every third one."""

EVENT = pa.schema(
    [
        ("writer", pa.string()),
        ("number", pa.int64()),
        ("key", pa.int64()),
        ("seq", pa.int64()),
        ("op", pa.string()),
        ("value", pa.string()),
    ]
)
ROW = pa.schema([("key", pa.int64()), ("value", pa.string()), ("step", pa.int64())])
ENTRY = EVENT.remove(EVENT.get_field_index("op"))

_KEYS, _MOST, _LATEST = 2000, 20, 20
"""How many keys there are, the most rows of a step, and by how many steps an event is late at most."""

_VECTORS = {"delta.enableDeletionVectors": "true"}
_FED = {"delta.enableChangeDataFeed": "true"}
_FOLDED = {"delta.autoOptimize.autoCompact": "true"}
_STATE = {"delta.feature.domainMetadata": "supported"}
TABLES: Mapping[str, tuple[pa.Schema, Mapping[str, str]]] = {
    EVENTS: (EVENT, {}),
    LEDGER: (ROW, _VECTORS | _FED),
    COPY: (EVENT, _FOLDED),
    TARGET: (ENTRY, _VECTORS | _FED | _FOLDED | _STATE),
    MIRROR: (ROW, _VECTORS | _FOLDED | _STATE),
}
"""The columns and properties of each table. Only the queries' tables are folded in the background."""

HOW: Mapping[str, dict[str, Any]] = {
    TARGET: {"keys": "key", "sequence_by": "seq", "apply_as_deletes": "op = 'd'", "except_column_list": ["op"]},
    MIRROR: {"keys": "key", "source": "tablefeed"},
}
"""How changes are applied, by whoever does it: the arguments of `apply_changes`."""

Kind = Literal["upsert", "update", "delete"]
KINDS: tuple[Kind, ...] = ("upsert", "update", "delete")

Rows = Counter[tuple[Any, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A step on the ledger: what happens to `keys`."""

    kind: Kind
    keys: tuple[int, ...]
    value: str
    step: int

    @property
    def where(self) -> str:
        return f"key IN ({', '.join(map(str, self.keys))})"

    @property
    def rows(self) -> pa.Table:
        count = len(self.keys)
        return pa.table({"key": self.keys, "value": [self.value] * count, "step": [self.step] * count}, ROW)


def app_id(writer: str, table: str) -> str:
    """The application of a writer's txns in a table."""
    return f"soak-{writer}-{table}"


def events(seed: int, table: str, writer: str, step: int) -> pa.Table:
    """Events of random keys. One of five is late; one of five is a delete. No two have one `seq`."""
    chance, sender = _chance(seed, table, writer, step), SENDERS.index((table, writer))
    rows = []
    for number, key in enumerate(chance.sample(range(_KEYS), chance.randint(1, _MOST))):
        late = chance.randint(1, _LATEST) if chance.random() < 0.2 else 0
        seq = (((step - late) * _MOST + number) * (_LATEST + 1) + late) * len(SENDERS) + sender
        op, value = ("d", None) if chance.random() < 0.2 else ("u", f"{writer} {step}.{number}")
        rows.append((f"{table}/{writer}", step * _MOST + number, key, seq, op, value))
    return pa.table(list(zip(*rows, strict=True)), EVENT)


def change(seed: int, writer: str, step: int) -> Change:
    """A change of random keys that are the writer's own."""
    chance, own = _chance(seed, LEDGER, writer, step), LEDGER_WRITERS.index(writer)
    kind = chance.choices(KINDS, (6, 2, 2))[0]
    keys = chance.sample(range(own, _KEYS, len(LEDGER_WRITERS)), chance.randint(1, _MOST))
    return Change(kind=kind, keys=tuple(keys), value=f"{writer} {step}", step=step)


def _chance(*of: object) -> random.Random:
    return random.Random(" ".join(map(str, of)))


Done = Callable[[str, str], int]
"""The number of the newest step of a table and a writer; -1: none."""


def expected(seed: int, done: Done) -> dict[str, Rows]:
    """The rows of each table after the steps that are done."""
    sent = {sender: list(_sent(seed, sender, done(*sender))) for sender in SENDERS}
    to = {table: [row for sender, rows in sent.items() if sender[0] == table for row in rows] for table in TABLES}
    newest: dict[int, tuple[Any, ...]] = {}
    for row in (*to[EVENTS], *to[TARGET]):
        newest[row[2]] = max(newest.get(row[2], row), row, key=lambda each: int(each[3]))
    ledger: dict[int, tuple[str, int]] = {}
    for writer in LEDGER_WRITERS:
        for step in range(done(LEDGER, writer) + 1):
            _apply(change(seed, writer, step), ledger)
    rows = Counter((key, *row) for key, row in ledger.items())
    return {
        EVENTS: Counter(to[EVENTS]),
        COPY: Counter((*to[EVENTS], *to[COPY])),
        TARGET: Counter((*row[:4], row[5]) for row in newest.values() if row[4] != "d"),
        LEDGER: rows,
        MIRROR: rows,
    }


def _sent(seed: int, sender: tuple[str, str], last: int) -> Iterator[tuple[Any, ...]]:
    for step in range(last + 1):
        yield from zip(*events(seed, *sender, step).to_pydict().values(), strict=True)


def _apply(what: Change, ledger: dict[int, tuple[str, int]]) -> None:
    for key in what.keys:
        if what.kind == "delete":
            ledger.pop(key, None)
        elif what.kind == "upsert" or key in ledger:
            ledger[key] = (what.value, what.step)
