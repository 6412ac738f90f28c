from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given

from support.index_log import METADATA, SYNC, URL, IndexLog, add, with_tombstones
from tablefeed.errors import LogError
from tablefeed.indextables import names
from tablefeed.indextables.log import avro_file, avro_state, columns, schema_registry
from tablefeed.indextables.log.avro_state import State, TextBounds
from tablefeed.indextables.log.last_checkpoint import Hint
from tablefeed.indextables.log.next_state import NextState, StateShape, StateUpdate, hint_of, next_state
from tablefeed.indextables.log.version_file import Writer
from tablefeed.model.actions import AddFile, Version
from tablefeed.model.split import Split

pytest.importorskip("fastavro")

UPSTREAM = StateShape()
MAPPING, SAME_MAPPING = '[{"name":"a","type":"i64"}]', '[{"type":"i64","name":"a"}]'


class Table:
    """A log of states alone, held in a dict, as a careful writer keeps it."""

    def __init__(self, *, writer: Writer = Writer.SCALA, shape: StateShape = UPSTREAM) -> None:
        self.files: dict[str, bytes] = {}
        self.state: State | None = None
        self.rewrites = 0
        self._writer, self._shape = writer, shape
        self._ids = (f"{number:08x}{number:024x}" for number in itertools.count(1))

    @classmethod
    def on(cls, log: IndexLog, state: State, *, writer: Writer, shape: StateShape) -> Table:
        """A table that goes on from a state of another's log."""
        table = cls(writer=writer, shape=shape)
        table.files, table.state = dict(log.files), state
        return table

    def update(self, *added: AddFile, removed: Iterable[str] = (), **more: Any) -> NextState:
        """Puts the next state's files, none of which is there yet. IndexTables has `removed` some files before."""
        version = Version(self.state.version + 1 if self.state else 1)
        update = StateUpdate(version=version, created_ms=1000 + version, added=added, **more)
        self.state = with_tombstones(self.state, removed)
        made = next_state(
            self.state,
            update,
            writer=self._writer,
            shape=self._shape,
            live=self._live,
            new_id=lambda: next(self._ids),
            sync=lambda: SYNC,
            url=URL,
        )
        for name, data in (*made.manifests, (names.state_name(version), made.state_file)):
            assert name not in self.files
            self.files[name] = data
        self.state = made.state
        return made

    @property
    def newest(self) -> State:
        assert self.state is not None
        return self.state

    def at(self, version: int) -> dict[str, AddFile]:
        """The live files of a version by path, as its bytes have them."""
        state = self.read(version)
        log = IndexLog(self.files)
        return {file.path: file for batch in log.live_in(state) for file in columns.to_add_files(batch)}

    def read(self, version: int) -> State:
        name = names.state_name(version)
        return avro_state.decode_state(self.files[name], version=Version(version), url=URL, log_file=name)

    def entries(self, made: NextState) -> list[dict[str, Any]]:
        """The entries of the manifests that `made` brings along."""
        blocks = (avro_file.read_records(data, url=URL, log_file=name) for name, data in made.manifests)
        return [entry for manifest in blocks for block in manifest for entry in block]

    def _live(self) -> Iterator[pa.RecordBatch]:
        self.rewrites += 1
        return IndexLog(self.files).live_in(self.state) if self.state else iter(())


def split(path: str, *, mapping: str | None = None, ref: str | None = None, day: str | None = None) -> AddFile:
    values = {} if day is None else {"day": day}
    told = Split(num_records=1, doc_mapping=mapping, doc_mapping_ref=ref)
    return replace(add(path), split=told, partition_values=values)


def names_of(state: State) -> list[str]:
    return [manifest.name for manifest in state.manifests]


@pytest.mark.parametrize("writer", Writer)
def test_an_append_names_the_manifests_of_the_state_before_and_writes_one_of_its_own(writer: Writer) -> None:
    table = Table(writer=writer)
    table.update(add("a"), add("b"))
    before = names_of(table.newest)
    made = table.update(add("c"))

    assert [name for name, _ in made.manifests] == names_of(table.newest)[1:]
    assert names_of(table.newest)[:1] == before
    assert table.at(2).keys() == {"a", "b", "c"}
    assert (made.state.file_count, made.state.total_bytes) == (3, 30)
    assert made.state == table.read(2)


