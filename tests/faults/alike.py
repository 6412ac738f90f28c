"""Whether two processes left the same disk, except for the ids and times that each process makes anew.

Everything else must be equal, byte by byte.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

_CHOSEN = re.compile(rb"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])")
"""An id that a process makes at random: of a data file, a commit, a query or a temporary file."""

_TIME_MS = re.compile(rb"(?<![0-9])[0-9]{13}(?![0-9])")


def contents(root: Path, *, since_ns: int) -> str:
    """A hash of the names, bytes and times below `root`; a time from `since_ns` on counts as now.

    Ids are numbered in the order of what surrounds them, so two files that change places are not the same.
    """
    given = []
    for path in root.rglob("*"):
        name = path.relative_to(root).as_posix().encode()
        if path.is_dir():
            given.append((_CHOSEN.sub(b"*", name), b"", name, b"", b""))
            continue
        data, found = path.read_bytes(), path.stat()
        time = b"now" if found.st_mtime_ns >= since_ns else b"%d" % found.st_mtime_ns
        data = _TIME_MS.sub(lambda match: b"now" if int(match[0]) >= since_ns // 1_000_000 else match[0], data)
        without_ids = hashlib.sha256(_CHOSEN.sub(b"*", data)).digest()
        given.append((_CHOSEN.sub(b"*", name), without_ids, name, data, time))
    numbers: dict[bytes, bytes] = {}

    def number(match: re.Match[bytes]) -> bytes:
        return numbers.setdefault(match[0], b"<%d>" % len(numbers))

    digest = hashlib.sha256()
    for *_, name, data, time in sorted(given):
        for part in (_CHOSEN.sub(number, name), _CHOSEN.sub(number, data), time):
            digest.update(b"%d " % len(part) + part)
    return digest.hexdigest()
