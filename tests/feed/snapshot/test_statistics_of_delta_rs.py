"""delta-rs says of the same rows what we do, but for what is written out here: what its readers and ours must bear.

Ours are the JAR's (tests/peer/test_statistics.py).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from deltalake import write_deltalake
from deltalake.exceptions import DeltaError

import tablefeed
from support.tables import FACE, MAX, TABLES, ATable

NOT_SAID = "not said"
Different = Mapping[str, tuple[object, object]]


def flat(path: str, value: Any) -> Iterator[tuple[str, object]]:  # Any: JSON
    if isinstance(value, dict) and value:
        for name in sorted(value):
            yield from flat(f"{path}/{name}", value[name])
    elif value != {}:  # a struct without a member says nothing
        yield path[1:], value


def statistics(path: Path) -> dict[str, object]:
    """What the first commit says of its one file, drawn names numbered as they come in the schema."""
    lines = (path / "_delta_log" / f"{0:020d}.json").read_text(encoding="utf-8").splitlines()
    actions = {kind: action for line in lines for kind, action in json.loads(line).items()}
    text = actions["add"]["stats"]
    drawn = dict.fromkeys(re.findall(r"col-[0-9a-f-]{36}", actions["metaData"]["schemaString"]))
    for number, name in enumerate(drawn, start=1):
        text = text.replace(name, f"col-{number}")
    return dict(flat("", json.loads(text, parse_float=Decimal)))


def no_count_of(*columns: str, nulls: int = 1) -> dict[str, tuple[object, object]]:
    return {f"nullCount/{column}": (nulls, NOT_SAID) for column in columns}


Z, UMLAUTS = "z" * 32, "ü" * 32
SPECIAL: Different = {
    "maxValues/infinite": ("Infinity", None),
    "minValues/infinite": ("-Infinity", None),
    "maxValues/only_nan": ("NaN", NOT_SAID),
    "minValues/only_nan": ("NaN", NOT_SAID),
    "maxValues/some_nan": ("NaN", Decimal("1.5")),
}
NESTED: Different = {**no_count_of("list", "map"), **no_count_of("st/deep/flags", nulls=2)}

DIFFERENT: Mapping[str, Different] = {
    # Lists, maps and bytes have no count of nulls.
    "nested": NESTED,
    "nulls": no_count_of("c7", nulls=2),
    "no order": {
        **no_count_of("bytes", "list"),
        # Booleans have bounds.
        "minValues/flag": (NOT_SAID, True),
        "maxValues/flag": (NOT_SAID, True),
    },
    "mapped by id": {**no_count_of("col-7", "col-8"), **no_count_of("col-6/col-5/col-4", nulls=2)},
    # Bounds are not said to be tight, which they then are taken to be.
    "deletion vectors": {**NESTED, "tightBounds": (True, NOT_SAID)},
    # Names are taken in their case, and none of a struct.
    "named": {
        "minValues/name": ("a", NOT_SAID),
        "maxValues/name": ("c", NOT_SAID),
        "nullCount/name": (1, NOT_SAID),
        "minValues/st/x": (5, NOT_SAID),
        "maxValues/st/x": (5, NOT_SAID),
        "nullCount/st/x": (2, NOT_SAID),
    },
    "named struct": {
        "minValues/st/x": (5, NOT_SAID),
        "maxValues/st/x": (5, NOT_SAID),
        "nullCount/st/x": (2, NOT_SAID),
        "nullCount/st/deep/day": (3, NOT_SAID),
        "nullCount/st/deep/flags": (2, NOT_SAID),
    },
    "named, and mapped": {**no_count_of("col-6/col-5/col-3", nulls=3), **no_count_of("col-6/col-5/col-4", nulls=2)},
    # Texts are cut at 64 bytes, and the last character that can be is raised.
    "texts": {
        "minValues/ascii": (Z, Z + "z"),
        "maxValues/ascii": (Z + "\x7f", Z + "z"),
        "minValues/del": (Z, Z + "\x7f"),
        "maxValues/del": (Z + MAX, Z + "\x7f"),
        "maxValues/umlaut": (UMLAUTS + MAX, UMLAUTS[:-1] + "ý"),
        "minValues/faces": (FACE * 32, FACE * 16),
        "maxValues/faces": (FACE * 16 + MAX, FACE * 15 + "\U0001f601"),
        "minValues/odd_pair": ("z" * 31 + FACE, "z" * 31 + FACE + "bc"),
        "maxValues/odd_pair": ("z" * 31 + FACE + "\x7f", "z" * 31 + FACE + "bc"),
        "minValues/max_at_cut": (Z, Z + MAX + "b"),
        "maxValues/max_at_cut": (Z + MAX + "\x7f", Z + MAX + "b"),
        "minValues/all_max": (MAX * 32, MAX * 16),
        "maxValues/all_max": (NOT_SAID, MAX * 33),
        "minValues/most_max": (MAX * 32, MAX * 16),
    },
    # Bounds are of numbers alone.
    "doubles": SPECIAL,
    "floats": SPECIAL,
    # They go through a double, and without a fraction through 64 bits: they do not hold.
    "decimals": {
        "maxValues/fine": (Decimal("0.1"), Decimal("0.09999999999999999")),
        "minValues/fine": (Decimal("1e-30"), Decimal("9.999999999999999E-31")),
        "maxValues/large": (10**38 - 1, 2**63 - 1),
        "minValues/large": (1 - 10**38, -(2**63)),
    },
    # Milliseconds are written where there are some, and no T where there is no zone.
    "moments": {
        "minValues/moment": ("1900-01-01T00:00:00.000Z", "1900-01-01T00:00:00Z"),
        "minValues/clock": ("1900-01-01T00:00:00.000", "1900-01-01 00:00:00"),
        "maxValues/clock": ("2024-02-29T23:59:59.120", "2024-02-29 23:59:59.120"),
    },
}

REFUSED = ("short prefixes", "no prefixes")
"""Of properties that Delta-Spark knows it cannot read that of prefixes."""


def by_us(table: ATable, path: Path) -> Path:
    tablefeed.append(path, table.rows, partition_by=table.partition_by, properties=table.properties)
    return path


def by_delta_rs(table: ATable, path: Path) -> Path:
    partition_by = list(table.partition_by) or None
    write_deltalake(str(path), table.rows, partition_by=partition_by, configuration=dict(table.properties))
    return path


@pytest.mark.parametrize("name", [name for name in TABLES if name not in REFUSED])
def test_delta_rs_says_of_the_same_rows_what_we_do_but_for_what_is_written_out(tmp_path: Path, name: str) -> None:
    ours = statistics(by_us(TABLES[name], tmp_path / "ours"))
    theirs = statistics(by_delta_rs(TABLES[name], tmp_path / "theirs"))

    paths = sorted({*ours, *theirs})
    both = {path: (ours.get(path, NOT_SAID), theirs.get(path, NOT_SAID)) for path in paths}
    assert {path: (a, b) for path, (a, b) in both.items() if a != b} == DIFFERENT.get(name, {})


@pytest.mark.parametrize("name", REFUSED)
def test_delta_rs_makes_no_table_with_a_length_of_prefixes(tmp_path: Path, name: str) -> None:
    with pytest.raises(DeltaError, match="dataSkippingStringPrefixLength"):
        by_delta_rs(TABLES[name], tmp_path)
