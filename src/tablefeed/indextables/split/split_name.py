"""What the name of a split of ours tells: of which application and which of its versions its rows are.

A state has no place for a txn, and a merge writes rows into files of other names. So each split names the write that it
belongs to, and a version that adds one records that write, whatever the flavour of its log. A part by chance keeps the
names of twin attempts apart: no attempt ever writes to the file of another.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable

from tablefeed.model.actions import Txn

SUFFIX = ".split"

_APPLICATIONS = uuid.UUID("7d1b5f0e-52c5-4d0c-9f36-6c1a5d1f6f2b")
"""The name space of application ids: theirs are any text, which a file name is not."""

_OF_TXN = re.compile(r"part-[0-9]{5,}-(?P<version>[0-9]{1,19})-(?P<key>[0-9a-f-]{36})-[0-9a-f]{12}\.split")


def application_key(app_id: str) -> str:
    """The word for an application in names: the same for the same id, another for another."""
    return str(uuid.uuid5(_APPLICATIONS, app_id))


def split_name(task: int, txn: Txn | None, *, chance: uuid.UUID) -> str:
    """The base name of a new split of `task`, which tells `txn` where there is one."""
    if txn is None:
        return f"part-{task:05d}-0-{chance}{SUFFIX}"
    return f"part-{task:05d}-{txn.txn_version}-{application_key(txn.app_id)}-{chance.hex[:12]}{SUFFIX}"


def newest_of(app_id: str, paths: Iterable[str]) -> int | None:
    """The newest version of the application that any of `paths` tells, None where none does."""
    key = application_key(app_id)
    found = (_OF_TXN.fullmatch(path.rpartition("/")[2]) for path in paths if key in path)
    return max((int(match["version"]) for match in found if match is not None and match["key"] == key), default=None)
