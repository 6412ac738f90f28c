"""One commit file in columns, as a segment's reader decodes it."""

from __future__ import annotations

import pyarrow as pa

from tablefeed.delta.columns import FileRows, decode_commit_into
from tablefeed.model.actions import Commit, Version


def decode_commit_columns(
    data: bytes, *, version: Version, log_file: str, modified_ms: int
) -> tuple[list[pa.RecordBatch], Commit]:
    """Gives the adds and removes of one commit file as batches of `FILE_COLUMNS`, and its other actions as a Commit."""
    rows = FileRows()
    commit = decode_commit_into(rows, data, version=version, log_file=log_file, modified_ms=modified_ms)
    return [*rows.full(), *rows.rest()], commit
