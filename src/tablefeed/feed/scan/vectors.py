"""Reads deletion vectors from a table's store. `tablefeed.delta.deletion_vectors` decodes their bytes."""

from __future__ import annotations

from pyroaring import BitMap64

from tablefeed.delta.deletion_vectors import BadVectorError, decode_inline, decode_stored, stored_at
from tablefeed.errors import DataFileError, ObjectNotFoundError
from tablefeed.feed.snapshot.table_files import TableFiles
from tablefeed.model.actions import DeletionVector


class VectorReader:
    """Reads the deletion vectors of one table. Each call reads the vector again; none is kept."""

    def __init__(self, files: TableFiles) -> None:
        self._files = files

    def positions(self, vector: DeletionVector, *, of_file: str) -> BitMap64:
        """Gives the row positions (from 0) of the data file `of_file` that `vector` deletes.

        Raises DataFileError where it is gone, damaged, or differs from what the log says, LogError where its path may
        not be opened.
        """
        try:
            stored = stored_at(vector)
            if stored is None:
                return decode_inline(vector)
            block = self._files.read(stored.path, start=stored.start, end=stored.end)
            return decode_stored(block, vector)
        except ObjectNotFoundError as error:
            raise self._refuse(of_file, "is gone, though the log still names it", "DELTA_FILE_NOT_FOUND") from error
        except BadVectorError as error:
            raise self._refuse(of_file, str(error), "DELTA_DELETION_VECTOR_INVALID") from error

    def _refuse(self, of_file: str, what: str, error_class: str) -> DataFileError:
        return DataFileError(
            f"The deletion vector of the data file {of_file} of {self._files.url} {what}. Without it deleted rows "
            "would come back: restore it from a copy, or remove the file from the table.",
            url=self._files.url,
            path=of_file,
            error_class=error_class,
        )
