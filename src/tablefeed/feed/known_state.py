"""The newest state of each table that this process has seen: so that a batch reads only what came since the last.

An optimisation, never a need: what is taken from here is brought up to date against the log, or loaded anew, before
it is used. Spark re-uses the processes that plan and commit a sink's batches.
"""

from __future__ import annotations

from collections import OrderedDict

from tablefeed.feed.sink import caught_up
from tablefeed.feed.table_log import Snapshot, TableLog, open_log

KEPT_TABLES = 16
"""More tables than one process writes to at a time; a state is small (no files)."""

_Key = tuple[str, tuple[tuple[str, str], ...]]
_known: OrderedDict[_Key, tuple[TableLog, Snapshot | None]] = OrderedDict()


def newest_state(location: str, storage_options: dict[str, str]) -> tuple[TableLog, Snapshot | None]:
    """Gives the log at `location` and the table's newest state, None where there is no table."""
    key = (location, tuple(sorted(storage_options.items())))
    log, known = _known.get(key) or (open_log(location, storage_options), None)
    state = caught_up(log, known)
    remember(log, state)
    return log, state


def remember(log: TableLog, state: Snapshot | None) -> None:
    """Keeps `state` as the newest known of its table."""
    key = (log.location, tuple(sorted(log.storage_options.items())))
    _known[key] = (log, state)
    _known.move_to_end(key)
    while len(_known) > KEPT_TABLES:
        _known.popitem(last=False)
