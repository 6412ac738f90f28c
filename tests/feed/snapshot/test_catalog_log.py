"""The log of a table that a catalog names: the name is looked up again, and commits count as the catalog says."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pyarrow as pa
import pytest

import tablefeed
from support.clocks import Clock
from support.logs import (
    a_source,
    add,
    at,
    batches,
    commit_path,
    delivered,
    info,
    json_lines,
    live_paths,
    metadata,
    protocol,
    put,
)
from support.unity import FakeCatalog
from tablefeed.errors import (
    LogError,
    StoreConfigError,
    TableError,
    TableNotFoundError,
    TableReplacedError,
    UnsupportedFeatureError,
    VersionNotFoundError,
)
from tablefeed.feed.snapshot.catalog_log import ASKED_EVERY_S, open_catalog_log
from tablefeed.feed.snapshot.delta_log import DeltaLog
from tablefeed.feed.snapshot.open_log import open_log
from tablefeed.feed.snapshot.table_format import TableFormat
from tablefeed.log.plan import Limits
from tablefeed.model.actions import Commit, Version
from tablefeed.store import LocalStore

NAME = "main.sales.orders"
URL = f"uc://{NAME}"


def opened(catalog: FakeCatalog, clock: Clock) -> DeltaLog:
    store, pinned = open_catalog_log(URL, catalog.options, clock_s=clock)
    log = DeltaLog(store, location=URL, storage_options=pinned)
    log.knows_ratified = store.table.is_managed
    return log


def test_the_name_is_looked_up_at_most_once_a_second(catalog: FakeCatalog, tmp_path: Path) -> None:
    catalog.register(NAME, f"file://{tmp_path}")
    put(LocalStore(str(tmp_path)), 0, [protocol(), metadata()])
    clock = Clock()
    log = opened(catalog, clock)

    for _ in range(20):
        log.load()
    clock.sleep(ASKED_EVERY_S)
    log.load()

    assert catalog.requests == [
        f"GET /tables/{NAME}",
        "POST /temporary-table-credentials",
        f"GET /tables/{NAME}",
    ]


@pytest.mark.parametrize("same_place", [True, False])
def test_a_table_that_was_dropped_and_created_again_is_not_read_on(
    catalog: FakeCatalog, tmp_path: Path, *, same_place: bool
) -> None:
    old_id = catalog.register(NAME, f"file://{tmp_path}/old")
    old = LocalStore(str(tmp_path / "old"))
    put(old, 0, [protocol(), metadata(), add("a")])
    clock = Clock()
    log = opened(catalog, clock)
    source = a_source(log)
    (end, _), *_ = batches(source, at(0, in_snapshot=True), Limits())

    new_id = catalog.register(NAME, f"file://{tmp_path}/{'old' if same_place else 'new'}")
    put(old, 1, [add("b")])
    clock.sleep(ASKED_EVERY_S)

    with pytest.raises(TableReplacedError, match=f"the id {new_id}, and gave the id {old_id}") as caught:
        source.latest(end, Limits())
    assert caught.value.url == NAME


def test_a_table_that_was_dropped_is_gone_for_a_reader_and_for_a_writer(catalog: FakeCatalog, tmp_path: Path) -> None:
    catalog.register(NAME, f"file://{tmp_path}")
    put(LocalStore(str(tmp_path)), 0, [protocol(), metadata()])
    clock = Clock()
    log = opened(catalog, clock)
    log.load()
    catalog.tables.clear()
    clock.sleep(ASKED_EVERY_S)

    with pytest.raises(TableNotFoundError, match="404"):
        log.load()
    with pytest.raises(TableNotFoundError, match="404"):
        log.store.put_if_absent(commit_path(1), b"{}")
    assert not LocalStore(str(tmp_path)).exists(commit_path(1))


def test_a_name_is_of_a_delta_table_also_where_another_format_is_asked_for(
    catalog: FakeCatalog, tmp_path: Path
) -> None:
    catalog.register(NAME, f"file://{tmp_path}")

    with pytest.raises(TableError, match="is a Delta table, not an IndexTables one"):
        open_log(URL, catalog.options, table_format=TableFormat.INDEXTABLES)
    assert open_log(URL, catalog.options, table_format=TableFormat.DELTA).location == URL


def test_options_of_a_table_that_was_looked_up_open_no_other_table(catalog: FakeCatalog, tmp_path: Path) -> None:
    catalog.register(NAME, f"file://{tmp_path}")
    options = open_log(URL, catalog.options).storage_options
    assert open_log(URL, options).storage_options == options
    catalog.register(NAME, f"file://{tmp_path}")

    with pytest.raises(TableReplacedError):
        open_log(URL, options)


def test_a_table_that_is_moved_or_handed_to_the_catalog_while_it_is_open_is_refused(
    catalog: FakeCatalog, tmp_path: Path
) -> None:
    catalog.register(NAME, f"file://{tmp_path}")
    put(LocalStore(str(tmp_path)), 0, [protocol(), metadata()])
    clock = Clock()
    log = opened(catalog, clock)
    for change in (
        {"storage_location": f"file://{tmp_path}/x"},
        {"properties": {"delta.feature.catalogManaged": "supported"}},
    ):
        kept = dict(catalog.tables[NAME])
        catalog.tables[NAME].update(change)
        clock.sleep(ASKED_EVERY_S)
        with pytest.raises(StoreConfigError, match="Open it again"):
            log.load()
        catalog.tables[NAME] = kept
    clock.sleep(ASKED_EVERY_S)

    assert log.load().version == 0


# --- tables whose commits the catalog manages ------------------------------------------------------------------------

MANAGED = protocol(3, 7, readerFeatures=["catalogManaged"], writerFeatures=["catalogManaged", "inCommitTimestamp"])
STAMPED = metadata(configuration={"delta.enableInCommitTimestamps": "true"})


def staged_name(version: int, number: int = 1) -> str:
    return f"{version:020d}.{number:08d}-4056-49b8-937b-95f9e3ee90e5.json"


def stamp(version: int) -> dict[str, object]:
    return info(inCommitTimestamp=1_700_000_000_000 + version, txnId=str(version))


def stage(store: LocalStore, version: int, path: str, number: int = 1) -> str:
    """Another writer's staged commit, which adds one file; gives its name."""
    name = staged_name(version, number)
    store.replace(f"_delta_log/_staged_commits/{name}", json_lines(stamp(version), add(path)))
    return name


