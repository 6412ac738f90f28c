"""The put of a version's file, whose answer may be lost: asked again until it is known whose file stands."""

from __future__ import annotations

import logging
from collections.abc import Callable

from tablefeed.errors import CommitUnknownError, NotExclusiveError, StoreError
from tablefeed.feed.table_log import TableLog
from tablefeed.feed.transaction import Surroundings
from tablefeed.model.actions import Version

logger = logging.getLogger(__name__)

LOST_ANSWER_RETRIES = 5
"""How often a store that fails is asked again whether our commit stands before we give up not knowing."""


def put_settled(
    log: TableLog, path: str, data: bytes, version: Version, around: Surroundings, *, stands: Callable[[], bool]
) -> bool:
    """Puts `data` at `path` as the commit of `version`: True where it stands, False where another's does.

    `stands` reads back whether it is ours that is there. Raises CommitUnknownError where the store will not say, and
    NotExclusiveError where it cannot promise a single winner.
    """
    failure: StoreError | None = None
    for attempt in range(LOST_ANSWER_RETRIES):
        try:
            if failure is not None and stands():
                return True
            if log.store.put_if_absent(path, data):
                return True
            # Taken: by a rival, or by a put of ours that was sent twice or arrived late.
            return stands()
        except NotExclusiveError:
            raise
        except StoreError as error:
            failure = error
            logger.warning("unsettled table=%s version=%d attempt=%d: %s", log.url, version, attempt, error)
            around.sleep(around.uniform() * 0.1 * 2**attempt)
    raise CommitUnknownError(
        f"The store failed while version {version} of {log.url} was committed, and does not say whether it stands. "
        "Nothing is lost: run the same batch again, and what stands is not written twice.",
        url=log.url,
        version=version,
    ) from failure
