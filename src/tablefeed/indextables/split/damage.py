"""The ways in which a split is not read: it is damaged, or it holds what is not handled.

None knows the table nor the file: whoever reads splits makes an error of ours of them, with both names.
"""

from __future__ import annotations


class DamagedSplitError(ValueError):
    """The bytes are none that a writer of splits leaves; the text says which, and goes on from "the split"."""


class UnsupportedSplitError(ValueError):
    """The split is well-formed as far as it was read, but needs `feature`, which is not handled."""

    def __init__(self, reason: str, *, feature: str) -> None:
        self.feature = feature
        super().__init__(reason)


class UnfitValueError(ValueError):
    """A stored value is none of its column's type; the text says why. Becomes damage where the column is known."""
