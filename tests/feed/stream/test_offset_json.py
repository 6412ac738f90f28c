"""Offsets as checkpoints keep them: yesterday's bytes, what is refused, and the round trip."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.examples import examples
from support.pages import page
from tablefeed.errors import OffsetError
from tablefeed.feed.stream.offset_json import offset_from_json, offset_to_json
from tablefeed.model.actions import Version
from tablefeed.model.offset import Barrier, EventTime, Offset

URL = "memory://orders"
TABLE = "4a1f0f2c-7a0e-4f3c-9d0e-6f2b8a1c5d33"
LARGEST = 2**63 - 1
PAGE = page("offsets.md")


def at(version: int, file_index: int = 0, *, in_snapshot: bool = False, barrier: Barrier = Barrier.NONE) -> Offset:
    return Offset(
        table_id=TABLE, version=Version(version), file_index=file_index, in_snapshot=in_snapshot, barrier=barrier
    )


def by_time(version: int, before_us: int, *, column: str = "at", table_id: str = TABLE) -> Offset:
    event_time = EventTime(column=column, before_us=before_us)
    return Offset(table_id=table_id, version=Version(version), in_snapshot=True, event_time=event_time)


def wire(*, source_version: int = 1, version: int = 5, index: int = -1, initial: bool = False) -> str:
    """The bytes of Delta-Spark's serializer, key order and all."""
    return (
        f'{{"sourceVersion":{source_version},"reservoirId":"{TABLE}","reservoirVersion":{version},"index":{index},'
        f'"isStartingVersion":{"true" if initial else "false"}}}'
    )


def read(text: str) -> Offset:
    return offset_from_json(json.loads(text), url=URL)


def refusal(value: object) -> OffsetError:
    with pytest.raises(OffsetError) as caught:
        offset_from_json(value, url=URL)  # type: ignore[arg-type]  # what a checkpoint holds is not ours to choose
    return caught.value


BY_TIME = ',"eventTimeColumn":"%s","eventTimeMicros":%d}'
WRITTEN = [
    # What Delta-Spark 4.4.0 logs for: a stream at rest behind version 4; the first and the last file of a batch that
    # ended within a commit; the beginning of a snapshot, and a batch that ended within it; a large version.
    (f'{{"sourceVersion":1,"reservoirId":"{TABLE}","reservoirVersion":5,"index":-1,"isStartingVersion":false}}', at(5)),
    (wire(index=0), at(5, 1)),
    (wire(index=998), at(5, 999)),
    (wire(version=3, initial=True), at(3, in_snapshot=True)),
    (wire(version=9, index=23, initial=True), at(9, 24, in_snapshot=True)),
    (wire(version=9223372036854775807), at(LARGEST)),
    # A stream that tracks metadata: the end of a batch before a change, and of the one without rows that follows.
    (wire(source_version=3, version=3, index=-20), at(3, barrier=Barrier.REACHED)),
    (wire(source_version=3, version=3, index=-19), at(3, barrier=Barrier.PASSED)),
    # Ours: a snapshot by event time in its middle; times before 1970 and the last that there is.
    *(
        (wire(source_version=1001, version=9, initial=True)[:-1] + end, by_time(9, before_us, column=column))
        for end, before_us, column in (
            (BY_TIME % ("at", 1704110400123001), 1_704_110_400_123_001, "at"),
            (BY_TIME % ('When \\"it\\" was', -1), -1, 'When "it" was'),
            (BY_TIME % ("at", 9223372036854775807), LARGEST, "at"),
        )
    ),
]


@pytest.mark.parametrize(("text", "offset"), WRITTEN)
def test_what_stands_in_checkpoints_is_read_and_written_again_byte_for_byte(text: str, offset: Offset) -> None:
    assert read(text) == offset
    assert json.dumps(offset_to_json(offset), separators=(",", ":")) == text


def test_format_3_is_read_with_its_own_mark_for_before_the_first_file() -> None:
    assert read(wire(source_version=3, version=7, index=-100)) == at(7)
    assert read(wire(source_version=3, version=9, index=23, initial=True)) == at(9, 24, in_snapshot=True)


def test_a_field_that_is_not_known_is_no_reason_to_stop() -> None:
    assert read(wire()[:-1] + ',"later":{"x":1}}') == at(5)


def test_the_order_of_keys_and_the_spaces_between_them_do_not_matter() -> None:
    shuffled = dict(reversed(json.loads(wire(index=3)).items()))

    assert read(json.dumps(shuffled, indent=2)) == at(5, 4)


