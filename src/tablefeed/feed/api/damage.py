"""The newest version that can be read of a table whose log has a damaged or missing commit."""

from __future__ import annotations

from collections.abc import Mapping

from tablefeed.errors import CorruptLogError, LogGapError
from tablefeed.feed.api.table import Table, open_table
from tablefeed.feed.arguments import location, store_options
from tablefeed.feed.snapshot.open_log import open_log
from tablefeed.model.logfile import LogFileKind


def newest_readable(url: str, *, storage_options: Mapping[str, str], problems: list[str]) -> Table:
    """Opens the newest version that can be read. Adds to `problems` why this is not the newest version of the log.

    Raises as `open_table`, also where no version before the damaged commit can be read.
    """
    try:
        return open_table(url, storage_options=storage_options)
    except (CorruptLogError, LogGapError) as error:
        first, wrong = error, error
    while (version := _version_before(wrong, url, storage_options)) is not None:
        try:
            table = open_table(url, version=version, storage_options=storage_options)
        except (CorruptLogError, LogGapError) as error:
            wrong = error
        else:
            problems.append(f"{first.message} This shows version {version}, the newest one that can be read.")
            return table
    raise first


def _version_before(wrong: CorruptLogError | LogGapError, url: str, storage_options: Mapping[str, str]) -> int | None:
    """The version before the commit that `wrong` is about; None where there is none."""
    if isinstance(wrong, LogGapError):
        damaged = wrong.expected
    else:
        listed = open_log(location(url), store_options(storage_options)).listing(over_holes=True)
        damaged = max(
            (f.version for f in listed if f.kind is LogFileKind.COMMIT and f.name == wrong.log_file), default=0
        )
    return damaged - 1 if damaged else None
