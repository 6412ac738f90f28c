"""Names of files on this machine's disks, as this process reads and writes them.

The names in a table's log are texts, and all writers put them on a disk as UTF-8. On Linux the locale of a process
decides how it reads the names of files. In another encoding a file would be listed under a name that no log has: a
reader would not find it, and vacuum would delete it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tablefeed.errors import StoreConfigError

_ENCODING = sys.getfilesystemencoding()


def checked_names(names: Sequence[str], *, url: str) -> Sequence[str]:
    """Gives `names` back. Raises StoreConfigError for one that is not ASCII, if this process does not use UTF-8."""
    odd = next((name for name in names if not name.isascii()), None) if _ENCODING != "utf-8" else None
    if odd is not None:
        raise StoreConfigError(
            f"The name {odd!a} below {url} is not ASCII, and this process reads the names of files as "
            f"{_ENCODING}, but in a table they are UTF-8. Start the process with the environment variable "
            "PYTHONUTF8=1, or with a locale of UTF-8.",
            url=url,
        )
    return names
