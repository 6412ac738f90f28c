"""One line of the log with its facts, as text and as fields.

Spark's JSON formatter for logs of Python (`pyspark.logger`) puts a record's `context` beside its message. Other
formatters can do the same.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping


def log_facts(logger: logging.Logger, event: str, facts: Mapping[str, object]) -> None:
    """Logs `event` and `facts` as `key=value` at INFO; facts that are None are left out.

    The record's `context` has the event and the facts as texts, unless a LogRecordFactory gives records one already:
    then logging refuses another.
    """
    if logger.isEnabledFor(logging.INFO):
        texts = {name: str(value) for name, value in facts.items() if value is not None}
        line = " ".join([event, *(f"{name}={text}" for name, text in texts.items())])
        try:
            logger.info("%s", line, extra={"context": {"event": event, **texts}})
        except KeyError:
            logger.info("%s", line)
