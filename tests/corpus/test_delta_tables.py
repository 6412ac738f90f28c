"""Delta tables of other writers: every row as other readers see it, or a refusal that names the feature."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from corpus.verdict import REFUSED_FEATURES, Expected, judge, paths_sha256
from support.corpus import Tally, corpus_folder
from support.digest import table_digest

_FOLDER = corpus_folder()
_TABLES: Expected = (
    json.loads((_FOLDER / "delta" / "expected.json").read_text(encoding="utf-8"))["tables"] if _FOLDER else {}
)


_LARGE = ("delta-golden/parquet-decimal-dictionaries-v2", "deltars/COVID-19_NYT")
"""A million rows each, and seconds for the digest of them."""


@pytest.mark.parametrize(
    "table",
    [pytest.param(name, marks=pytest.mark.slow if name in _LARGE else ()) for name in sorted(_TABLES)]
    or ["the corpus is absent"],
)
def test_a_table_is_read_right_or_refused_by_name(corpus: Path, record_corpus: Tally, table: str) -> None:
    verdict = judge(table, _TABLES[table], root=corpus / "delta")

    if verdict.wrong:
        record_corpus(wrong=1)
    elif verdict.refused:
        record_corpus(refused=1)
    else:
        record_corpus(right=1)
    assert not verdict.wrong, "\n".join([f"{table} is wrong:", *verdict.wrong])


def test_no_table_of_the_corpus_is_left_out(corpus: Path) -> None:
    logs = (corpus / "delta").glob("**/_delta_log")

    assert sorted(log.parent.relative_to(corpus / "delta").as_posix() for log in logs) == sorted(_TABLES)


def test_a_row_too_many_is_told_as_wrong(corpus: Path) -> None:
    def one_row_twice(rows: pa.Table) -> tuple[int, str]:
        return table_digest(pa.concat_tables([rows, rows.slice(0, 1)]))

    verdict = judge("dat/basic_append", _TABLES["dat/basic_append"], root=corpus / "delta", digest=one_row_twice)

    assert [line.split(" are")[0] for line in verdict.wrong] == ["0: rows", "1: rows", "append_stream: rows"]


def test_a_file_too_few_is_told_as_wrong(corpus: Path) -> None:
    expected = json.loads(json.dumps(_TABLES["dat/basic_append"]))
    paths = expected["files"]["1"]["paths"]
    assert paths_sha256(paths) == expected["files"]["1"]["paths_sha256"]
    expected["files"]["1"] |= {"active": 3, "paths_sha256": paths_sha256([*paths, "one-more.parquet"])}

    verdict = judge("dat/basic_append", expected, root=corpus / "delta")

    assert [line.split(" are")[0] for line in verdict.wrong] == ["1: files"]


def test_an_error_that_is_not_ours_is_told_as_wrong(corpus: Path) -> None:
    def foreign(_: pa.Table) -> tuple[int, str]:
        raise pa.ArrowInvalid("not ours")

    verdict = judge("dat/basic_append", _TABLES["dat/basic_append"], root=corpus / "delta", digest=foreign)

    assert verdict.wrong[0] == "0: an error that is not ours: ArrowInvalid('not ours')"


def test_a_table_is_not_to_be_refused_for_a_feature_that_it_has_not(corpus: Path) -> None:
    table = "deltars-errlogs/table_d"
    plain = json.loads(json.dumps(_TABLES[table]))
    plain["info"]["reader_features"] = []

    verdict = judge(table, plain, root=corpus / "delta")

    assert verdict.refused == {"catalogOwned"} <= REFUSED_FEATURES
    assert verdict.wrong
    assert all("refused for what it has not" in line for line in verdict.wrong)
