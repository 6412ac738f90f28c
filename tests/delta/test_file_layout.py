"""How a table wants its files: by its properties, and by the write where that says so."""

from __future__ import annotations

import pytest

from tablefeed.delta.file_layout import Codec, FileShape, file_shape, named_codec, target_file_bytes


@pytest.mark.parametrize(
    ("name", "codec"),
    [
        ("ZSTD", Codec.ZSTD),
        (" snappy ", Codec.SNAPPY),
        ("none", Codec.UNCOMPRESSED),
        ("uncompressed", Codec.UNCOMPRESSED),
        ("gzip", Codec.GZIP),
        ("lz4_raw", Codec.LZ4_RAW),
        ("lz4", None),
        ("brotli", None),
        ("", None),
    ],
)
def test_a_codec_has_its_name_in_any_case_and_others_are_none_of_ours(name: str, codec: Codec | None) -> None:
    assert named_codec(name) is codec


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("104857600", 104857600),
        ("128mb", 128 << 20),
        ("1 GB", 1 << 30),
        ("16k", 16 << 10),
        ("0", None),
        ("", None),
        ("large", None),
        ("-1", None),
        ("9" * 40, None),
    ],
)
def test_a_target_size_is_bytes_or_has_a_unit_and_what_cannot_be_read_is_none(text: str, size_bytes: int) -> None:
    assert target_file_bytes({"delta.targetFileSize": text}) == size_bytes


def test_a_write_asks_before_the_table_does_and_a_codec_that_nobody_here_writes_is_snappy() -> None:
    zstd = {"delta.parquet.compression.codec": "zstd", "delta.targetFileSize": "1mb"}

    assert file_shape({}) == FileShape(codec=Codec.SNAPPY, target_bytes=None, most_rows=None)
    assert file_shape(zstd) == FileShape(codec=Codec.ZSTD, target_bytes=1 << 20)
    assert file_shape(zstd, codec=Codec.GZIP, most_rows=7) == FileShape(
        codec=Codec.GZIP, target_bytes=1 << 20, most_rows=7
    )
    assert file_shape({"delta.parquet.compression.codec": "brotli"}).codec is Codec.SNAPPY


def test_small_files_are_gathered_where_the_write_or_else_the_table_asks_for_it() -> None:
    table = {"delta.autoOptimize.optimizeWrite": "TRUE"}

    assert [file_shape(table, gathered=said).is_gathered for said in (None, False, True)] == [True, False, True]
    assert [file_shape({}, gathered=said).is_gathered for said in (None, False, True)] == [False, False, True]