def test_a_tombstone_stays_and_its_file_is_still_counted_among_the_bytes() -> None:
    table = Table()
    table.update(*(add(f"{n}") for n in range(30)))
    made = table.update(removed=["7"])

    assert made.manifests == ()
    assert made.state.tombstones.to_pylist() == ["7"]
    assert (made.state.file_count, made.state.total_bytes) == (29, 300)
    assert table.update(removed=["3"]).state.tombstones.to_pylist() == ["7", "3"]
    assert table.rewrites == 1
    assert table.at(3).keys() == {f"{n}" for n in range(30)} - {"7", "3"}


def test_manifests_in_the_directory_of_their_state_are_named_with_it() -> None:
    table = Table()
    table.update(add("a"))
    bare = replace(table.newest.manifests[0], path="manifest-a.avro", name=f"{names.state_dir(1)}/manifest-a.avro")
    table.files[bare.name] = table.files[table.newest.manifests[0].name]
    table.state = replace(table.newest, manifests=(bare,))
    made = table.update(add("b"))

    assert made.state.manifests[0].path == f"{names.state_dir(1)}/manifest-a.avro"
    assert table.at(2).keys() == {"a", "b"}


def test_more_tombstones_than_their_share_of_the_files_make_it_write_all_anew() -> None:
    table = Table()
    table.update(*(add(f"{n:02}") for n in range(22)))
    table.update(removed=["00", "01"])  # a tenth of the 20 files that are left is not more than a tenth

    assert table.rewrites == 1  # the first state has nothing to go on from
    made = table.update(removed=["02"])
    assert table.rewrites == 2
    assert made.state.tombstones.to_pylist() == []
    assert (made.state.file_count, made.state.total_bytes, len(made.state.manifests)) == (19, 190, 1)
    assert table.at(3).keys() == {f"{n:02}" for n in range(3, 22)}


def test_more_manifests_than_are_wanted_make_it_write_all_anew() -> None:
    table = Table(shape=StateShape(most_manifests=3))
    for n in range(4):
        table.update(add(f"{n}"))

    assert table.rewrites == 2
    assert len(names_of(table.newest)) == 1
    assert table.at(4).keys() == {"0", "1", "2", "3"}


def test_a_table_that_fills_many_manifests_is_not_written_anew_with_every_commit() -> None:
    table = Table(shape=StateShape(most_manifests=3, entries_per_manifest=2))
    table.update(*(add(f"{n}") for n in range(20)))
    for n in range(3):
        table.update(add(f"more {n}"))

    assert table.rewrites == 1
    assert len(names_of(table.newest)) == 13


def test_an_emptied_table_is_written_anew_by_the_next_commit() -> None:
    table = Table(shape=StateShape(tombstone_share=1.0))
    table.update(add("a"))
    table.update(add("b"), removed=["a"])

    assert table.rewrites == 2
    assert table.at(2).keys() == {"b"}
    assert table.newest.tombstones.to_pylist() == []


def test_what_replaces_all_leaves_only_what_it_adds_and_reads_nothing() -> None:
    table = Table()
    table.update(add("a"), add("b"))
    made = table.update(add("c"), replaces_all=True)

    assert table.rewrites == 1
    assert names_of(made.state) == [name for name, _ in made.manifests]
    assert table.at(2).keys() == {"c"}
    assert table.at(1).keys() == {"a", "b"}


@pytest.mark.parametrize(("writer", "count"), [(Writer.SCALA, 1), (Writer.NATIVE, 0)])
def test_a_state_of_no_file_has_the_manifests_that_its_writer_gives_it(writer: Writer, count: int) -> None:
    table = Table(writer=writer)
    table.update(add("a"))
    made = table.update(replaces_all=True)

    assert len(made.state.manifests) == count
    assert table.at(2) == {}


def test_manifests_are_cut_at_their_number_of_entries() -> None:
    table = Table(shape=StateShape(entries_per_manifest=3))
    table.update(*(add(f"{n}") for n in range(7)))

    assert [manifest.entry_count for manifest in table.newest.manifests] == [3, 3, 1]
    table.update(*(add(f"more {n}") for n in range(4)))
    assert [manifest.entry_count for manifest in table.newest.manifests] == [3, 3, 1, 3, 1]


def test_a_rewrite_puts_the_files_of_a_partition_together_and_tells_their_bounds() -> None:
    table = Table(shape=StateShape(entries_per_manifest=2, most_manifests=0))
    table.update(split("a", day="2"), split("b", day="1"))
    table.update(split("c", day="2"), split("d", day="1"))
    table.update(split("e", day="3"))

    assert [manifest.bounds for manifest in table.newest.manifests] == [
        {"day": TextBounds(low="1", high="1")},
        {"day": TextBounds(low="2", high="2")},
        {"day": TextBounds(low="3", high="3")},
    ]


