"""Compares a copy with its source, row by row (`verify=True`).

Rows are read as any reader reads them, with deletion vectors and column mapping. The digest of a table does not depend
on the order of its files: it is the sum of one SHA-256 for each, over all columns, the order of rows and their ids.
Where rows were copied and not files, it is the sum of one SHA-256 for each row.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import pyarrow as pa

from tablefeed.delta.columns import to_add_files
from tablefeed.errors import ReplicaDiffersError
from tablefeed.feed.scan.table_scan import table_scan
from tablefeed.feed.scan.task import read_task
from tablefeed.feed.snapshot.table_log import Snapshot
from tablefeed.model.schema import Struct, plain


def check_equal(source: Snapshot, target: Snapshot, *, by_rows: bool = False) -> None:
    """Raises ReplicaDiffersError where the two do not have the same columns, partitioning and rows."""
    shapes = [shape_of(each) if by_rows else (each.arrow_schema, shape_of(each)[1]) for each in (source, target)]
    said = "the columns are not the same"
    if shapes[0] == shapes[1]:
        (rows, digest), (other_rows, other_digest) = (digest_of(each, by_rows=by_rows) for each in (source, target))
        if (rows, digest) == (other_rows, other_digest):
            return
        said = f"it has {other_rows} rows, not {rows}" if rows != other_rows else "some rows are not the same"
    raise ReplicaDiffersError(
        f"Version {target.version} of {target.url} is not equal to version {source.version} of {source.url}: {said}. "
        "Its files may have been changed by hand. Copy the source to another path, and compare.",
        url=target.url,
        source_version=source.version,
        target_version=target.version,
    )


def shape_of(table: Snapshot) -> tuple[Struct, Sequence[str]]:
    """Gives the names and types of the columns, and the partitioning. NOT NULL does not count: rows do not bring it."""
    return plain(table.schema), table.metadata.partition_columns


def digest_of(table: Snapshot, *, by_rows: bool = False) -> tuple[int, str]:
    """Gives the number of rows and their digest."""
    scan, rows, total = table_scan(table), 0, 0
    for files in table.live_files():
        for add in to_add_files(files):
            found = hashlib.sha256(repr((add.base_row_id, add.default_row_commit_version)).encode())
            for batch in read_task(scan.of([add]), table.arrow_schema, store=table.log.store):
                rows += batch.num_rows
                if by_rows:
                    columns = (column.cast(in_python(column.type)).to_pylist() for column in batch.columns)
                    texts = map(repr, zip(*columns, strict=True))
                    total += sum(int.from_bytes(hashlib.sha256(row.encode()).digest()) for row in texts)
                else:
                    found.update(batch.serialize())
            total += 0 if by_rows else int.from_bytes(found.digest(), "big")
    return rows, f"{total % (1 << 256):064x}"


def in_python(kind: pa.DataType) -> pa.DataType:
    """Gives the type of the same values that Python always has objects for: bytes for texts, numbers for times."""
    is_a = pa.types
    if is_a.is_string(kind):
        return pa.binary()
    if is_a.is_date(kind) or is_a.is_timestamp(kind):
        return pa.int32() if is_a.is_date(kind) else pa.int64()
    if is_a.is_struct(kind):
        return pa.struct([(member.name, in_python(member.type)) for member in kind])
    if is_a.is_map(kind):
        return pa.map_(in_python(kind.key_type), in_python(kind.item_type))
    return pa.list_(in_python(kind.value_type)) if is_a.is_list(kind) else kind
