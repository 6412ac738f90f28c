"""Which changes of a tracked schema wait for the user's word, and which word it is."""

from __future__ import annotations

import pytest

from support.logs import Action, add, metadata, protocol, put
from support.tracking import ALWAYS, WIDENING, Checkpoint, mapped, schema
from tablefeed.errors import (
    MetadataEvolvedError,
    SchemaChangedError,
)
from tablefeed.feed.stream.schema_unblock import Allowed
from tablefeed.store import LocalStore


@pytest.mark.parametrize(
    ("change", "allowed", "columns"),
    [
        (mapped(id="c1", word="c2"), Allowed(rename="always"), ["id", "word"]),
        (mapped(id="c1", word="c2"), Allowed(rename=2), ["id", "word"]),
        (mapped(id="c1"), Allowed(drop="always"), ["id"]),
        (mapped(id="c1", name="c3"), Allowed(drop=2), ["id", "name"]),
        (mapped(number="c1"), Allowed(drop=2, rename=2), ["number"]),
    ],
)
def test_a_stream_goes_on_over_a_renamed_or_dropped_column_at_the_users_word(
    mapped_table: LocalStore, query: Checkpoint, change: Action, allowed: Allowed, columns: list[str]
) -> None:
    query.start()
    put(mapped_table, 2, [change, add("b")])
    with pytest.raises(MetadataEvolvedError):
        query.start(allowed=allowed)

    for word in (Allowed(), Allowed(rename=1, drop=3), Allowed(type_change="always")):
        with pytest.raises(SchemaChangedError, match="allowSourceColumn") as caught:
            query.start(allowed=word)
        assert caught.value.error_class == "DELTA_STREAMING_CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION"
    assert query.files == [["a"], []]

    assert query.start(allowed=allowed) == [[], ["b"]]
    assert query.columns == columns


def test_one_word_does_not_do_for_two_kinds_of_change(mapped_table: LocalStore, query: Checkpoint) -> None:
    query.start()
    put(mapped_table, 2, [mapped(number="c1"), add("b")])
    with pytest.raises(MetadataEvolvedError):
        query.start()

    with pytest.raises(SchemaChangedError, match="allowSourceColumnDrop set to 2"):
        query.start(allowed=Allowed(rename="always"))


def test_a_word_for_one_version_does_not_do_for_the_next(mapped_table: LocalStore, query: Checkpoint) -> None:
    query.start()
    put(mapped_table, 2, [mapped(id="c1", word="c2"), add("b")])
    put(mapped_table, 3, [mapped(id="c1", text="c2"), add("c")])
    word = Allowed(rename=2)
    for _ in range(2):
        with pytest.raises(MetadataEvolvedError):
            query.start(allowed=word)

    with pytest.raises(SchemaChangedError, match="word is now text"):
        query.start(allowed=word)
    assert query.start(allowed=Allowed(rename=3)) == [[], ["c"]]


def test_a_merged_change_is_judged_against_what_was_read_before_it(mapped_table: LocalStore, query: Checkpoint) -> None:
    query.start()
    put(mapped_table, 2, [mapped(id="c1", word="c2")])
    put(mapped_table, 3, [mapped(id="c1", word="c2", more="c3")])
    put(mapped_table, 4, [add("b")])
    with pytest.raises(MetadataEvolvedError):
        query.start()

    with pytest.raises(SchemaChangedError, match="name is now word"):
        query.start(allowed=Allowed(rename=2))
    assert query.start(allowed=Allowed(rename=3)) == [[], ["b"]]


def test_a_wider_type_waits_for_the_users_word(table: LocalStore, query: Checkpoint) -> None:
    put(table, 0, [WIDENING, metadata(schema(id="integer"))])
    query.start()
    put(table, 2, [metadata(schema(id="long")), add("b")])
    with pytest.raises(MetadataEvolvedError):
        query.start()

    with pytest.raises(SchemaChangedError, match="id: integer to long"):
        query.start()
    assert query.start(allowed=Allowed(type_change="always")) == [[], ["b"]]


def test_no_word_helps_over_a_type_that_is_not_wider(table: LocalStore, query: Checkpoint) -> None:
    query.start()
    put(table, 2, [metadata(schema(id="string")), add("b")])
    with pytest.raises(MetadataEvolvedError):
        query.start(allowed=ALWAYS)

    with pytest.raises(SchemaChangedError, match="new checkpoint") as caught:
        query.start(allowed=ALWAYS)
    assert caught.value.error_class == "DELTA_SCHEMA_CHANGED_WITH_VERSION"


def test_mapping_turned_on_needs_no_word(table: LocalStore, query: Checkpoint) -> None:
    query.start()
    put(table, 2, [protocol(2, 5), mapped(id="id")])
    put(table, 3, [add("b")])

    with pytest.raises(MetadataEvolvedError):
        query.start()
    assert query.start() == [[], ["b"]]


def test_mapping_turned_off_is_a_drop_of_what_had_other_names(mapped_table: LocalStore, query: Checkpoint) -> None:
    query.start()
    put(mapped_table, 2, [metadata(schema(id="long", name="long")), add("b")])
    with pytest.raises(MetadataEvolvedError):
        query.start()

    with pytest.raises(SchemaChangedError, match="allowSourceColumnDrop"):
        query.start()


def test_a_predicate_is_of_the_columns_that_are_tracked(mapped_table: LocalStore, query: Checkpoint) -> None:
    pytest.importorskip("sqlglot")
    query.start(where="name >= 0")
    put(mapped_table, 2, [add("b", stats='{"numRecords":1,"maxValues":{"c2":-1}}'), add("c")])
    put(mapped_table, 3, [mapped(id="c1", word="c2"), add("d")])

    with pytest.raises(MetadataEvolvedError):
        query.start(where="name >= 0")
    query.start(where="word >= 0", allowed=Allowed(rename=3))

    assert query.files == [["a"], ["c"], [], ["d"]]