def test_the_scala_log_tells_no_version_of_an_entry_and_no_count_of_the_living() -> None:
    table = Table(writer=Writer.SCALA)
    table.update(add("a"))
    made = table.update(add("b", ms=7))
    (manifest,) = made.state.manifests[1:]

    assert (manifest.min_added_version, manifest.max_added_version) == (0, 0)
    assert (manifest.tombstone_count, manifest.live_count) == (0, -1)
    assert [(e["addedAtVersion"], e["addedAtTimestamp"]) for e in table.entries(made)] == [(0, 1002)]
    assert len(manifest.name) == len("manifests/manifest-01234567.avro")


def test_the_native_log_keeps_the_version_that_added_a_file_through_a_rewrite() -> None:
    table = Table(writer=Writer.NATIVE, shape=StateShape(most_manifests=2))
    for n in range(3):
        table.update(add(f"{n}", ms=7 + n))
    (manifest,) = table.newest.manifests

    assert (manifest.min_added_version, manifest.max_added_version, manifest.live_count) == (1, 3, 3)
    batches = list(IndexLog(table.files).live_in(table.newest))
    found = pa.Table.from_batches(batches).select(["key", "added_version", "added_ms"]).to_pylist()
    assert sorted(tuple(row.values()) for row in found) == [("0", 1, 7), ("1", 2, 8), ("2", 3, 9)]
    assert len(manifest.name) == len("manifests/manifest-0123456789abcdef.avro")


def test_the_metadata_of_the_state_before_is_repeated_until_there_is_new() -> None:
    table = Table(shape=StateShape(most_manifests=2))
    table.update(add("a"), metadata=METADATA)
    table.update(add("b"))
    table.update(add("c"))  # a rewrite
    assert table.read(3).metadata == METADATA

    table.update(metadata=replace(METADATA, name="other"))
    assert table.read(4).metadata == replace(METADATA, name="other")


def test_a_doc_mapping_stands_in_the_registry_once_however_its_files_tell_it() -> None:
    key = schema_registry.doc_mapping_hash(MAPPING)
    table = Table()
    table.update(split("a", mapping=MAPPING), split("b", mapping=MAPPING, ref=key))
    made = table.update(split("c", ref=key), split("d", ref="x"), registry={"x": "[]"})

    assert made.state.registry == {key: MAPPING, "x": "[]"}
    assert table.read(2).registry == {key: MAPPING, "x": "[]"}
    assert {path: file.split and file.split.doc_mapping_ref for path, file in table.at(2).items()} == {
        "a": key,
        "b": key,
        "c": key,
        "d": "x",
    }


def test_the_native_log_repeats_the_doc_mapping_in_every_entry() -> None:
    table = Table(writer=Writer.NATIVE)
    table.update(split("a", mapping=MAPPING), split("b", ref="x"), registry={"x": "[]"})

    assert [(e["docMappingJson"], e["docMappingRef"]) for e in table.entries(table.update(split("c", ref="x")))] == [
        ("[]", "x")
    ]
    assert {path: file.split and file.split.doc_mapping for path, file in table.at(1).items()} == {
        "a": MAPPING,
        "b": "[]",
    }


def test_a_rewrite_that_finds_many_doc_mappings_but_not_few_makes_one_of_those_that_say_the_same() -> None:
    told = {"x1": MAPPING, "x2": SAME_MAPPING}
    table = Table(shape=StateShape(renormalise_above=2, most_manifests=1))
    table.update(split("a", ref="x1"), registry={"x1": MAPPING})
    assert table.update(split("b", ref="x2"), registry=told).state.registry == told  # few of them keep their names
    made = table.update(split("c", ref="x3"), registry={"x3": "[]"})
    same, other = (schema_registry.doc_mapping_hash(text) for text in (MAPPING, "[]"))

    assert made.state.registry == {same: MAPPING, other: "[]"}
    assert {path: file.split and file.split.doc_mapping_ref for path, file in table.at(3).items()} == {
        "a": same,
        "b": same,
        "c": other,
    }


def refused(table: Table, *added: AddFile, **more: Any) -> str:
    files, state = dict(table.files), table.state
    with pytest.raises(LogError) as caught:
        table.update(*added, **more)
    assert (table.files, table.state) == (files, state)
    return caught.value.error_class or ""


