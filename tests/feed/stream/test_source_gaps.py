"""What a stream does where log files are gone: at its start, in the middle, at the end of a batch, behind it."""

from __future__ import annotations

import itertools
import logging
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import tablefeed
from support.clocks import Clock
from support.logs import Action, a_log, a_source, add, at, commit_path, delivered, info, metadata, protocol, put
from support.tracking import mapped
from tablefeed.errors import CorruptLogError, LogError, LogGapError, SchemaChangedError
from tablefeed.feed.snapshot.open_log import open_log
from tablefeed.feed.snapshot.table_log import TableLog
from tablefeed.feed.snapshot.tail import GAP_CHECK_S
from tablefeed.feed.stream.source import StreamSource
from tablefeed.feed.stream.source_options import SourceOptions
from tablefeed.feed.upkeep.delta_checkpoint import write_checkpoint
from tablefeed.log.plan import Limits
from tablefeed.model.actions import Version
from tablefeed.model.offset import Offset


def one_file_a_version() -> TableLog:
    return a_log(v0=[protocol(), metadata()], v1=[add("a")], v2=[add("b")], v3=[add("c")], v4=[add("d")])


def lose(log: TableLog, *versions: int) -> None:
    for version in versions:
        log.store.delete(commit_path(version))


def that_lost(*versions: int, **options: Any) -> StreamSource:
    """A stream of one file a version that had begun when these versions were lost."""
    log = one_file_a_version()
    source = a_source(log, **options)
    source.initial()
    lose(log, *versions)
    return source


def lenient_over(
    *lost: int, checkpointed: bool = True, change_feed: bool = False, **later: Sequence[Action]
) -> StreamSource:
    """A stream from version 1 on that may lose data: `later` came, with a checkpoint, and `lost` is gone."""
    log = a_log(v0=[protocol(writer=4), metadata(configuration=RECORDED)], v1=[add("a")])
    source = a_source(log, starting_version=1, fail_on_data_loss=False, change_feed=change_feed)
    source.initial()
    a_log(log.store, **later)
    if checkpointed:
        write_checkpoint(log.load())
    lose(log, *lost)
    return source


@pytest.mark.parametrize("lost", [(2,), (2, 3), (1,), (1, 2), (0, 1)])
def test_a_hole_stops_a_stream_and_names_what_is_missing(lost: tuple[int, ...]) -> None:
    source = that_lost(*lost, starting_version=1)

    with pytest.raises(LogGapError, match="failOnDataLoss=false") as caught:
        source.latest(at(1), Limits())

    assert (caught.value.expected, caught.value.found) == (max(lost[0], 1), lost[-1] + 1)
    assert "memory:orders" in str(caught.value)
    assert caught.value.error_class == "DELTA_MISSING_FILES_UNEXPECTED_VERSION"


@pytest.mark.parametrize(
    ("lost", "files"), [((2,), ["a", "c", "d"]), ((1,), ["b", "c", "d"]), ((1, 2), ["c", "d"]), ((2, 3), ["a", "d"])]
)
def test_a_stream_that_may_lose_data_goes_on_behind_the_hole(lost: tuple[int, ...], files: list[str]) -> None:
    source = that_lost(*lost, starting_version=1, fail_on_data_loss=False)

    end = source.latest(at(1), Limits())

    assert end == at(5)
    assert delivered(source, at(1), end) == files


RENAMED = '{"type":"struct","fields":[{"name":"number","type":"long","nullable":true,"metadata":{}}]}'
RECORDED = {"delta.enableChangeDataFeed": "true"}


@pytest.mark.parametrize("change_feed", [False, True], ids=["rows", "changes"])
def test_a_schema_that_changed_in_a_hole_stops_a_stream_that_may_lose_data(*, change_feed: bool) -> None:
    renamed = metadata(RENAMED, configuration=RECORDED)
    source = lenient_over(2, change_feed=change_feed, v2=[renamed], v3=[add("b")], v4=[add("c")])

    with pytest.raises(SchemaChangedError, match="schema of memory:orders at version 3 cannot be read"):
        source.latest(at(1), Limits())


