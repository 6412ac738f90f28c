"""Writes the removes of live files as lines of a commit, from columns: an overwrite has one for each live file.

The lines mean the same as those of `codec.encode_commit`, but no Python object is built for a file.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.delta import fields, names
from tablefeed.delta.checkpoint.checksum_writer import FileCounts, Tally
from tablefeed.delta.json_texts import number_texts, object_texts, string_texts, texts_of_map

_ROWS = 8192
"""Lines that are made at once: some megabytes, far below the two gigabytes that a text column can hold."""

_LET_GO_OF = 8  # that many buffers are about 16 MB


class Removal:
    """Collects and counts the live files that one commit removes, and writes the lines of their removes."""

    def __init__(self, *, deletion_timestamp_ms: int) -> None:
        self._deletion_timestamp_ms = deletion_timestamp_ms
        self._lines: list[pa.Buffer] = []
        self._tally = Tally()

    def take(self, files: pa.RecordBatch) -> None:
        """Adds the live `files` (`columns.FILE_COLUMNS`)."""
        if files.num_rows:
            self._tally.take(files)
        for begin in range(0, files.num_rows, _ROWS):
            self._lines.append(_lines(files.slice(begin, _ROWS), self._deletion_timestamp_ms))

    @property
    def counts(self) -> FileCounts:
        """The counts of all files added so far."""
        return self._tally.result()

    def lines(self) -> Iterator[memoryview]:
        """Yields the lines in the order of the files, many at a time. Works only once: what was yielded is freed.

        So a commit of a million lines is not in memory twice while its bytes are joined.
        """
        self._lines.reverse()
        pool = pa.default_memory_pool()
        while self._lines:
            if len(self._lines) % _LET_GO_OF == 0:
                pool.release_unused()  # the pool would keep the freed memory, while as much is allocated elsewhere
            yield memoryview(self._lines.pop())


def _lines(files: pa.RecordBatch, deletion_timestamp_ms: int) -> pa.Buffer:
    vectors = files["deletion_vector"]
    wire = fields.REMOVE_FIELDS
    # The fields of `fields.write_action`, in its order; as there, null fields are left out.
    removes = object_texts(
        {
            wire["log_path"]: string_texts(files["log_path"]),
            wire["deletion_timestamp_ms"]: str(deletion_timestamp_ms),
            wire["data_change"]: "true",
            wire["extended_file_metadata"]: "true",
            wire["partition_values"]: texts_of_map(files["partition_values"]),
            wire["size_bytes"]: number_texts(files["size_bytes"]),
            wire["tags"]: texts_of_map(files["tags"], null_values=False),
            wire["deletion_vector"]: _vector_texts(vectors) if vectors.null_count < len(vectors) else None,
            wire["base_row_id"]: number_texts(files["base_row_id"]),
            wire["default_row_commit_version"]: number_texts(files["default_row_commit_version"]),
        },
        files.num_rows,
    )
    lines = pc.binary_join_element_wise(f'{{"{names.REMOVE}":', removes, "}\n", "")
    _, offsets, text = lines.buffers()
    ends = pa.Array.from_buffers(pa.int32(), len(lines) + 1, [None, offsets], offset=lines.offset)
    return text.slice(ends[0].as_py(), ends[-1].as_py() - ends[0].as_py())


def _vector_texts(vectors: pa.StructArray) -> pa.StringArray:
    wire = fields.DELETION_VECTOR_FIELDS

    def member(name: str) -> pa.Array:
        return pc.struct_field(vectors, name)

    texts = object_texts(
        {
            wire["storage_type"]: string_texts(member("storage_type")),
            wire["path_or_inline"]: string_texts(member("path_or_inline")),
            wire["offset"]: number_texts(member("offset")),
            wire["size_bytes"]: number_texts(member("size_bytes")),
            wire["cardinality"]: number_texts(member("cardinality")),
        },
        len(vectors),
    )
    return pc.if_else(vectors.is_valid(), texts, pa.scalar(None, pa.string()))
