"""By which columns the files that a commit changed are partitioned: as the snapshots read them before and after it.

A removed file was live in the version before, so that its partition columns are those of the metadata of then; an
added one, and one of changes, is partitioned as the metadata says that holds at the commit. Which keys their partition
values have does not decide it: a key that is none of those columns means nothing, and a missing one is null, for
Delta-Spark leaves the nulls out of a remove.
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
    """Gives `changed`, the files of `commit`, with the partition values that their columns are found in, and no others.

    `in_force` holds at the commit, `before` held before it; None: that is not known any more, and a removed file is
    taken for partitioned as of now only where it has a value of each column. Raises ChangeDataError for a removed file
    whose values are not told (DELTA_REMOVE_FILE_CDC_MISSING_EXTENDED_METADATA).
    """
    if not changed:
        return ()
    now = partition_names(in_force, url=url)
    then = now if before is None or before is in_force else partition_names(before, url=url)

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
        f"Version {commit.version} of {url} removes the file {file.path} without saying its partition values: which "
        "rows were deleted cannot be told. Read from a later version.",
        url=url,
        version=commit.version,
        error_class="DELTA_REMOVE_FILE_CDC_MISSING_EXTENDED_METADATA",
    )
