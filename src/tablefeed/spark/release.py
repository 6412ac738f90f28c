"""Refuses what another version of tablefeed pickled.

Spark passes readers, writers and partitions between processes, and these may import tablefeed from different places: a
zip of `addPyFile` beside an installed wheel, or a Python worker that Spark re-uses and that imported the wheel before.
A frozen value is restored by the position of its fields, so another version could read one field as another one. So
whatever is passed has `RELEASE` in front of it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tablefeed._version import __version__
from tablefeed.errors import TablefeedError


class Release:
    """The version of tablefeed that pickles this. Raises TablefeedError where another version unpickles it.

    pickle restores in the order of writing. So another version raises before it restores what is pickled after this.
    """

    def __reduce__(self) -> tuple[Callable[[str], Release], tuple[str]]:
        return _same_release, (__version__,)


RELEASE = Release()


def _same_release(version: str) -> Release:
    if version != __version__:
        raise TablefeedError(
            f"One process of this query has tablefeed {version}, and this one has tablefeed {__version__} from "
            f"{Path(__file__).parents[1]}. Nothing was read or written here. Ship one version to the driver and all "
            "executors, and start the Spark application again: Spark re-uses Python processes that have imported "
            "another version."
        )
    return RELEASE
