"""Finds the log of a table, and the version that a user asks for. Says how a text may show what the user gave."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from datetime import date, datetime

from tablefeed.errors import ConflictingOptionsError
from tablefeed.feed.arguments import location, store_options, whole_number
from tablefeed.feed.snapshot.open_log import open_log
from tablefeed.feed.snapshot.table_log import TableLog
from tablefeed.feed.snapshot.timeline import parse_timestamp, version_at
from tablefeed.model.actions import Version
from tablefeed.store.address import shown


def table_at(
    url: str | os.PathLike[str],
    *,
    version: int | None = None,
    timestamp: str | datetime | date | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> tuple[TableLog, Version | None]:
    """Gives the log of the table at `url`, and the version that `version` or `timestamp` names; None: the newest.

    Raises as `open_table`, but does not look whether the version is there.
    """
    if version is not None and timestamp is not None:
        raise ConflictingOptionsError(options=("version", "timestamp"), remedy="Give one of them.")
    if version is not None:
        version = whole_number(version, argument="version")
    log = open_log(location(url), store_options(storage_options))
    if timestamp is not None:
        version = version_at(log, parse_timestamp(timestamp, argument="timestamp"))
    return log, None if version is None else Version(version)


def without_credentials(text: str, given: Iterable[str]) -> str:
    """Gives `text` with each path and URL of `given` as errors show it: without a user, a password or a query."""
    for each in given:
        if (shows := shown(each)) != each:
            text = text.replace(each, shows)
    return text