def test_the_same_schema_behind_a_hole_is_read_from_the_checkpoint_behind_it() -> None:
    source = lenient_over(2, v2=[add("b")], v3=[add("c")], v4=[add("d")])

    assert delivered(source, at(1), source.latest(at(1), Limits())) == ["a", "c", "d"]


def test_where_nothing_behind_a_hole_tells_the_schema_a_stream_that_may_lose_data_stops_too() -> None:
    source = lenient_over(checkpointed=False, v3=[add("c")])

    with pytest.raises(LogGapError, match="No checkpoint after the gap gives the schema") as caught:
        source.latest(at(1), Limits())
    assert caught.value.error_class == "DELTA_MISSING_FILES_UNEXPECTED_VERSION"


def test_a_commit_that_cannot_be_read_behind_a_hole_is_named_and_not_the_hole() -> None:
    source = lenient_over(2, v2=[add("b")], v3=[add("c")], v4=[add("d")], v5=[add("e")])
    source._log.store.replace(commit_path(4), b'{"add":')

    with pytest.raises(CorruptLogError, match=r"0004\.json"):
        source.latest(at(1), Limits())


def test_a_stream_that_may_lose_data_and_ends_with_what_is_there_goes_on_behind_every_hole() -> None:
    source = that_lost(1, 3, starting_version=1, fail_on_data_loss=False)
    source.bound_now()

    assert source.latest(at(1), Limits()) == at(5)
    assert source.latest(at(1), Limits(files=1)) == at(4)


def test_a_batch_run_again_passes_over_every_hole_and_not_the_first_alone() -> None:
    source = that_lost(1, 3, starting_version=0, fail_on_data_loss=False)

    assert delivered(source, at(1), at(5)) == ["b", "d"]


def test_a_batch_run_again_is_not_cut_short_by_a_hole() -> None:
    log = one_file_a_version()
    source = a_source(log, starting_version=0)
    source.initial()
    source.latest(at(5), Limits())
    lose(log, 3)

    with pytest.raises(LogGapError):
        source.tasks(at(1), at(5))


@pytest.mark.parametrize("end", [at(5), at(4, 1)])
def test_a_batch_whose_last_commits_are_gone_is_not_taken_for_a_shorter_one(end: Offset) -> None:
    source = that_lost(4, starting_version=0)

    with pytest.raises(LogError, match=r"ends at version 3, but this batch ends at version 4") as caught:
        source.tasks(at(1), end)

    assert caught.value.error_class == "DELTA_STREAMING_TRAILING_COMMIT_MISSING"
    assert "memory:orders" in str(caught.value)


def test_a_batch_whose_last_commits_are_gone_is_what_is_left_where_data_may_be_lost() -> None:
    source = that_lost(4, starting_version=0, fail_on_data_loss=False)

    assert delivered(source, at(1), at(5)) == ["a", "b", "c"]


KINDS = pytest.mark.parametrize("change_feed", [False, True], ids=["appends", "changes"])


@KINDS
@pytest.mark.parametrize("start", [at(5), at(4, 1)], ids=["behind a commit", "within a commit"])
@pytest.mark.parametrize("lost", [(4,), (2, 3, 4)], ids=str)
def test_a_stream_that_starts_again_behind_the_end_of_its_log_is_refused(
    change_feed: bool,  # noqa: FBT001 (a parameter)
    start: Offset,
    lost: tuple[int, ...],
) -> None:
    log = one_file_a_version()
    lose(log, *lost)
    restarted = a_source(log, change_feed=change_feed)

    with pytest.raises(LogError, match=rf"read up to version 4.*is at version {lost[0] - 1} now") as caught:
        restarted.latest(start, Limits())

    assert caught.value.error_class == "DELTA_STREAMING_TRAILING_COMMIT_MISSING"
    assert "memory:orders" in str(caught.value)


