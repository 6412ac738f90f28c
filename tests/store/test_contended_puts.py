"""Of several writers of one name exactly one wins, and what stands is the winner's, whole.

The check is shown to be one: the last test runs it against exists-then-write, and it finds several winners.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tablefeed.store import Content, LocalStore, Store, Within

THREADS = 6
PROCESSES = 3


def content(writer: int) -> bytes:
    return bytes([65 + writer]) * 200_000


def broken_rounds(store: Store, *, rounds: int) -> Iterator[str]:
    """Lets threads race on one name after another; yields what breaks the promise."""
    barrier = threading.Barrier(THREADS)

    def race(writer: int, name: str) -> bool:
        data = content(writer)
        barrier.wait()
        return store.put_if_absent(name, data)

    with ThreadPoolExecutor(THREADS) as pool:
        for turn in range(rounds):
            name = f"log/{turn}.json"
            won = [w for w, wins in enumerate(pool.map(race, range(THREADS), [name] * THREADS)) if wins]
            if len(won) != 1:
                yield f"{name} has the winners {won}"
            elif store.read(name) != content(won[0]):
                yield f"{name} does not hold what its winner wrote"


def test_of_threads_that_put_one_name_exactly_one_wins(store: Store) -> None:
    assert list(broken_rounds(store, rounds=20)) == []


WRITER = """
import sys
from tablefeed.store import LocalStore
store, writer = LocalStore(sys.argv[1]), int(sys.argv[2])
for name in map(str.strip, sys.stdin):
    print(store.put_if_absent(name, bytes([65 + writer]) * 200_000), flush=True)
"""


@pytest.fixture
def racers(tmp_path: Path) -> Iterator[Callable[[str], list[int]]]:
    """Lets processes race on a name; gives those who won."""
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path), str(writer)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for writer in range(PROCESSES)
    ]

    def race(name: str) -> list[int]:
        for writer in writers:
            assert writer.stdin is not None
            writer.stdin.write(f"{name}\n")
            writer.stdin.flush()
        answers = [writer.stdout.readline() for writer in writers if writer.stdout is not None]
        assert set(answers) <= {"True\n", "False\n"}
        return [index for index, answer in enumerate(answers) if answer == "True\n"]

    yield race
    for writer in writers:
        writer.communicate()


def test_of_processes_that_put_one_name_exactly_one_wins(tmp_path: Path, racers: Callable[[str], list[int]]) -> None:
    for turn in range(60):
        won = racers(f"log/{turn}.json")
        assert len(won) == 1
        assert (tmp_path / "log" / f"{turn}.json").read_bytes() == content(won[0])
    assert len(list((tmp_path / "log").iterdir())) == 60


class ExistsThenWrite(LocalStore):
    """What must not pass for a store."""

    def put_if_absent(self, name: str, data: Content, *, within: Within | None = None) -> bool:  # noqa: ARG002
        if self.exists(name):
            return False
        path = Path(self.url, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data if isinstance(data, bytes) else b"".join(data))
        return True


def test_the_check_finds_out_exists_then_write(tmp_path: Path) -> None:
    assert next(broken_rounds(ExistsThenWrite(str(tmp_path)), rounds=500), None) is not None
