"""Lets errors of tablefeed leave Spark's calls without the frames and causes below the call.

Spark prints the traceback of an error of a Python data source, and before it those of its causes. The message, which
says what is wrong and what to do, is the last line. So each frame of ours puts it a line or two further down.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from functools import wraps
from typing import ParamSpec, TypeVar

from tablefeed.errors import TablefeedError

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")

logger = logging.getLogger(__name__)

CALLS = frozenset({"__init__", "partitions", "read", "write", "commit", "abort"}) | {
    "initialOffset",
    "latestOffset",
    "getDefaultReadLimit",
    "prepareForTriggerAvailableNow",
}
"""What Spark calls of readers and writers, and what may raise."""


class PlainErrors:
    """Base of readers and writers: their errors show only the message."""

    def __init_subclass__(cls) -> None:
        """Makes the calls of the class plain."""
        super().__init_subclass__()
        for name in CALLS & vars(cls).keys():
            setattr(cls, name, plain(vars(cls)[name]))


def plain(call: Callable[_Given, _Result]) -> Callable[_Given, _Result]:
    """Wraps `call` so that a TablefeedError is raised without its inner frames and causes.

    The whole traceback is logged at DEBUG. The same holds for an iterator that `call` gives.
    """

    @wraps(call)
    def called(*given: _Given.args, **named: _Given.kwargs) -> _Result:
        try:
            found = call(*given, **named)
        except TablefeedError as error:
            raise _alone(error) from None
        return _plainly(found) if isinstance(found, Iterator) else found  # type: ignore[return-value]  # the same rows

    return called


def _plainly(rows: Iterator[object]) -> Iterator[object]:
    try:
        yield from rows
    except TablefeedError as error:
        raise _alone(error) from None


def _alone(error: TablefeedError) -> TablefeedError:
    logger.debug("raised", exc_info=error)
    return error.with_traceback(None)
