"""The operationMetrics of an OPTIMIZE (Delta-Spark's OptimizeStats)."""

from __future__ import annotations

from support.actions import add
from tablefeed.delta.commit_info import optimize_metrics


def test_the_sizes_of_new_files_are_given_by_their_quarters() -> None:
    def quarters(*sizes: int) -> list[int]:
        metrics = optimize_metrics([add(str(size), size_bytes=size) for size in sizes], [])
        return [metrics[name] for name in ("minFileSize", "p25FileSize", "p50FileSize", "p75FileSize", "maxFileSize")]

    assert quarters(8, 1, 7, 2, 6, 3, 5, 4) == [1, 3, 5, 7, 8]
    assert quarters(5, 6) == [5, 5, 6, 6, 6]
    assert quarters() == [0, 0, 0, 0, 0]
