"""Checkpoints of the V2 spec, whichever way they are named, and what is done where they are not what it says."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable

import tablefeed
from support.checkpoints import (
    classic_name,
    damage,
    in_parquet,
    of_version,
    part_name,
    put_checkpoint,
    sidecar,
    uuid_name,
)
from support.faulty_store import FaultyStore
from support.logs import Action, a_log, add, commit_path, live_paths, log_of, metadata, protocol, remove, txn
from tablefeed.errors import CorruptLogError, LogError, ObjectNotFoundError
from tablefeed.feed.snapshot.open_log import open_log
from tablefeed.feed.snapshot.table_log import TableLog
from tablefeed.store import LocalStore, Store
from tablefeed.store.memory import MemoryStore

NAMES = [uuid_name(2, "json"), uuid_name(2, "parquet"), classic_name(2)]
HEAD: list[Action] = [protocol(), metadata(), of_version(2)]


def a_checkpointed_log(*actions: Action, name: str = NAMES[0], store: Store | None = None) -> TableLog:
    """Only a checkpoint of version 2 and the commit after it, which adds "d"."""
    store = MemoryStore("orders") if store is None else store
    put_checkpoint(store, name, actions)
    return a_log(store, v3=[add("d")])


def put_sidecar(store: Store, name: str, *actions: Action) -> None:
    put_checkpoint(store, f"_sidecars/{name}", actions)


def with_commits(log: TableLog) -> TableLog:
    """The commits that the checkpoint stands for, as they are in a log that nobody cleaned."""
    return a_log(log.store, v0=[protocol(), metadata()], v1=[add("a"), txn("q", 4)], v2=[add("b")])


# --- where the facts and the files are -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_the_files_are_in_the_sidecars_and_the_facts_are_not(name: str) -> None:
    log = a_checkpointed_log(*HEAD, txn("q", 4), sidecar("s1.parquet"), sidecar("s%202.parquet"), name=name)
    put_sidecar(log.store, "s1.parquet", add("a"), remove("gone"), add("b"))
    put_sidecar(log.store, "s 2.parquet", remove("d"), add("c"))

    assert live_paths(log) == ["a", "b", "c", "d"]
    assert log.load().facts.txns["q"].txn_version == 4


@pytest.mark.parametrize("name", NAMES)
def test_a_v2_checkpoint_without_sidecars_holds_its_files_itself(name: str) -> None:
    log = a_checkpointed_log(*HEAD, add("a"), remove("gone"), remove("d"), add("b"), txn("q", 4), name=name)

    assert live_paths(log) == ["a", "b", "d"]
    assert log.load().facts.txns["q"].txn_version == 4


def test_statistics_of_a_json_checkpoint_are_null_unless_they_are_asked_for() -> None:
    log = a_checkpointed_log(*HEAD, add("a", stats='{"numRecords":1}'))

    def statistics(*, with_stats: bool) -> dict[str, str | None]:
        batches = log.load().live_files(with_stats=with_stats)
        return {f["log_path"]: f["stats"] for batch in batches for f in batch.to_pylist()}

    assert statistics(with_stats=True) == {"a": '{"numRecords":1}', "d": None}
    assert statistics(with_stats=False) == {"a": None, "d": None}


@pytest.mark.parametrize("spelt", ["{root}/{name}", "file://{root}/{name}", "file:{root}/{name}"])
def test_a_sidecar_may_be_named_by_an_absolute_path_inside_its_directory(tmp_path: Path, spelt: str) -> None:
    root = tmp_path / "the orders"
    path = spelt.format(root=root, name="_delta_log/_sidecars/s.parquet").replace(" ", "%20")
    log = a_checkpointed_log(*HEAD, sidecar(path), store=LocalStore(str(root)))
    put_sidecar(log.store, "s.parquet", add("a"))

    assert live_paths(log) == ["a", "d"]


def test_of_two_checkpoints_of_one_version_the_one_with_a_uuid_is_read() -> None:
    store = FaultyStore(MemoryStore("orders"))
    log = a_checkpointed_log(*HEAD, add("a"), name=NAMES[1], store=store)
    put_checkpoint(store, classic_name(2), [protocol(), metadata(), add("a")])

    assert live_paths(log) == ["a", "d"]
    opened = {call.name for call in store.calls if call.operation == "open_input"}
    assert opened == {f"_delta_log/{NAMES[1]}"}


# --- what makes a checkpoint unreadable ------------------------------------------------------------------------------

BAD_PATHS = [
    "../../s.parquet",
    "..%2F..%2Fs.parquet",
    "../s.parquet",
    "x/../../s.parquet",
    "/s.parquet",
    "/elsewhere/_delta_log/_sidecars/s.parquet",
    "file:///elsewhere/_delta_log/_sidecars/s.parquet",
    "s3://orders/_delta_log/_sidecars/s.parquet",
    "..",
    ".",
    "",
]


@pytest.mark.parametrize("path", BAD_PATHS)
def test_a_sidecar_outside_its_directory_makes_the_checkpoint_unreadable(tmp_path: Path, path: str) -> None:
    log = a_checkpointed_log(*HEAD, sidecar(path), store=LocalStore(str(tmp_path / "orders")))
    for place in ("s.parquet", "_delta_log/s.parquet", "_delta_log/_sidecars/s.parquet"):
        log.store.replace(place, in_parquet([add("foreign")]))

    with pytest.raises(CorruptLogError, match=NAMES[0]) as caught:
        log.load()
    assert repr(path) in str(caught.value)
    assert live_paths(with_commits(log)) == ["a", "b", "d"]


@pytest.mark.parametrize(
    "content",
    [
        None,
        b"",
        b"no parquet at all" * 100,
        damage(in_parquet([add("a"), add("b")]), "add.path"),
        in_parquet([add("a"), sidecar("t.parquet")]),
        in_parquet([add("a"), txn("q", 9)]),
        in_parquet([add("a"), protocol()]),
    ],
    ids=["missing", "empty", "no parquet", "damaged", "names sidecars", "has a txn", "has a protocol"],
)
def test_a_sidecar_that_is_missing_or_damaged_makes_the_checkpoint_unreadable(content: bytes | None) -> None:
    log = a_checkpointed_log(*HEAD, sidecar("good.parquet"), sidecar("bad.parquet"))
    put_sidecar(log.store, "good.parquet", add("b"))
    if content is not None:
        log.store.replace("_delta_log/_sidecars/bad.parquet", content)

    with pytest.raises((CorruptLogError, ObjectNotFoundError), match=r"_sidecars/bad\.parquet"):
        live_paths(log)
    assert live_paths(with_commits(log)) == ["a", "b", "d"]


@pytest.mark.parametrize("name", [uuid_name(2, "json"), uuid_name(2, "parquet")])
@pytest.mark.parametrize(
    ("actions", "fault"),
    [
        ([protocol(), metadata(), add("a")], "checkpointMetadata is missing"),
        ([*HEAD, of_version(2), add("a")], "checkpointMetadata comes a second time"),
        ([protocol(), metadata(), of_version(1), add("a")], "checkpointMetadata is of version 1"),
        ([*HEAD, sidecar("s.parquet"), add("a")], "add is in a checkpoint with sidecars"),
        ([*HEAD, protocol(), add("a")], "protocol comes a second time"),
        ([protocol(), of_version(2), add("a")], "it holds no metaData"),
        ([*HEAD, {"sidecar": {"path": "s.parquet"}}], "sidecar.sizeInBytes is missing"),
    ],
)
def test_what_neither_spec_allows_makes_a_checkpoint_unreadable(name: str, actions: list[Action], fault: str) -> None:
    log = a_checkpointed_log(*actions, name=name)
    put_sidecar(log.store, "s.parquet", add("a"))

    with pytest.raises(CorruptLogError, match=f"{name}(, line [0-9]+)?: {fault}"):
        log.load()
    assert live_paths(with_commits(log)) == ["a", "b", "d"]


def test_a_checkpoint_of_the_v1_spec_names_no_sidecars() -> None:
    in_parts = a_checkpointed_log(*HEAD, sidecar("s.parquet"), name=part_name(2, 1, of=1))
    classic = a_checkpointed_log(protocol(), metadata(), sidecar("s.parquet"), name=classic_name(2))

    with pytest.raises(CorruptLogError, match="sidecar is no action of a checkpoint in parts"):
        in_parts.load()
    with pytest.raises(CorruptLogError, match="checkpointMetadata is missing"):
        classic.load()


def test_an_unreadable_checkpoint_is_passed_over_for_another_of_the_same_version() -> None:
    log = a_checkpointed_log(*HEAD, sidecar("gone.parquet"))
    put_checkpoint(log.store, classic_name(2), [protocol(), metadata(), add("a"), add("b")])

    assert live_paths(log) == ["a", "b", "d"]


# --- tables of other writers -----------------------------------------------------------------------------------------

TABLES = [
    "delta-golden/v2-checkpoint-parquet",
    "delta-kernel/kernel-pagination-v2-checkpoint-json",
    "kernelrs-data-tar/v2-checkpoints-json-without-sidecars",
    "kernelrs-data-tar/v2-checkpoints-parquet-with-sidecars",
    "kernelrs-data-tar/v2-checkpoints-parquet-without-sidecars",
    "kernelrs-data-tar/v2-classic-checkpoint-json",
    "kernelrs-data/v2-parquet-sidecars-struct-stats-only",
]


def copied(table: Path, to: Path) -> LocalStore:
    """The log of a table, of which a test may take away."""
    store = LocalStore(str(to))
    for file in (table / "_delta_log").rglob("*"):
        if file.is_file():
            store.replace(str(file.relative_to(table)), file.read_bytes())
    return store


def drop_commits_before_the_last_checkpoint(store: LocalStore) -> None:
    listed = [entry.name for entry in store.list("_delta_log")]
    last = max(name[:20] for name in listed if ".checkpoint." in name)
    for name in listed:
        if name[20:] == ".json" and name < last:
            store.delete(f"_delta_log/{name}")


@pytest.mark.parametrize("table", TABLES)
def test_delta_rs_reads_the_same_from_a_v2_checkpoint(corpus: Path, tmp_path: Path, table: str) -> None:
    store = copied(corpus / "delta" / table, tmp_path)
    drop_commits_before_the_last_checkpoint(store)

    paths = {path for batch in tablefeed.open_table(tmp_path).files() for path in batch["path"].to_pylist()}

    theirs = DeltaTable(str(tmp_path))
    assert theirs.version() == tablefeed.open_table(tmp_path).version
    assert {f"{tmp_path}/{path}" for path in paths} == {uri.removeprefix("file://") for uri in theirs.file_uris()}


@pytest.mark.parametrize("table", TABLES)
def test_without_its_sidecars_or_its_top_level_a_table_of_another_writer_is_read_from_its_commits(
    corpus: Path, tmp_path: Path, table: str
) -> None:
    whole = live_paths(log_of(copied(corpus / "delta" / table, tmp_path / "whole")))
    store = copied(corpus / "delta" / table, tmp_path / "damaged")
    broken = [f"_delta_log/_sidecars/{entry.name}" for entry in store.list("_delta_log/_sidecars")]
    broken = broken or [f"_delta_log/{e.name}" for e in store.list("_delta_log") if ".checkpoint." in e.name]
    for name in broken:
        store.replace(name, store.read(name)[:-7])

    assert live_paths(open_log(str(tmp_path / "damaged"))) == whole
    store.delete(commit_path(0))
    with pytest.raises(LogError, match=r"\.checkpoint\."):
        live_paths(open_log(str(tmp_path / "damaged")))