@KINDS
@pytest.mark.parametrize("lost", [(4,), (2, 3, 4)], ids=str)
def test_a_waiting_stream_whose_log_loses_its_end_is_stopped_within_a_minute(
    change_feed: bool,  # noqa: FBT001 (a parameter)
    lost: tuple[int, ...],
) -> None:
    log, clock = one_file_a_version(), Clock()
    source = a_source(log, clock=clock, change_feed=change_feed)
    end = source.latest(source.initial(), Limits())
    lose(log, *lost)

    assert source.latest(end, Limits()) == end, "the log is not looked at so soon"
    clock.now_s += GAP_CHECK_S
    with pytest.raises(LogError, match=rf"read up to version 4.*is at version {lost[0] - 1} now") as caught:
        source.latest(end, Limits())

    assert caught.value.error_class == "DELTA_STREAMING_TRAILING_COMMIT_MISSING"


@pytest.mark.parametrize("restarts", [False, True], ids=["running", "restarted"])
def test_a_stream_that_waits_one_version_behind_the_newest_has_lost_nothing(
    restarts: bool,  # noqa: FBT001 (a parameter)
) -> None:
    log, clock = one_file_a_version(), Clock()
    source = a_source(log, clock=clock)
    end = at(5) if restarts else source.latest(source.initial(), Limits())
    assert source.latest(end, Limits()) == at(5)

    clock.now_s += GAP_CHECK_S
    assert source.latest(end, Limits()) == at(5)
    put(log.store, 5, [add("e")])
    assert delivered(source, end, source.latest(end, Limits())) == ["e"]


