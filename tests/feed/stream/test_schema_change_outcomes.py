"""What becomes of a stream at each change of its table, with and without schemaTrackingLocation, and what heals it.

Each case is a stream that has delivered a file, meets a change with another file, and is started again as its error
says. What the error says is held against what then helps: nothing else does, and the other file comes once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support.logs import Action, a_log, add, col, meta, protocol, put, source_options, struct
from support.tracking import ALWAYS, Checkpoint
from tablefeed.errors import SchemaChangedError, TablefeedError
from tablefeed.feed.snapshot.open_log import open_log
from tablefeed.feed.stream.source import StreamSource
from tablefeed.feed.stream.source_options import DROP, RENAME, TYPE_CHANGE, Allowed
from tablefeed.log.plan import Limits
from tablefeed.store import LocalStore

STOPPED = "DELTA_SCHEMA_CHANGED_WITH_VERSION"
UNTRACKED = "DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG"
EVOLVED = "DELTA_STREAMING_METADATA_EVOLUTION"
WAITS = "DELTA_STREAMING_CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION"
UNSUPPORTED = "DELTA_UNSUPPORTED_FEATURES_FOR_READ"
OTHER_TABLE = "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE"

RESTART = "from the same checkpoint, with a new DataFrame"
ANEW = "from the whole table or with startingVersion=2"
TRACK = "from the same checkpoint with a schemaTrackingLocation"
UPGRADE = "Upgrade tablefeed to a version that handles them, or drop them from the table"

NAME = {"delta.columnMapping.mode": "name"}
Columns = Sequence[dict[str, object]]


def features(*names: str) -> Action:
    return protocol(3, 7, readerFeatures=names, writerFeatures=names)


@dataclass(frozen=True, slots=True)
class Case:
    """`before` and then `change`; what stops a stream there without tracking, and with it, and how it goes on.

    `plain` None: it goes on. `plain_remedy` is what its error says. `words` are the options that a tracked stream
    waits for; None: none is enough. `tracked` None: it goes on.
    """

    before: list[Action]
    change: list[Action]
    plain: str | None
    plain_remedy: str = ""
    tracked: str | None = EVOLVED
    words: tuple[str, ...] | None = ()


A, B = col("a", id=1, physicalName="c1"), col("b", id=2, physicalName="c2")
DAY = col("day", id=2, physicalName="day")
Z = col("z", id=1, physicalName="c1")
MAPPED = [protocol(2, 5), meta(A, B, configuration=NAME)]
ID = [protocol(), meta(col("id"))]

CASES = {
    "a column added": Case(ID, [meta(col("id"), col("new"))], STOPPED, RESTART),
    "a member added": Case(
        [protocol(), meta(col("s", {"type": "array", "elementType": struct(col("a")), "containsNull": True}))],
        [meta(col("s", {"type": "array", "elementType": struct(col("a"), col("b")), "containsNull": True}))],
        STOPPED,
        RESTART,
    ),
    "a column renamed": Case(MAPPED, [meta(Z, B, configuration=NAME)], UNTRACKED, TRACK, words=(RENAME,)),
    "a column dropped": Case(MAPPED, [meta(B, configuration=NAME)], UNTRACKED, TRACK, words=(DROP,)),
    "a column dropped and made anew": Case(
        MAPPED, [meta(B, col("a", id=3, physicalName="c3"), configuration=NAME)], UNTRACKED, TRACK, words=(DROP,)
    ),
    "a column renamed and one dropped": Case(
        MAPPED, [meta(Z, configuration=NAME)], UNTRACKED, TRACK, words=(RENAME, DROP)
    ),
    "a column renamed and of another type": Case(
        MAPPED, [meta(col("z", "string", id=1, physicalName="c1"), B, configuration=NAME)], UNTRACKED, ANEW, words=None
    ),
    "mapping turned off": Case(MAPPED, [meta(col("a"), col("b"))], UNTRACKED, TRACK, words=(DROP,)),
    "mapping turned on": Case(
        [protocol(2, 5), meta(col("a"))], [meta(col("a", id=1, physicalName="a"), configuration=NAME)], None
    ),
    "another column in its place": Case(
        [protocol(), meta(col("id"), col("x"))], [meta(col("id"), col("y"))], STOPPED, TRACK, words=(DROP,)
    ),
    "a column of a wider type": Case(
        [features("typeWidening"), meta(col("id", "integer"))],
        [meta(col("id", "long"))],
        STOPPED,
        RESTART,
        words=(TYPE_CHANGE,),
    ),
    "a column of a narrower type": Case(ID, [meta(col("id", "integer"))], STOPPED, ANEW, words=None),
    "a column of another type": Case(ID, [meta(col("id", "string"))], STOPPED, ANEW, words=None),
    "another partitioning": Case(
        [protocol(), meta(col("id"), col("day"))],
        [meta(col("id"), col("day"), partition_columns=["day"])],
        STOPPED,
        TRACK,
    ),
    "another partitioning of mapped columns": Case(
        [protocol(2, 5), meta(A, DAY, configuration=NAME)],
        [meta(A, DAY, partition_columns=["day"], configuration=NAME)],
        UNTRACKED,
        TRACK,
    ),
    "a column that may be null now": Case(
        [protocol(), meta(col("id", nullable=False))], [meta(col("id"))], STOPPED, RESTART
    ),
    "a column that may not be null any more": Case(ID, [meta(col("id", nullable=False))], None, words=None),
    "a property": Case(ID, [meta(col("id"), configuration={"delta.appendOnly": "true"})], None),
    "a feature that is handled": Case(ID, [features("timestampNtz")], None),
    "a feature that is not": Case(
        ID, [features("fromTheFuture")], UNSUPPORTED, UPGRADE, tracked=UNSUPPORTED, words=None
    ),
    "another table under its path": Case(
        ID, [meta(col("id"), table_id="another")], OTHER_TABLE, "Use a new checkpoint", tracked=OTHER_TABLE, words=None
    ),
}
every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


class Untracked(Checkpoint):
    """A query without schemaTrackingLocation."""

    def source(self, *, allowed: Allowed | None = None, **options: Any) -> StreamSource:  # noqa: ARG002 - as tracked
        log = open_log(str(self.table))
        schema = log.load().schema
        self.columns = list(schema.names)
        return StreamSource(log, read_schema=schema, options=source_options(**options), clock=lambda: 0.0)


def through_the_change(query: Checkpoint, case: Case) -> TablefeedError | None:
    """Runs `query` from before the change, which comes under it, to what is there then; gives what ends it."""
    store = LocalStore(str(query.table))
    a_log(store, v0=case.before, v1=[add("a", partitionValues={"day": "1"})])
    source = query.source()
    for _ in query.batches(source, Limits()):
        pass
    assert query.files == [["a"]]
    put(store, 2, [*case.change, add("b", partitionValues={"day": "1"})])
    try:
        for _ in query.batches(source, Limits()):
            pass
    except TablefeedError as error:
        return error
    return None


def error_of(query: Checkpoint, **options: Any) -> TablefeedError | None:
    """What ends a restart, but for stops on purpose, after which it is started again; None: it came to the end."""
    for _ in range(4):
        try:
            query.start(**options)
        except TablefeedError as error:
            if error.error_class != EVOLVED:
                return error
        else:
            return None
    raise AssertionError("the query stopped on purpose again and again")


def delivered(query: Checkpoint) -> list[str]:
    return [file for batch in query.files for file in batch]


def begun_anew(query: Checkpoint, folder: Path, **options: Any) -> list[str]:
    fresh = type(query)(query.table, folder)
    assert error_of(fresh, **options) is None
    return delivered(fresh)


def one_short(words: Sequence[str]) -> Iterator[Allowed]:
    for left_out in words:
        yield {option: "always" for option in words if option != left_out}


def that_delivered_a(folder: Path, v0: list[Action]) -> tuple[Untracked, LocalStore]:
    """A query that does not track schemas and has delivered the file of version 1, and the store of its table."""
    query = Untracked(folder / "table", folder / "checkpoint")
    store = LocalStore(str(query.table))
    a_log(store, v0=v0, v1=[add("a")])
    query.start()
    return query, store


@every_case
def test_a_stream_that_does_not_track_schemas_is_healed_by_what_its_error_says(case: Case, tmp_path: Path) -> None:
    query = Untracked(tmp_path / "table", tmp_path / "checkpoint")
    error = through_the_change(query, case)

    if case.plain is None:
        assert error is None
        assert query.start() == []
        assert delivered(query) == ["a", "b"]
        return
    assert error is not None
    assert error.error_class == case.plain
    assert case.plain_remedy in error.message
    assert ("ignoreAddedColumns" in error.message) == (case in (CASES["a column added"], CASES["a member added"]))
    again = error_of(query)
    if case.plain_remedy == RESTART:
        assert again is None
        assert delivered(query) == ["a", "b"]
        return
    assert again is not None
    assert again.error_class == case.plain
    assert delivered(query) == ["a"]
    if case.plain_remedy == TRACK:
        assert TRACK in again.message
        begins_to_track(query, case, error, again)
    if case.plain_remedy in (TRACK, ANEW):
        assert ANEW in error.message
        assert begun_anew(query, tmp_path / "anew", starting_version=2) == ["b"]
    if case.plain != UNSUPPORTED:
        assert "with a new checkpoint" in error.message or "Use a new checkpoint" in error.message
        assert begun_anew(query, tmp_path / "whole") == ["a", "b"]


def begins_to_track(stopped: Checkpoint, case: Case, *said: TablefeedError) -> None:
    """That `stopped` comes over the change with a schemaTrackingLocation and the words that its errors say."""
    assert case.words is not None
    tracked = Checkpoint(stopped.table, stopped.folder, ends=list(stopped.ends), done=stopped.done)
    tracked.files = list(stopped.files)
    for error, which in zip(said, ("2", "the version of that change"), strict=True):
        assert [word for word in ALL_WORDS if word in error.message] == [w for w in ALL_WORDS if w in case.words]
        assert not case.words or f"set to {which} or to 'always'" in error.message
    for short in one_short(case.words):
        assert error_of(tracked, allowed=short) is not None
    assert error_of(tracked, allowed=dict.fromkeys(case.words, 2)) is None
    assert delivered(tracked) == ["a", "b"]


ALL_WORDS = (RENAME, DROP, TYPE_CHANGE)


@every_case
@pytest.mark.parametrize("word", ["always", 2])
def test_a_stream_that_tracks_schemas_is_healed_by_what_its_error_says(case: Case, word: Any, tmp_path: Path) -> None:
    query = Checkpoint(tmp_path / "table", tmp_path / "checkpoint")
    error = through_the_change(query, case)

    assert error is not None
    assert error.error_class == case.tracked
    if case.tracked == EVOLVED:
        assert "Start it again with a new DataFrame and the same checkpoint" in error.message
    again = error_of(query)
    if case.words == ():
        assert again is None
        assert delivered(query) == ["a", "b"]
        return
    assert again is not None
    assert delivered(query) == ["a"]
    if case.words is None:
        for_good(query, case, again)
        return
    assert again.error_class == WAITS
    assert f"with the source option {' and '.join(case.words)} set to 2, for this change, or to 'always'" in str(again)
    for short in one_short(case.words):
        assert error_of(query, allowed=short) is not None
    assert error_of(query, allowed=dict.fromkeys(case.words, word)) is None
    assert delivered(query) == ["a", "b"]


def for_good(query: Checkpoint, case: Case, again: TablefeedError) -> None:
    """That nothing but what `again` says helps."""
    assert error_of(query, allowed=ALWAYS) is not None
    if case.tracked == UNSUPPORTED:
        assert UPGRADE in again.message
        return
    fresh = query.folder.parent / "anew"
    if case.tracked == EVOLVED:
        assert again.error_class == STOPPED
        assert "with a new checkpoint and a new schemaTrackingLocation" in again.message
        assert "startingVersion=2" in again.message
        assert begun_anew(query, fresh, starting_version=2) == ["b"]
    else:
        assert "Use a new checkpoint" in again.message
    assert begun_anew(query, fresh.with_name("whole")) == ["a", "b"]


def test_a_stream_that_was_down_when_a_column_became_not_null_goes_on(tmp_path: Path) -> None:
    query, store = that_delivered_a(tmp_path, ID)
    put(store, 2, [meta(col("id", nullable=False)), add("b")])

    assert query.start() == [["b"]]


def test_a_column_that_was_made_anew_and_is_not_null_now_is_another_column_all_the_same(tmp_path: Path) -> None:
    query, store = that_delivered_a(tmp_path, MAPPED)
    anew = col("a", nullable=False, id=3, physicalName="c3")
    put(store, 2, [meta(anew, B, configuration=NAME), add("b")])

    error = error_of(query)

    assert error is not None
    assert error.error_class == UNTRACKED


def test_a_stream_that_is_to_read_rows_from_before_a_column_became_not_null_does_not_take_them_for_others(
    tmp_path: Path,
) -> None:
    query, store = that_delivered_a(tmp_path, ID)
    put(store, 2, [add("b")])
    put(store, 3, [meta(col("id", nullable=False)), add("c")])

    error = error_of(query)

    assert error is not None
    assert error.error_class == STOPPED
    assert "start with a new checkpoint" in error.message
    assert begun_anew(query, tmp_path / "anew") == ["a", "b", "c"]


@pytest.mark.parametrize("configuration", [{}, NAME])
def test_a_dataframe_from_before_a_column_was_added_is_to_be_made_anew(
    configuration: dict[str, str], tmp_path: Path
) -> None:
    query = Untracked(tmp_path / "table", tmp_path / "checkpoint")
    store = LocalStore(str(query.table))
    a_log(store, v0=[protocol(2, 5), meta(A, configuration=configuration)], v1=[add("a")])
    stale = query.source()
    put(store, 2, [meta(A, B, configuration=configuration), add("b")])

    with pytest.raises(SchemaChangedError, match=f"{RESTART}. With ignoreAddedColumns=true"):
        next(query.batches(stale, Limits()))

    assert query.start() == [["a", "b"]]
