"""Checks in the tasks of an overwrite that their rows match its predicate (`replaceWhere`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from tablefeed.errors import TABLE, InvalidRowsError
from tablefeed.feed.write.replaced_files import ReplacedFiles
from tablefeed.feed.write.replacement import Replaces, matches
from tablefeed.feed.write.write_rules import Scope
from tablefeed.model.actions import AddFile

if TYPE_CHECKING:
    import pyarrow as pa

    from tablefeed.data.predicate import RowFilter


def as_replaced(batches: Iterable[pa.RecordBatch], replaces: Replaces) -> Iterator[pa.RecordBatch]:
    """Gives `batches`, new rows in the table's columns, after checking that each row matches a predicate by row.

    Raises InvalidRowsError for the first row for which it is false or null. Without a predicate by row nothing is
    checked.
    """
    rows = replaces.by_row
    return iter(batches) if rows is None else (_held(batch, rows, replaces) for batch in batches)


def _held(batch: pa.RecordBatch, rows: RowFilter, replaces: Replaces) -> pa.RecordBatch:
    import pyarrow.compute as pc

    from tablefeed.data.partition import empty_is_null
    from tablefeed.data.rule_evaluation import shown_row

    asked = empty_is_null(batch.select(rows.fields.names), [n for n in rows.fields.names if n in replaces.partitions])
    first = pc.index(matches(asked, rows), False).as_py()
    if first >= 0:
        shown = shown_row(asked, first, [(name,) for name in rows.fields.names])
        raise _mismatch(replaces, f". One has the values:\n{shown}\n")
    return batch


def check_partitions(files: Sequence[AddFile], replaces: Replaces) -> None:
    """Raises InvalidRowsError where a partition of the written `files` does not match a predicate on partitions."""
    if isinstance(replaces.scope, Scope) or not files or replaces.by_row is not None:
        return  # no predicate, or one that each row was checked against
    is_among = ReplacedFiles(replaces, ()).among([file.partition_values for file in files])
    for file, matched in zip(files, is_among, strict=True):
        if not matched:
            values = ", ".join(f"{name}={text}" for name, text in file.partition_values.items())
            raise _mismatch(replaces, f": some have {values}. ")


def _mismatch(replaces: Replaces, shown: str) -> InvalidRowsError:
    return InvalidRowsError(
        f"Rows for {TABLE} are not as replaceWhere says, {replaces.text!r}{shown}Nothing was written; filter them, or "
        "replace more.",
        error_class="DELTA_REPLACE_WHERE_MISMATCH",
    )
