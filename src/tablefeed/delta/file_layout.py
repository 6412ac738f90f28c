"""The layout of data files that a table or a write asks for: codec, size, number of rows, folders.

PROTOCOL.md, "Table Properties" (`delta.parquet.compression.codec`). The size is a property of Databricks and delta-rs,
the random folders are Delta-Spark's. The layout does not change what readers read. So a size that cannot be parsed is
ignored, and the default used. An unknown codec is refused: the table's readers may accept no other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from tablefeed.delta import names
from tablefeed.errors import UnsupportedFeatureError


class Codec(StrEnum):
    """How the pages of a Parquet file are compressed. The value is what Spark puts before `.parquet` in file names."""

    SNAPPY = ".snappy"
    ZSTD = ".zstd"
    GZIP = ".gz"
    BROTLI = ".br"
    LZ4_RAW = ".lz4raw"
    UNCOMPRESSED = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileShape:
    """The codec of files, the size in bytes at which a file is closed, and the most rows that it may have.

    None: the writer chooses. `is_gathered`: small files of a write's tasks are combined into larger ones.
    `random_folders`: files are in folders with random names of `folder_letters` letters, not in folders of their
    partitions. A table with column mapping always has such folders.
    """

    codec: Codec = Codec.SNAPPY
    target_bytes: int | None = None
    most_rows: int | None = None
    is_gathered: bool = False
    random_folders: bool = False
    folder_letters: int = 2


def file_shape(
    properties: Mapping[str, str],
    *,
    codec: Codec | None = None,
    most_rows: int | None = None,
    gathered: bool | None = None,
    url: str,
) -> FileShape:
    """The shape that the write asks for, and where it does not, the table's `properties`.

    Where neither names a codec it is snappy, as in Delta-Spark; the protocol only recommends zstd. Raises
    UnsupportedFeatureError for a codec that is not written here.
    """
    name = properties.get(names.COMPRESSION_CODEC, "")
    wanted = named_codec(name) if name else Codec.SNAPPY
    if codec is None and wanted is None:
        raise UnsupportedFeatureError(
            f"{url} asks for files compressed by {name!r} ({names.COMPRESSION_CODEC}), which this version of tablefeed "
            "does not write. Nothing was written. Set another with the option compression, or change the property.",
            url=url,
            features=(names.COMPRESSION_CODEC,),
        )
    letters = properties.get(names.RANDOM_PREFIX_LENGTH, "")
    if gathered is None:
        gathered = properties.get(names.OPTIMIZE_WRITE, "").lower() == "true"
    return FileShape(
        codec=codec or wanted or Codec.SNAPPY,
        target_bytes=target_file_bytes(properties),
        most_rows=most_rows,
        is_gathered=gathered,
        random_folders=properties.get(names.RANDOMIZE_FILE_PREFIXES, "").lower() == "true",
        folder_letters=min(int(letters), _LONGEST_NAME) if _WHOLE.fullmatch(letters) else 2,
    )


_WHOLE = re.compile(r"\+?0*[1-9][0-9]{0,9}")
_LONGEST_NAME = 255
"""The longest folder name that every store allows."""


def named_codec(name: str) -> Codec | None:
    """The codec `name`, in any case; None for a codec that is not written here, such as Hadoop's own lz4."""
    return _CODECS.get(name.strip().lower())


def target_file_bytes(properties: Mapping[str, str]) -> int | None:
    """The file size in bytes that the table asks for; None where it names none, or one that cannot be parsed."""
    found = _SIZE.fullmatch(properties.get(names.TARGET_FILE_SIZE, "").strip().lower())
    return (int(found["number"]) << _SHIFTS[found["unit"][:1]]) or None if found else None


_SIZE = re.compile(r"(?P<number>[0-9]{1,18})\s*(?P<unit>(?:[kmgt]b?|b)?)")
_SHIFTS = {"": 0, "b": 0, "k": 10, "m": 20, "g": 30, "t": 40}
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
