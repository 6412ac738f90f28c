from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import hypothesis.strategies as st
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given

from support.actions import add
from support.logs import col, struct
from tablefeed.delta.codec import decode_commit, encode_commit
from tablefeed.delta.names import LOG_DIR, commit_name
from tablefeed.delta.paths import below_root, decode_path, encode_path, partition_directory, refuse_escape
from tablefeed.errors import LogError
from tablefeed.model.actions import AddFile, Commit, Metadata, Protocol, Version

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
AWKWARD = ["a%b c/ü:", "%41", "+&@$,;!~'()", "a=b", "\\", " l ", "é😀 \u00a0\u2028\u0085", "plain"]


@given(TEXT)
def test_a_path_that_was_encoded_decodes_to_itself(path: str) -> None:
    assert decode_path(encode_path(path)) == path


@pytest.mark.parametrize(
    ("log_path", "path"),
    [
        ("p=1/part-0.parquet", "p=1/part-0.parquet"),
        ("p=a%2525b/x", "p=a%25b/x"),  # once, never twice
        ("a+b", "a+b"),  # a plus is no space in a path
        ("file:///data/t/a%20b", "/data/t/a b"),
        ("file:/data/t/a%20b", "/data/t/a b"),
        ("/data/t/a%20b", "/data/t/a b"),
        ("s3://bucket%20/k%20ey/p=%2541", "s3://bucket%20/k ey/p=%41"),
        ("abfss://c@account.host/a%20b", "abfss://c@account.host/a b"),
        ("%zz%", "%zz%"),
        ("%FF", "%FF"),  # not UTF-8: names no text
    ],
)
def test_a_log_path_is_decoded_once_into_what_the_store_opens(log_path: str, path: str) -> None:
    assert decode_path(log_path) == path


# Written by the Delta JAR 4.4.0 on Spark 4.2.0 with df.write.partitionBy("p").
@pytest.mark.parametrize(
    ("value", "log_path"),
    [
        (None, "p=__HIVE_DEFAULT_PARTITION__"),
        ("", "p=__HIVE_DEFAULT_PARTITION__"),
        ("a%b c/ü:", "p=a%2525b%20c%252Fü%253A"),
        ("%41", "p=%252541"),
        ("+&@$,;!~'()", "p=+&@$,;!~%2527()"),
        ("a=b", "p=a%253Db"),
        ("..", "p=.."),
        ("\\", "p=%255C"),
        (" lead trail ", "p=%20lead%20trail%20"),
        ("é😀 \u00a0\u2028\u0085\u200b", "p=é😀%20%C2%A0%E2%80%A8%C2%85\u200b"),
        ("\u0301x\ufeff\ud7ff\ue000", "p=\u0301x\ufeff\ud7ff\ue000"),
        ("\x01\t\n\x7f", "p=%2501%2509%250A%257F"),
        ('!"#$%&()*+,-./;<>?', "p=!%2522%2523$%2525&()%252A+,-.%252F;%3C%3E%253F"),
        ("@[\\]^_`{|}~", "p=@%255B%255C%255D%255E_%60%257B%7C%7D~"),
    ],
)
def test_a_partition_is_named_as_delta_spark_names_it(value: str | None, log_path: str) -> None:
    assert encode_path(partition_directory([("p", value)])) == log_path


def test_column_names_are_escaped_like_values() -> None:
    assert partition_directory([("a=b", "x"), ("c", None)]) == "a%3Db=x/c=__HIVE_DEFAULT_PARTITION__"
    assert partition_directory([]) == ""


@given(TEXT.filter(bool), TEXT.filter(bool))
def test_two_partitions_never_share_a_directory(one: str, other: str) -> None:
    if one != other:
        assert partition_directory([("p", one)]) != partition_directory([("p", other)])
    assert "/" not in partition_directory([("p", one)])


SCHEMA = json.dumps(struct(col("i"), col("p", "string")))


def an_add(folder: Path, number: int, value: str | None) -> AddFile:
    path = f"{partition_directory([('p', value)])}/part-{number}.parquet"
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"i": [number]}), folder / path)
    size_bytes = (folder / path).stat().st_size
    return replace(add(path, size_bytes=size_bytes, partition_values={"p": value}), log_path=encode_path(path))


def test_delta_rs_finds_the_files_and_values_of_the_partitions_we_write(tmp_path: Path) -> None:
    values = [*AWKWARD, None]
    commit = Commit(
        version=Version(0),
        metadata=Metadata(table_id="t", schema_string=SCHEMA, partition_columns=("p",)),
        protocol=Protocol(min_reader_version=1, min_writer_version=2),
        files=tuple(an_add(tmp_path, number, value) for number, value in enumerate(values)),
        committed_at_ms=0,
    )
    (tmp_path / LOG_DIR).mkdir()
    (tmp_path / LOG_DIR / commit_name(0)).write_bytes(encode_commit(commit))

    rows = DeltaTable(tmp_path).to_pyarrow_table().to_pylist()

    assert sorted(rows, key=lambda row: row["i"]) == [{"i": i, "p": value} for i, value in enumerate(values)]