def test_a_stream_that_may_lose_data_waits_until_the_log_has_passed_what_it_read(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = one_file_a_version()
    lose(log, 3, 4)
    restarted = a_source(log, fail_on_data_loss=False)

    with caplog.at_level(logging.WARNING, "tablefeed"):
        assert restarted.latest(at(5), Limits()) == at(5)
        put(log.store, 3, [add("another c")])
        assert restarted.latest(at(5), Limits()) == at(5)
    assert [record.getMessage() for record in caplog.records] == [
        "url=memory:orders newest=2 version=4 was read and is gone or replaced: no commit up to that is delivered"
    ]

    put(log.store, 4, [add("another d")])
    put(log.store, 5, [add("e")])
    assert delivered(restarted, at(5), restarted.latest(at(5), Limits())) == ["e"]


def test_a_log_that_lost_its_end_and_grew_past_it_before_the_restart_is_not_seen() -> None:
    log = one_file_a_version()
    lose(log, 3, 4)
    for version in (3, 4, 5):
        put(log.store, version, [add(f"another {version}")])
    restarted = a_source(log)

    assert delivered(restarted, at(5), restarted.latest(at(5), Limits())) == ["another 5"]


@pytest.mark.parametrize("restarts", [False, True], ids=["running", "restarted"])
def test_an_indextables_log_that_lost_its_end_stops_a_stream(
    tmp_path: Path,
    restarts: bool,  # noqa: FBT001 (a parameter)
) -> None:
    location, clock = str(tmp_path), Clock()
    for row in range(3):
        tablefeed.append(location, pa.table({"id": [row]}), table_format="indextables")
    log = open_log(location)
    source = a_source(log, clock=clock)
    end = source.latest(source.initial(), Limits())
    assert end.version == log.load().version + 1
    newest = [path for path in (tmp_path / log.directory).iterdir() if f"{end.version - 1:020d}" in path.name]
    assert sorted(path.suffix for path in newest) == ["", ".json"], "a state and a commit"
    for path in newest:
        shutil.rmtree(path) if path.is_dir() else path.unlink()

    clock.now_s += GAP_CHECK_S
    with pytest.raises(LogError, match=f"read up to version {end.version - 1}") as caught:
        (a_source(open_log(location)) if restarts else source).latest(end, Limits())

    assert caught.value.error_class == "DELTA_STREAMING_TRAILING_COMMIT_MISSING"


def test_a_hole_that_opens_before_a_waiting_stream_is_found_within_a_minute() -> None:
    log, clock = one_file_a_version(), Clock()
    source = a_source(log, clock=clock, starting_version="latest")
    start = source.initial()
    assert source.latest(start, Limits()) == start
    put(log.store, 6, [add("f")])

    assert source.latest(start, Limits()) == start, "version 5 may still come"
    clock.now_s += GAP_CHECK_S
    with pytest.raises(LogGapError):
        source.latest(start, Limits())


def a_cleaned_up_table(path: Path) -> str:
    """Six versions of a row each, of which the commits 0 to 3 are gone behind a checkpoint of 4."""
    location = str(path)
    for row in range(6):
        write_deltalake(location, pa.table({"id": [row]}), mode="append")
        if row == 4:
            DeltaTable(location).create_checkpoint()
    for version in range(4):
        (path / commit_path(version)).unlink()
    return location


def of_disk(location: str) -> StreamSource:
    """Its clock runs so fast that no quiet watch is believed: what is on the disk is seen at once."""
    log = open_log(location)
    hurried = itertools.count(0.0, 10.0).__next__
    return StreamSource(log, read_schema=log.load().schema, options=SourceOptions(), clock=hurried)


def test_a_log_that_was_cleaned_up_behind_a_checkpoint_is_read_whole_and_then_tailed(tmp_path: Path) -> None:
    location = a_cleaned_up_table(tmp_path)
    source = of_disk(location)
    start = source.initial()
    end = source.latest(start, Limits())
    tablefeed.append(location, pa.table({"id": [6]}))
    further = source.latest(end, Limits())

    assert len(delivered(source, start, end)) == 6
    assert len(delivered(source, end, further)) == 1


def test_a_stream_whose_next_commits_were_cleaned_up_is_told_so(tmp_path: Path) -> None:
    location = a_cleaned_up_table(tmp_path)
    source = of_disk(location)
    table_id = source.initial().table_id

    with pytest.raises(LogGapError) as caught:
        source.latest(Offset(table_id=table_id, version=at(2).version), Limits())

    assert (caught.value.expected, caught.value.found) == (2, 4)
    assert caught.value.error_class == "DELTA_MISSING_FILES_UNEXPECTED_VERSION"


def of_mapped_columns_cleaned_up_to_3(*, dropped: bool) -> TableLog:
    """Its checkpoint is of version 4. Where `dropped`, version 2 dropped a column."""
    then, now = mapped(id="c1", name="c2"), mapped(id="c1")
    log = a_log(
        v0=[protocol(2, 5), then if dropped else now],
        v1=[add("a")],
        v2=[now if dropped else info()],
        v3=[add("c")],
        v4=[add("d")],
        v5=[add("e")],
    )
    write_checkpoint(log.load(Version(4)))
    lose(log, 0, 1, 2, 3)
    return log


def test_a_stream_of_mapped_columns_whose_next_commits_were_cleaned_up_is_told_so() -> None:
    source = a_source(of_mapped_columns_cleaned_up_to_3(dropped=False))

    with pytest.raises(LogGapError, match=r"DELTA_MISSING_FILES_UNEXPECTED_VERSION.*failOnDataLoss=false"):
        source.latest(at(2), Limits())


@pytest.mark.parametrize("dropped", [False, True])
def test_and_goes_on_behind_them_where_data_may_be_lost(*, dropped: bool) -> None:
    """Which columns were dropped in the hole is no matter: no row from before that is read."""
    source = a_source(of_mapped_columns_cleaned_up_to_3(dropped=dropped), fail_on_data_loss=False)

    assert delivered(source, at(2), source.latest(at(2), Limits())) == ["d", "e"]


def test_but_not_where_columns_were_dropped_behind_the_hole() -> None:
    log = of_mapped_columns_cleaned_up_to_3(dropped=False)
    put(log.store, 6, [mapped(id="c9")])
    source = a_source(log, fail_on_data_loss=False)

    with pytest.raises(SchemaChangedError, match="renamed or dropped"):
        source.latest(at(2), Limits())


def test_commits_that_are_cleaned_up_behind_a_stream_do_not_stop_it(tmp_path: Path) -> None:
    location = str(tmp_path)
    for row in range(3):
        write_deltalake(location, pa.table({"id": [row]}), mode="append")
    source = of_disk(location)
    end = source.latest(source.initial(), Limits())

    write_deltalake(location, pa.table({"id": [3]}), mode="append")
    DeltaTable(location).create_checkpoint()
    for version in range(3):
        (tmp_path / commit_path(version)).unlink()

    further = source.latest(end, Limits())

    assert (end.version, further.version) == (3, 4)
