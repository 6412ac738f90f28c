"""Which commits stop a stream: rows deleted or rewritten, other schemas, other protocols, other tables."""

from __future__ import annotations

from typing import Any

import pytest

from support.checkpoints import classic_name, put_checkpoint
from support.logs import Action, a_log, a_source, add, at, col, delivered, info, meta, metadata, protocol, put, remove
from support.tracking import mapped, schema
from tablefeed.errors import (
    ChangeRefusedError,
    LogError,
    OffsetError,
    SchemaChangedError,
)
from tablefeed.feed.snapshot.table_log import TableLog
from tablefeed.log.admission import ChangePolicy
from tablefeed.log.plan import Limits
from tablefeed.model.offset import Offset
from tablefeed.store.memory import MemoryStore

REWRITES = [info(operation="UPDATE"), remove("old"), add("rewritten")]


def a_table_then(*actions: Action) -> TableLog:
    return a_log(v0=[protocol(), metadata(), add("old")], v1=actions)


@pytest.mark.parametrize(
    ("policy", "files"),
    [(ChangePolicy(ignore_changes=True), ["rewritten"]), (ChangePolicy(skip_change_commits=True), [])],
)
def test_what_a_commit_that_changes_rows_delivers_is_the_users_choice(policy: ChangePolicy, files: list[str]) -> None:
    source = a_source(a_table_then(*REWRITES), starting_version=1, policy=policy)

    end = source.latest(at(1), Limits())

    assert end == at(2)
    assert delivered(source, at(1), end) == files


def test_a_commit_that_changes_rows_stops_a_stream_that_was_not_told_what_to_do() -> None:
    source = a_source(a_table_then(*REWRITES), starting_version=1)

    with pytest.raises(ChangeRefusedError, match=r"memory:orders.*skipChangeCommits") as caught:
        source.latest(at(1), Limits())

    assert (caught.value.error_class, caught.value.version) == ("DELTA_SOURCE_TABLE_IGNORE_CHANGES", 1)


@pytest.mark.parametrize("change", [meta(col("other")), metadata(table_id="replaced")])
def test_a_refused_commit_is_the_error_also_where_the_schema_of_the_start_cannot_be_read_with(change: Action) -> None:
    log = a_log(v0=[protocol(), metadata(), add("old")], v1=REWRITES, v2=[change])
    source = a_source(log, starting_version=1)

    with pytest.raises(ChangeRefusedError):
        source.latest(source.initial(), Limits())


# --- schemas ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("option", [{"starting_version": 0}, {"starting_timestamp": "1970-01-01"}])
def test_a_query_with_starting_options_is_told_by_the_other_class(option: dict[str, Any]) -> None:
    log = a_table_then(add("a"))
    source = a_source(log, **option)
    start = source.initial()
    put(log.store, 2, [meta(col("id", "string"))])

    with pytest.raises(SchemaChangedError, match="DELTA_SCHEMA_CHANGED_WITH_STARTING_OPTIONS"):
        source.latest(start, Limits())


def test_a_stream_that_begins_before_a_column_was_added_reads_on_with_the_newest_schema() -> None:
    log = a_table_then(meta(col("id"), col("new", "string")), add("b"))
    source = a_source(log, starting_version=0)

    end = source.latest(at(0), Limits())

    assert end == at(2)
    assert delivered(source, at(0), end) == ["b", "old"]


def test_a_column_widened_before_the_query_began_is_read() -> None:
    log = a_log(v0=[protocol(), meta(col("id", "integer")), add("old")], v1=[meta(col("id")), add("new")])
    source = a_source(log, starting_version=0)

    assert delivered(source, at(0), source.latest(at(0), Limits())) == ["new", "old"]


def test_a_stream_does_not_begin_where_the_schema_was_one_that_it_cannot_read() -> None:
    log = a_log(
        v0=[protocol(), meta(col("id", "string"))],
        v1=[add("a")],
        v2=[metadata()],
        v3=[add("b")],
    )
    source = a_source(log, starting_version=1)

    with pytest.raises(SchemaChangedError):
        source.latest(at(1), Limits())


# --- protocols and tables --------------------------------------------------------------------------------------------


def a_column_renamed_in_version_2() -> TableLog:
    return a_log(
        v0=[protocol(2, 5), mapped(a="col-1")],
        v1=[add("old")],
        v2=[mapped(b="col-1"), add("new")],
        v3=[add("newer")],
    )


def test_a_stream_that_a_renamed_column_stopped_does_not_go_on_by_being_started_again() -> None:
    source = a_source(a_column_renamed_in_version_2())

    for ask in (lambda: source.latest(at(2), Limits()), lambda: source.tasks(at(2), at(3))):
        with pytest.raises(SchemaChangedError, match="renamed or dropped"):
            ask()


