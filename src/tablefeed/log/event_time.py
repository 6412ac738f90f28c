"""How far a batch of an initial snapshot goes by event time. Arithmetic over columns of files; no file is looked at.

The cost of a file to a batch (one file, its bytes, its rows) is assumed to be spread evenly between the file's earliest
and latest time. So the cost of all files grows with time along a line that bends where a file begins or ends. A batch
ends where that line has risen by the batch's limit. This is approximate, as Delta's documentation says: statistics do
not show where the rows really are.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc


@dataclass(frozen=True, slots=True, kw_only=True)
class Spans:
    """The earliest and the latest time of each file, both longs; `first` and `last` are the extremes of all files."""

    low: pa.Array
    high: pa.Array
    first: int
    last: int


def spans(low: pa.Array, high: pa.Array, has_times: pa.BooleanArray) -> Spans | None:
    """Gives the spans of files from their bounds, which are null where not known; None where no file has a bound.

    A missing bound is replaced by the extreme of all files. A file without times gets the earliest time of all.
    """
    bounds = pa.chunked_array([low, high])
    ends = pc.min_max(bounds).as_py()
    if ends["min"] is None:
        return None
    first, last = pa.scalar(ends["min"], pa.int64()), pa.scalar(ends["max"], pa.int64())
    return Spans(
        low=pc.if_else(has_times, pc.fill_null(low, first), first),
        high=pc.if_else(has_times, pc.fill_null(high, last), first),
        first=ends["min"],
        last=ends["max"],
    )


class Spread:
    """The costs of files, `weights`, spread over their spans: how much cost lies before each moment."""

    def __init__(self, over: Spans, weights: pa.Array) -> None:
        begins, ends = _floats(over.low), pc.add(_floats(over.high), 1.0)
        weights = _floats(weights)
        nothing = pa.repeat(pa.scalar(0.0), len(weights))
        # Far from 1970 a float cannot distinguish a microsecond from the next.
        rates = pc.divide(weights, pc.max_element_wise(pc.subtract(ends, begins), 1.0))
        order = pc.array_sort_indices(pa.concat_arrays([begins, ends]))

        def bends(at_begins: pa.Array, at_ends: pa.Array) -> pa.Array:
            return pa.concat_arrays([at_begins, at_ends]).take(order)

        at = bends(begins, ends)
        slopes = pc.cumulative_sum(bends(rates, pc.negate(rates)))
        steps = pc.multiply(slopes.slice(0, len(at) - 1), pc.subtract(at.slice(1), at.slice(0, len(at) - 1)))
        risen = pc.cumulative_sum(pa.concat_arrays([pa.array([0.0]), steps]))
        # Sums of floats drift. These bounds are certain: a file that has ended counts whole, and one not begun not at
        # all.
        begun, ended = pc.cumulative_sum(bends(weights, nothing)), pc.cumulative_sum(bends(nothing, weights))
        risen = pc.cumulative_max(pc.max_element_wise(pc.min_element_wise(risen, begun), ended))
        self._at, self._risen = _view(at), _view(risen)

    def before(self, moment_us: int) -> float:
        """The cost that lies before a moment."""
        index = bisect_right(self._at, moment_us)
        if index == 0:
            return 0.0
        if index == len(self._at):
            return self._risen[-1]
        return _between(moment_us, self._at, self._risen, index)

    def moment(self, weight: float) -> float | None:
        """The first moment before which a cost of `weight` lies; None where the total is less."""
        index = bisect_left(self._risen, weight)
        if index == len(self._risen):
            return None
        return self._at[0] if index == 0 else _between(weight, self._risen, self._at, index)


def bucket_end(begin_us: int | None, over: Spans, limited: Iterable[tuple[Spread, int]]) -> int | None:
    """Gives the moment at which a batch that begins at `begin_us` ends; None: at the end of the snapshot.

    `limited` are costs, each with its limit. Every batch advances. With `begin_us` None it begins with the snapshot.
    """
    moments: list[float] = []
    for spread, limit in limited:
        taken = 0.0 if begin_us is None else spread.before(begin_us)
        moment = spread.moment(taken + limit)
        if moment is not None:
            moments.append(moment)
    if not moments:
        return None
    end = max(math.ceil(min(moments)), (over.first if begin_us is None else begin_us) + 1)
    return end if end <= over.last else None


def _between(x: float, xs: memoryview[float], ys: memoryview[float], index: int) -> float:
    """The value at `x` on the line from the point before `index` to the point at `index`."""
    x0, x1, y0, y1 = xs[index - 1], xs[index], ys[index - 1], ys[index]
    return y0 if x1 <= x0 else y0 + (y1 - y0) * ((x - x0) / (x1 - x0))


def _floats(values: pa.Array) -> pa.Array:
    return values.cast(pa.float64(), safe=False)


def _view(values: pa.Array) -> memoryview[float]:
    return memoryview(values.buffers()[1]).cast("d")[values.offset : values.offset + len(values)]
