"""Exit codes, and errors as a terminal shows them."""

from __future__ import annotations

import errno
import logging
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial

from tablefeed.errors import OptionError, TablefeedError
from tablefeed.wording.words import printable

DONE = 0
DIFFERENT = 1
"""The command worked, and what it compared differs, or what it checked has a problem."""
ERROR = 3
"""An error or a refusal of tablefeed. Code 2 is typer's, for wrong usage."""
DEFECT = 70
"""An error that nobody expected (EX_SOFTWARE of sysexits.h)."""
INTERRUPTED = 130
NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""The error numbers of a write to a file that cannot grow, such as stdout on a full disk."""
BROKEN_PIPE = 141
"""The reader of the output closed it, as `head` does. A shell reports the same for a process that SIGPIPE ends."""

_NAMED_OTHERWISE = {
    "filter": ("where",),
    "timestamp": ("at", "first"),
    "version": ("version", "at"),
    "start_version": ("first",),
    "start_timestamp": ("first",),
    "end_version": ("last",),
    "end_timestamp": ("last",),
    "storage_options": ("storage_option",),
    "target_size_bytes": ("target_size",),
    "poll_interval_s": ("poll_interval",),
    "expires_after": ("expires_after_days",),
    "after": ("first",),
    "limit": ("limit", "commits"),
    "url": ("table", "checkpoint", "source", "left"),
}
"""The arguments of the Python API that commands have by another name: that of the command's own function."""


_IN_SENTENCES = re.compile(r"\b(?:compute_updates|deduplication_mode|except_column_list|sequence_by|ties(?==))\b")
"""The arguments of the Python API that errors name without quotes, and that have the same name in a command."""
_NO_VALUE = (
    "The file has no value in it that says another type. Create the table or the column with its type first "
    "(tablefeed.create, tablefeed.alter), or leave the column out."
)


def plain_text(error: TablefeedError, flags: Mapping[str, str]) -> str:
    """Gives the text of `error` in one line, with options of the command in place of arguments of the Python API.

    `flags` maps each argument of the command's function to the option that the user types.
    """
    if isinstance(error, OptionError):
        named = vars(error).get("options") or (vars(error).get("option", ""),)
        typed = {name: _flag(name, flags) for name in named}
        for name, flag in typed.items():
            error.reword(partial(_replaced, repr(name), repr(flag)))
    if error.error_class == "DELTA_TIMESTAMP_INVALID":  # options that take a time take a version too
        error.reword(partial(_replaced, "must be a timestamp", "must be a version from 0 or a timestamp"))
    text = str(error).replace("option mergeSchema=true, merge_schema=True in Python", "merge_schema=True")
    names = r"(?:the option )?\b\w+ \(([a-z_]+) in Python\)"
    text = re.sub(names, lambda found: flags.get(found[1], found[0]), text)
    text = re.sub(r"\b([a-z_]+)=True\b", lambda found: flags.get(found[1], found[0]), text)
    text = _IN_SENTENCES.sub(lambda found: flags.get(found[0], found[0]), text)
    if error.error_class == "DELTA_NULL_SCHEMA_IN_STREAMING_WRITE":  # the rows are those of a file
        text = text.replace("Cast it.", _NO_VALUE)
    return printable(" ".join(text.split()))


def _flag(name: str, flags: Mapping[str, str]) -> str:
    candidates = (each for each in (name, *_NAMED_OTHERWISE.get(name, ())) if each in flags)
    return flags.get(next(candidates, ""), f"--{name.replace('_', '-')}")


def _replaced(old: str, new: str, text: str) -> str:
    return text.replace(old, new)


class _Warnings(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        sys.stderr.write(f"Warning: {printable(' '.join(record.getMessage().split()))}\n")


@contextmanager
def warnings_shown() -> Iterator[None]:
    """Shows the warnings that tablefeed logs while the block runs, one line each, and none of other packages."""
    logger, handler = logging.getLogger("tablefeed"), _Warnings(logging.WARNING)
    others, silent = logging.getLogger(), logging.NullHandler()
    logger.addHandler(handler)
    others.addHandler(silent)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        others.removeHandler(silent)


@contextmanager
def output_failures() -> Iterator[None]:
    """Flushes stdout after the block. Ends the program if its reader closed it, or if its disk is full."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError as error:
        _silence_stdout()
        raise SystemExit(BROKEN_PIPE) from error
    except OSError as error:
        if error.errno not in NO_SPACE or error.filename is not None:
            raise
        _silence_stdout()
        sys.stderr.write(f"Error: The output cannot be written: {error.strerror}.\n")
        raise SystemExit(ERROR) from error


def _silence_stdout() -> None:
    """Lets the interpreter flush what is left to nowhere when it exits: nobody reads it."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
