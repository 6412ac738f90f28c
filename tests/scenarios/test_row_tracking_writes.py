"""The ids that writes give to rows, as RowIdSuite and the suites of row tracking beside it have it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tablefeed
from feed.commit.test_commit_features import ENABLED, TRACKED, ids, mark, marks, write
from scenarios.made_tables import BOTH, Row, Write, Writes, a_struct, actions, by_batch, make, rows
from support.logs import ID, Action, a_log, a_write, actions_of, add, metadata, protocol, put, still
from tablefeed.errors import ConflictError, SchemaMismatchError
from tablefeed.feed.commit.loop import commit
from tablefeed.feed.upkeep.after_commit import wait_until_done
from tablefeed.feed.write.write_rules import WriteRules
from tablefeed.store import LocalStore

either = pytest.mark.parametrize("write_rows", BOTH.values(), ids=BOTH)
IDS = a_struct(("id", "long"))
TELLS = protocol(1, 7, writerFeatures=["appendOnly", "invariants", *TRACKED])


def numbers(start: int, end: int) -> pa.Table:
    return pa.table({"id": pa.array(range(start, end), pa.int64())})


def adds(table: Path) -> list[Row]:
    """Every file that was ever added, oldest first."""
    versions = range(tablefeed.open_table(table).version + 1)
    return [
        {**each, "version": version}
        for version in versions
        if (table / f"_delta_log/{version:020}.json").exists()
        for each in actions(table, version).get("add", [])
    ]


def given(table: Path) -> list[tuple[object, object]]:
    """The first id and the version of the rows of each file."""
    return [(each.get("baseRowId"), each.get("defaultRowCommitVersion")) for each in adds(table)]


# --- RowIdSuite ------------------------------------------------------------------------------------------------------


def test_every_row_of_every_task_and_batch_has_an_id_of_its_own(tmp_path: Path) -> None:
    query = Writes(tmp_path / "t", {"delta.enableRowTracking": "true"})

    query(*(numbers(100 * task, 100 * (task + 1)) for task in range(10)))
    query(numbers(1000, 1200), numbers(1200, 1499), numbers(1499, 1500))
    by_batch(query.path, numbers(1500, 1507))

    counts = [json.loads(each["stats"])["numRecords"] for each in adds(query.path)]
    assert counts == [100] * 10 + [200, 299, 1, 7]
    expected = [(100 * n, 0) for n in range(10)] + [(1000, 1), (1200, 1), (1499, 1), (1500, 2)]
    assert given(query.path) == expected
    assert actions(query.path, 2)["domainMetadata"][0]["configuration"] == '{"rowIdHighWaterMark":1506}'


@either
def test_no_ids_are_given_without_row_tracking(tmp_path: Path, write_rows: Write) -> None:
    write_rows(tmp_path / "t", numbers(0, 1000))
    write_rows(tmp_path / "t", numbers(1000, 1500))

    assert given(tmp_path / "t") == [(None, None)] * 2
    properties = tablefeed.open_table(tmp_path / "t").metadata.configuration
    assert [name for name in properties if "rowTracking" in name or "RowTracking" in name] == []


@either
def test_a_table_is_read_and_written_once_row_tracking_is_off_again(tmp_path: Path, write_rows: Write) -> None:
    table = make(tmp_path, IDS, TELLS, properties=ENABLED)
    write_rows(table, numbers(0, 10))
    put(
        LocalStore(str(table)),
        2,
        [metadata(json.dumps(IDS), configuration={**ENABLED, "delta.enableRowTracking": "false"})],
    )

    write_rows(table, numbers(10, 12))

    assert sorted(row["id"] for row in rows(table)) == [*range(12)]
    assert given(table) == [(0, 1), (10, 3)], "the feature is still listed"


@either
def test_the_mark_outlives_the_commits_that_a_checkpoint_stands_for(tmp_path: Path, write_rows: Write) -> None:
    table = make(tmp_path, IDS, TELLS, properties={**ENABLED, "delta.checkpointInterval": "2"})
    write_rows(table, numbers(0, 1000))
    write_rows(table, pa.table({"id": pa.array([], pa.int64())}))
    wait_until_done()
    assert (table / f"_delta_log/{2:020}.checkpoint.parquet").exists()
    for name in [f"{version:020}.{kind}" for version in range(3) for kind in ("json", "crc")]:
        (table / "_delta_log" / name).unlink(missing_ok=True)

    write_rows(table, numbers(1000, 1500))

    assert given(table) == [(1000, 3)]
    assert actions(table, 3)["domainMetadata"][0]["configuration"] == '{"rowIdHighWaterMark":1499}'


@either
def test_an_empty_table_has_no_mark_until_it_has_rows(tmp_path: Path, write_rows: Write) -> None:
    table = tmp_path / "t"
    tablefeed.append(table, numbers(0, 0), properties={"delta.enableRowTracking": "true"})
    assert (given(table), actions(table, 0).get("domainMetadata")) == ([], None)

    write_rows(table, numbers(0, 10))

    assert given(table) == [(0, 1)]
    assert actions(table, 1)["domainMetadata"][0]["configuration"] == '{"rowIdHighWaterMark":9}'


@either
def test_rows_from_before_have_no_ids_and_those_after_begin_at_0(tmp_path: Path, write_rows: Write) -> None:
    table = make(tmp_path, IDS, TELLS, properties={"delta.rowTrackingSuspended": "true"})
    write_rows(table, numbers(0, 10))
    put(LocalStore(str(table)), 2, [metadata(json.dumps(IDS), configuration=ENABLED)])

    write_rows(table, numbers(10, 20))

    assert given(table) == [(None, None), (0, 3)]


@pytest.mark.parametrize("name", ["row_id", "_metadata.row_id", "_metadata.row_commit_version"])
@either
def test_a_column_may_be_called_as_the_ids_are(tmp_path: Path, write_rows: Write, name: str) -> None:
    for table in (tmp_path / "off", make(tmp_path / "on", a_struct((name, "long")), TELLS, properties=ENABLED)):
        write_rows(table, pa.table({name: [10_000, 10_001]}))

        assert [row[name] for row in rows(table)] == [10_000, 10_001]


@either
def test_a_column_may_be_called_as_the_column_of_metadata_is(tmp_path: Path, write_rows: Write) -> None:
    members = a_struct(("row_id", "long"), ("row_commit_version", "long"))
    table = make(tmp_path, a_struct(("id", "long"), ("_metadata", members)), TELLS, properties=ENABLED)
    values = [{"row_id": 11, "row_commit_version": 111}, {"row_id": 22, "row_commit_version": 222}]

    write_rows(table, pa.table({"id": [1, 2], "_metadata": values}))

    assert rows(table) == [{"id": n, "_metadata": value} for n, value in enumerate(values, 1)]
    assert given(table) == [(0, 1)]


# --- the columns for ids of rows that moved --------------------------------------------------------------------------

KEPT = ("_row-id-col-1", "_row-commit-version-col-1")


@pytest.mark.parametrize("merge", [False, True], ids=["fixed", "merged"])
@pytest.mark.parametrize("name", KEPT)
@either
def test_rows_have_no_column_by_the_name_that_keeps_ids(
    tmp_path: Path, write_rows: Write, name: str, *, merge: bool
) -> None:
    table = make(tmp_path, IDS, TELLS, properties=ENABLED)

    with pytest.raises(SchemaMismatchError, match=name):
        write_rows(table, pa.table({"id": [1], name: [2]}), merge=merge)

    assert given(table) == []


@pytest.mark.parametrize("enabled", ["true", "false"])
@pytest.mark.parametrize("name", ["_metadata.row_id", "_metadata.row_commit_version", "_metadata"])
@either
def test_rows_bring_no_ids_of_their_own(tmp_path: Path, write_rows: Write, name: str, enabled: str) -> None:
    table = make(tmp_path, IDS, TELLS, properties={**ENABLED, "delta.enableRowTracking": enabled})

    with pytest.raises(SchemaMismatchError, match=name):
        write_rows(table, pa.table({"id": [1], name: [2]}))

    assert given(table) == []


@either
def test_files_that_a_write_makes_hold_the_rows_columns_and_no_others(tmp_path: Path, write_rows: Write) -> None:
    table = make(tmp_path, IDS, TELLS, properties=ENABLED)

    write_rows(table, numbers(0, 5))

    [path] = table.glob("*.parquet")
    assert pq.read_table(path).to_pydict() == {"id": [0, 1, 2, 3, 4]}
    assert given(table) == [(0, 1)]


# --- rivals ----------------------------------------------------------------------------------------------------------

LISTED = protocol(1, 7, writerFeatures=["appendOnly", "invariants", *TRACKED])


def of_rival(number: int, *, first_id: int | None = None) -> list[Action]:
    """The commit of a rival's file of `number` rows."""
    theirs = add(f"theirs-{number}", stats=json.dumps({"numRecords": number}))
    if first_id is None:
        return [theirs]
    theirs["add"] |= {"baseRowId": first_id, "defaultRowCommitVersion": 1}
    return [theirs, mark({"rowIdHighWaterMark": first_id + number - 1})]


