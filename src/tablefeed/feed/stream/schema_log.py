"""The log in which one stream tracks the metadata of its table: files 0, 1, 2... of one directory, never replaced.

Place and format are Delta-Spark's, so that a stream moves between the two. What an entry means is `schema_tracking`'s.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

from tablefeed.delta.tracked import TrackedMetadata, decode_entry, encode_entry
from tablefeed.errors import ObjectNotFoundError, SchemaLogError, StoreError
from tablefeed.feed.snapshot.table_files import for_store
from tablefeed.store import Store, Within, open_store
from tablefeed.store.address import parse

_LEVELS_ABOVE = 8
"""How far above a location the checkpoint is looked for: it is at its top or a level below, as a rule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """The entry of the number `number`."""

    number: int
    metadata: TrackedMetadata

    @property
    def follows(self) -> int:
        """The number of the entry before this one; -1: there is none."""
        return self.number - 1 if self.metadata.previous is None else self.metadata.previous


class SchemaLog:
    """The tracked metadata in `directory` of `store`, for one stream of the table with `table_id`.

    Raises SchemaLogError for an entry that is damaged or of another table, StoreError.
    """

    def __init__(self, store: Store, directory: str, *, table_id: str) -> None:
        self._store, self._directory, self._table_id = store, directory, table_id
        self.url = f"{store.url.rstrip('/')}/{directory}"

    def newest(self) -> Entry | None:
        """Gives the newest entry, None where there is none yet."""
        names = (entry.name for entry in self._store.list(self._directory))
        # Others leave more than entries beside them: checksums and temporary files of Hadoop.
        numbers = [int(name) for name in names if name.isascii() and name.isdecimal()]
        return self.entry(max(numbers)) if numbers else None

    def before(self, entry: Entry) -> Entry | None:
        """Gives the entry that `entry` follows, None for the first."""
        return self.entry(entry.follows) if entry.follows >= 0 else None

    def entry(self, number: int) -> Entry:
        """Gives the entry with that number, which is one that there is."""
        name = self._name(number)
        try:
            data = self._store.read(name)
        except ObjectNotFoundError as error:
            raise SchemaLogError(
                f"The log of tracked metadata at {self.url} has no entry {number}, though a later one follows it. "
                "Restore the file, or give the stream a new schemaTrackingLocation.",
                url=self.url,
                error_class="DELTA_STREAMING_SCHEMA_LOG_DESERIALIZE_FAILED",
            ) from error
        metadata = decode_entry(data, url=f"{self.url}/{number}")
        if metadata.table_id != self._table_id:
            raise SchemaLogError(
                f"The metadata tracked at {self.url} is of the table with id {metadata.table_id}, and the stream reads "
                f"the one with id {self._table_id}. Give the stream a schemaTrackingLocation of its own.",
                url=self.url,
                error_class="DELTA_STREAMING_SCHEMA_LOG_INCOMPATIBLE_DELTA_TABLE_ID",
            )
        return Entry(number=number, metadata=metadata)

    def replace(self, entry: Entry, metadata: TrackedMetadata) -> Entry:
        """Writes an entry that counts in place of `entry`, the newest; raises as `add` does."""
        return self.add(replace(metadata, previous=entry.follows), after=entry)

    def add(self, metadata: TrackedMetadata, *, after: Entry | None) -> Entry:
        """Writes the entry behind `after`, the newest as this stream knows it.

        Raises SchemaLogError (DELTA_STREAMING_SCHEMA_LOCATION_CONFLICT) where another has written that entry since.
        """
        number = 0 if after is None else after.number + 1
        # A checkpoint that was deleted under the stream does not come back with an entry that has none before it.
        within = None if after is None else Within(directory=self._directory)
        if not self._store.put_if_absent(self._name(number), encode_entry(metadata), within=within):
            raise SchemaLogError(
                f"Entry {number} of the log of tracked metadata at {self.url} was written by another meanwhile: "
                "another stream uses it, or this one runs twice. Give each source a schemaTrackingLocation of its "
                "own, or a streamingSourceTrackingId; where it is only one, start it again.",
                url=self.url,
                error_class="DELTA_STREAMING_SCHEMA_LOCATION_CONFLICT",
            )
        return Entry(number=number, metadata=metadata)

    def _name(self, number: int) -> str:
        return f"{self._directory}/{number}"


def open_schema_log(
    location: str, *, table_id: str, tracking_id: str | None, storage_options: Mapping[str, str]
) -> SchemaLog:
    """Gives the log of a stream of the table with `table_id` below `location`, which is a path or URL of the user's."""
    suffix = "" if tracking_id is None else f"_{tracking_id}"
    return SchemaLog(
        open_store(location, for_store(storage_options)), f"_schema_log_{table_id}{suffix}", table_id=table_id
    )


def source_path(location: str, storage_options: Mapping[str, str]) -> str:
    """Gives the name of the stream in its checkpoint, by which Delta-Spark knows that the log is the stream's.

    A Python source is not told where its checkpoint is: the folder at or above `location` that has a query's metadata
    is it. Where none has, the name is empty. Of several sources of a query it is taken for the first.
    """
    folder = location.rstrip("/")
    if parse(location).scheme == "file":
        folder = "file:" + parse(location).location
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
        return False  # only a name is at stake
    return isinstance(values, dict) and isinstance(values.get("id"), str)