def test_the_files_of_the_partitions_that_delta_rs_writes_are_found(tmp_path: Path) -> None:
    values = [*AWKWARD, None]
    write_deltalake(tmp_path, pa.table({"i": range(len(values)), "p": values}), partition_by=["p"])
    log_file = tmp_path / LOG_DIR / commit_name(0)

    commit = decode_commit(log_file.read_bytes(), version=Version(0), log_file="0", modified_ms=0)

    found = {
        file.partition_values["p"]: pq.read_table(tmp_path / file.path, partitioning=None)["i"].to_pylist()
        for file in commit.added
    }
    assert found == {value: [i] for i, value in enumerate(values)}


# --- paths that leave the table --------------------------------------------------------------------------------------

LOCAL, REMOTE = "/data/my orders", "s3://lake/orders"


@pytest.mark.parametrize(
    ("path", "root", "name"),
    [
        ("p=1/a.parquet", LOCAL, "p=1/a.parquet"),
        ("p=../..a/...", LOCAL, "p=../..a/..."),  # dots in a name climb nowhere
        ("./a//b", LOCAL, "a/b"),
        ("a/../b", LOCAL, "b"),
        ("/data/my orders/a", LOCAL, "a"),
        ("/data/./x/../my orders//p=1/a", LOCAL, "p=1/a"),
        ("s3://lake/orders/a b", REMOTE, "a b"),
        ("s3a://lake/orders/a", REMOTE, "a"),
        ("S3N://lake/orders/a", REMOTE, "a"),
        ("/orders/a", REMOTE, "a"),  # of the root's bucket
        ("s3://lake/a", "s3://lake", "a"),
        ("abfss://c@acc.dfs.core.windows.net/t/a", "abfs://c@acc.dfs.core.windows.net/t", "a"),
    ],
)
def test_a_path_below_the_root_is_the_tables_own(path: str, root: str, name: str) -> None:
    assert below_root(path, root_url=root) == name
    refuse_escape(path, root_url=root, clones=False)


@pytest.mark.parametrize(
    ("path", "root"),
    [
        ("../a", LOCAL),
        ("a/../../b", LOCAL),
        ("../my orders/a", LOCAL),  # out and in again
        ("a/..", LOCAL),
        ("", LOCAL),
        (".", LOCAL),
        ("..", REMOTE),
        # Absolute, through dots or of another scheme.
        ("/data/my orders/../a", LOCAL),
        ("/data/my orders/../../../a", LOCAL),
        ("s3://lake/orders/a", LOCAL),
        ("s3://lake/orders/../a", REMOTE),
        ("gs://lake/orders/a", REMOTE),
        ("https://lake/orders/a", REMOTE),
    ],
)
def test_a_path_that_leaves_the_root_and_is_no_clones_is_refused_by_name(path: str, root: str) -> None:
    assert below_root(path, root_url=root) is None
    with pytest.raises(LogError, match="is outside the table; it was not opened") as caught:
        refuse_escape(path, root_url=root, clones=True)
    assert repr(path) in str(caught.value)
    assert caught.value.url == root


@pytest.mark.parametrize(
    ("path", "root"),
    [
        ("/etc/passwd", LOCAL),
        ("/data/my orders", LOCAL),
        ("/data/my orders2/a", LOCAL),
        ("s3://lake/other/a", REMOTE),
        ("s3a://other/orders/a", REMOTE),
        ("s3:/lake/orders/a", REMOTE),
        ("/lake/orders/a", REMOTE),
    ],
)
def test_an_absolute_path_of_the_roots_scheme_is_a_clones_and_refused_only_without_clones(path: str, root: str) -> None:
    assert below_root(path, root_url=root) is None
    refuse_escape(path, root_url=root, clones=True)
    with pytest.raises(LogError, match="is outside the table; it was not opened") as caught:
        refuse_escape(path, root_url=root, clones=False)
    assert repr(path) in str(caught.value)


@pytest.mark.parametrize("log_path", ["%2e%2e/a", "..%2Fa", "p=1%2F..%2F..%2Fa", "file:///x/%2e%2e/passwd"])
def test_a_path_is_judged_as_it_is_opened_which_is_decoded_once(log_path: str) -> None:
    with pytest.raises(LogError):
        refuse_escape(decode_path(log_path), root_url=LOCAL, clones=True)
    refuse_escape(decode_path("%252e%252e/a"), root_url=LOCAL, clones=False)


@given(st.lists(st.sampled_from(["..", ".", "", "a", "b"]), max_size=8))
def test_a_relative_path_stays_below_the_root_exactly_where_no_step_of_it_leaves(steps: list[str]) -> None:
    depth, left = 0, False
    for step in steps:
        depth += {"..": -1, ".": 0, "": 0}.get(step, 1)
        left = left or depth < 0
    path = "/".join(steps)
    if path.startswith("/"):
        path = f".{path}"

    assert (below_root(path, root_url=LOCAL) is not None) == (not left and depth > 0)