@pytest.mark.parametrize(
    ("told", "before", "rivals", "expected"),
    [
        (protocol(), [], [[LISTED]], ([(0, 2)], 0)),
        (protocol(), [], [[LISTED], of_rival(11, first_id=0)], ([(11, 3)], 11)),
        (protocol(), [], [[LISTED, *of_rival(1, first_id=0)]], ([(1, 2)], 1)),
        (LISTED, of_rival(7, first_id=0), [of_rival(11, first_id=7)], ([(18, 2)], 18)),
        (LISTED, of_rival(7, first_id=0), [[LISTED]], ([(7, 2)], 7)),
        (LISTED, [], [[], []], ([(0, 3)], 0)),
        (protocol(), [], [[LISTED], []], ([(0, 3)], 0)),
        (protocol(), [], [[LISTED], [metadata(configuration=ENABLED)]], ([(0, 3)], 0)),
    ],
    ids=[
        "feature",
        "feature and rows",
        "feature with rows",
        "rows",
        "no rows",
        "two empty",
        "feature and empty",
        "feature and property",
    ],
)
def test_a_write_that_comes_after_its_rivals_gives_ids_behind_theirs(
    told: Action, before: Sequence[Action], rivals: list[list[Action]], expected: tuple[list[tuple[int, int]], int]
) -> None:
    log = a_log(v0=[told, metadata(), *before])
    known, ours = log.load(), write(log, 1)
    for version, rival in enumerate(rivals, 1):
        put(log.store, version, [{"commitInfo": {}}, *rival])

    commit(log, known, ours, still())

    last = len(rivals) + 1
    assert ids(log, last) == expected[0]
    assert [json.loads(told) for told in marks(log, last)] == [{"rowIdHighWaterMark": expected[1]}]


