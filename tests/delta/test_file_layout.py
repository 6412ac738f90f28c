"""How a table wants its files: by its properties, and by the write where that says so."""

from __future__ import annotations

import pytest

from tablefeed.delta.file_layout import Codec, FileShape, data_pages, file_shape, named_codec
from tablefeed.delta.properties import TableProperties
from tablefeed.errors import UnsupportedFeatureError


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
        ("Brotli", Codec.BROTLI),
        ("", None),
    ],
)
def test_a_codec_has_its_name_in_any_case_and_others_are_none_of_ours(name: str, codec: Codec | None) -> None:
    assert named_codec(name) is codec


def test_a_write_asks_before_the_table_does() -> None:
    zstd = TableProperties({"delta.parquet.compression.codec": "zstd", "delta.targetFileSize": "1mb"})

    assert file_shape(TableProperties({})) == FileShape(codec=None, target_bytes=None, most_rows=None)
    assert file_shape(zstd) == FileShape(codec=Codec.ZSTD, target_bytes=1 << 20)
    assert file_shape(zstd, codec=Codec.GZIP, most_rows=7) == FileShape(
        codec=Codec.GZIP, target_bytes=1 << 20, most_rows=7
    )


def test_files_are_named_after_their_codec_and_after_snappy_where_the_writer_chooses() -> None:
    shapes = [FileShape(), FileShape(codec=Codec.ZSTD), FileShape(codec=Codec.UNCOMPRESSED)]

    assert [shape.suffix for shape in shapes] == [".snappy", ".zstd", ""]


def test_small_files_are_gathered_where_the_write_or_else_the_table_asks_for_it() -> None:
    table, other = TableProperties({"delta.autoOptimize.optimizeWrite": "TRUE"}), TableProperties({})

    asked = (None, False, True)
    assert [file_shape(table, gathered=said).is_gathered for said in asked] == [True, False, True]
    assert [file_shape(other, gathered=said).is_gathered for said in asked] == [False, False, True]


def test_a_codec_that_is_not_written_refuses_the_write_unless_that_names_another() -> None:
    hadoops = TableProperties({"delta.parquet.compression.codec": "lz4"})

    with pytest.raises(UnsupportedFeatureError, match=r"table> asks for files compressed by 'lz4' \(delta\.parquet"):
        file_shape(hadoops)
    assert file_shape(hadoops, codec=Codec.LZ4_RAW).codec is Codec.LZ4_RAW


@pytest.mark.parametrize(
    ("version", "pages"), [("1.0.0", "1.0"), ("2.12.0", "2.0"), ("2.0.1", "2.0"), ("1.1.0", None), ("3.0.0", None)]
)
def test_a_table_says_the_version_of_data_pages_and_others_are_refused(version: str, pages: str | None) -> None:
    asked = TableProperties({"delta.parquet.format.version": version})

    assert data_pages(version) == pages
    if pages is not None:
        assert file_shape(asked).data_pages == pages
        return
    with pytest.raises(UnsupportedFeatureError, match=r"table> asks for files in version '[13.0]*' of Parquet"):
        file_shape(asked)


@pytest.mark.parametrize(
    ("properties", "letters"),
    [
        ({}, None),
        ({"delta.randomizeFilePrefixes": "false", "delta.randomPrefixLength": "3"}, None),
        ({"delta.randomizeFilePrefixes": "TRUE"}, 2),
        ({"delta.randomizeFilePrefixes": "true", "delta.randomPrefixLength": "5"}, 5),
        ({"delta.randomizeFilePrefixes": "true", "delta.randomPrefixLength": "0"}, 2),
        ({"delta.randomizeFilePrefixes": "true", "delta.randomPrefixLength": "999999999"}, 255),
    ],
)
def test_folders_are_random_where_the_table_says_so(properties: dict[str, str], letters: int | None) -> None:
    shape = file_shape(TableProperties(properties))

    assert (shape.folder_letters if shape.random_folders else None) == letters