@pytest.mark.parametrize("done", [at(2, 1), at(3)])
def test_a_stream_that_delivered_rows_under_a_columns_new_name_goes_on(done: Offset) -> None:
    source = a_source(a_column_renamed_in_version_2())

    assert delivered(source, done, source.latest(done, Limits())) == ["newer"]


def test_a_stream_can_begin_with_the_commit_that_renamed_a_column() -> None:
    source = a_source(a_column_renamed_in_version_2(), starting_version=2)
    start = source.initial()

    assert delivered(source, start, source.latest(start, Limits())) == ["new", "newer"]


def cleaned_up_before_1(*, brought_by_2: list[Action]) -> TableLog:
    """Version 0 is gone, and a checkpoint of 3 stands for it."""
    newest = mapped(a="col-2")
    log = a_log(v1=[add("f")], v2=brought_by_2, v3=[add("g")])
    put_checkpoint(log.store, classic_name(3), [protocol(2, 5), newest, add("f"), add("g")])
    return log


def test_a_stream_of_mapped_columns_does_not_begin_where_their_names_are_not_known_any_more() -> None:
    source = a_source(cleaned_up_before_1(brought_by_2=[mapped(a="col-2")]), starting_version=1)

    with pytest.raises(LogError, match=r"DELTA_STREAMING_CHECK_COLUMN_MAPPING_NO_SNAPSHOT.*Start with a later version"):
        source.latest(at(1), Limits())
    assert delivered(source, at(2), source.latest(at(2), Limits())) == ["g"]


def test_names_that_no_commit_up_to_a_checkpoint_changed_are_those_of_the_checkpoint() -> None:
    source = a_source(cleaned_up_before_1(brought_by_2=[info()]), starting_version=1)

    assert delivered(source, at(1), source.latest(at(1), Limits())) == ["f", "g"]


def test_a_stream_does_not_go_on_where_a_column_may_have_been_dropped_since_a_version_that_was_cleaned_up() -> None:
    log = a_log(v1=[add("f")], v2=[metadata(schema(id="long")), remove("f"), add("g")], v3=[add("h")])
    put_checkpoint(log.store, classic_name(3), [protocol(), metadata(schema(id="long")), add("g"), add("h")])
    policy = ChangePolicy(skip_change_commits=True)

    with pytest.raises(SchemaChangedError, match="Start with a new checkpoint, from the whole table"):
        a_source(log, policy=policy).latest(at(1), Limits())

    whole = a_source(log, policy=policy)
    assert delivered(whole, whole.initial(), whole.latest(whole.initial(), Limits())) == ["g", "h"]
    later = a_source(log, policy=policy, starting_version=2)
    assert delivered(later, at(2), later.latest(at(2), Limits())) == ["h"]


OTHER = "22222222-2222-2222-2222-222222222222"


def test_an_offset_of_another_table_is_refused() -> None:
    log = a_log(v0=[protocol(), metadata(table_id=OTHER)])
    source = a_source(log)

    for ask in (lambda: source.latest(at(0), Limits()), lambda: source.tasks(at(0), at(1))):
        with pytest.raises(OffsetError, match=r"Use a new checkpoint") as caught:
            ask()
        assert caught.value.error_class == "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE"
        assert f"began with the table with id {at(0).table_id}" in str(caught.value)
        assert f"is now the table with id {OTHER}" in str(caught.value)


def test_a_table_made_anew_under_a_stream_is_not_taken_for_its_continuation() -> None:
    times = iter(range(1000))
    store = MemoryStore("orders", now_ms=lambda: next(times))
    log = a_log(store, v0=[protocol(), metadata(), add("a")], v1=[add("b")])
    source = a_source(log)
    end = source.latest(source.initial(), Limits())

    put(store, 0, [protocol(), metadata(table_id=OTHER)])
    put(store, 1, [add("of another table")])
    put(store, 2, [add("of another table too")])

    with pytest.raises(OffsetError, match=f"is now the table with id {OTHER}"):
        source.latest(end, Limits())


def test_a_table_made_anew_under_a_stream_that_is_behind_is_not_taken_for_its_continuation() -> None:
    times = iter(range(1000))
    store = MemoryStore("orders", now_ms=lambda: next(times))
    log = a_log(store, v0=[protocol(), metadata()], v1=[add("a")], v2=[add("b")], v3=[add("c")])
    source = a_source(log, starting_version=1)
    first = source.latest(source.initial(), Limits(files=1))

    put(store, 0, [protocol(), metadata(table_id=OTHER)])
    for version in (1, 2, 3):
        put(store, version, [add(f"of another table, {version}")])

    with pytest.raises(OffsetError, match=f"is now the table with id {OTHER}"):
        source.latest(first, Limits(files=1))
