"""Exit codes, and errors as a terminal shows them."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from tablefeed.errors import OptionError, TablefeedError

DONE = 0
DIFFERENT = 1
"""The command worked, and what it compared differs, or what it checked has a problem."""
ERROR = 3
"""An error or a refusal of tablefeed. Code 2 is typer's, for wrong usage."""
DEFECT = 70
"""An error that nobody expected (EX_SOFTWARE of sysexits.h)."""
INTERRUPTED = 130
BROKEN_PIPE = 141
"""The reader of the output closed it, as `head` does. A shell reports the same for a process that SIGPIPE ends."""

_FLAGS = {
    "filter": "--where",
    "where": "--where",
    "version": "--at",
    "timestamp": "--at",
    "start_version": "--from",
    "start_timestamp": "--from",
    "end_version": "--to",
    "end_timestamp": "--to",
    "retention_hours": "--retention-hours",
    "storage_options": "--storage-option",
}
"""The arguments of the Python API that have another name on the command line."""


def plain_text(error: TablefeedError) -> str:
    """Gives the text of `error` in one line. Arguments of the Python API that it names are options of the command."""
    if isinstance(error, OptionError):
        named = vars(error).get("options") or (vars(error).get("option", ""),)
        flags = {name: _FLAGS.get(name, f"--{name.replace('_', '-')}") for name in named}
        for name, flag in flags.items():
            error.reword(partial(_replaced, repr(name), repr(flag)))
    return " ".join(str(error).split())


def _replaced(old: str, new: str, text: str) -> str:
    return text.replace(old, new)


class _Warnings(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        sys.stderr.write(f"Warning: {' '.join(record.getMessage().split())}\n")


@contextmanager
def warnings_shown() -> Iterator[None]:
    """Shows the warnings that tablefeed logs while the block runs, one line each."""
    logger, handler = logging.getLogger("tablefeed"), _Warnings(logging.WARNING)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


def silence_stdout() -> None:
    """Lets the interpreter flush what is left to nowhere when it exits: nobody reads it."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
