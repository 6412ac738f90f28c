"""How far a batch of an initial snapshot goes by event time. Arithmetic over columns of files; no file is looked at.

What a file costs a batch (one file, its bytes, its rows) is taken to lie evenly between its earliest and its latest
time: so the sum over all files grows with the time along a line that bends where a file begins and where one ends. A
batch ends where that line has risen by its limit. Approximate, as Delta's documentation has it: where the rows really
are, statistics do not tell.
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
    """The earliest and the latest time of each file, both longs; `first` and `last` are those of all."""

    low: pa.Array
    high: pa.Array
    first: int
    last: int


def spans(low: pa.Array, high: pa.Array, has_times: pa.BooleanArray) -> Spans | None:
    """Gives the spans of files by bounds, null where there is none; None where no file has any.

    A file that is not bounded reaches as far as the others do. One without times is taken with the first.
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
    """What files cost, `weights`, spread over their `spans`: how much of it lies before each moment."""

    def __init__(self, over: Spans, weights: pa.Array) -> None:
        begins, ends = _floats(over.low), pc.add(_floats(over.high), 1.0)
        weights = _floats(weights)
        nothing = pa.repeat(pa.scalar(0.0), len(weights))
        # At the far ends of time a float does not tell a microsecond from the next.
        rates = pc.divide(weights, pc.max_element_wise(pc.subtract(ends, begins), 1.0))
        order = pc.array_sort_indices(pa.concat_arrays([begins, ends]))

        def bends(at_begins: pa.Array, at_ends: pa.Array) -> pa.Array:
            return pa.concat_arrays([at_begins, at_ends]).take(order)

        at = bends(begins, ends)
        slopes = pc.cumulative_sum(bends(rates, pc.negate(rates)))
        steps = pc.multiply(slopes.slice(0, len(at) - 1), pc.subtract(at.slice(1), at.slice(0, len(at) - 1)))
        risen = pc.cumulative_sum(pa.concat_arrays([pa.array([0.0]), steps]))
        # Sums of floats drift. What is certain is that a file that ended is in it whole, and one to come not at all.
        begun, ended = pc.cumulative_sum(bends(weights, nothing)), pc.cumulative_sum(bends(nothing, weights))
        risen = pc.cumulative_max(pc.max_element_wise(pc.min_element_wise(risen, begun), ended))
        self._at, self._risen = _view(at), _view(risen)

    def before(self, moment_us: int) -> float:
        """How much lies before a moment."""
        index = bisect_right(self._at, moment_us)
        if index == 0:
            return 0.0
        if index == len(self._at):
            return self._risen[-1]
        return _between(moment_us, self._at, self._risen, index)

    def moment(self, weight: float) -> float | None:
        """The first moment before which `weight` lies; None where there is not so much."""
        index = bisect_left(self._risen, weight)
        if index == len(self._risen):
            return None
        return self._at[0] if index == 0 else _between(weight, self._risen, self._at, index)


def bucket_end(begin_us: int | None, over: Spans, limited: Iterable[tuple[Spread, int]]) -> int | None:
    """Gives the moment up to which a batch goes that begins at `begin_us`; None: to the end of the snapshot.

    `limited` are costs and the most of each. Every batch gets on. With `begin_us` None it begins with the snapshot.
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
    """The line from the bend before `index` to that one, at `x`."""
    x0, x1, y0, y1 = xs[index - 1], xs[index], ys[index - 1], ys[index]
    return y0 if x1 <= x0 else y0 + (y1 - y0) * ((x - x0) / (x1 - x0))


def _floats(values: pa.Array) -> pa.Array:
    return values.cast(pa.float64(), safe=False)


def _view(values: pa.Array) -> memoryview[float]:
    return memoryview(values.buffers()[1]).cast("d")[values.offset : values.offset + len(values)]