def publish(store: LocalStore, version: int, path: str) -> None:
    put(store, version, [stamp(version), add(path)])


def managed(tmp_path: Path) -> LocalStore:
    """A table of one version, published, whose commits a catalog manages."""
    store = LocalStore(str(tmp_path))
    put(store, 0, [stamp(0), MANAGED, STAMPED, add("0")])
    return store


def test_the_example_of_the_protocol_is_read_as_the_protocol_says(catalog: FakeCatalog, tmp_path: Path) -> None:
    store = managed(tmp_path)
    for version in range(1, 8):
        publish(store, version, str(version))
    # Version 7 is published and still in the catalog, 8 is ratified, of the others none is.
    ratified = {f"v{version}": stage(store, version, f"{version} staged") for version in (7, 8)}
    stage(store, 8, "8 rejected", number=2)
    stage(store, 9, "9 proposed")
    publish(store, 10, "10 published, not ratified yet for this reader")
    catalog.manage(NAME, f"file://{tmp_path}", 8, **ratified)

    log = opened(catalog, Clock())

    assert log.load().version == 8
    assert live_paths(log) == ["0", "1", "2", "3", "4", "5", "6", "7 staged", "8 staged"]
    assert live_paths(log, 6) == ["0", "1", "2", "3", "4", "5", "6"]
    with pytest.raises(VersionNotFoundError):
        log.load(Version(9))
    assert log.commit(Version(9)) is None
    assert log.head(Version(10)) is None
    assert [file.version for file in log.listing()] == list(range(9))


def test_files_of_versions_after_the_newest_ratified_one_are_not_there(catalog: FakeCatalog, tmp_path: Path) -> None:
    store = managed(tmp_path)
    publish(store, 1, "1")
    publish(store, 2, "2")
    for name in ("2.checkpoint.parquet", "2.crc", "00000000000000000000.00000000000000000002.compacted.json"):
        store.replace(f"_delta_log/{name.rjust(len(name) + 19, '0') if name[0] == '2' else name}", b"newer")
    store.replace("_delta_log/_last_checkpoint", json.dumps({"version": 2, "size": 5}).encode())
    catalog.manage(NAME, f"file://{tmp_path}", 1)

    log = opened(catalog, Clock())

    assert [file.name for file in log.listing()] == [f"{version:020d}.json" for version in (0, 1)]
    assert live_paths(log) == ["0", "1"]