@pytest.mark.parametrize(
    "in_order",
    [
        [at(2, 7), at(3), at(3, barrier=Barrier.REACHED), at(3, barrier=Barrier.PASSED), at(3, 1), at(4)],
        [at(4), at(5, in_snapshot=True), by_time(5, -9), by_time(5, 0), by_time(5, 9), at(5), at(6)],
    ],
    ids=["a barrier", "an event time"],
)
def test_a_barrier_and_an_event_time_lie_behind_the_begin_of_their_version(in_order: list[Offset]) -> None:
    assert [offset.position for offset in in_order] == sorted({offset.position for offset in in_order})


@pytest.mark.parametrize("index", [-20, -19])
def test_a_barrier_is_of_format_3_and_of_a_commit_alone(index: int) -> None:
    for text in (wire(source_version=1, index=index), wire(source_version=3, index=index, initial=True)):
        assert refusal(json.loads(text)).error_class == "DELTA_INVALID_SOURCE_OFFSET_FORMAT"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("eventTimeColumn", None),
        ("eventTimeColumn", ""),
        ("eventTimeColumn", 7),
        ("eventTimeMicros", None),
        ("eventTimeMicros", 1.0),
        ("eventTimeMicros", True),
        ("eventTimeMicros", "1"),
        ("eventTimeMicros", LARGEST + 1),
        ("eventTimeMicros", -LARGEST - 2),
        ("index", 0),
        ("index", -100),
        ("index", -20),
        ("isStartingVersion", False),
        ("sourceVersion", 1),
        ("sourceVersion", 3),
    ],
)
def test_a_position_by_event_time_that_says_half_or_two_things_is_refused(field: str, value: object) -> None:
    right = offset_to_json(by_time(5, 17))

    assert refusal({**right, field: value}).error_class == "DELTA_INVALID_SOURCE_OFFSET_FORMAT"
    if field.startswith("event"):
        without = {key: found for key, found in right.items() if key != field}
        assert refusal(without).error_class == "DELTA_INVALID_SOURCE_OFFSET_FORMAT"


@pytest.mark.parametrize(
    ("position", "place"),
    [
        ({"barrier": Barrier.PASSED}, {"file_index": 1}),
        ({"barrier": Barrier.PASSED}, {"in_snapshot": True}),
        ({"in_snapshot": True, "event_time": EventTime(column="at", before_us=0)}, {"file_index": 1}),
        ({"in_snapshot": True, "event_time": EventTime(column="at", before_us=0)}, {"in_snapshot": False}),
        ({"in_snapshot": True, "event_time": EventTime(column="at", before_us=0)}, {"barrier": Barrier.REACHED}),
    ],
)
def test_a_barrier_or_an_event_time_cannot_be_among_files(position: dict[str, Any], place: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"an event time is|a barrier is"):
        Offset(table_id=TABLE, version=Version(5), **position | place)


@pytest.mark.parametrize("before_us", [LARGEST + 1, -LARGEST - 2])
def test_an_event_time_is_one_that_a_column_can_have(before_us: int) -> None:
    with pytest.raises(ValueError, match="outside the range of a timestamp"):
        EventTime(column="at", before_us=before_us)


@pytest.mark.parametrize(
    ("text", "error_class"),
    [
        (wire().replace('"sourceVersion":1,', ""), "DELTA_INVALID_SOURCE_VERSION"),
        (wire().replace('"sourceVersion":1', '"sourceVersion":null'), "DELTA_INVALID_SOURCE_VERSION"),
        (wire(source_version=0), "DELTA_INVALID_SOURCE_VERSION"),
        (wire(source_version=-1), "DELTA_INVALID_SOURCE_VERSION"),
        (wire(source_version=2), "DELTA_INVALID_SOURCE_VERSION"),
        (wire(source_version=4), "DELTA_INVALID_FORMAT_FROM_SOURCE_VERSION"),
        (wire(source_version=1000), "DELTA_INVALID_FORMAT_FROM_SOURCE_VERSION"),
        (wire(source_version=1002), "DELTA_INVALID_FORMAT_FROM_SOURCE_VERSION"),
        (wire(source_version=1001), "DELTA_INVALID_SOURCE_OFFSET_FORMAT"),
        (wire().replace('"sourceVersion":1', '"sourceVersion":true'), "DELTA_INVALID_SOURCE_OFFSET_FORMAT"),
        (wire().replace('"sourceVersion":1', '"sourceVersion":"foo"'), "DELTA_INVALID_SOURCE_OFFSET_FORMAT"),
        (wire(index=-2), "DELTA_INVALID_SOURCE_OFFSET_FORMAT"),
        (wire(index=-100), "DELTA_INVALID_SOURCE_OFFSET_FORMAT"),
        (wire(source_version=3, index=-1), "DELTA_INVALID_SOURCE_OFFSET_FORMAT"),
        (wire(index=LARGEST - 100), "DELTA_INVALID_SOURCE_OFFSET_FORMAT"),
        (wire(version=-1), "DELTA_INVALID_SOURCE_OFFSET_FORMAT"),
        (wire(version=LARGEST + 1), "DELTA_INVALID_SOURCE_OFFSET_FORMAT"),
        (wire().replace('"index":-1', '"index":1.0'), "DELTA_INVALID_SOURCE_OFFSET_FORMAT"),
        (wire().replace('"index":-1', '"index":false'), "DELTA_INVALID_SOURCE_OFFSET_FORMAT"),
        (wire().replace('"reservoirVersion":5', '"reservoirVersion":true'), "DELTA_INVALID_SOURCE_OFFSET_FORMAT"),
        (wire().replace(f'"{TABLE}"', "7"), "DELTA_INVALID_SOURCE_OFFSET_FORMAT"),
        (wire().replace("false", "0"), "DELTA_INVALID_SOURCE_OFFSET_FORMAT"),
        (wire().replace(',"isStartingVersion":false', ""), "DELTA_INVALID_SOURCE_OFFSET_FORMAT"),
        ("{}", "DELTA_INVALID_SOURCE_VERSION"),
        ("null", "DELTA_INVALID_SOURCE_VERSION"),
        ("[1]", "DELTA_INVALID_SOURCE_VERSION"),
    ],
)
def test_what_cannot_be_an_offset_is_refused_with_the_class_of_delta_spark(text: str, error_class: str) -> None:
    assert refusal(json.loads(text)).error_class == error_class


