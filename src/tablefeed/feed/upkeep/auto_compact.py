"""`delta.autoOptimize.autoCompact`: a table's own wish that who writes to it folds its small files.

As Delta-Spark has it (AutoCompact.scala): partitions with fifty small files or more, into files of up to 128 MiB. It
keeps count of what its process adds, and so do we: a look at all files is due where a process first writes to a table,
and then when enough files may have come. Delta-Spark folds before the commit returns, we behind it.
"""

from __future__ import annotations

from collections import Counter, OrderedDict

from tablefeed.delta import names
from tablefeed.errors import ConflictError
from tablefeed.feed.snapshot.table_log import Snapshot
from tablefeed.feed.upkeep.after_commit import KEPT_TABLES, USUAL, UpkeepOptions, behind

LEAST_FILES = 50
"""Small files of a partition that are worth a fold: Delta-Spark's `autoCompact.minNumFiles`."""

_files_left: OrderedDict[tuple[str, str], int] = OrderedDict()
"""By table how many files may come before a partition of it can have so many; the one written last at the end."""


def compact_if_wanted(snapshot: Snapshot, added: int, upkeep: UpkeepOptions = USUAL) -> None:
    """Sees in the background to a table's wish that its small files are folded, of which our commit made `added`.

    `upkeep` is for the commits that it makes.
    """
    properties = snapshot.metadata.configuration
    older, newer = properties.get(names.AUTO_OPTIMIZE, "false"), properties.get(names.AUTO_COMPACT, "false")
    if older.lower() == "true" or newer.lower() in ("true", "auto", "legacy"):
        _count(snapshot, added, upkeep)


def _count(snapshot: Snapshot, added: int, upkeep: UpkeepOptions) -> None:
    key = snapshot.log.url, snapshot.metadata.table_id
    left = _files_left.get(key, 0) - added
    _keep(key, left if left > 0 else LEAST_FILES)
    if left <= 0:
        behind(snapshot, "optimize", lambda: _look(snapshot, key, upkeep))


def _look(snapshot: Snapshot, key: tuple[str, str], upkeep: UpkeepOptions) -> None:
    # Imported here: what a commit needs does not have to wait for it.
    from tablefeed.feed.upkeep.optimize import BEHIND_BYTES, Folding, fold, wanted_bytes

    snapshot = snapshot.log.load_for_files()
    target_bytes = wanted_bytes(snapshot, BEHIND_BYTES)
    most = _most_small_files(snapshot, below_bytes=target_bytes // 2)
    if most < LEAST_FILES:
        _keep(key, LEAST_FILES - most)
        return
    try:
        folding = Folding(target_bytes=target_bytes, auto=True, least_files=LEAST_FILES)
        fold(snapshot, folding, plans=1, upkeep=upkeep)
    except ConflictError:
        _keep(key, 0)  # the next commit sees to it
        raise


def _most_small_files(snapshot: Snapshot, *, below_bytes: int) -> int:
    """How many the partition has that has most. Small is, as for Delta-Spark, half of what files are folded into."""
    import pyarrow.compute as pc

    counts: Counter[tuple[tuple[str, str | None], ...]] = Counter()
    for batch in snapshot.live_files():
        small = batch.filter(pc.less(batch["size_bytes"], below_bytes))
        counts.update(tuple(sorted(pairs)) for pairs in small["partition_values"].to_pylist())
    return max(counts.values(), default=0)


def _keep(key: tuple[str, str], left: int) -> None:
    _files_left[key] = left
    _files_left.move_to_end(key)
    while len(_files_left) > KEPT_TABLES:
        _files_left.popitem(last=False)
