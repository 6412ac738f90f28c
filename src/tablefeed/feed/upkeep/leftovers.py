"""Deletes what killed writers of this library left half done: hidden temporary files, which no reader sees."""

from __future__ import annotations

import logging

from tablefeed.feed.snapshot.table_log import TableLog

logger = logging.getLogger(__name__)

_OLD_MS = 86_400_000
"""How old a temporary file must be: no put takes so long."""


def sweep(log: TableLog, folder: str, *, now_ms: int) -> None:
    """Deletes the temporary files, a day old or older, that are left in or below `folder` of the table."""
    swept = log.store.sweep(folder, before_ms=now_ms - _OLD_MS)
    if swept:
        logger.info("sweep table=%s temporary_files=%d", log.url, swept)