@pytest.mark.parametrize("by_listing", [True, False])
def test_a_commit_that_is_published_while_it_is_read_is_read_from_either_place(
    catalog: FakeCatalog, tmp_path: Path, *, by_listing: bool
) -> None:
    store = managed(tmp_path)
    catalog.manage(NAME, f"file://{tmp_path}", 1, v1=stage(store, 1, "1"))
    log = opened(catalog, Clock())
    assert live_paths(log) == ["0", "1"]

    publish(store, 1, "1")
    catalog.ratify(NAME, 1)
    store.delete(f"_delta_log/_staged_commits/{staged_name(1)}")

    if by_listing:
        assert live_paths(log) == ["0", "1"]
    else:
        commit = log.commit(Version(1))
        assert commit is not None
        assert [file.path for file in commit.added] == ["1"]


def test_a_commit_that_is_published_while_the_catalog_answers_is_in_the_listing(
    catalog: FakeCatalog, tmp_path: Path
) -> None:
    store = managed(tmp_path)
    catalog.manage(NAME, f"file://{tmp_path}", 1, v1=stage(store, 1, "1"))

    log = opened(catalog, clock := Clock())
    log.load()
    clock.sleep(ASKED_EVERY_S)

    def publish_first(told: str) -> None:
        if told == "GET /delta/preview/commits":
            publish(store, 1, "1")
            catalog.ratify(NAME, 1)
            store.delete(f"_delta_log/_staged_commits/{staged_name(1)}")

    catalog.answers = publish_first

    assert [file.version for file in log.listing()] == [0, 1]


def test_commits_that_are_published_and_cleaned_up_after_the_answer_are_listed_with_the_next_one(
    catalog: FakeCatalog, tmp_path: Path
) -> None:
    store = managed(tmp_path)
    for version in (1, 2, 3):
        publish(store, version, str(version))
    catalog.manage(NAME, f"file://{tmp_path}", 1, v1=staged_name(1))

    def ratify_later(_: str) -> None:
        if catalog.requests.count("GET /delta/preview/commits") == 2:
            catalog.ratify(NAME, 3)

    catalog.answers = ratify_later
    log = opened(catalog, Clock())

    assert [file.version for file in log.listing()] == [0, 1, 2, 3]
    assert live_paths(log) == ["0", "1", "2", "3"]


def test_a_managed_table_is_read_from_a_server_that_has_only_the_newer_interface_for_it(
    catalog: FakeCatalog, tmp_path: Path
) -> None:
    store = managed(tmp_path)
    catalog.manage(NAME, f"file://{tmp_path}", 1, v1=stage(store, 1, "1"))
    catalog.delta_api_only = True

    assert live_paths(opened(catalog, Clock())) == ["0", "1"]


def test_a_staged_commit_that_is_gone_everywhere_is_an_error_and_no_shorter_table(
    catalog: FakeCatalog, tmp_path: Path
) -> None:
    managed(tmp_path)
    catalog.manage(NAME, f"file://{tmp_path}", 1, v1=staged_name(1))

    with pytest.raises(
        LogError, match=r"is at version 1\. A commit up to that is neither where the catalog says nor in the log"
    ):
        opened(catalog, Clock()).load()


def test_a_newest_version_that_nobody_has_is_an_error_and_no_shorter_table(
    catalog: FakeCatalog, tmp_path: Path
) -> None:
    store = managed(tmp_path)
    catalog.manage(NAME, f"file://{tmp_path}", 2, v1=stage(store, 1, "1"))

    with pytest.raises(LogError, match="Rows would be missing"):
        opened(catalog, Clock()).load()


def test_a_log_without_a_file_is_an_error_if_the_catalog_has_ratified_a_commit(
    catalog: FakeCatalog, tmp_path: Path
) -> None:
    catalog.manage(NAME, f"file://{tmp_path}", 1)

    with pytest.raises(LogError, match="Rows would be missing"):
        opened(catalog, Clock()).load()
    with pytest.raises(LogError, match="Rows would be missing"):
        list(opened(catalog, Clock()).store.list("_delta_log"))


def test_a_managed_table_has_no_commit_until_its_writer_has_put_version_0(catalog: FakeCatalog, tmp_path: Path) -> None:
    catalog.manage(NAME, f"file://{tmp_path}", 0)
    log = opened(catalog, Clock())

    with pytest.raises(TableNotFoundError, match="a table is there after its first commit"):
        log.load()
    writes: list[Callable[[], object]] = [
        lambda: tablefeed.append(URL, pa.table({"id": [1]}), storage_options=catalog.options),
        lambda: tablefeed.create(URL, pa.schema({"id": pa.int64()}), storage_options=catalog.options),
    ]
    for write in writes:
        with pytest.raises(UnsupportedFeatureError, match="reads such a table but does not write it"):
            write()
    assert list(tmp_path.iterdir()) == []

    managed(tmp_path)
    assert log.load().version == 0


