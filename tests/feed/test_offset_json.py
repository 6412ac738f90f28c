"""Offsets as checkpoints keep them: yesterday's bytes, what is refused, and the round trip."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablefeed.errors import OffsetError
from tablefeed.feed.offset_json import offset_from_json, offset_to_json
from tablefeed.model.actions import Version
from tablefeed.model.offset import Barrier, Offset

URL = "memory://orders"
TABLE = "4a1f0f2c-7a0e-4f3c-9d0e-6f2b8a1c5d33"
LARGEST = 2**63 - 1
PAGE = Path(__file__).parents[2] / "docs" / "offsets.md"


def at(version: int, file_index: int = 0, *, in_snapshot: bool = False, barrier: Barrier = Barrier.NONE) -> Offset:
    return Offset(
        table_id=TABLE, version=Version(version), file_index=file_index, in_snapshot=in_snapshot, barrier=barrier
    )


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


WRITTEN = [
    # What Delta-Spark 4.4.0 logs for: a stream at rest behind version 4; the first and the last file of a batch that
    # ended within a commit; the beginning of a snapshot, and a batch that ended within it; a large version.
    ('{"sourceVersion":1,"reservoirId":"%s","reservoirVersion":5,"index":-1,"isStartingVersion":false}', at(5)),
    ('{"sourceVersion":1,"reservoirId":"%s","reservoirVersion":5,"index":0,"isStartingVersion":false}', at(5, 1)),
    ('{"sourceVersion":1,"reservoirId":"%s","reservoirVersion":5,"index":998,"isStartingVersion":false}', at(5, 999)),
    (
        '{"sourceVersion":1,"reservoirId":"%s","reservoirVersion":3,"index":-1,"isStartingVersion":true}',
        at(3, in_snapshot=True),
    ),
    (
        '{"sourceVersion":1,"reservoirId":"%s","reservoirVersion":9,"index":23,"isStartingVersion":true}',
        at(9, 24, in_snapshot=True),
    ),
    (
        '{"sourceVersion":1,"reservoirId":"%s","reservoirVersion":9223372036854775807,"index":-1,'
        '"isStartingVersion":false}',
        at(LARGEST),
    ),
    # A stream that tracks metadata: the end of a batch before a change, and of the one without rows that follows.
    (
        '{"sourceVersion":3,"reservoirId":"%s","reservoirVersion":3,"index":-20,"isStartingVersion":false}',
        at(3, barrier=Barrier.REACHED),
    ),
    (
        '{"sourceVersion":3,"reservoirId":"%s","reservoirVersion":3,"index":-19,"isStartingVersion":false}',
        at(3, barrier=Barrier.PASSED),
    ),
]


@pytest.mark.parametrize(("text", "offset"), WRITTEN)
def test_what_delta_spark_writes_is_read_and_written_again_byte_for_byte(text: str, offset: Offset) -> None:
    assert read(text % TABLE) == offset
    assert json.dumps(offset_to_json(offset), separators=(",", ":")) == text % TABLE


def test_format_3_is_read_with_its_own_mark_for_before_the_first_file() -> None:
    assert read(wire(source_version=3, version=7, index=-100)) == at(7)
    assert read(wire(source_version=3, version=9, index=23, initial=True)) == at(9, 24, in_snapshot=True)


def test_a_field_that_is_not_known_is_no_reason_to_stop() -> None:
    assert read(wire()[:-1] + ',"later":{"x":1}}') == at(5)


def test_the_order_of_keys_and_the_spaces_between_them_do_not_matter() -> None:
    shuffled = dict(reversed(json.loads(wire(index=3)).items()))

    assert read(json.dumps(shuffled, indent=2)) == at(5, 4)


def test_a_barrier_stands_behind_the_begin_of_its_version_and_before_the_first_file() -> None:
    in_order = [at(2, 7), at(3), at(3, barrier=Barrier.REACHED), at(3, barrier=Barrier.PASSED), at(3, 1), at(4)]

    assert [offset.position for offset in in_order] == sorted({offset.position for offset in in_order})


@pytest.mark.parametrize("index", [-20, -19])
def test_a_barrier_is_of_format_3_and_of_a_commit_alone(index: int) -> None:
    for text in (wire(source_version=1, index=index), wire(source_version=3, index=index, initial=True)):
        assert refusal(json.loads(text)).error_class == "DELTA_INVALID_SOURCE_OFFSET_FORMAT"


@pytest.mark.parametrize("place", [{"file_index": 1}, {"in_snapshot": True}])
def test_a_barrier_among_files_cannot_be_built(place: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="before the first file"):
        at(3, barrier=Barrier.PASSED, **place)


@pytest.mark.parametrize(
    ("text", "error_class"),
    [
        (wire().replace('"sourceVersion":1,', ""), "DELTA_INVALID_SOURCE_VERSION"),
        (wire().replace('"sourceVersion":1', '"sourceVersion":null'), "DELTA_INVALID_SOURCE_VERSION"),
        (wire(source_version=0), "DELTA_INVALID_SOURCE_VERSION"),
        (wire(source_version=-1), "DELTA_INVALID_SOURCE_VERSION"),
        (wire(source_version=2), "DELTA_INVALID_SOURCE_VERSION"),
        (wire(source_version=4), "DELTA_INVALID_FORMAT_FROM_SOURCE_VERSION"),
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


@settings(max_examples=2000)
@given(st.text(), st.integers(0, LARGEST), st.integers(0, LARGEST - 100), st.booleans())
def test_every_offset_comes_back_as_it_was(table_id: str, version: int, file_index: int, in_snapshot: bool) -> None:  # noqa: FBT001
    offset = Offset(table_id=table_id, version=Version(version), file_index=file_index, in_snapshot=in_snapshot)

    assert offset_from_json(json.loads(json.dumps(offset_to_json(offset))), url=URL) == offset


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([-100, -20, -19, -1, 0, 1, 2, 3, 4, LARGEST, LARGEST - 100, LARGEST + 1]),
    st.floats(),
    st.text(),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(), st.integers(), max_size=2),
)
KEYS = st.sampled_from(["sourceVersion", "reservoirId", "reservoirVersion", "index", "isStartingVersion"]) | st.text()


@given(st.text(), st.integers(0, LARGEST), st.sampled_from(Barrier))
def test_every_barrier_comes_back_as_it_was(table_id: str, version: int, barrier: Barrier) -> None:
    offset = Offset(table_id=table_id, version=Version(version), barrier=barrier)

    assert offset_from_json(json.loads(json.dumps(offset_to_json(offset))), url=URL) == offset


@settings(max_examples=1000)
@given(st.dictionaries(KEYS, VALUES, max_size=6), st.booleans())
def test_any_json_object_is_an_offset_or_an_offset_error(value: dict[str, object], near: bool) -> None:  # noqa: FBT001
    candidate = {**json.loads(wire()), **value} if near else value

    try:
        offset = offset_from_json(candidate, url=URL)
    except OffsetError:
        return
    assert offset_from_json(offset_to_json(offset), url=URL) == offset


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.booleans(), st.integers(0, 3)).map(lambda t: at(t[0], t[2], in_snapshot=t[1]))
        | st.tuples(st.integers(0, 3), st.sampled_from(Barrier)).map(lambda t: at(t[0], barrier=t[1])),
        max_size=8,
    )
)
def test_offsets_of_one_history_are_in_the_order_of_delta_spark_on_the_wire(offsets: list[Offset]) -> None:
    # Delta-Spark orders by version and index alone. A history holds one snapshot, and no commit of its version.
    snapshots = [o.version for o in offsets if o.in_snapshot]
    history = [o for o in offsets if o.version > min(snapshots, default=-1) and not o.in_snapshot]
    history += [o for o in offsets if o.in_snapshot and o.version == min(snapshots)]

    def delta_order(offset: Offset) -> tuple[int, int]:
        on_wire = json.loads(json.dumps(offset_to_json(offset)))
        index = -100 if on_wire["index"] == -1 else on_wire["index"]  # as Delta-Spark has it in memory
        return on_wire["reservoirVersion"], index

    assert sorted(history, key=lambda o: o.position) == sorted(history, key=delta_order)


def test_the_page_on_offsets_shows_bytes_that_are_read_and_written_so() -> None:
    examples = re.findall(r'^\{"sourceVersion":[13],.*\}$', PAGE.read_text(encoding="utf-8"), re.MULTILINE)

    assert len(examples) > 3
    for example in examples:
        assert json.dumps(offset_to_json(read(example)), separators=(",", ":")) == example
