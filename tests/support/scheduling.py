"""Which tests one process runs, in a run in several (pytest-xdist)."""

from __future__ import annotations

import re

from xdist.scheduler import LoadFileScheduling

_OF_CONNECT = re.compile(r"^tests/spark/.*[_\[]connect[_\]]")


class FilesAndConnect(LoadFileScheduling):  # type: ignore[misc]  # pytest-xdist publishes no types
    """One process runs all tests of a file, and one all tests of Spark Connect: what they share is made once.

    That is a server with a JVM of its own, and in it the Python workers of each session.
    """

    def _split_scope(self, nodeid: str) -> str:
        return "connect" if _OF_CONNECT.match(nodeid) else super()._split_scope(nodeid)
