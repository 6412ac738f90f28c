"""The checkpoint of a streaming query, as Spark writes it: which batches were planned, where each ends, which are done.

Spark's OffsetSeqLog and CommitLog, version 1: a file for each batch, with a line `v1`, a line of JSON about the batch,
and in the offset log a line for each source. Other files of the checkpoint, such as state, are not read.
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass

from tablefeed.errors import OffsetError
from tablefeed.feed.stream.offset_json import offset_from_json, offset_to_json
from tablefeed.model.offset import Offset
from tablefeed.store import Store

OFFSETS, COMMITS, STATE = "offsets", "commits", "state"
_VERSION = "v1"
_NO_OFFSET = "-"
"""The line of a source that has no offset yet."""
_DONE = f'{_VERSION}\n{{"nextBatchWatermarkMs":0}}'


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedBatch:
    """A batch and the line of its log about it. `ends` has the text of each source's end, None where it has none."""

    batch_id: int
    about: str
    ends: tuple[str | None, ...]

    def to_text(self) -> str:
        """Gives the batch as a file of the offset log."""
        return "\n".join([_VERSION, self.about, *(_NO_OFFSET if end is None else end for end in self.ends)])


class SparkCheckpoint:
    """The logs of the checkpoint in `store`. Raises OffsetError for a file that cannot be read, and StoreError."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.url = store.url

    def planned(self) -> list[int]:
        """Gives the ids of the batches in the offset log, the oldest first. Spark keeps about a hundred."""
        return self._ids(OFFSETS)

    def done(self) -> list[int]:
        """Gives the ids of the batches in the commit log, the oldest first."""
        return self._ids(COMMITS)

    def times_ms(self) -> tuple[dict[int, int], dict[int, int]]:
        """Gives when the files of the offset log and of the commit log were written, by their batches."""
        return self._times(OFFSETS), self._times(COMMITS)

    def has_state(self) -> bool:
        """Says whether the query keeps state, each version of which belongs to a batch."""
        return next(iter(self._store.directories(STATE)), None) is not None

    def batch(self, batch_id: int) -> PlannedBatch:
        """Gives a batch of the offset log."""
        name = f"{OFFSETS}/{batch_id}"
        text = io.StringIO(self._store.read(name).decode(errors="replace"), newline=None)
        lines = text.read().removesuffix("\n").split("\n")  # as Java reads lines; `splitlines` knows more line ends
        if lines[0] != _VERSION:
            found = repr(lines[0][:20]) if lines[0] else "nothing"
            raise OffsetError(
                f"{name} of the checkpoint {self.url} begins with {found}, but only version {_VERSION!r} of Spark's "
                "offset log is known.",
                url=self.url,
            )
        if len(lines) < 2:
            raise OffsetError(
                f"{name} of the checkpoint {self.url} is cut off after its first line. Restore it.", url=self.url
            )
        ends = tuple(None if line == _NO_OFFSET else line for line in lines[2:])
        return PlannedBatch(batch_id=batch_id, about=lines[1], ends=ends)

    def put(self, batch: PlannedBatch) -> bool:
        """Adds a batch that is done, so that the query goes on after it; False where another batch has its id.

        If only the first of its two files is written, the query would run the batch. The same call again ends it.
        """
        offsets, commits = f"{OFFSETS}/{batch.batch_id}", f"{COMMITS}/{batch.batch_id}"
        newest, text = max(self.done(), default=None), batch.to_text().encode()
        as_before = _DONE.encode() if newest is None else self._store.read(f"{COMMITS}/{newest}")
        if not self._store.put_if_absent(offsets, text) and self._store.read(offsets) != text:
            return False
        self._store.put_if_absent(commits, as_before)
        return True

    def _ids(self, directory: str) -> list[int]:
        return sorted(self._times(directory))

    def _times(self, directory: str) -> dict[int, int]:
        named = ((entry.name.rpartition("/")[2], entry.modified_ms) for entry in self._store.list(directory))
        return {int(name): at_ms for name, at_ms in named if name.isascii() and name.isdecimal()}


def read_offset(text: str, *, url: str) -> Offset | None:
    """Gives the offset in the text of a source, None where it is that of another kind of source. Raises OffsetError."""
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return offset_from_json(value, url=url) if isinstance(value, dict) and "reservoirId" in value else None


def offset_text(offset: Offset) -> str:
    """Gives an offset as the offset log has it."""
    return json.dumps(offset_to_json(offset), separators=(",", ":"))
