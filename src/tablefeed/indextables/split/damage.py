"""The errors of a split that cannot be read: it is damaged, or it needs a feature that is not handled.

They know neither the table nor the file. The caller turns them into a TablefeedError with both names.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager


class DamagedSplitError(ValueError):
    """The bytes are not those of a valid split. The text says why and continues a sentence that begins "the split"."""


class UnsupportedSplitError(ValueError):
    """The split is well-formed as far as it was read, but needs `feature`, which is not handled."""

    def __init__(self, reason: str, *, feature: str) -> None:
        self.feature = feature
        super().__init__(reason)


class UnfitValueError(ValueError):
    """A value does not fit its column's type; the text says why. The caller knows the column and adds its name."""


@contextmanager
def damage_by_name(what: str) -> Iterator[None]:
    """Raises DamagedSplitError, about `what`, in place of the errors of reading beyond its end and of a bad text."""
    try:
        yield
    except (IndexError, struct.error) as error:
        raise DamagedSplitError(f"has {what} that is cut") from error
    except UnicodeDecodeError as error:
        raise DamagedSplitError(f"has {what} with a text that is not UTF-8") from error