def test_a_refusal_shows_the_offset_and_the_table() -> None:
    error = refusal(json.loads(wire(source_version=4)))

    assert error.url == URL
    assert error.message.startswith("[DELTA_INVALID_FORMAT_FROM_SOURCE_VERSION] ")
    for said in (URL, TABLE, "newer than 3", "Upgrade"):
        assert said in error.message


# --- fuzzed: six thousand examples in `make fuzz` --------------------------------------------------------------------

NAMES = st.text(min_size=1)
OFFSETS = st.one_of(
    st.builds(
        Offset,
        table_id=st.text(),
        version=st.integers(0, LARGEST),
        file_index=st.integers(0, LARGEST - 100),
        in_snapshot=st.booleans(),
    ),
    st.builds(Offset, table_id=st.text(), version=st.integers(0, LARGEST), barrier=st.sampled_from(Barrier)),
    st.builds(by_time, st.integers(0, LARGEST), st.integers(-LARGEST - 1, LARGEST), column=NAMES, table_id=st.text()),
)


@examples(4_000)
@given(OFFSETS)
def test_every_offset_comes_back_as_it_was(offset: Offset) -> None:
    assert offset_from_json(json.loads(json.dumps(offset_to_json(offset))), url=URL) == offset


@examples(2_000)
@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.booleans(), st.integers(0, 3)).map(lambda t: at(t[0], t[2], in_snapshot=t[1]))
        | st.tuples(st.integers(0, 3), st.sampled_from(Barrier)).map(lambda t: at(t[0], barrier=t[1]))
        | st.tuples(st.integers(0, 3), st.integers(-3, 3)).map(lambda t: by_time(*t)),
        max_size=8,
    ),
    st.booleans(),
)
def test_offsets_of_one_history_are_in_the_order_of_delta_spark_on_the_wire(
    offsets: list[Offset],
    by_files: bool,  # noqa: FBT001 - drawn
) -> None:
    # Delta-Spark orders by version and index alone. A history holds one snapshot in one order, and no commit of its
    # version. Positions by event time are ours: what is not delivered yet grows less from one to the next.
    snapshots = [o for o in offsets if o.in_snapshot and (o.event_time is None if by_files else o.file_index == 0)]
    first = min((o.version for o in snapshots), default=-1)
    history = [o for o in offsets if o.version > first and not o.in_snapshot]
    history += [o for o in snapshots if o.version == first]

    def delta_order(offset: Offset) -> tuple[int, int, float]:
        on_wire = json.loads(json.dumps(offset_to_json(offset)))
        index = -100 if on_wire["index"] == -1 else on_wire["index"]  # as Delta-Spark has it in memory
        return on_wire["reservoirVersion"], index, on_wire.get("eventTimeMicros", -math.inf)

    assert sorted(history, key=lambda o: o.position) == sorted(history, key=delta_order)


def test_the_page_on_offsets_shows_bytes_that_are_read_and_written_so() -> None:
    examples = re.findall(r'^\{"sourceVersion":(?:[13]|1001),.*\}$', PAGE, re.MULTILINE)

    assert len(examples) > 3
    for example in examples:
        assert json.dumps(offset_to_json(read(example)), separators=(",", ":")) == example
