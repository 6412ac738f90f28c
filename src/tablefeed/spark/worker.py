"""Manners in Spark's Python workers, which are kept and used again from batch to batch.

After each task a worker collects garbage. With Spark, Arrow and us loaded that is some 10 ms of a core for nothing,
in each of the four or so processes of a micro-batch, and it falls on the moment when Spark writes its own logs.
"""

from __future__ import annotations

import gc
from functools import cache


@cache
def settle() -> None:
    """Takes what this process has loaded by now out of the collector's sight; once a process, and at no task's cost.

    Call it when all that a task needs has been imported. Nothing is kept alive by it but cycles among what is there.
    """
    gc.collect()
    gc.freeze()
