"""The log in which one stream tracks the metadata of its table: files 0, 1, 2... of one directory, never replaced.

Directory name and format are Delta-Spark's, so that a stream can move to the Delta JAR and back. What an entry means is
in `schema_tracking`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

from tablefeed.delta.tracked import TrackedMetadata, decode_entry, encode_entry
from tablefeed.errors import ObjectNotFoundError, SchemaLogError, StoreError, naming
from tablefeed.feed.snapshot.table_files import for_store
from tablefeed.store import Store, Within, open_store
from tablefeed.store.address import parse_address

_LEVELS_ABOVE = 8
"""How many folders, from the location upwards, are searched for the checkpoint. It is usually the first or second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackedEntry:
    """One entry of the log: its number and the metadata in it."""

    number: int
    metadata: TrackedMetadata

    @property
    def follows(self) -> int:
        """The number of the entry that this one follows; -1: it is the first."""
        return self.number - 1 if self.metadata.previous is None else self.metadata.previous

    @property
    def is_of_barrier(self) -> bool:
        """Whether everything before its version was delivered when it was written.

        False for the first entry, and for one that replaced another: both may be of the version where a stream begins.
        """
        return self.number > 0 and self.metadata.previous is None


class SchemaLog:
    """The log in `directory` of `store`, for one stream of the table with `table_id`.

    Raises SchemaLogError for an entry that is damaged or belongs to another table, and StoreError.
    """

    def __init__(self, store: Store, directory: str, *, table_id: str) -> None:
        self._store, self._directory, self._table_id = store, directory, table_id
        self.url = f"{store.url.rstrip('/')}/{directory}"

    def newest(self) -> TrackedEntry | None:
        """Gives the newest entry, None where there is none yet."""
        names = (entry.name for entry in self._store.list(self._directory))
        # The directory may also have files that are no entries, such as Hadoop's checksums and temporary files.
        numbers = [int(name) for name in names if name.isascii() and name.isdecimal()]
        return self.entry(max(numbers)) if numbers else None

    def before(self, entry: TrackedEntry) -> TrackedEntry | None:
        """Gives the entry that `entry` follows, None for the first."""
        return self.entry(entry.follows) if entry.follows >= 0 else None

    def entry(self, number: int) -> TrackedEntry:
        """Gives the entry `number`, which must exist. Raises SchemaLogError where it does not."""
        name = self._name(number)
        try:
            data = self._store.read(name)
        except ObjectNotFoundError as error:
            raise SchemaLogError(
                f"The log of tracked metadata at {self.url} has no entry {number}, but a later entry exists. "
                "Restore the file, or give the stream a new schemaTrackingLocation.",
                url=self.url,
                error_class="DELTA_STREAMING_SCHEMA_LOG_DESERIALIZE_FAILED",
            ) from error
        with naming(f"{self.url}/{number}"):
            metadata = decode_entry(data)
        if metadata.table_id != self._table_id:
            raise SchemaLogError(
                f"The metadata tracked at {self.url} is of the table with id {metadata.table_id}, but the stream reads "
                f"the table with id {self._table_id}. Give the stream a schemaTrackingLocation of its own.",
                url=self.url,
                error_class="DELTA_STREAMING_SCHEMA_LOG_INCOMPATIBLE_DELTA_TABLE_ID",
            )
        return TrackedEntry(number=number, metadata=metadata)

    def replace(self, entry: TrackedEntry, metadata: TrackedMetadata) -> TrackedEntry:
        """Writes an entry that counts instead of `entry`, the newest: it follows what `entry` did. Raises as `add`."""
        return self.add(replace(metadata, previous=entry.follows), after=entry)

    def add(self, metadata: TrackedMetadata, *, after: TrackedEntry | None) -> TrackedEntry:
        """Writes the entry after `after`, the newest that this stream knows of (None: the log is empty).

        Raises SchemaLogError (DELTA_STREAMING_SCHEMA_LOCATION_CONFLICT) where that entry exists by now. It may have
        the same metadata: another stream that met the same change writes the same bytes.
        """
        number = 0 if after is None else after.number + 1
        # Where the checkpoint was deleted while the stream runs, the put fails: it would make a log without its begin.
        within = None if after is None else Within(directory=self._directory)
        if not self._store.put_if_absent(self._name(number), encode_entry(metadata), within=within):
            raise SchemaLogError(
                f"Entry {number} of the log of tracked metadata at {self.url} was written by another process: "
                "another stream uses that log, or this stream runs twice. Give each source a schemaTrackingLocation or "
                "a streamingSourceTrackingId of its own. If there is only one source, start it again.",
                url=self.url,
                error_class="DELTA_STREAMING_SCHEMA_LOCATION_CONFLICT",
            )
        return TrackedEntry(number=number, metadata=metadata)

    def _name(self, number: int) -> str:
        return f"{self._directory}/{number}"


def source_path(location: str, storage_options: Mapping[str, str]) -> str:
    """Gives the stream's folder in its checkpoint, by which Delta-Spark knows that the log belongs to the stream.

    Spark does not give a Python source its checkpoint's path. So it is taken to be the nearest folder, at or above
    `location`, that has a query's file `metadata`, and the source to be the query's first. Empty without such a folder.
    """
    folder = location.rstrip("/")
    if parse_address(location).scheme == "file":
        folder = "file:" + parse_address(location).location
    for _ in range(_LEVELS_ABOVE):
        if _is_checkpoint(folder, storage_options):
            return f"{folder}/sources/0"
        folder, slash, _last = folder.rpartition("/")
        if not slash or folder.endswith(("/", ":")):
            break
    return ""


def _is_checkpoint(folder: str, storage_options: Mapping[str, str]) -> bool:
    try:
        values = json.loads(open_store(folder, for_store(storage_options)).read("metadata"))
    except (StoreError, ValueError):
        return False  # not worth an error: only the name in the entry depends on this
    return isinstance(values, dict) and isinstance(values.get("id"), str)
