"""The layout of data files that a table or a write asks for: codec, data pages, size, number of rows, folders.

PROTOCOL.md, "Table Properties" (`delta.parquet.compression.codec`, `delta.parquet.format.version`). The size is a
property of Databricks and delta-rs, the random folders are Delta-Spark's. The layout does not change what readers read.
So a size that cannot be parsed is ignored, and the default used. An unknown codec or version is refused: the table's
readers may accept no other.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from tablefeed.delta import names
from tablefeed.delta.properties import TableProperties
from tablefeed.errors import TABLE, UnsupportedFeatureError


class Codec(StrEnum):
    """How the pages of a Parquet file are compressed. The value is what Spark puts before `.parquet` in file names."""

    SNAPPY = ".snappy"
    ZSTD = ".zstd"
    GZIP = ".gz"
    BROTLI = ".br"
    LZ4_RAW = ".lz4raw"
    UNCOMPRESSED = ""


DataPages = Literal["1.0", "2.0"]
"""The version of the data pages of a Parquet file, as Arrow names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileShape:
    """The codec and data pages of files, the size in bytes at which one is closed, and the most rows that it may have.

    None: the writer chooses. `is_gathered`: small files of a write's tasks are combined into larger ones.
    `random_folders`: files are in folders with random names of `folder_letters` letters, not in folders of their
    partitions. A table with column mapping always has such folders.
    """

    codec: Codec | None = None
    data_pages: DataPages = "1.0"
    target_bytes: int | None = None
    most_rows: int | None = None
    is_gathered: bool = False
    random_folders: bool = False
    folder_letters: int = 2

    @property
    def suffix(self) -> str:
        """What the names of files have before `.parquet`."""
        return Codec.SNAPPY if self.codec is None else self.codec


def file_shape(
    properties: TableProperties,
    *,
    codec: Codec | None = None,
    most_rows: int | None = None,
    gathered: bool | None = None,
) -> FileShape:
    """The shape that the write asks for, and where it does not, the table's `properties`.

    Where neither names a codec, the writer chooses between snappy, as in Delta-Spark, and none; the protocol only
    recommends zstd. Raises UnsupportedFeatureError for a codec or a version of Parquet that is not written here.
    """
    wanted = named_codec(properties.codec) if properties.codec else None
    if codec is None and wanted is None and properties.codec:
        raise UnsupportedFeatureError(
            f"{TABLE} asks for files compressed by {properties.codec!r} ({names.COMPRESSION_CODEC}), which this "
            "version of tablefeed does not write. Nothing was written. Set another with the option compression, or "
            "change the property.",
            features=(names.COMPRESSION_CODEC,),
        )
    pages = data_pages(properties.parquet_version)
    if pages is None:
        raise UnsupportedFeatureError(
            f"{TABLE} asks for files in version {properties.parquet_version!r} of Parquet ({names.PARQUET_VERSION}), "
            f"which must be {VERSIONS}. Nothing was written. Change the property.",
            features=(names.PARQUET_VERSION,),
        )
    return FileShape(
        codec=wanted if codec is None else codec,
        data_pages=pages,
        target_bytes=properties.target_file_bytes,
        most_rows=most_rows,
        is_gathered=properties.gathers_files if gathered is None else gathered,
        random_folders=properties.has_random_folders,
        folder_letters=properties.folder_letters,
    )


def named_codec(name: str) -> Codec | None:
    """The codec `name`, in any case; None for a codec that is not written here, such as Hadoop's own lz4."""
    return _CODECS.get(name.strip().lower())


def data_pages(version: str) -> DataPages | None:
    """The data pages of that `version` of Parquet; None for a version that the protocol does not allow."""
    if version == "1.0.0":
        return "1.0"
    return "2.0" if re.fullmatch(r"2\.[0-9]+\.[0-9]+", version) else None


VERSIONS = "1.0.0 or 2.MINOR.PATCH, such as 2.12.0"
"""The versions that `data_pages` knows, for error messages."""

_CODECS = {
    "snappy": Codec.SNAPPY,
    "zstd": Codec.ZSTD,
    "gzip": Codec.GZIP,
    "brotli": Codec.BROTLI,
    "lz4_raw": Codec.LZ4_RAW,
    "uncompressed": Codec.UNCOMPRESSED,
    "none": Codec.UNCOMPRESSED,
}
CODECS = "'snappy', 'zstd', 'gzip', 'brotli', 'lz4_raw' or 'uncompressed'"
"""The names of all codecs, for error messages."""
