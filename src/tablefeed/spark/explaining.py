"""Says what an error of Spark means. The rule is in `tablefeed.wording.spark_errors`."""

from __future__ import annotations

from tablefeed.errors import TablefeedError
from tablefeed.wording.spark_errors import in_short, messages_in, one_line


def explain(error: BaseException | str) -> str:
    """Gives tablefeed's message in an error of Spark, or in its text: what is wrong and what to do, in one line.

    An error without such a message gives Spark's first line. If Python raised it, that is its error instead of a
    traceback.
    """
    if isinstance(error, TablefeedError):
        return one_line(error.message)
    text = str(error)
    return next(messages_in(text), in_short(text))