def test_a_write_says_that_it_kept_all_ids_which_were_promised_behind_its_back() -> None:
    """PROTOCOL.md, "Row Tracking": to be said where no rows are updated or copied."""
    log = a_log(v0=[LISTED, metadata()])
    known, ours = log.load(), write(log, 1)
    put(log.store, 1, [metadata(configuration=ENABLED)])

    commit(log, known, ours, still())

    assert ids(log, 2) == [(0, 2)]
    assert actions_of(log, 2)[0]["commitInfo"]["tags"] == {"delta.rowTracking.preserved": "true"}


def test_a_write_that_changes_the_metadata_loses_to_row_tracking_that_a_rival_turns_on() -> None:
    log = a_log(v0=[LISTED, metadata(), *of_rival(7, first_id=0)])
    wider = pa.schema([*ID, ("new", pa.string())])
    known = log.load()
    ours = a_write(log, known, "a", schema=wider, rules=WriteRules(merges_schema=True))
    put(log.store, 1, [metadata(configuration=ENABLED)])

    with pytest.raises(ConflictError) as caught:
        commit(log, known, ours, still())

    assert caught.value.error_class == "DELTA_METADATA_CHANGED"
    assert log.load().version == 1


def test_two_writes_at_once_give_no_id_twice(tmp_path: Path) -> None:
    table = make(tmp_path, IDS, TELLS, properties={**ENABLED, "delta.isolationLevel": "Serializable"})
    by_batch(table, numbers(0, 100))
    slow = Writes(table, query="slow")
    planned = slow.write(numbers(100, 1100), numbers(1100, 1200))

    by_batch(table, numbers(1200, 2700))
    slow.commit(planned)

    assert given(table) == [(0, 1), (100, 2), (1600, 3), (2600, 3)]
