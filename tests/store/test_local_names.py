"""A process that does not read the names of files as UTF-8: nothing is missed, misnamed or deleted by it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tablefeed.store import LocalStore

_PROGRAM = """
import sys
from tablefeed.errors import StoreConfigError
from tablefeed.store import LocalStore

store = LocalStore(sys.argv[1])
print(sys.getfilesystemencoding(), [entry.name for entry in store.list("plain")], store.read("plain/a"))
calls = (
    lambda: list(store.list("")),
    lambda: list(store.directories("")),
    lambda: store.exists("day=\\u65e5/a"),
    lambda: store.read("/\\u65e5"),
    lambda: store.put_if_absent("day=\\u65e5/a", b""),
    lambda: store.create("day=\\u65e5/a").__enter__(),
    lambda: store.copy(["day=\\u65e5/a"], store),
    lambda: store.delete("day=\\u65e5/a"),
)
for call in calls:
    try:
        print("no error:", call())
    except StoreConfigError as error:
        print("refused" if "PYTHONUTF8=1" in str(error) else error)
"""


def test_a_name_that_is_not_ascii_is_refused_by_a_process_that_does_not_use_utf_8(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    for name in ("plain/a", "day=日/a", "日"):
        store.put_if_absent(name, b"x")
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}

    program = [sys.executable, "-c", _PROGRAM, str(tmp_path)]
    done = subprocess.run(program, env=environment, capture_output=True, text=True, check=True)

    if done.stdout.startswith("utf-8"):
        pytest.skip("file names are UTF-8 here, whatever the locale")
    assert done.stdout.splitlines() == ["ascii ['a'] b'x'", *["refused"] * 8]
    assert store.read("day=日/a") == b"x"
