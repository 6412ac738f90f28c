"""A write whose version the table records already: one that is run again, or one that meets another run's records.

Spark runs a batch again only until the next one is planned. So a batch that is run again meets its own version, never a
later one. Who meets a later one has begun anew under an application id that outlived its checkpoint, was put back to an
older checkpoint, or is not the only run alive: its rows are not in the table, and someone should know.
"""

from __future__ import annotations

import logging
from enum import StrEnum

from tablefeed.errors import CommitError, IllegalOptionError
from tablefeed.model.actions import Txn

logger = logging.getLogger(__name__)


class OnCollision(StrEnum):
    """What a write does that meets a later version of its application: nothing is written in any case."""

    SKIP = "skip"
    WARN = "warn"
    FAIL = "fail"


def read_on_collision(option: str, value: object) -> OnCollision:
    """Gives what `value` of `option` asks for, in any case. Raises IllegalOptionError."""
    if isinstance(value, str) and value.lower() in list(OnCollision):
        return OnCollision(value.lower())
    raise IllegalOptionError(option=option, value=str(value), explain="must be 'skip', 'warn' or 'fail'")


def check_replay(txn: Txn, recorded: int, on_collision: OnCollision, *, url: str) -> None:
    """Says what is to be said of a write that the table records: nothing of one that is run again.

    Raises CommitError where it meets a later version and is to fail.
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
