"""Finds tablefeed's messages in the text of an error of Spark, which puts its own text and a traceback around them.

Spark sends the error of a Python data source as text alone. Python prints a chain of errors from the first cause to the
one that was raised. Spark may print all of it again as the cause of its own errors.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_MESSAGE = re.compile(r"^(?:\S+: )?tablefeed\.errors\.\w+: (.*(?:(?:\n - .*)+\n.*)?)$", re.MULTILINE)
"""A message is one line, or has the values of a row on lines of their own, and one line after them."""
_CHAINED = ("The above exception was the direct cause", "During handling of the above exception")
_STATE = re.compile(r"\s+SQLSTATE: \w{5}$")
_TRACEBACK = "Traceback (most recent call last):"
_JAVA_CLASS = re.compile(r"^(?:[a-z]\w*\.)+[A-Z][\w$]*: ")


def messages_in(text: str) -> Iterator[str]:
    """Gives the message of each error that was raised, in one line, and each message once."""
    found = list(_MESSAGE.finditer(text))
    known = set()
    for place, match in enumerate(found):
        following = found[place + 1].start() if place + 1 < len(found) else match.end()
        if any(words in text[match.end() : following] for words in _CHAINED):
            continue  # a cause of the next one
        message = one_line(match[1])
        if message not in known:
            known.add(message)
            yield message


def in_short(text: str) -> str:
    """Gives an error of Spark that has no message of tablefeed in one line, without the name of its Java class.

    It is the first line, or what is before a traceback of Python, and the error that Python raised.
    """
    head, is_python, frames = text.partition(_TRACEBACK)
    if not is_python or "\n" in head.strip():
        head, frames = text.partition("\n")[0], ""
    return one_line(_JAVA_CLASS.sub("", f"{head} {_raised(frames)}"))


def _raised(frames: str) -> str:
    """The first line of the error that was raised, after the frames of its causes and its own."""
    raised = ""
    for line in frames.splitlines():
        if line.startswith((_TRACEBACK, *_CHAINED)):
            raised = ""
        elif not raised and line and not line[0].isspace():
            raised = line
    return raised


def one_line(text: str) -> str:
    """Gives `text` in one line, without Spark's SQLSTATE."""
    return _STATE.sub("", " ".join(text.split()))
