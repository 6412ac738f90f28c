"""The errors of a split that cannot be read: it is damaged, or it needs a feature that is not handled.

They know neither the table nor the file. The caller turns them into a TablefeedError with both names.
"""

from __future__ import annotations


class DamagedSplitError(ValueError):
    """The bytes are not those of a valid split. The text says why and continues a sentence that begins "the split"."""


class UnsupportedSplitError(ValueError):
    """The split is well-formed as far as it was read, but needs `feature`, which is not handled."""

    def __init__(self, reason: str, *, feature: str) -> None:
        self.feature = feature
        super().__init__(reason)


class UnfitValueError(ValueError):
    """A value does not fit its column's type; the text says why. The caller knows the column and adds its name."""
