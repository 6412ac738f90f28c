"""The law of the folds: the same events, in any order and any batches, end in the same rows and the same state.

The rows are those of a plain fold, written here for one key at a time.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given

import tablefeed
from support.change_events import Event, delete, in_batches, table_of, truncate, upsert
from tablefeed.feed.rows.folding import END_AT, KIND, SEQUENCE, START_AT, Folding, Ties

Row = dict[str, Any]


def plain_fold(events: Sequence[Event], how: Folding) -> list[Row]:
    """The rule, one key after the other."""
    by_key: dict[Any, list[Event]] = defaultdict(list)
    truncates = [order(event[SEQUENCE]) for event in events if event[KIND] == "truncate"]
    for event in events:
        if event[KIND] != "truncate":
            by_key[event["id"]].append(event)
    one_key = history if how.scd_type == 2 else newest
    return sorted((row for own in by_key.values() for row in one_key(own, truncates, how)), key=repr)


def newest(events: list[Event], truncates: list[Any], how: Folding) -> Iterator[Row]:
    row: Row = {}
    deleted = truncates + [order(event[SEQUENCE]) for event in events if event[KIND] == "delete"]
    for sequence, fields in points(events, how):
        if fields is not None and all(order(sequence) >= each for each in deleted):
            row |= fields
    if row:
        yield {name: row.get(name) for name in how.row_schema.names}


def history(events: list[Event], _: list[Any], how: Folding) -> Iterator[Row]:
    version: Row = {}
    for sequence, fields in points(events, how):
        following = {**dict.fromkeys(how.schema.names), START_AT: sequence, END_AT: None, **version, **(fields or {})}
        merges = fields is not None and all(
            version and repr(version[name]) == repr(following[name]) for name in how.values if name not in how.untracked
        )
        if version and not merges:
            yield {**version, END_AT: sequence}
            following[START_AT] = sequence
        version = following if fields is not None else {}
    if version:
        yield version


def points(events: list[Event], how: Folding) -> Iterator[tuple[Any, Row | None]]:
    """Each sequence once, with the fields that its upserts set; None for a delete."""
    found: dict[Any, tuple[Any, Row | None]] = {}
    for event in events:
        sequence, fields = found.get(order(event[SEQUENCE]), (event[SEQUENCE], None))
        if event[KIND] == "upsert":
            absent = {name for name in how.absent if name not in event}
            ignored = {name for name in how.ignore_nulls if event.get(name) is None}
            own = {name: event.get(name) for name in how.schema.names if name not in absent | ignored}
            fields = {**(fields or {}), **own}
        found[order(event[SEQUENCE])] = sequence, fields
    yield from (found[sequence] for sequence in sorted(found))


def order(sequence: Any) -> Any:
    return tuple(sequence.values()) if isinstance(sequence, dict) else sequence


PLAIN, STRUCT = pa.int64(), pa.struct([("day", pa.int32()), ("line", pa.string())])
SCHEMA = pa.schema([("id", pa.int64()), ("a", pa.int64()), ("b", pa.string()), ("c", pa.float64())])
WITH_SEQUENCE = SCHEMA.append(pa.field("at", PLAIN))

ROWS = Folding(schema=SCHEMA, keys=("id",), sequence=PLAIN)
HISTORY = replace(ROWS, scd_type=2)
FOLDINGS = {
    "rows": ROWS,
    "rows with their sequence": replace(ROWS, schema=WITH_SEQUENCE, sequence_column="at"),
    "rows by a struct": replace(ROWS, sequence=STRUCT),
    "rows, nulls ignored": replace(ROWS, ignore_nulls=("a", "b", "c")),
    "rows, some nulls ignored": replace(ROWS, ignore_nulls=("b",), schema=WITH_SEQUENCE, sequence_column="at"),
    "rows, fields absent": replace(ROWS, absent=("a", "b"), sequence=STRUCT),
    "history": HISTORY,
    "history by a struct": replace(HISTORY, sequence=STRUCT),
    "history of one column": replace(HISTORY, tracked=("a",)),
    "history of no column": replace(HISTORY, tracked=()),
    "history, nulls ignored": replace(HISTORY, ignore_nulls=("a", "b", "c")),
    "history of two columns, some nulls ignored": replace(HISTORY, tracked=("a", "b"), ignore_nulls=("b", "c")),
    "history of one column, fields absent": replace(HISTORY, tracked=("b",), absent=("a", "b"), sequence=STRUCT),
}
EACH = pytest.mark.parametrize("how", FOLDINGS.values(), ids=FOLDINGS)

VALUES: dict[str, list[Any]] = {"a": [1, 2, None], "b": ["x", "y", None], "c": [0.0, -0.0, float("nan"), None]}


def an_event(how: Folding, *, key: int, at: int, fields: int, version: int = 0) -> Event:
    """The event of `key` at one of a few sequences; a delete where `fields` is negative.

    The bits of `fields` say which fields an upsert has, where it may leave some out. All upserts of one `version` have
    the same values at one sequence, so there is no tie.
    """
    sequence = {"day": at // 3, "line": "xyz"[at % 3]} if how.sequence == STRUCT else at
    if fields < 0:
        return delete(sequence, id=key)
    fixed = random.Random(f"{key} {at} {version}")  # noqa: S311 (no secret)
    values = {name: fixed.choice(choices) for name, choices in VALUES.items()}
    given = [name for bit, name in enumerate(values) if name not in how.sparse or fields >> bit & 1]
    own = {} if how.sequence_column is None else {how.sequence_column: sequence}
    return upsert(sequence, id=key, **{name: values[name] for name in given}, **own)


def some_events(random_: random.Random, how: Folding, *, versions: int = 1) -> list[Event]:
    """Events of 400 keys in any order; some come twice. The history of each key has up to eight."""
    events = []
    for key in range(400):
        for at in random_.choices(range(7), k=random_.randint(1, 8)):
            fields, version = random_.randint(-3, 7), random_.randrange(versions)
            event = an_event(how, key=key, at=at, fields=fields, version=version)
            events += [event] * (1 + (random_.random() < 0.15))
    random_.shuffle(events)
    return events


def cut(events: Sequence[Event], bounds: Sequence[int]) -> list[list[Event]]:
    cuts = [0, *sorted(min(bound, len(events)) for bound in bounds), len(events)]
    return [list(events[start:end]) for start, end in pairwise(cuts)]


def comparable(rows: Sequence[Row]) -> list[str]:
    # NaN is equal to itself here, and 0.0 is not -0.0.
    return sorted(repr(sorted(row.items())) for row in rows)


@EACH
@pytest.mark.parametrize("truncated", [False, True], ids=["no truncate", "truncated"])
def test_ten_thousand_histories_end_the_same_in_any_order_and_any_batches(how: Folding, *, truncated: bool) -> None:
    """13 foldings of 400 histories, once more with truncates for SCD type 1 and without for type 2."""
    random_ = random.Random(f"{how} {truncated}")  # noqa: S311 (no secret)
    events = some_events(random_, how)
    if truncated and how.scd_type == 1:
        events += [truncate(an_event(how, key=0, at=at, fields=0)[SEQUENCE]) for at in (1, 3, 1)]
    expected, states = comparable(plain_fold(events, how)), set()

    for count in (1, 2, 5, 12):
        random_.shuffle(events)
        target = in_batches(how, *cut(events, random_.choices(range(len(events)), k=count - 1)))
        assert comparable(target.shown()) == expected
        states.add("\n".join(comparable(target.remembered())))
    assert len(states) == 1


@EACH
def test_where_upserts_of_one_sequence_differ_the_last_of_the_first_batch_that_has_one_counts(how: Folding) -> None:
    how = replace(how, ties=Ties.LAST)
    random_ = random.Random(f"{how}")  # noqa: S311 (no secret)
    events = some_events(random_, how, versions=3)

    for count in (1, 2, 5):
        batches = cut(events, random_.choices(range(len(events)), k=count - 1))
        as_if = [event for batch in reversed(batches) for event in batch]
        assert comparable(in_batches(how, *batches).shown()) == comparable(plain_fold(as_if, how))


@EACH
@given(st.data())
def test_a_few_events_end_the_same_in_any_order_and_any_batches(how: Folding, data: st.DataObject) -> None:
    of_an_event = st.tuples(st.integers(0, 1), st.integers(0, 6), st.integers(-3, 7))
    drawn = data.draw(st.lists(of_an_event, max_size=12))
    events = [an_event(how, key=key, at=at, fields=fields) for key, at, fields in drawn]
    if how.scd_type == 1:
        truncates = data.draw(st.lists(st.integers(0, 6), max_size=2))
        events += [truncate(an_event(how, key=0, at=at, fields=0)[SEQUENCE]) for at in truncates]
    bounds = st.lists(st.integers(0, len(events)), max_size=len(events))

    one, other = (in_batches(how, *cut(data.draw(st.permutations(events)), data.draw(bounds))) for _ in range(2))

    assert comparable(one.shown()) == comparable(other.shown()) == comparable(plain_fold(events, how))
    assert comparable(one.remembered()) == comparable(other.remembered())


ON_DISK = [name for name, how in FOLDINGS.items() if not how.absent and how.sequence == PLAIN]


@pytest.mark.parametrize("name", ON_DISK)
def test_histories_of_a_table_on_disk_end_the_same_in_any_order_and_any_batches(tmp_path: Path, name: str) -> None:
    """Those foldings that `tablefeed.apply_changes` takes by its own arguments, with some 40 keys each."""
    how, random_ = FOLDINGS[name], random.Random(name)  # noqa: S311 (no secret)
    events = [event for event in some_events(random_, how) if event.get("id", 0) < 40]
    if how.scd_type == 1:
        events += [truncate(3)] * 2
    random_.shuffle(events)
    url = str(tmp_path / "target")
    tablefeed.append(url, how.row_schema.empty_table(), properties=PROPERTIES)
    more: dict[str, Any] = {"ignore_null_updates_column_list": list(how.ignore_nulls)} if how.ignore_nulls else {}
    more |= {"apply_as_truncates": "op = 'truncate'"} if how.scd_type == 1 else {"stored_as_scd_type": 2}
    more |= {} if how.tracked is None else {"track_history_column_list": list(how.tracked)}

    for batch in cut(events, random_.choices(range(len(events)), k=4)):
        given = table_of(batch, how).rename_columns({KIND: "op", SEQUENCE: "ts"})
        own = how.sequence_column or "ts"
        if own in given.column_names and own != "ts":
            given = given.set_column(given.column_names.index(own), own, given["ts"])
        tablefeed.apply_changes(
            url,
            given,
            keys="id",
            sequence_by=own,
            apply_as_deletes="op = 'delete'",
            except_column_list=["op", "ts"],
            **more,
        )

    assert comparable(tablefeed.open_table(url).to_arrow().to_pylist()) == comparable(plain_fold(events, how))


PROPERTIES = {"delta.feature.domainMetadata": "supported", "delta.enableDeletionVectors": "true"}


@EACH
def test_the_state_can_be_kept_in_parquet(how: Folding) -> None:
    target = in_batches(how, some_events(random.Random(1), how))  # noqa: S311 (no secret)

    file = pa.BufferOutputStream()
    pq.write_table(target.state, file)

    assert target.state.num_rows > 0 or how.sequence_column is not None
    read = pq.read_table(pa.BufferReader(file.getvalue()))
    assert comparable(read.to_pylist()) == comparable(target.state.to_pylist())
