"""`delta.autoOptimize.autoCompact`: this property asks each writer of a table to fold its small files.

As in Delta-Spark (AutoCompact.scala), partitions with fifty small files or more are folded into files of up to 128 MiB,
or of the table's target size. Delta-Spark counts the files that its process adds, and so do we. All files are looked at
when a process first writes to a table, and then each time that it may have added enough. Delta-Spark folds before the
commit returns; we fold in the background after it.
"""

from __future__ import annotations

from collections import Counter, OrderedDict

from tablefeed.errors import ConflictError
from tablefeed.feed.snapshot.table_log import Snapshot
from tablefeed.feed.upkeep.after_commit import USUAL, UpkeepOptions, behind, keep, surroundings, table_key

LEAST_FILES = 50
"""The least number of small files in a partition for a fold: Delta-Spark's `autoCompact.minNumFiles`."""

_files_left: OrderedDict[tuple[str, str], int] = OrderedDict()
"""For each table, after how many more files a partition can have `LEAST_FILES`. The table written last is last."""


def compact_if_wanted(snapshot: Snapshot, added: int, upkeep: UpkeepOptions = USUAL) -> None:
    """Folds small files in the background where the table's properties ask for it; our commit has added `added` files.

    `upkeep` applies to the commits that the fold makes.
    """
    if not snapshot.properties.folds_files:
        return
    key = table_key(snapshot)
    left = _files_left.get(key, 0) - added
    keep(_files_left, key, left if left > 0 else LEAST_FILES)
    if left <= 0:
        behind(snapshot, "optimize", lambda: _look(snapshot, key, upkeep), upkeep)


def _look(snapshot: Snapshot, key: tuple[str, str], upkeep: UpkeepOptions) -> None:
    # Imported here: what a commit needs does not have to wait for it.
    from tablefeed.feed.upkeep.optimize import BEHIND_BYTES, Folding, fold, wanted_bytes

    snapshot = snapshot.log.load_for_files()
    target_bytes = wanted_bytes(snapshot, BEHIND_BYTES)
    most = _most_small_files(snapshot, below_bytes=target_bytes // 2)
    if most < LEAST_FILES:
        keep(_files_left, key, LEAST_FILES - most)
        return
    try:
        folding = Folding(target_bytes=target_bytes, auto=True, least_files=LEAST_FILES)
        fold(snapshot, folding, plans=1, around=surroundings(upkeep))
    except ConflictError:
        keep(_files_left, key, 0)  # the next commit looks again
        raise


def _most_small_files(snapshot: Snapshot, *, below_bytes: int) -> int:
    """The most small files in one partition. As in Delta-Spark, a small file has less than half of the target size."""
    import pyarrow.compute as pc

    counts: Counter[tuple[tuple[str, str | None], ...]] = Counter()
    for batch in snapshot.live_files():
        small = batch.filter(pc.less(batch["size_bytes"], below_bytes))
        counts.update(tuple(sorted(pairs)) for pairs in small["partition_values"].to_pylist())
    return max(counts.values(), default=0)
