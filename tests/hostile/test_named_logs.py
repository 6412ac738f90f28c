"""Hostile logs that have a name: what is read of each, or by which of our errors it is refused, in bounds."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pytest

import tablefeed
from hostile.checkpoints import SCHEMA, checkpoint, checkpoint_path, checkpoint_rows, part_paths
from hostile.judge import agrees, is_answered
from hostile.logs import DATA, Folder, Json, line
from hostile.logs import SCHEMA as COLUMNS
from hostile.ways_in import OTHER_WAYS, ask, ask_everything, streamed
from support.logs import add, commit_path, info, metadata, protocol, remove, struct, txn
from support.maintained import ids
from tablefeed import errors
from tablefeed.feed.arguments import Bound
from tablefeed.feed.stream.source_options import SourceOptions
from tablefeed.log.admission import ChangePolicy

A, D, E = (quote(path) for path in DATA)
BEGIN = [protocol(), metadata(COLUMNS)]


def commits_of(*versions: list[Json]) -> list[bytes]:
    return [b"".join(line(action) + b"\n" for action in actions) for actions in versions]


def right(path: Path, commits: list[bytes]) -> None:
    """Asserts that everything is answered, and as a plain replay says."""
    answers = ask_everything(path)
    assert is_answered(answers)
    agrees(answers, commits)


def every_answer(path: Path) -> list[object]:
    return [*ask_everything(path).all, *(ask(partial(way, path)) for way in OTHER_WAYS.values())]


# --- checkpoints -----------------------------------------------------------------------------------------------------

THREE = commits_of([*BEGIN, add(A), txn("app", 7)], [add(D)], [add(E)])


def made_up_for_or_refused(folder: Folder, beside: dict[str, bytes], damaged: str) -> None:
    """Asserts that the commits are read where they are there, and the damaged file is named where they are not."""
    right(folder.log(THREE, beside=beside), THREE)
    for answer in ask_everything(folder.log(THREE, first=2, beside=beside)).all:
        assert isinstance(answer, errors.CorruptLogError)
        assert answer.log_file in damaged


@pytest.mark.parametrize("left", [0, 3, 4, 100, -12, -1])
def test_a_truncated_checkpoint_is_made_up_for_by_the_commits_or_refused_by_its_name(folder: Folder, left: int) -> None:
    cut = {checkpoint_path(1): checkpoint(checkpoint_rows(THREE[:2]))[:left]}

    made_up_for_or_refused(folder, cut, checkpoint_path(1))


@pytest.mark.parametrize("bad", [0, 1, 2])
@pytest.mark.parametrize("damage", ["cut", "empty", "no Parquet"])
def test_a_bad_part_of_a_checkpoint_makes_all_of_it_bad(folder: Folder, bad: int, damage: str) -> None:
    rows, paths = checkpoint_rows(THREE[:2]), part_paths(1, 3)
    parts = dict(zip(paths, (checkpoint(rows[part::3]) for part in range(3)), strict=True))
    assert ids(folder.log(THREE, first=2, beside=parts)) == [0, 1, 2, 10, 11, 12, 20, 21, 22]

    parts[paths[bad]] = {"cut": parts[paths[bad]][:-5], "empty": b"", "no Parquet": b"{}\n" * 100}[damage]

    made_up_for_or_refused(folder, parts, paths[bad])


def test_a_file_that_a_checkpoint_names_twice_is_not_read_twice(folder: Folder) -> None:
    rows = checkpoint_rows(THREE[:2])
    whole = {checkpoint_path(1): checkpoint([*rows, rows[-1]])}
    parts = dict(zip(part_paths(1, 2), (checkpoint(rows), checkpoint(rows[-1:])), strict=True))

    for beside in (whole, parts):
        answers = ask_everything(folder.log(THREE, first=2, beside=beside))
        for answer in (answers.files, answers.rows, answers.stream):
            assert isinstance(answer, errors.LogError)
            assert "names a data file twice" in str(answer)


# --- sidecars --------------------------------------------------------------------------------------------------------

V2 = protocol(3, 7, readerFeatures=["v2Checkpoint"], writerFeatures=["v2Checkpoint"])
TOP, SIDECAR = f"{1:020d}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json", "aa.parquet"
OF_A_SIDECAR = pa.struct({"path": pa.string(), "sizeInBytes": pa.int64(), "modificationTime": pa.int64()})
SIDECARS = SCHEMA.append(pa.field("sidecar", OF_A_SIDECAR))


def a_sidecar(path: str) -> Json:
    return {"sidecar": {"path": path, "sizeInBytes": 9, "modificationTime": 1}}


@pytest.mark.parametrize("names", [SIDECAR, f"../{TOP}", "../_sidecars/aa.parquet", "bb.parquet"])
def test_sidecars_that_go_round_in_a_circle_are_not_followed(folder: Folder, names: str) -> None:
    commits = commits_of([V2, metadata(COLUMNS), add(A)], [add(D)], [add(E)])
    rows = [row for row in checkpoint_rows(commits[:2]) if "add" not in row]
    top = [{"checkpointMetadata": {"version": 1}}, *rows, a_sidecar(SIDECAR)]
    adds = [row for row in checkpoint_rows(commits[:2]) if "add" in row]
    circle = checkpoint([*adds, a_sidecar(names)], schema=SIDECARS)
    (folder.path / "_delta_log" / "_sidecars").mkdir(exist_ok=True)
    beside = {f"_delta_log/{TOP}": b"".join(line(row) + b"\n" for row in top)}
    beside |= {f"_delta_log/_sidecars/{name}": circle for name in (SIDECAR, "bb.parquet")}

    agrees(ask_everything(folder.log(commits, beside=beside)), commits)
    alone = ask_everything(folder.log(commits, first=2, beside=beside))
    agrees(alone, commits)
    assert isinstance(alone.rows, errors.TablefeedError)


# --- numbers ---------------------------------------------------------------------------------------------------------


def test_the_largest_numbers_that_fit_are_read(folder: Folder) -> None:
    largest = 2**63 - 1
    said: dict[str, Any] = dict.fromkeys(("baseRowId", "defaultRowCommitVersion"), largest)
    said["stats"] = f'{{"numRecords":{largest}}}'
    commits = commits_of(
        [*BEGIN, *(add(path, size=largest, modified=largest, **said) for path in (A, D))],
        [add(E, size=-largest - 1, modified=-largest - 1), txn("app", largest)],
    )
    path = folder.log(commits)

    right(path, commits)
    assert tablefeed.open_table(path).txn_version("app") == largest


TOO_LARGE = [2**63, 2**64 - 1, 2**64, 10**400, -(2**63) - 1]
LONGS = {
    "add": ["size", "modificationTime", "baseRowId", "defaultRowCommitVersion"],
    "remove": ["size"],
    "txn": ["version", "lastUpdated"],
    "metaData": ["createdTime"],
    "protocol": ["minReaderVersion"],
}


@pytest.mark.parametrize("number", TOO_LARGE, ids=lambda number: f"{float(str(number)[:20]):.3g}")
@pytest.mark.parametrize(("action", "field"), [(action, field) for action, names in LONGS.items() for field in names])
def test_an_integer_beyond_64_bits_is_named(folder: Folder, action: str, field: str, number: int) -> None:
    actions = [*BEGIN, add(A), remove(D), txn("app", 1)]
    spoilt = next(found for found in actions if action in found)
    commits = commits_of([*(a for a in actions if a is not spoilt), {action: {**spoilt[action], field: number}}])

    named = rf"{action}\.{field} is .*, not a (64|32)-bit integer|not JSON"
    with pytest.raises(errors.CorruptLogError, match=named) as caught:
        list(tablefeed.open_table(folder.log(commits)).files())
    assert caught.value.line == len(actions)


@pytest.mark.parametrize("number", TOO_LARGE, ids=lambda number: f"{float(str(number)[:20]):.3g}")
def test_an_integer_beyond_64_bits_that_no_reader_needs_changes_no_row(folder: Folder, number: int) -> None:
    gone = {"remove": {**remove(A)["remove"], "deletionTimestamp": number}}
    commits = commits_of([*BEGIN, add(A), add(D), add(E)], [gone], [info(timestamp=number)])

    agrees(ask_everything(folder.log(commits)), commits)


def test_a_version_that_no_other_can_follow_is_read_and_not_written_to(folder: Folder) -> None:
    last = 2**63 - 1
    path = folder.log([], beside={checkpoint_path(last): checkpoint(checkpoint_rows(THREE))})

    assert tablefeed.open_table(path).version == last
    assert ids(path) == [0, 1, 2, 10, 11, 12, 20, 21, 22]
    every_answer(path)
    with pytest.raises(errors.CommitError, match="the highest possible one"):
        tablefeed.append(path, pa.table({"id": [1]}))
    assert not (path / commit_path(last + 1)).exists()


def test_a_commit_of_the_last_version_there_can_be_leaves_a_hole(folder: Folder) -> None:
    path = folder.log(THREE, beside={commit_path(2**63 - 1): THREE[2]})

    for answer in ask_everything(path).all:
        assert isinstance(answer, errors.LogGapError)


# --- one path more than once -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("actions", "live"),
    [
        ([add(A), add(A)], [0, 1, 2]),
        ([add(A), add("%61.parquet"), add(A, data_change=False)], [0, 1, 2]),
        ([add(A), remove(A)], []),
        ([remove(A), add(A)], [0, 1, 2]),
        ([remove(A), remove(A)], []),
        ([add(A), remove(A), add(A)], [0, 1, 2]),
        ([add(A), add(D), remove("%61.parquet")], [10, 11, 12]),
    ],
)
def test_of_a_path_that_comes_more_than_once_in_a_commit_the_last_action_holds(
    folder: Folder, actions: list[Json], live: list[int]
) -> None:
    for commits in (commits_of([*BEGIN, *actions]), commits_of([*BEGIN, add(A)], actions)):
        path = folder.log(commits)
        assert ids(path) == live
        right(path, commits)


# --- depth ----------------------------------------------------------------------------------------------------------


def deep(levels: int, *, opening: str = "[", closing: str = "]", inside: str = "") -> str:
    return opening * levels + inside + closing * levels


PLACES = ['{"fromTheFuture":DEEP}', '{"commitInfo":{"operation":DEEP}}', '{"commitInfo":DEEP}', '{"add":DEEP}', "DEEP"]
PLACES += ['{"add":{"path":"x","partitionValues":DEEP}}', '{"txn":{"appId":"a","version":DEEP}}']


@pytest.mark.parametrize("levels", [200, 1_000, 2_000, 200_000])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("nested", ["arrays", "objects", "open"])
def test_deep_nesting_is_passed_over_or_refused_and_never_goes_down_the_stack(
    folder: Folder, place: str, levels: int, nested: str
) -> None:
    objects = deep(levels, opening='{"a":', closing="}", inside="1")
    text = {"arrays": deep(levels), "objects": objects, "open": "[" * levels}[nested]
    first = commits_of([*BEGIN, add(A)])[0]
    path = folder.log([first, place.replace("DEEP", text).encode() + b"\n"])

    rows = ask(partial(ids, path))
    every_answer(path)

    assert rows == [0, 1, 2] or isinstance(rows, errors.LogError)


def deep_schemas(levels: int) -> list[str]:
    arrays = deep(levels, opening='{"type":"array","containsNull":true,"elementType":', closing="}", inside='"long"')
    opening, closing = '{"type":"struct","fields":[{"name":"f","nullable":true,"metadata":{},"type":', "}]}"
    structs = deep(levels, opening=opening, closing=closing, inside='"long"')
    return [
        COLUMNS.replace('"fields":[', f'"fields":[{{"name":"x","type":{inner},"nullable":true,"metadata":{{}}}},')
        for inner in (arrays, structs)
    ]


@pytest.mark.parametrize("levels", [90, 101, 1_000, 100_000])
def test_a_schema_is_read_as_deep_as_parquet_goes_and_refused_beyond(folder: Folder, levels: int) -> None:
    for schema in deep_schemas(levels):
        path = folder.log(commits_of([protocol(), metadata(schema), add(A)]))
        answers = ask_everything(path)
        every_answer(path)

        if levels == 90:
            assert ids(path) == [0, 1, 2]
            assert is_answered(answers)
        else:
            assert isinstance(answers.rows, errors.LogError | errors.UnsupportedFeatureError)
            assert isinstance(answers.schema, errors.LogError | errors.UnsupportedFeatureError)


@pytest.mark.parametrize("levels", [90, 1_000, 200_000])
def test_statistics_that_are_deep_cost_no_row(folder: Folder, levels: int) -> None:
    stats = deep(levels, opening='{"a":', closing="}", inside="1")
    path = folder.log(commits_of([*BEGIN, add(A, stats=stats)]))

    assert is_answered(ask_everything(path))
    assert ids(path) == [0, 1, 2]


# --- the table's name ------------------------------------------------------------------------------------------------

NAMED = {"delta.columnMapping.mode": "name"}
CLUSTERED = protocol(3, 7, readerFeatures=[], writerFeatures=["clustering", "domainMetadata", "rowTracking"])


def _column(**more: object) -> str:
    return json.dumps(struct({"name": "id", "type": "long", "nullable": True, **more}))


def _domain(name: str) -> Json:
    return {"domainMetadata": {"domain": name, "configuration": "{}", "removed": False}}


@pytest.mark.parametrize("healed", [False, True])
@pytest.mark.parametrize(
    "first",
    [
        [protocol(), metadata("{}")],
        [protocol(), metadata(_column(type="odd", metadata={}))],
        [protocol(), metadata(_column(type="long", metadata=3))],
        [protocol(), metadata(COLUMNS, partition_columns=["x"])],
        [protocol(), metadata(COLUMNS, configuration={"delta.columnMapping.mode": "odd"})],
        [protocol(2, 5), metadata(COLUMNS, configuration={"delta.columnMapping.mode": "odd"})],
        [protocol(2, 5), metadata(COLUMNS, configuration={"delta.columnMapping.mode": "id"})],
        [protocol(2, 5), metadata(_column(metadata={"delta.columnMapping.physicalName": 3}), configuration=NAMED)],
        [protocol(2, 5), metadata(COLUMNS, configuration={**NAMED, "delta.columnMapping.maxColumnId": "odd"})],
        [protocol(), metadata(_column(metadata={"delta.invariants": "{"}))],
        [protocol(1, 6), metadata(_column(metadata={"delta.identity.start": "odd"}))],
        [protocol(), metadata(COLUMNS, configuration={"delta.appendOnly": "true"})],
        [CLUSTERED, metadata(COLUMNS), _domain("delta.clustering")],
        [CLUSTERED, metadata(COLUMNS), _domain("delta.rowTracking")],
        [protocol(9, 9), metadata(COLUMNS)],
        [protocol(1, 7, writerFeatures=["collations"]), metadata(COLUMNS)],
    ],
)
def test_whatever_is_wrong_with_metadata_every_way_to_the_table_names_it(
    folder: Folder, first: list[Json], *, healed: bool
) -> None:
    after = [[protocol(), metadata(COLUMNS), remove(A)]] if healed else []
    path = folder.log(commits_of([*first, add(A), add(D)], *after, [add(E)]))
    rows, more = pa.table({"id": [7]}), pa.table({"id": [7], "more": [8]})
    from_0 = SourceOptions(start=Bound(version=0), policy=ChangePolicy(ignore_changes=True))

    answers = [
        *every_answer(path),
        ask(partial(streamed, path, from_0)),
        ask(partial(streamed, path, replace(from_0, change_feed=True))),
        ask(partial(tablefeed.checkpoint, path)),
        ask(partial(tablefeed.vacuum, path)),
        ask(partial(tablefeed.optimize, path)),
        ask(partial(tablefeed.append, path, more, merge_schema=True)),
        ask(partial(tablefeed.append, path, rows, mode="overwrite")),
        ask(partial(tablefeed.append, path, more, mode="overwrite", overwrite_schema=True)),
    ]

    kinds = errors.TableError | errors.LogError | errors.FeedError
    refusals = [answer for answer in answers if isinstance(answer, kinds)]
    assert refusals
    assert all(str(path) in str(error) for error in refusals)
