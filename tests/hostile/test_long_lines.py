"""A line of the log that is 100 MB long: read or refused, in some times its size and at once."""

from __future__ import annotations

import pytest

import tablefeed
from hostile.logs import SCHEMA, Folder, line
from hostile.ways_in import ask, ids_of
from support.examples import IS_FUZZ
from support.logs import add, metadata, protocol
from tablefeed.errors import TablefeedError

LENGTH = 100_000_000 if IS_FUZZ else 4_000_000
"""In bytes: what is said above in `make fuzz`, enough to show the rule elsewhere."""
MOST_BYTES = 25 * LENGTH
"""The worst is a list of small numbers: the parser makes eight bytes of two, and twice that while the list grows."""
LONG: dict[str, tuple[bytes, bytes, bytes]] = {
    "a text that nobody reads": (b'{"commitInfo":{"operation":"', b"x", b'"}}'),
    "an action that nobody knows": (b'{"fromTheFuture":{"a":"', b"x", b'"}}'),
    "spaces before an action": (b'{"commitInfo":', b" ", b"{}}"),
    "many values": (b'{"commitInfo":{"a":[', b"1,", b"1]}}"),
    "a path": (b'{"add":{"path":"', b"x", b'","partitionValues":{},"size":1,"modificationTime":1,"dataChange":true}}'),
    "spaces": (b"", b" ", b""),
    "brackets": (b"", b"[", b""),
    "no JSON": (b"", b"x", b""),
    "digits": (b'{"txn":{"appId":"a","version":', b"9", b"}}"),
}
"""Long lines as what they begin with, what comes again and again, and their ends. The first four mean nothing."""


@pytest.mark.parametrize("what", LONG)
def test_a_line_of_100_mb_is_read_or_refused_in_some_times_its_size(folder: Folder, what: str) -> None:
    begin, again, end = LONG[what]
    long = begin + again * (LENGTH // len(again)) + end + b"\n"
    first = b"".join(line(action) + b"\n" for action in (protocol(), metadata(SCHEMA), add("a.parquet")))
    path = folder.log([first, long])
    del long

    rows = ask(lambda: tablefeed.open_table(path).to_arrow())

    if what in list(LONG)[:4]:
        assert ids_of(rows) == [0, 1, 2]
    else:
        assert isinstance(rows, TablefeedError)
        assert len(str(rows)) < 10_000
