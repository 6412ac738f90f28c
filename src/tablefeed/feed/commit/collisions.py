"""A write whose txn version the table records already: the same write run again, or a write of another run.

Spark runs a batch again only until the next one is planned. So a batch that is run again finds its own version, never a
later one. A write that finds a later version has one of three causes. Its query has a new checkpoint but the old
application id, its checkpoint was restored from an older copy, or two runs are alive. The rows of such a write are not
in the table, so the user must know.

A query whose checkpoint was deleted gets another id, so the table does not know its batches, and its rows are written
again. The table cannot distinguish such a query from a new one. So the first batch of a query logs a
warning if the table has batches of other queries.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from enum import StrEnum

from tablefeed.errors import CommitError
from tablefeed.model.actions import Txn, Version

logger = logging.getLogger(__name__)


class OnCollision(StrEnum):
    """What is reported where the table records a later version of the application. Nothing is written in any case."""

    SKIP = "skip"
    WARN = "warn"
    FAIL = "fail"


def check_collision(txn: Txn, recorded: int, on_collision: OnCollision, *, url: str) -> None:
    """Reports, as `on_collision` says, that the table records the version `recorded` that is later than `txn`.

    Raises CommitError for FAIL, logs a warning for WARN. Does nothing where `recorded` is no later version.
    """
    if recorded <= txn.txn_version or on_collision is OnCollision.SKIP:
        return
    text = (
        f"Nothing was written to {url}: it records version {recorded} of the application {txn.app_id}, and this is "
        f"version {txn.txn_version}. So the query's checkpoint is new or was restored, or another run is alive. Start "
        "a stream on a new checkpoint, after the rows that the table has (startingVersion). For other writes use a new "
        "txnAppId. If older versions come again on purpose, txnVersionCollision=skip skips them without this warning."
    )
    if on_collision is OnCollision.FAIL:
        raise CommitError(text, url=url)
    logger.warning("%s", text)


_QUERY_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NAMED = 3


def warn_of_other_queries(query_id: str, app_ids: Iterable[str], version: Version, *, url: str) -> None:
    """Logs a warning if `app_ids`, of the applications that the table records, has other queries of Spark.

    For the first batch of the query `query_id`, which committed `version`.
    """
    others = sorted(each for each in app_ids if each != query_id and _QUERY_ID.fullmatch(each))
    if others:
        more = f" and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
        logger.warning(
            "The query %s committed its first batch to %s, which has batches of other queries: %s%s. If this "
            "query reads the same source as one of them, because that query's checkpoint was deleted or changed, rows "
            "are now in the table twice. In that case stop the query, restore version %d (tablefeed.restore), and "
            "start it with the old checkpoint, or with startingVersion.",
            query_id,
            url,
            ", ".join(others[:_NAMED]),
            more,
            version - 1,
        )
