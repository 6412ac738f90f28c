"""`tablefeed.replicate`: what a copy says and has, commit by commit. delta-rs reads what was copied."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

import tablefeed
from support.gateway import Gateway
from support.logs import Action, a_log, add, col, info, meta, metadata, protocol, put, remove, said, txn
from support.maintained import delete_rows, rows_of
from support.object_stores import serve_another_s3
from tablefeed import errors
from tablefeed.feed.snapshot.delta_log import DeltaSnapshot
from tablefeed.feed.snapshot.open_log import open_log
from tablefeed.feed.upkeep.background import wait_until_done
from tablefeed.feed.upkeep.checksums import put_checksums_from
from tablefeed.feed.upkeep.delta_checkpoint import write_checkpoint
from tablefeed.model.actions import Version
from tablefeed.model.outcome import Replicated
from tablefeed.store import open_store

VECTORS = {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"}


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": ids, "name": [f"n{each}" for each in ids]})


def at(table: Path, version: int) -> list[dict[str, Any]]:
    return sorted(tablefeed.open_table(table, version=version).to_arrow().to_pylist(), key=repr)


def changes(table: Path) -> list[dict[str, Any]]:
    """Those of the versions of one schema."""
    read = tablefeed.changes(table, start_version=0, end_version=4).read_all().drop_columns(["_commit_timestamp"])
    return sorted(read.to_pylist(), key=repr)


def by_delta_rs(table: Path) -> list[dict[str, Any]]:
    return sorted(DeltaTable(str(table)).to_pyarrow_table().to_pylist(), key=repr)


def of(version: int, source_version: int, *, commits: int, files: int) -> Replicated:
    return Replicated(version=Version(version), source_version=Version(source_version), commits=commits, files=files)


def a_commit(log: Path, version: int, *actions: Action) -> None:
    put(open_store(str(log)), version, actions)


def here(table: Path, version: int, kind: str) -> list[Any]:
    return said(table, version, kind)


# --- what is equal ---------------------------------------------------------------------------------------------------


def test_each_version_of_a_copy_has_the_rows_and_the_changes_of_its_source(source: Path, target: Path) -> None:
    tablefeed.append(source, rows(1, 2, 3), properties=VECTORS)
    tablefeed.append(source, rows(4, 5, 6))
    tablefeed.delete(source, "id = 2")
    tablefeed.update(source, {"name": "'changed'"}, "id = 4")
    tablefeed.merge(source, rows(1, 9), on="target.id = source.id", matched=[tablefeed.Delete()])
    tablefeed.append(source, pa.table({"id": [7], "new": [1.5]}), merge_schema=True)
    tablefeed.alter(source, set_properties={"mine": "x"}, add_constraints={"positive": "id > 0"})
    tablefeed.optimize(source)
    tablefeed.append(source, rows(8), mode="overwrite")
    tablefeed.restore(source, version=3)
    newest = tablefeed.open_table(source).version

    done = tablefeed.replicate(source, target, starting_version=0, verify=True)

    assert (done.version, done.source_version, done.commits) == (newest, newest, newest + 1)
    assert [at(target, version) for version in range(newest + 1)] == [at(source, v) for v in range(newest + 1)]
    assert changes(target) == changes(source)
    operations = [[commit.operation for commit in tablefeed.open_table(t).history()] for t in (source, target)]
    assert operations[1][:-1] == operations[0][:-1]
    assert operations[1][-1] == "CLONE"
    for version in range(1, newest + 1):
        flags = [[(a["path"], a["dataChange"]) for a in here(t, version, "add")] for t in (source, target)]
        assert flags[0] == flags[1]
    wait_until_done()


def test_the_history_of_a_table_of_delta_rs_is_copied_and_delta_rs_reads_the_copy(source: Path, target: Path) -> None:
    write_deltalake(str(source), rows(1, 2), partition_by=["name"])
    write_deltalake(str(source), rows(3, 4), mode="append")
    done = tablefeed.replicate(source, target, starting_version=0, verify=True)
    assert (done.version, by_delta_rs(target)) == (1, by_delta_rs(source))
    DeltaTable(str(source)).delete("id = 1")
    write_deltalake(str(source), pa.table({"id": [3], "name": ["new"]}), mode="overwrite", predicate="id = 3")
    merge = DeltaTable(str(source)).merge(rows(4, 6), "t.id = s.id", source_alias="s", target_alias="t")
    merge.when_matched_update({"name": "'four'"}).when_not_matched_insert_all().execute()
    DeltaTable(str(source)).optimize.compact()

    tablefeed.replicate(source, target, verify=True)

    assert by_delta_rs(target) == by_delta_rs(source) == rows_of(source)
    newest = tablefeed.open_table(source).version
    assert [at(target, version) for version in range(newest + 1)] == [at(source, v) for v in range(newest + 1)]


def test_the_first_commit_is_the_newest_version_as_a_whole_and_the_next_call_goes_on(
    source: Path, target: Path
) -> None:
    tablefeed.append(source, rows(1), properties=VECTORS)
    tablefeed.append(source, rows(2, 3))
    tablefeed.delete(source, "id = 2")

    assert tablefeed.replicate(source, target) == of(0, 2, commits=1, files=3)  # two of rows, one of vectors
    assert tablefeed.replicate(source, target) == of(0, 2, commits=0, files=0)
    tablefeed.append(source, rows(4))
    tablefeed.delete(source, "id = 3")
    assert tablefeed.replicate(source, target, until=3) == of(1, 3, commits=1, files=1)
    assert rows_of(target) == at(source, 3)
    assert tablefeed.replicate(source, target, verify=True).source_version == 4
    assert rows_of(target) == rows_of(source) == rows(1, 4).to_pylist()


def test_columns_that_are_renamed_and_dropped_keep_their_ids_and_physical_names(source: Path, target: Path) -> None:
    tablefeed.append(source, rows(1), properties={"delta.columnMapping.mode": "name"})
    tablefeed.replicate(source, target)
    tablefeed.alter(source, rename_columns={"name": "label"})
    tablefeed.append(source, pa.table({"id": [2], "label": ["b"]}))
    tablefeed.alter(source, drop_columns=["id"])

    tablefeed.replicate(source, target, verify=True)

    ours, theirs = tablefeed.open_table(target), tablefeed.open_table(source)
    assert ours.metadata.schema_string == theirs.metadata.schema_string
    assert ours.metadata.configuration == theirs.metadata.configuration
    assert rows_of(target) == [{"label": "b"}, {"label": "n1"}]


def test_a_vector_in_a_file_is_copied_and_the_data_file_is_not_copied_again(source: Path, target: Path) -> None:
    tablefeed.append(source, pa.table({"id": range(3000)}), properties=VECTORS)
    tablefeed.replicate(source, target)
    tablefeed.delete(source, f"id IN ({', '.join(map(str, range(0, 3000, 3)))})")  # more than the log itself holds

    (marked,) = here(source, 1, "add")
    assert marked["deletionVector"]["storageType"] == "u"
    done = tablefeed.replicate(source, target, verify=True)

    assert done.files == 1  # the vector
    assert here(target, 1, "add") == here(source, 1, "add")
    assert len(rows_of(target)) == 2000


def test_row_ids_and_what_is_not_of_rows_stay_as_they_are(source: Path, target: Path) -> None:
    features = {"writerFeatures": ["rowTracking", "domainMetadata", "clustering"]}
    mark = {"domain": "delta.rowTracking", "configuration": '{"rowIdHighWaterMark":9}', "removed": False}
    theirs = {"domain": "mine", "configuration": "{}", "removed": False}
    ids: Action = {"baseRowId": 7, "defaultRowCommitVersion": 5, "tags": {"a": "b"}, "stats": '{"numRecords":3}'}
    source.mkdir()
    (source / "f.parquet").write_bytes(b"0123456789")
    tracked = metadata(configuration={"delta.enableRowTracking": "true"})
    a_commit(source, 0, protocol(1, 7, **features), tracked, {"domainMetadata": mark}, {"domainMetadata": theirs})
    a_commit(source, 1, add("f.parquet", clusteringProvider="liquid", **ids))

    tablefeed.replicate(source, target, starting_version=0)
    whole = target.parent / "whole"
    tablefeed.replicate(source, whole)

    assert here(target, 1, "add") == here(source, 1, "add")
    assert here(whole, 0, "add") == here(source, 1, "add")
    for copy in (target, whole):
        assert {each["domain"]: each for each in here(copy, 0, "domainMetadata")} == {
            "delta.rowTracking": mark,
            "mine": theirs,
        }


def test_no_checksum_counts_a_live_file_twice_that_a_copied_commit_adds_again(source: Path, target: Path) -> None:
    source.mkdir()
    (source / "f.parquet").write_bytes(b"0123456789")
    features = {"writerFeatures": ["rowTracking", "domainMetadata"]}
    a_commit(source, 0, protocol(1, 7, **features), metadata(), add("f.parquet", stats='{"numRecords":3}'))
    ids: Action = {"baseRowId": 0, "defaultRowCommitVersion": 0}
    a_commit(source, 1, add("f.parquet", data_change=False, stats='{"numRecords":3}', **ids), info())

    tablefeed.replicate(source, target, starting_version=0)
    first = open_log(str(target)).load(Version(0))
    assert isinstance(first, DeltaSnapshot)
    put_checksums_from(first, write_checkpoint(first))

    assert [path.name for path in (target / "_delta_log").glob("*.crc")] == ["00000000000000000000.crc"]


# --- what is the copy's own ------------------------------------------------------------------------------------------


def test_a_copy_has_an_id_of_its_own_and_no_progress_of_the_writers_of_its_source(source: Path, target: Path) -> None:
    tablefeed.append(source, rows(1), app_id="writer", txn_version=5)
    tablefeed.replicate(source, target, app_id="copier")
    tablefeed.append(source, rows(2), app_id="writer", txn_version=6)
    tablefeed.alter(source, set_properties={"mine": "x"})

    tablefeed.replicate(source, target, app_id="copier")

    copy = tablefeed.open_table(target)
    assert (copy.txn_version("writer"), copy.txn_version("copier")) == (None, 2)
    assert copy.table_id != tablefeed.open_table(source).table_id
    assert copy.table_id == tablefeed.open_table(target, version=0).table_id
    assert copy.metadata.configuration["mine"] == "x"


def test_removed_files_are_kept_for_readers_from_the_copy_on(source: Path, target: Path) -> None:
    tablefeed.append(source, rows(1))
    tablefeed.replicate(source, target)
    (path,) = (each["path"] for each in here(source, 0, "add"))
    a_commit(source, 1, remove(path, partitionValues={}, size=10, extendedFileMetadata=True))

    tablefeed.replicate(source, target)

    (gone,) = here(target, 1, "remove")
    assert gone["deletionTimestamp"] > 1_600_000_000_000
    assert {**gone, "deletionTimestamp": 1} == here(source, 1, "remove")[0]


def test_times_in_commits_are_those_of_the_source(source: Path, target: Path) -> None:
    tablefeed.append(source, rows(1), properties={"delta.enableInCommitTimestamps": "true"})
    tablefeed.append(source, rows(2))
    tablefeed.append(source, rows(3))

    tablefeed.replicate(source, target, starting_version=1)

    times = [
        here(table, version, "commitInfo")[0]["inCommitTimestamp"] for table in (source, target) for version in (0, 1)
    ]
    first, second = (here(source, version, "commitInfo")[0]["inCommitTimestamp"] for version in (1, 2))
    assert times[2:] == [first, second]


def test_a_source_whose_commit_lacks_its_time_is_named(source: Path, target: Path) -> None:
    a_commit(source, 0, info(), protocol(), metadata(configuration={"delta.enableInCommitTimestamps": "true"}))

    with pytest.raises(errors.LogError, match=f"of {source} has no in-commit timestamp"):
        tablefeed.replicate(source, target)


def test_times_in_commits_that_begin_later_begin_at_the_copys_own_version(source: Path, target: Path) -> None:
    tablefeed.append(source, rows(1))
    tablefeed.append(source, rows(2))
    tablefeed.replicate(source, target)
    tablefeed.alter(source, set_properties={"delta.enableInCommitTimestamps": "true"})
    tablefeed.append(source, rows(3))
    tablefeed.alter(source, set_properties={"mine": "x"})

    tablefeed.replicate(source, target)

    found = tablefeed.open_table(target).metadata.configuration
    began, *later = (here(target, version, "commitInfo")[0]["inCommitTimestamp"] for version in (1, 2, 3))
    assert found["delta.inCommitTimestampEnablementVersion"] == "1"
    assert found["delta.inCommitTimestampEnablementTimestamp"] == str(began)
    assert began < later[0] < later[1]
    assert tablefeed.append(target, rows(4)).version == 4


def test_properties_that_name_versions_of_the_sources_log_are_not_those_of_the_copys(
    source: Path, target: Path
) -> None:
    tablefeed.append(source, rows(1))
    tablefeed.alter(source, set_properties={"delta.enableInCommitTimestamps": "true"})
    protected = {**tablefeed.open_table(source).metadata.configuration}
    assert protected["delta.inCommitTimestampEnablementVersion"] == "1"
    protected["delta.requireCheckpointProtectionBeforeVersion"] = "40"
    schema = tablefeed.open_table(source).metadata.schema_string
    a_commit(source, 2, info(inCommitTimestamp=2_000_000_000_000), metadata(schema, configuration=protected))

    tablefeed.replicate(source, target)

    assert tablefeed.open_table(target).metadata.configuration == {
        "delta.enableInCommitTimestamps": "true",
        "delta.requireCheckpointProtectionBeforeVersion": "0",
    }
    assert here(target, 0, "commitInfo")[0]["inCommitTimestamp"] == 2_000_000_000_000


def test_a_domain_that_only_the_copy_has_is_removed_where_it_is_copied_anew(source: Path, target: Path) -> None:
    theirs = {"domain": "mine", "configuration": "{}", "removed": False}
    a_commit(source, 0, protocol(1, 7, writerFeatures=["domainMetadata"]), metadata())
    tablefeed.replicate(source, target)
    a_commit(target, 1, {"domainMetadata": theirs})

    tablefeed.replicate(source, target, resync=True)

    assert here(target, 2, "domainMetadata") == [{**theirs, "removed": True}]


def test_what_applied_changes_remember_is_copied_with_its_files(source: Path, target: Path) -> None:
    tablefeed.create(source, rows(1).schema, properties={"delta.feature.domainMetadata": "supported"})
    how: dict[str, Any] = {"keys": "id", "sequence_by": "n", "apply_as_deletes": "op = 'd'"}
    how["except_column_list"] = ["n", "op"]

    def events(*given: tuple[int, str, int, str]) -> pa.Table:
        return pa.table(dict(zip(("id", "name", "n", "op"), map(list, zip(*given, strict=True)), strict=True)))

    tablefeed.apply_changes(source, events((1, "a", 1, "u"), (2, "b", 1, "u")), **how)
    tablefeed.replicate(source, target)
    tablefeed.apply_changes(source, events((1, "", 5, "d")), **how)

    tablefeed.replicate(source, target, verify=True)
    tablefeed.apply_changes(target, events((1, "late", 3, "u")), **how)

    assert rows_of(target) == [{"id": 2, "name": "b"}]


def test_other_domains_of_ours_are_of_one_table_alone(source: Path, target: Path) -> None:
    readers = {"domain": "tablefeed.readers", "configuration": "{}", "removed": False}
    a_commit(source, 0, protocol(1, 7, writerFeatures=["domainMetadata"]), metadata())
    tablefeed.replicate(source, target)
    a_commit(source, 1, {"domainMetadata": readers})
    a_commit(target, 1, {"domainMetadata": readers})

    tablefeed.replicate(source, target)

    assert here(target, 2, "domainMetadata") == []


def test_what_commit_info_cannot_hold_is_left_out(source: Path, target: Path) -> None:
    tablefeed.append(source, rows(1))
    tablefeed.replicate(source, target)
    fields = f'"operation":"THEIRS","huge":{2**70},"half":"\\ud800","txnId":"x"'
    (source / "_delta_log" / f"{1:020d}.json").write_text(f'{{"commitInfo":{{{fields}}}}}')

    tablefeed.replicate(source, target)

    (found,) = here(target, 1, "commitInfo")
    assert found["operation"] == "THEIRS"
    assert found["txnId"] != "x"
    assert not {"huge", "half"} & found.keys()


# --- what is refused -------------------------------------------------------------------------------------------------


def test_a_target_that_another_writer_changed_is_refused_until_it_is_copied_anew(source: Path, target: Path) -> None:
    tablefeed.append(source, rows(1))
    tablefeed.replicate(source, target)
    tablefeed.append(target, rows(99))
    tablefeed.append(source, rows(2))

    with pytest.raises(errors.ConflictError, match="TABLEFEED_REPLICA_CHANGED") as refused:
        tablefeed.replicate(source, target)
    assert refused.value.winner == 1
    assert tablefeed.open_table(target).version == 1

    assert tablefeed.replicate(source, target, resync=True, verify=True) == of(2, 1, commits=1, files=1)
    assert rows_of(target) == rows_of(source)
    assert len(here(target, 2, "remove")) == 1
    tablefeed.append(source, rows(3))
    assert tablefeed.replicate(source, target, verify=True) == of(3, 2, commits=1, files=1)


def test_a_target_that_was_never_a_copy_is_refused_always(source: Path, target: Path) -> None:
    tablefeed.append(source, rows(1))
    tablefeed.append(target, rows(99))

    for resync in (False, True):
        with pytest.raises(errors.ConflictError, match="TABLEFEED_NO_REPLICA"):
            tablefeed.replicate(source, target, resync=resync)
    assert rows_of(target) == rows(99).to_pylist()


def test_commits_that_say_nothing_of_the_table_may_come_between(source: Path, target: Path) -> None:
    tablefeed.append(source, rows(1))
    tablefeed.replicate(source, target)
    a_commit(target, 1, info(operation="VACUUM START"))
    a_commit(target, 2, info(operation="VACUUM END"), txn("other", 1))
    tablefeed.append(source, rows(2))

    assert tablefeed.replicate(source, target, verify=True) == of(3, 1, commits=1, files=1)


@pytest.mark.parametrize("how", ["another table", "an older copy", "a commit changed"])
def test_a_source_that_is_not_the_table_of_before_is_refused_until_it_is_copied_anew(
    source: Path, target: Path, how: str
) -> None:
    tablefeed.append(source, rows(1))
    backup = shutil.copytree(source, source.parent / "backup")
    tablefeed.append(source, rows(2))
    tablefeed.replicate(source, target, app_id="copier")
    wait_until_done()
    shutil.rmtree(source)
    if how == "another table":
        for each in (10, 11, 12):
            tablefeed.append(source, rows(each))
    else:
        shutil.copytree(backup, source)
    if how == "a commit changed":
        tablefeed.append(source, rows(20))

    with pytest.raises(errors.TableReplacedError, match="DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE"):
        tablefeed.replicate(source, target, app_id="copier")

    tablefeed.replicate(source, target, app_id="copier", resync=True, verify=True)
    assert rows_of(target) == rows_of(source)


def test_the_copy_of_another_table_is_named_as_what_it_may_be(source: Path, target: Path, tmp_path: Path) -> None:
    tablefeed.append(source, rows(1))
    tablefeed.append(tmp_path / "other", rows(2))
    tablefeed.replicate(tmp_path / "other", target)

    with pytest.raises(errors.TableReplacedError, match=r"or the target is a copy of another table.*Check both paths"):
        tablefeed.replicate(source, target)

    assert rows_of(target) == rows(2).to_pylist()


def test_a_source_that_was_made_anew_is_recognised_without_an_app_id(source: Path, target: Path) -> None:
    tablefeed.append(source, rows(1))
    tablefeed.replicate(source, target)
    wait_until_done()
    shutil.rmtree(source)
    tablefeed.append(source, rows(2))

    with pytest.raises(errors.TableReplacedError):
        tablefeed.replicate(source, target)

    tablefeed.replicate(source, target, resync=True, verify=True)
    assert rows_of(target) == rows(2).to_pylist()


def test_a_table_that_delta_rs_replaces_in_its_own_log_is_gone_on_with(source: Path, target: Path) -> None:
    write_deltalake(str(source), rows(1))
    tablefeed.replicate(source, target)
    DeltaTable.create(str(source), DeltaTable(str(source)).schema(), mode="overwrite")
    write_deltalake(str(source), rows(5), mode="append")
    ids = {here(source, version, "metaData")[0]["id"] for version in (0, 1)}
    assert len(ids) == 2

    assert tablefeed.replicate(source, target, verify=True) == of(2, 2, commits=2, files=1)

    assert rows_of(target) == rows(5).to_pylist()
    assert tablefeed.open_table(target).table_id == tablefeed.open_table(target, version=0).table_id


def test_a_file_that_is_in_another_partition_of_the_source_made_anew_is_so_in_the_copy(
    source: Path, target: Path
) -> None:
    """A folder is converted to a table without partitions by mistake, and then once more."""
    name, day = col("name", "string"), col("day", "string")
    (source / "day=1").mkdir(parents=True)
    pq.write_table(pa.table({"name": ["a"]}), source / "day=1" / "f.parquet")
    size = (source / "day=1" / "f.parquet").stat().st_size
    a_commit(source, 0, protocol(), meta(name), add("day=1/f.parquet", size=size))
    tablefeed.replicate(source, target)
    converted = meta(name, day, partition_columns=["day"], table_id="22222222-2222-2222-2222-222222222222")
    a_commit(source, 0, protocol(), converted, add("day=1/f.parquet", size=size, partitionValues={"day": "1"}))

    tablefeed.replicate(source, target, resync=True, verify=True)

    assert rows_of(target) == [{"name": "a", "day": "1"}]


def test_a_log_that_lost_a_commit_to_copy_is_refused_until_it_is_copied_anew(source: Path, target: Path) -> None:
    tablefeed.append(source, rows(1))
    tablefeed.replicate(source, target)
    tablefeed.append(source, rows(2))
    tablefeed.append(source, rows(3))
    tablefeed.checkpoint(source)
    for version in (0, 1):
        (source / "_delta_log" / f"{version:020d}.json").unlink()

    with pytest.raises(errors.LogError, match="DELTA_MISSING_FILES_UNEXPECTED_VERSION"):
        tablefeed.replicate(source, target)

    assert tablefeed.replicate(source, target, resync=True, verify=True) == of(1, 2, commits=1, files=2)
    assert len(here(target, 1, "add")) == 2  # the file of version 0 is neither added nor removed
    assert here(target, 1, "remove") == []


def test_a_file_that_was_vacuumed_before_it_was_copied_is_refused_by_name(source: Path, target: Path) -> None:
    tablefeed.append(source, rows(1))
    tablefeed.replicate(source, target)
    tablefeed.append(source, rows(2))
    (lost,) = (each["path"] for each in here(source, 1, "add"))
    tablefeed.append(source, rows(3), mode="overwrite")
    (source / lost).unlink()

    with pytest.raises(errors.DataFileError, match="DELTA_FILE_NOT_FOUND") as refused:
        tablefeed.replicate(source, target)
    assert refused.value.path == lost
    assert rows_of(target) == rows(1).to_pylist()

    tablefeed.replicate(source, target, resync=True, verify=True)
    assert rows_of(target) == rows(3).to_pylist()


@pytest.mark.parametrize(
    "path",
    ["/elsewhere/f.parquet", "file:///elsewhere/f", "s3://b/f", "../f", "a/../f", "./f", "_delta_log/1.json"],
)
def test_a_file_that_is_not_plainly_below_the_table_is_refused_before_anything_is_written(
    source: Path, target: Path, path: str
) -> None:
    a_log(open_store(str(source)), v0=[protocol(), metadata(), add(path)])

    with pytest.raises(errors.UnsupportedFeatureError, match="not a relative path below the table"):
        tablefeed.replicate(source, target)

    assert not target.exists()


def test_a_file_in_the_way_is_refused_unless_it_has_the_same_bytes(source: Path, target: Path) -> None:
    tablefeed.append(source, rows(1))
    (path,) = (each["path"] for each in here(source, 0, "add"))
    target.mkdir()
    (target / path).write_bytes(b"x" * (source / path).stat().st_size)

    with pytest.raises(errors.ConflictError, match="it has a file"):
        tablefeed.replicate(source, target)

    assert not (target / "_delta_log").exists()
    shutil.copyfile(source / path, target / path)
    assert tablefeed.replicate(source, target, verify=True) == of(0, 0, commits=1, files=0)


def test_a_feature_that_is_not_handled_is_refused_where_the_source_gets_it(source: Path, target: Path) -> None:
    tablefeed.append(source, rows(1))
    tablefeed.append(source, rows(2))
    tablefeed.replicate(source, target, until=0)
    a_commit(source, 2, protocol(1, 7, writerFeatures=["unheardOf"]))

    with pytest.raises(errors.UnsupportedFeatureError) as refused:
        tablefeed.replicate(source, target)

    assert refused.value.features == ("unheardOf",)
    assert rows_of(target) == rows(1, 2).to_pylist()


def test_a_target_of_splits_is_refused_by_name(source: Path, target: Path) -> None:
    tablefeed.append(source, rows(1))
    tablefeed.append(target, rows(1), table_format="indextables")

    with pytest.raises(errors.UnsupportedFeatureError, match="altered, restored or copied here"):
        tablefeed.replicate(source, target)


@pytest.mark.parametrize(
    "given",
    [{"source": 5}, {"target": 5}, {"target_storage_options": ["a"]}, {"target_storage_options": {"a": (["b"],)}}],
)
def test_an_argument_that_is_wrong_is_named_as_the_caller_wrote_it(source: Path, target: Path, given: Any) -> None:
    (name,) = given

    with pytest.raises(errors.IllegalOptionError, match=rf"option ['\"]{name}"):
        tablefeed.replicate(**{"source": source, "target": target, **given})


def test_arguments_that_name_no_copy_are_refused(source: Path, target: Path) -> None:
    tablefeed.append(source, rows(1))
    tablefeed.append(source, rows(2))

    for given in ({"until": 2}, {"starting_version": 1, "until": 0}, {"until": -1}, {"app_id": 3}, {"verify": "yes"}):
        with pytest.raises(errors.IllegalOptionError):
            tablefeed.replicate(source, target, **given)
    for place in (source, source / "copy", source.parent):
        with pytest.raises(errors.IllegalOptionError, match="another place"):
            tablefeed.replicate(source, place)
    assert not target.exists()


# --- its source's consumer -------------------------------------------------------------------------------------------


def test_the_vacuum_of_the_source_keeps_files_that_are_not_copied_yet(source: Path, target: Path) -> None:
    tablefeed.append(source, rows(1))
    tablefeed.replicate(source, target, consumer_id="backup")
    assert [(each.consumer_id, each.version) for each in tablefeed.consumers(source).list()] == [("backup", 0)]
    tablefeed.append(source, rows(2))
    tablefeed.append(source, rows(3), mode="overwrite")
    at_once: dict[str, Any] = {"retention_hours": 0, "allow_short_retention": True}

    assert tablefeed.vacuum(source, **at_once).file_count == 0
    tablefeed.replicate(source, target, consumer_id="backup", verify=True)

    assert at(target, 1) == rows(1, 2).to_pylist()
    assert [each.version for each in tablefeed.consumers(source).list()] == [2]
    assert tablefeed.vacuum(source, **at_once).file_count == 2


@pytest.mark.parametrize(("call", "version"), [("the first", 1), ("a later", 0)])
def test_a_copy_is_a_consumer_before_it_reads_files(source: Path, target: Path, call: str, version: int) -> None:
    a_commit(source, 0, protocol(), metadata())
    if call == "a later":
        tablefeed.replicate(source, target)
    a_commit(source, 1, add("lost.parquet"))

    with pytest.raises(errors.DataFileError):
        tablefeed.replicate(source, target, consumer_id="backup")

    assert [each.version for each in tablefeed.consumers(source).list()] == [version]


# --- the proof -------------------------------------------------------------------------------------------------------


def test_a_copy_whose_file_was_changed_by_hand_is_told_by_both_versions(source: Path, target: Path) -> None:
    tablefeed.append(source, rows(1, 2))
    tablefeed.append(source, rows(3))
    tablefeed.replicate(source, target)
    (_, path) = sorted((each["stats"], each["path"]) for each in here(target, 0, "add"))[0]
    pq.write_table(rows(7), target / path)

    with pytest.raises(errors.ReplicaDiffersError, match="some rows are not the same") as found:
        tablefeed.replicate(source, target, verify=True)

    assert (found.value.source_version, found.value.target_version) == (1, 0)


def test_a_copy_that_lacks_a_row_is_told(source: Path, target: Path) -> None:
    tablefeed.append(source, rows(1, 2), properties=VECTORS)
    tablefeed.replicate(source, target, app_id="copier")
    (path,) = (each["path"] for each in here(target, 0, "add"))
    delete_rows(target, path, 0)
    log = open_log(str(target))
    forged = {**said(log, 0, "commitInfo")[0]}
    put(log.store, 2, [info(**forged), txn("copier", 0)])

    with pytest.raises(errors.ReplicaDiffersError, match="it has 1 rows, not 2"):
        tablefeed.replicate(source, target, app_id="copier", verify=True)


@pytest.mark.parametrize("way", ["to S3", "within S3", "from S3"])
def test_a_table_is_copied_to_and_from_s3(gateway: Gateway, source: Path, target: Path, way: str) -> None:
    places = {"to S3": (str(source), "s3"), "within S3": ("s3", "s3"), "from S3": ("s3", str(target))}
    urls = [f"s3://{gateway.bucket}/{n}" if place == "s3" else place for n, place in enumerate(places[way])]
    options: dict[str, Any] = {"storage_options": gateway.options}
    tablefeed.append(urls[0], rows(1, 2), properties=VECTORS, **options)
    tablefeed.replicate(*urls, **options)
    tablefeed.append(urls[0], rows(3), **options)
    tablefeed.delete(urls[0], "id = 2", **options)

    tablefeed.replicate(*urls, verify=True, **options)

    found = tablefeed.open_table(urls[1], **options).to_arrow()["id"].to_pylist()
    assert sorted(found) == [1, 3]
    wait_until_done()


def test_the_same_bucket_and_folder_of_two_servers_are_two_places(gateway: Gateway) -> None:
    url, here = gateway.url("orders"), gateway.options
    tablefeed.append(url, rows(1, 2), storage_options=here)

    for to in (None, {**here, "aws_endpoint_url": f"{gateway.endpoint}/"}):
        with pytest.raises(errors.IllegalOptionError, match=r"another place.*, name both servers"):
            tablefeed.replicate(url, url, storage_options=here, target_storage_options=to)
    with serve_another_s3(gateway.bucket) as other:
        tablefeed.replicate(url, url, storage_options=here, target_storage_options=other.options, verify=True)

        found = tablefeed.open_table(url, storage_options=other.options).to_arrow()["id"].to_pylist()
        assert sorted(found) == [1, 2]


def test_a_table_is_not_copied_onto_itself_by_another_name_of_its_server(gateway: Gateway) -> None:
    url, here = gateway.url("orders"), gateway.options
    tablefeed.append(url, rows(1, 2), storage_options=here)
    alias = {**here, "aws_endpoint_url": here["aws_endpoint_url"].replace("127.0.0.1", "localhost")}

    with pytest.raises(errors.ConflictError):
        tablefeed.replicate(url, url, storage_options=here, target_storage_options=alias)

    assert tablefeed.open_table(url, storage_options=here).version == 0


def test_files_that_were_copied_to_the_disk_of_another_machine_are_not_committed(source: Path, target: Path) -> None:
    tablefeed.append(source, rows(1))
    other_machine = target.with_name("other")

    def copy_files(files: Sequence[str]) -> None:
        open_store(str(other_machine)).copy(files, open_store(str(source)))

    with pytest.raises(errors.CommitError, match=r"1 of 1 copied files are not at .* on this machine"):
        tablefeed.replicate(source, target, copy_files=copy_files)

    assert not target.exists()


def test_files_that_the_target_lacks_are_copied_by_the_given_function(source: Path, target: Path) -> None:
    tablefeed.append(source, rows(1))
    tablefeed.append(source, rows(2))
    tablefeed.replicate(source, target, until=0)
    tablefeed.append(source, rows(3))
    (lost,) = (each["path"] for each in here(source, 2, "add"))
    asked: list[str] = []

    def copy_files(files: Sequence[str]) -> None:
        asked.extend(files)
        if lost in files:
            raise errors.ObjectNotFoundError(url=str(source), name=lost)
        open_store(str(target)).copy(files, open_store(str(source)))

    with pytest.raises(errors.DataFileError, match=lost):
        tablefeed.replicate(source, target, copy_files=copy_files)

    assert asked == [each["path"] for version in (1, 2) for each in here(source, version, "add")]
    assert rows_of(target) == rows(1, 2).to_pylist()
