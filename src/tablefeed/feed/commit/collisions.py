"""A write whose txn version the table records already: the same write run again, or a write of another run.

Spark runs a batch again only until the next one is planned. So a batch that is run again finds its own version, never a
later one. A write that finds a later version has one of three causes. Its query has a new checkpoint but the old
application id, its checkpoint was restored from an older copy, or two runs are alive. The rows of such a write are not
in the table, so the user must know.
"""

from __future__ import annotations

import logging
from enum import StrEnum

from tablefeed.errors import CommitError, IllegalOptionError
from tablefeed.model.actions import Txn

logger = logging.getLogger(__name__)


class OnCollision(StrEnum):
    """What is reported where the table records a later version of the application. Nothing is written in any case."""

    SKIP = "skip"
    WARN = "warn"
    FAIL = "fail"


def read_on_collision(option: str, value: object) -> OnCollision:
    """Gives the choice that `value` of `option` names, in upper or lower case. Raises IllegalOptionError."""
    if isinstance(value, str) and value.lower() in list(OnCollision):
        return OnCollision(value.lower())
    raise IllegalOptionError(option=option, value=str(value), explain="must be 'skip', 'warn' or 'fail'")


def check_collision(txn: Txn, recorded: int, on_collision: OnCollision, *, url: str) -> None:
    """Reports, as `on_collision` says, that the table records the version `recorded` that is later than `txn`.

    Raises CommitError for FAIL, logs a warning for WARN. Does nothing where `recorded` is no later version.
    """
    if recorded <= txn.txn_version or on_collision is OnCollision.SKIP:
        return
    text = (
        f"Nothing was written to {url}: it records version {recorded} of the application {txn.app_id}, and this is "
        f"version {txn.txn_version}. A batch that is run again meets its own version; so this one comes from a "
        "checkpoint that was made anew or put back, or another run is alive. Take a new txnAppId for a new checkpoint; "
        "where older versions are written again on purpose, set txnVersionCollision=skip."
    )
    if on_collision is OnCollision.FAIL:
        raise CommitError(text, url=url)
    logger.warning("%s", text)
