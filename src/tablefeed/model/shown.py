"""How errors show a value of JSON that is not what it should be."""

from __future__ import annotations

from tablefeed.wording.words import TOO_DEEP


def shown(value: object, *, most: int = 60) -> str:
    """The first `most` characters of the value's `repr`.

    JSON can be nested deeper than `repr` can recurse; then the text says so.
    """
    try:
        return repr(value)[:most]
    except RecursionError:
        return TOO_DEEP