@pytest.mark.parametrize("name", [".crc", ".checkpoint.0000000001.0000000002.parquet"])
def test_a_checksum_or_a_part_of_a_checkpoint_does_not_make_up_for_the_newest_commit(
    catalog: FakeCatalog, tmp_path: Path, name: str
) -> None:
    store = managed(tmp_path)
    publish(store, 1, "1")
    store.replace(f"_delta_log/{2:020d}{name}", b"of version 2")
    catalog.manage(NAME, f"file://{tmp_path}", 2)

    with pytest.raises(LogError, match="Rows would be missing"):
        opened(catalog, Clock()).load()


def test_a_table_that_only_the_catalog_calls_managed_is_not_read_as_what_the_catalog_knows(
    catalog: FakeCatalog, tmp_path: Path
) -> None:
    store = LocalStore(str(tmp_path))
    put(store, 0, [protocol(), metadata(), add("0")])
    put(store, 1, [add("1")])
    catalog.manage(NAME, f"file://{tmp_path}", 0)

    with pytest.raises(LogError, match="does not list catalogManaged") as caught:
        opened(catalog, Clock()).load()
    assert str(tmp_path) in str(caught.value)


def test_a_table_is_read_as_it_was_before_the_catalog_managed_it(catalog: FakeCatalog, tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    put(store, 0, [protocol(), metadata(), add("0")])
    put(store, 1, [stamp(1), MANAGED, STAMPED, add("1")])
    catalog.manage(NAME, f"file://{tmp_path}", 1)
    log = opened(catalog, Clock())

    assert live_paths(log) == ["0", "1"]
    assert live_paths(log, 0) == ["0"]


def test_readers_at_the_same_time_wait_for_one_answer_so_no_older_one_comes_after_a_newer(
    catalog: FakeCatalog, tmp_path: Path
) -> None:
    managed(tmp_path)
    catalog.manage(NAME, f"file://{tmp_path}", 0)
    log = opened(catalog, clock := Clock())
    log.load()
    clock.sleep(ASKED_EVERY_S)
    before, together = len(catalog.requests), Barrier(8)

    def read(_: int) -> Version:
        together.wait()
        return log.load().version

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(read, range(8))) == {0}
    assert catalog.requests[before:] == [f"GET /tables/{NAME}", "GET /delta/preview/commits"]


@pytest.mark.parametrize(
    "name",
    [
        "../../../etc/passwd",
        "00000000000000000001.json",
        "00000000000000000002.3a0d65cd-4056-49b8-937b-95f9e3ee90e5.json",
        "_staged_commits/00000000000000000001.3a0d65cd-4056-49b8-937b-95f9e3ee90e5.json",
    ],
)
def test_a_file_name_of_the_catalog_that_is_no_staged_commit_of_the_version_is_refused(
    catalog: FakeCatalog, tmp_path: Path, name: str
) -> None:
    managed(tmp_path)
    catalog.manage(NAME, f"file://{tmp_path}", 1, v1=name)

    with pytest.raises(LogError, match="as the file of version 1"):
        opened(catalog, Clock()).load()


def test_a_stream_delivers_each_ratified_commit_once_whether_it_is_published_or_not(
    catalog: FakeCatalog, tmp_path: Path
) -> None:
    store = managed(tmp_path)
    catalog.manage(NAME, f"file://{tmp_path}", 0)
    clock = Clock()
    source = a_source(opened(catalog, clock), starting_version=0)
    end = at(0)
    delivered: list[Sequence[str]] = []

    def step() -> None:
        nonlocal end
        clock.sleep(ASKED_EVERY_S)
        for reached, files in batches(source, end, Limits()):
            end = reached
            delivered.append(files)

    step()
    catalog.ratify(NAME, 1, v1=stage(store, 1, "1"))
    stage(store, 1, "1 rejected", number=2)
    step()
    catalog.ratify(NAME, 3, v1=staged_name(1), v2=stage(store, 2, "2"), v3=stage(store, 3, "3"))
    step()
    publish(store, 1, "1")
    publish(store, 2, "2")
    catalog.ratify(NAME, 3, v3=staged_name(3))
    step()
    publish(store, 3, "3")
    publish(store, 4, "4")
    step()
    catalog.ratify(NAME, 4)
    step()

    assert [file for files in delivered for file in files] == ["0", "1", "2", "3", "4"]


