"""Small batches become large ones, in order; large ones are left alone."""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tablefeed.data.windows import coalesced


def batches_of(*lengths: int) -> list[pa.RecordBatch]:
    starts = [sum(lengths[:i]) for i in range(len(lengths))]
    return [pa.record_batch({"n": pa.array(range(s, s + n), pa.int64())}) for s, n in zip(starts, lengths, strict=True)]


@given(st.lists(st.integers(0, 12), max_size=20), st.integers(1, 10))
def test_all_rows_come_in_order_and_no_two_neighbours_would_have_fitted_into_one(lengths: list[int], most: int) -> None:
    joined = list(coalesced(batches_of(*lengths), most_rows=most))
    rows = [n for batch in joined for n in batch["n"].to_pylist()]
    assert rows == list(range(sum(lengths)))
    assert all(a.num_rows + b.num_rows > most for a, b in pairwise(joined) if a.num_rows)


def test_a_batch_larger_than_the_limit_stays_as_it_is() -> None:
    (large,) = batches_of(9)
    (only,) = coalesced([large], most_rows=4)
    assert only is large


def test_no_two_neighbours_are_joined_beyond_the_limit_of_bytes() -> None:
    joined = coalesced(batches_of(2, 2, 2, 9, 1), most_rows=100, most_bytes=32)  # of 8 bytes a row
    assert [batch.num_rows for batch in joined] == [4, 2, 9, 1]


def test_batches_without_columns_keep_their_rows() -> None:
    counted = [batch.select([]) for batch in batches_of(3, 4)]
    assert sum(batch.num_rows for batch in coalesced(counted, most_rows=10)) == 7
