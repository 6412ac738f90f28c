"""The partition columns of the files that a commit changed.

A removed file was live in the version before, so it has the partition columns of the metadata before the commit. An
added file and a file of changes have those of the metadata at the commit. The keys of a file's partition values do not
decide: a key that is no partition column is ignored, and a missing key means null, because Delta-Spark leaves nulls out
of a remove.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tablefeed.delta.schema.partitioning import of_columns, partition_names
from tablefeed.errors import ChangeDataError
from tablefeed.log.changes import ChangedFile, ChangeType
from tablefeed.model.actions import Commit, Metadata


def partitioned(
    changed: Sequence[ChangedFile], commit: Commit, *, in_force: Metadata, before: Metadata | None, url: str
) -> tuple[ChangedFile, ...]:
    """Gives `changed`, the files of `commit`, each with the values of exactly its partition columns.

    `in_force` is the metadata at the commit, `before` the one before it; None: not known any more. Then a removed file
    is read with the partition columns of `in_force`, if it has values of exactly these. Raises ChangeDataError
    (DELTA_REMOVE_FILE_CDC_MISSING_EXTENDED_METADATA) for a removed file whose partition values are not known.
    """
    if not changed:
        return ()
    now = partition_names(in_force)
    then = now if before is None or before is in_force else partition_names(before)

    def of(file: ChangedFile) -> ChangedFile:
        removed = file.change_type is ChangeType.DELETE
        names = then if removed else now
        values = file.partition_values
        if values is not None and values.keys() == set(names):
            return file
        if removed and (before is None or (values is None and names)):
            raise _unpartitioned(file, commit, url=url)
        return replace(file, partition_values=of_columns(values or {}, names))

    return tuple(map(of, changed))


def _unpartitioned(file: ChangedFile, commit: Commit, *, url: str) -> ChangeDataError:
    return ChangeDataError(
        f"Version {commit.version} of {url} removes the file {file.path} without its partition values, so the "
        "deleted rows are not known. Read from a later version.",
        url=url,
        version=commit.version,
        error_class="DELTA_REMOVE_FILE_CDC_MISSING_EXTENDED_METADATA",
    )