def test_a_path_that_was_removed_is_never_added_again() -> None:
    table = Table(shape=StateShape(tombstone_share=1.0))
    table.update(add("a"), add("b"))

    assert table.update(removed=["a"]).state.file_count == 1
    assert refused(table, add("a")) == "INDEXTABLES_PATH_USED_AGAIN"
    assert refused(table, add("a"), replaces_all=True) == "INDEXTABLES_PATH_USED_AGAIN"
    assert refused(table, add("c"), add("c")) == "INDEXTABLES_PATH_USED_AGAIN"
    assert table.update(add("c"))


def test_a_rewrite_refuses_to_add_what_is_there() -> None:
    table = Table(shape=StateShape(most_manifests=0))
    table.update(add("a"), add("b"))

    assert refused(table, add("a")) == "INDEXTABLES_PATH_USED_AGAIN"


def test_a_file_whose_doc_mapping_nobody_has_is_refused() -> None:
    assert refused(Table(), split("a", ref="x")) == "INDEXTABLES_DOC_MAPPING_UNKNOWN"


def test_the_hint_says_what_the_state_says() -> None:
    table = Table()
    state = table.update(add("a"), add("b")).state

    assert hint_of(state) == Hint(
        version=Version(1), action_count=2, size_bytes=20, file_count=2, created_ms=1001, is_state=True
    )


SHAPES = st.builds(
    StateShape,
    entries_per_manifest=st.integers(1, 4),
    tombstone_share=st.sampled_from([0.1, 1.0, 9.0]),
    most_manifests=st.sampled_from([0, 3, 20]),
    renormalise_above=st.integers(0, 3),
)
STEPS = st.lists(
    st.tuples(st.integers(0, 5), st.sets(st.integers(0, 12), max_size=4), st.sampled_from([False, False, False, True])),
    min_size=1,
    max_size=8,
)


@given(STEPS, SHAPES, st.sampled_from(Writer), st.data())
def test_any_history_is_read_back_as_it_was_at_every_version(
    steps: list[tuple[int, set[int], bool]], shape: StateShape, writer: Writer, data: st.DataObject
) -> None:
    table, model, history, count = Table(writer=writer, shape=shape), dict[str, AddFile](), [], 0
    mappings = st.sampled_from([None, MAPPING, SAME_MAPPING, "[]", "no json"])
    for adds, places, replaces_all in steps:
        gone = {path for place, path in enumerate(model) if place in places}
        added = []
        for _ in range(adds):
            count += 1
            day = data.draw(st.sampled_from(["1", "9", "10", "x"]))
            added.append(split(f"{count}", day=day, mapping=data.draw(mappings)))
        table.update(*added, removed=sorted(gone), replaces_all=replaces_all)
        kept = {} if replaces_all else {path: file for path, file in model.items() if path not in gone}
        model = kept | {file.path: file for file in added}
        history.append(model)
    for version, files in enumerate(history, 1):
        assert _as_told(table, version) == {path: _canonical(file) for path, file in files.items()}


def _as_told(table: Table, version: int) -> dict[str, AddFile]:
    """The files of a version, each with its doc mapping told inline and in canonical form."""
    registry = table.read(version).registry
    files = table.at(version)
    for path, file in files.items():
        assert file.split is not None
        text, key = file.split.doc_mapping, file.split.doc_mapping_ref
        told = text if text is not None else None if key is None else registry[key]
        files[path] = replace(file, split=replace(file.split, doc_mapping=told, doc_mapping_ref=None))
    return {path: _canonical(file) for path, file in files.items()}


def _canonical(file: AddFile) -> AddFile:
    text = file.split.doc_mapping if file.split else None
    assert file.split is not None
    if text is None or text == "no json":
        return file
    return replace(file, split=replace(file.split, doc_mapping=schema_registry.canonical(text)))


def test_every_state_of_another_writer_can_be_gone_on_from(index_tables: Path) -> None:
    logs = [IndexLog.of_folder(log.parent) for log in sorted(index_tables.rglob(names.LOG_DIR))]
    states = [(log, version) for log in logs for version in sorted(log.log.states)[-2:]]

    assert len(states) > 5
    for (log, version), shape in itertools.product(states, (UPSTREAM, StateShape(most_manifests=0))):
        state = log.state(log.log.states[version])
        writer = Writer.NATIVE if len(log.log.commits) > 1 else Writer.SCALA
        table = Table.on(log, state, writer=writer, shape=shape)
        before = table.at(version)
        for other in range(version + 1, version + 5):
            table.files.pop(names.state_name(other), None)
        table.update(split("one more", mapping=MAPPING))
        after = table.at(version + 1)

        assert after.keys() == before.keys() | {"one more"}
        assert {path: after[path] for path in before} == before