def test_a_stream_delivers_commits_that_are_published_while_it_reads_them(
    catalog: FakeCatalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, clock = managed(tmp_path), Clock()
    catalog.manage(NAME, f"file://{tmp_path}", 0)
    log = opened(catalog, clock)
    source = a_source(log, starting_version=0)
    begun = source.latest(at(0), Limits())
    catalog.ratify(NAME, 4, **{f"v{v}": stage(store, v, str(v)) for v in range(1, 5)})
    clock.sleep(ASKED_EVERY_S)
    reads, published = log.commit, list[int]()

    def commit(version: Version, *, over_holes: bool = False) -> Commit | None:
        found = reads(version, over_holes=over_holes)
        if version == 3 and not published:
            published.extend(range(1, 5))
            for each in published:
                publish(store, each, str(each))
            catalog.ratify(NAME, 4)
            clock.sleep(ASKED_EVERY_S)
        return found

    monkeypatch.setattr(log, "commit", commit)

    assert delivered(source, begun, source.latest(begun, Limits())) == ["1", "2", "3", "4"]
    assert published


def test_the_rows_of_unpublished_commits_are_read_and_followed_by_the_name(
    catalog: FakeCatalog, tmp_path: Path
) -> None:
    store = managed(tmp_path)
    catalog.manage(NAME, f"file://{tmp_path}", 1, v1=stage(store, 1, "1"))

    table = tablefeed.open_table(URL, storage_options=catalog.options)

    assert table.version == 1
    assert [commit.committed_at_ms for commit in table.history()] == [1_700_000_000_001, 1_700_000_000_000]
    assert next(tablefeed.follow(URL, after=0, storage_options=catalog.options)).version == 1


def test_a_managed_table_is_refused_by_its_path_and_the_error_says_how_to_read_it(
    catalog: FakeCatalog, tmp_path: Path
) -> None:
    managed(tmp_path)
    catalog.register(NAME, f"file://{tmp_path}")  # the catalog does not say that it manages the commits

    for url in (str(tmp_path), URL):
        with pytest.raises(UnsupportedFeatureError, match=r"uc://catalog\.schema\.table") as caught:
            tablefeed.open_table(url, storage_options=catalog.options)
        assert caught.value.features == ("catalogManaged",)
        assert caught.value.error_class == "DELTA_UNSUPPORTED_FEATURES_FOR_READ"


def test_a_managed_table_is_not_written_in_any_way(catalog: FakeCatalog, tmp_path: Path) -> None:
    source, folder = str(tmp_path / "source"), tmp_path / "managed"
    tablefeed.append(source, pa.table({"id": [1]}))
    publish(managed(folder), 1, "1")
    catalog.manage(NAME, f"file://{folder}", 1)
    options = catalog.options
    before = sorted(tmp_path.rglob("*"))
    ways = (
        lambda: tablefeed.append(URL, pa.table({"id": [1]}), storage_options=options),
        lambda: tablefeed.append(URL, pa.table({"id": [1]}), mode="overwrite", storage_options=options),
        lambda: tablefeed.delete(URL, "id = 1", storage_options=options),
        lambda: tablefeed.alter(URL, set_properties={"a": "b"}, storage_options=options),
        lambda: tablefeed.restore(URL, version=0, storage_options=options),
        lambda: tablefeed.optimize(URL, storage_options=options),
        lambda: tablefeed.vacuum(URL, storage_options=options),
        lambda: tablefeed.checkpoint(URL, storage_options=options),
        lambda: tablefeed.replicate(source, URL, target_storage_options=options),
        lambda: tablefeed.replicate(source, URL, target_storage_options=options, by_rows=True),
        lambda: tablefeed.replicate(source, URL, target_storage_options=options, resync=True),
    )

    for write in ways:
        with pytest.raises(UnsupportedFeatureError) as caught:
            write()
        assert caught.value.features == ("catalogManaged",)
        assert caught.value.error_class == "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE"
    assert sorted(tmp_path.rglob("*")) == before


def test_the_store_itself_refuses_to_write_a_managed_table(catalog: FakeCatalog, tmp_path: Path) -> None:
    store = managed(tmp_path)
    catalog.manage(NAME, f"file://{tmp_path}", 0)
    log = opened(catalog, Clock())

    for write in (
        lambda: log.store.put_if_absent(commit_path(1), b"{}"),
        lambda: log.store.replace("a", b""),
        lambda: log.store.delete(commit_path(0)),
        lambda: log.store.create("a"),
        lambda: log.store.publish("a"),
        lambda: log.store.copy(["a"], store),
    ):
        with pytest.raises(UnsupportedFeatureError, match="Nothing was written"):
            write()
