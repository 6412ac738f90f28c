"""`tablefeed.replicate` by rows, for sources whose files the copy cannot have: what each commit writes."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Literal

import orjson
import pyarrow as pa
import pytest

import tablefeed
from feed.replication.test_replicate import at, rows
from support.logs import info, put, said, txn
from support.maintained import delete_rows, rows_of
from tablefeed import errors
from tablefeed.feed.api.replicate_rows import RowReplication
from tablefeed.feed.snapshot.open_log import open_log, open_maintained
from tablefeed.feed.upkeep.background import wait_until_done
from tablefeed.model.actions import Version
from tablefeed.model.outcome import Replicated
from tablefeed.store import open_store

APP = "tablefeed.replicate"


def of(version: int, source_version: int, *, commits: int) -> Replicated:
    return Replicated(version=Version(version), source_version=Version(source_version), commits=commits, files=0)


def operations(table: Path) -> list[str | None]:
    return [(said(table, version, "commitInfo")[0]["operationParameters"])["mode"] for version in range(4)]


def test_each_commit_of_a_table_of_splits_is_a_commit_of_its_copy(source: Path, target: Path) -> None:
    tablefeed.append(source, rows(1, 2), table_format="indextables", partition_by="name")
    tablefeed.append(source, rows(3))
    first = tablefeed.open_table(source).version - 1
    tablefeed.append(source, rows(1, 1), mode="overwrite")
    tablefeed.append(source, rows(4))

    done = tablefeed.replicate(source, target, starting_version=first, consumer_id="copy", verify=True)

    assert done == of(3, first + 3, commits=4)
    assert [at(target, v) for v in range(4)] == [at(source, first + v) for v in range(4)]
    assert operations(target) == ["Overwrite", "Append", "Overwrite", "Append"]
    assert tablefeed.open_table(target).partition_columns == ("name",)
    assert [each.version for each in tablefeed.consumers(source).list()] == [first + 3]
    assert tablefeed.replicate(source, target) == of(3, first + 3, commits=0)


@pytest.mark.parametrize("table_format", ["delta", "indextables"])
def test_a_copy_by_rows_may_have_columns_of_any_name(
    source: Path, target: Path, table_format: Literal["delta", "indextables"]
) -> None:
    properties = {"delta.columnMapping.mode": "name"} if table_format == "delta" else None
    mine = pa.table({"id": [1], "unit price": [1.5]})
    tablefeed.append(source, mine, table_format=table_format, properties=properties)
    tablefeed.append(source, mine)

    assert tablefeed.replicate(source, target, by_rows=True, starting_version=0, verify=True).commits > 0
    assert tablefeed.open_table(target).to_arrow().num_rows == 2


def test_a_copy_by_rows_has_the_inserts_updates_deletes_and_renames_of_its_source(source: Path, target: Path) -> None:
    tablefeed.append(source, rows(1, 2, 3), properties={"delta.columnMapping.mode": "name"})
    tablefeed.append(source, rows(4, 4))
    tablefeed.update(source, {"name": "'changed'"}, "id = 4")
    tablefeed.delete(source, "id = 2")
    tablefeed.optimize(source)
    tablefeed.append(source, pa.table({"id": [5], "new": [1.5]}), merge_schema=True)
    tablefeed.alter(source, rename_columns={"name": "label"})
    tablefeed.alter(source, set_properties={"mine": "x"})
    tablefeed.append(source, pa.table({"other": [1]}), mode="overwrite", overwrite_schema=True)
    newest = tablefeed.open_table(source).version

    done = tablefeed.replicate(source, target, starting_version=0, by_rows=True, verify=True)

    assert done == of(newest, newest, commits=newest + 1)
    assert [at(target, v) for v in range(newest + 1)] == [at(source, v) for v in range(newest + 1)]
    assert said(target, 4, "add") == said(target, 7, "add") == []  # these two commits of the source change no row


def test_a_copy_by_rows_gets_the_values_of_a_column_that_a_restore_brings_back(source: Path, target: Path) -> None:
    tablefeed.append(source, rows(1, 2), properties={"delta.columnMapping.mode": "name"})
    tablefeed.alter(source, drop_columns=["name"])
    tablefeed.alter(source, add_columns=[pa.field("name", pa.string())])
    tablefeed.restore(source, version=0)  # no file is added or removed, and the columns have the same names and types

    tablefeed.replicate(source, target, starting_version=0, by_rows=True, verify=True)

    assert [at(target, v) for v in range(4)] == [at(source, v) for v in range(4)]


def test_a_shallow_clone_is_copied_by_rows(source: Path, target: Path) -> None:
    base = source.parent / "base"
    tablefeed.append(base, rows(1, 2))
    (file,) = said(base, 0, "add")
    table = [{kind: said(base, 0, kind)[0]} for kind in ("protocol", "metaData")]
    put(open_store(str(source)), 0, [*table, {"add": {**file, "path": (base / file["path"]).as_uri()}}])

    with pytest.raises(errors.UnsupportedFeatureError, match="by_rows=True"):
        tablefeed.replicate(source, target)

    tablefeed.replicate(source, target, by_rows=True, verify=True)
    assert rows_of(target) == rows(1, 2).to_pylist()


def test_a_copy_by_rows_that_another_writer_changed_is_refused_until_there_is_more_to_copy(
    source: Path, target: Path
) -> None:
    tablefeed.append(source, rows(1))
    tablefeed.replicate(source, target, by_rows=True)
    tablefeed.append(target, rows(99))

    for resync, remedy in (
        (False, "Call again with resync=True"),
        (True, "Call again with resync=True after the next commit of the source"),
    ):
        with pytest.raises(errors.ConflictError, match=rf"TABLEFEED_REPLICA_CHANGED\].*{remedy}"):
            tablefeed.replicate(source, target, by_rows=True, resync=resync)
    tablefeed.append(source, rows(2))
    with pytest.raises(errors.ConflictError, match="TABLEFEED_REPLICA_CHANGED"):
        tablefeed.replicate(source, target, by_rows=True)

    assert tablefeed.replicate(source, target, by_rows=True, resync=True, verify=True) == of(2, 1, commits=1)
    assert rows_of(target) == rows(1, 2).to_pylist()


def test_a_commit_that_came_between_a_write_and_the_state_it_was_made_from_is_noticed(
    source: Path, target: Path
) -> None:
    tablefeed.append(source, rows(1))
    tablefeed.append(source, rows(2))
    tablefeed.replicate(source, target, by_rows=True, until=0)
    tablefeed.append(target, rows(99))
    origin = {"tableId": tablefeed.open_table(source).table_id, "version": 1, "commit": None, "after": 0}
    text = orjson.dumps({APP: origin}).decode()
    put(open_store(str(target)), 2, [info(operation="WRITE", userMetadata=text), txn(APP, 1)])

    with pytest.raises(errors.ConflictError, match="TABLEFEED_REPLICA_CHANGED"):
        tablefeed.replicate(source, target, by_rows=True)


def test_two_first_copies_by_rows_at_the_same_time_both_succeed(source: Path, target: Path) -> None:
    tablefeed.append(source, rows(1))
    tablefeed.append(source, rows(2))
    log, copy = open_log(str(source)), open_maintained(str(target))

    def other(_version: int) -> None:
        tablefeed.replicate(source, target, by_rows=True, until=0)

    copies = RowReplication(source=log, target=copy, app_id=APP, reads_after=other)
    done = copies.run(log.load(), first=Version(1), until=Version(1), resync=False)

    assert done == of(1, 1, commits=1)
    assert [at(target, v) for v in (0, 1)] == [at(source, v) for v in (0, 1)]


def test_a_copy_by_rows_may_be_optimized(source: Path, target: Path) -> None:
    tablefeed.append(source, rows(1))
    tablefeed.append(source, rows(2))
    tablefeed.replicate(source, target, by_rows=True, starting_version=0)
    assert tablefeed.optimize(target).version == 2
    tablefeed.append(source, rows(3))

    assert tablefeed.replicate(source, target, by_rows=True, verify=True) == of(3, 2, commits=1)


def test_a_copy_is_by_rows_or_by_files_and_never_both(source: Path, target: Path) -> None:
    tablefeed.append(source, rows(1))
    tablefeed.replicate(source, target, by_rows=True)
    tablefeed.append(source, rows(2))

    with pytest.raises(errors.ConflictError, match=r"TABLEFEED_REPLICA_CHANGED\].*is no copy of files that"):
        tablefeed.replicate(source, target)

    tablefeed.replicate(source, target, resync=True, verify=True)
    with pytest.raises(errors.ConflictError, match=r"TABLEFEED_REPLICA_CHANGED\].*is no copy by rows that"):
        tablefeed.replicate(source, target, by_rows=True)


def test_columns_that_hold_no_null_may_hold_nulls_in_a_copy_by_rows(source: Path, target: Path) -> None:
    inner = pa.struct([pa.field("x", pa.int32(), nullable=False)])
    columns = [pa.field("id", pa.int64(), nullable=False), pa.field("inner", inner)]
    tablefeed.create(source, pa.schema(columns))
    tablefeed.append(source, pa.table({"id": [1], "inner": pa.array([{"x": 1}], inner)}))
    tablefeed.alter(source, set_properties={"mine": "x"})

    tablefeed.replicate(source, target, starting_version=0, by_rows=True, verify=True)

    assert [field.nullable for field in tablefeed.open_table(target).schema] == [True, True]
    assert said(target, 2, "remove") == []  # the columns are the same


@pytest.mark.parametrize("table_format", ["delta", "indextables"])
def test_a_source_of_rows_that_was_restored_and_got_other_commits_is_refused_until_it_is_copied_anew(
    source: Path, target: Path, table_format: Literal["delta", "indextables"]
) -> None:
    tablefeed.append(source, rows(1), table_format=table_format)
    backup = shutil.copytree(source, source.parent / "backup")
    tablefeed.append(source, rows(2))
    tablefeed.replicate(source, target, by_rows=True)
    wait_until_done()
    shutil.rmtree(source)
    shutil.copytree(backup, source)
    tablefeed.append(source, rows(20))
    tablefeed.append(source, rows(30))

    with pytest.raises(errors.TableReplacedError, match="restored from a backup"):
        tablefeed.replicate(source, target, by_rows=True)

    tablefeed.replicate(source, target, by_rows=True, resync=True, verify=True)
    assert rows_of(target) == rows(1, 20, 30).to_pylist()


def test_a_source_of_rows_that_is_restored_while_it_is_copied_is_noticed(source: Path, target: Path) -> None:
    tablefeed.append(source, rows(1))
    backup = shutil.copytree(source, source.parent / "backup")
    for each in (20, 30):
        tablefeed.append(backup, rows(each))
    for each in (2, 3):
        tablefeed.append(source, rows(each))
    tablefeed.replicate(source, target, by_rows=True, until=0)
    log = open_log(str(source))
    newest = log.load()

    def restored(_version: int) -> None:
        shutil.rmtree(source)
        shutil.copytree(backup, source)

    copies = RowReplication(source=log, target=open_maintained(str(target)), app_id=APP, reads_after=restored)
    with pytest.raises(errors.TableReplacedError, match="restored from a backup"):
        copies.run(newest, first=Version(0), until=Version(2), resync=False)

    assert rows_of(target) == rows(1).to_pylist()


def test_a_copy_by_rows_whose_source_lost_a_commit_is_refused_until_it_is_copied_anew(
    source: Path, target: Path
) -> None:
    tablefeed.append(source, rows(1))
    tablefeed.replicate(source, target, by_rows=True)
    tablefeed.append(source, rows(2))
    tablefeed.append(source, rows(3))
    tablefeed.checkpoint(source)
    for version in (0, 1):
        (source / "_delta_log" / f"{version:020d}.json").unlink()

    with pytest.raises(errors.LogError, match="DELTA_MISSING_FILES_UNEXPECTED_VERSION"):
        tablefeed.replicate(source, target, by_rows=True)

    assert tablefeed.replicate(source, target, by_rows=True, resync=True, verify=True) == of(1, 2, commits=1)


def test_texts_and_times_that_python_has_no_objects_for_are_compared(source: Path, target: Path) -> None:
    texts = pa.array([b"\xff", b"b"]).view(pa.string())
    days = pa.array([2**31 - 1, 0], pa.date32())
    times = pa.array([2**62, None], pa.timestamp("us", "UTC"))
    nested = pa.StructArray.from_arrays([texts, days, times], ["t", "d", "u"])
    lists = pa.ListArray.from_arrays([0, 1, 2], nested)
    maps = pa.MapArray.from_arrays([0, 2, 2], texts, nested)
    tablefeed.append(source, pa.table([texts, days, times, nested, lists, maps], list("tdunlm")))
    copied = tablefeed.replicate(source, target, by_rows=True, verify=True)
    assert copied == of(0, 0, commits=1)


def test_a_copy_by_rows_that_lacks_a_row_is_reported(source: Path, target: Path) -> None:
    tablefeed.append(source, rows(1, 1, 2))
    tablefeed.replicate(source, target, by_rows=True)
    (path,) = (each["path"] for each in said(target, 0, "add"))
    (forged,) = said(target, 0, "commitInfo")
    delete_rows(target, path, 1)
    put(open_log(str(target)).store, 2, [info(**forged), txn(APP, 0)])

    with pytest.raises(errors.ReplicaDiffersError, match="it has 2 rows, not 3"):
        tablefeed.replicate(source, target, by_rows=True, verify=True)
