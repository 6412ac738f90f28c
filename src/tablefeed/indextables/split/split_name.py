"""The file name of a split that tablefeed writes: it holds the txn (application and version) that the rows belong to.

A state has no field for a txn. So the name of each split has the txn of its write, and a table version that adds the
split records that write in any flavour of the log. A merge writes the rows to files with other names. A random part
makes the names of two attempts of one task differ, so that no attempt writes to the file of another.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable

from tablefeed.model.actions import Txn

SUFFIX = ".split"

_APPLICATIONS = uuid.UUID("7d1b5f0e-52c5-4d0c-9f36-6c1a5d1f6f2b")
"""The UUID name space for application ids. An id may be any text, and a file name may not, so the id is hashed."""

_OF_TXN = re.compile(r"part-[0-9]{5,}-(?P<version>[0-9]{1,19})-(?P<key>[0-9a-f-]{36})-[0-9a-f]{12}\.split")


def application_key(app_id: str) -> str:
    """The key of an application in file names: equal for equal ids, different for different ids."""
    return str(uuid.uuid5(_APPLICATIONS, app_id))


def split_name(task: int, txn: Txn | None, *, chance: uuid.UUID) -> str:
    """The base name of a new split of `task`, with `txn` in it if there is one; `chance` is the random part."""
    if txn is None:
        return f"part-{task:05d}-0-{chance}{SUFFIX}"
    return f"part-{task:05d}-{txn.txn_version}-{application_key(txn.app_id)}-{chance.hex[:12]}{SUFFIX}"


def newest_of(app_id: str, paths: Iterable[str]) -> int | None:
    """The newest txn version of `app_id` in the names of `paths`; None where none of them has a txn of it."""
    key = application_key(app_id)
    return newest_of_each(path for path in paths if key in path).get(key)


def newest_of_each(paths: Iterable[str]) -> dict[str, int]:
    """The newest txn version of each application in the names of `paths`, by the application's key."""
    newest: dict[str, int] = {}
    for path in paths:
        match = _OF_TXN.fullmatch(path.rpartition("/")[2])
        if match is not None:
            newest[match["key"]] = max(int(match["version"]), newest.get(match["key"], -1))
    return newest
