"""Reads deletion vectors from a table's store. `tablefeed.delta.deletion_vectors` decodes their bytes."""

from __future__ import annotations

from pyroaring import BitMap64

from tablefeed.delta.deletion_vectors import BadVectorError, decode_inline, decode_stored, stored_at
from tablefeed.errors import DataFileError, ObjectNotFoundError
from tablefeed.feed.snapshot.table_files import TableFiles
from tablefeed.model.actions import DeletionVector


def deleted_positions(files: TableFiles, vector: DeletionVector, *, of_file: str) -> BitMap64:
    """Gives the row positions (from 0) of the data file `of_file` that `vector` deletes. Nothing is kept.

    Raises DataFileError where it is gone, damaged, or differs from what the log says, LogError where its path may not
    be opened.
    """
    try:
        stored = stored_at(vector)
        if stored is None:
            return decode_inline(vector)
        return decode_stored(files.read(stored.path, start=stored.start, end=stored.end), vector)
    except (ObjectNotFoundError, BadVectorError) as error:
        is_gone = isinstance(error, ObjectNotFoundError)
        what = "is gone, though the log still names it" if is_gone else str(error)
        raise DataFileError(
            f"The deletion vector of the data file {of_file} of {files.url} {what}. Without it deleted rows would come "
            "back: restore it from a copy, or remove the file from the table.",
            url=files.url,
            path=of_file,
            error_class="DELTA_FILE_NOT_FOUND" if is_gone else "DELTA_DELETION_VECTOR_INVALID",
        ) from error
