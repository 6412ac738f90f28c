"""Random filters of pyarrow, made of questions by AND, OR and NOT."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow.compute as pc
from hypothesis import strategies as st

COMPARISONS: Sequence[Callable[[Any, Any], pc.Expression]] = (
    lambda a, b: a == b,
    lambda a, b: a != b,
    lambda a, b: a < b,
    lambda a, b: a <= b,
    lambda a, b: a > b,
    lambda a, b: a >= b,
    lambda a, b: pc.scalar(b) < a,
    lambda a, b: pc.scalar(b) >= a,
)


class Asked:
    """A filter, with a text of its own: pyarrow's cannot show every text that may be in one."""

    def __init__(self, condition: pc.Expression) -> None:
        self.condition = condition

    def __repr__(self) -> str:
        try:
            return str(self.condition)
        except UnicodeDecodeError:
            return "a filter with a long text"


def filters_of(leaf: st.SearchStrategy[pc.Expression], *, most: int) -> st.SearchStrategy[Asked]:
    """Filters of at most `most` of the questions `leaf`."""
    return st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.tuples(inner, inner).map(lambda pair: pair[0] & pair[1]),
            st.tuples(inner, inner).map(lambda pair: pair[0] | pair[1]),
            inner.map(lambda one: ~one),
        ),
        max_leaves=most,
    ).map(Asked)
