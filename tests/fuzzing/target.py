"""One decoder under fuzzing: what it takes, what it may raise, and the bounds of one input."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from support.bounds import at_most
from tablefeed.errors import TablefeedError

FLOOR_BYTES = 32 << 20
"""What any input may take, however small it is: buffers of Arrow and DuckDB, and what the interpreter sets aside."""

MOST_CPU_S = 10.0
"""What an input may take of one CPU, many times what a whole file of a real table takes."""

FAILED = Path(__file__).parent / "failed"
"""The inputs that failed once, in a folder for each target. Each run begins with them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A decoder of bytes.

    `decode` may raise `refusals` and nothing else. For an input of `n` bytes it may take `factor * n` bytes of memory
    above `floor_bytes`. `seeds` makes valid inputs, and some that are nearly valid. `corpus` has patterns of further
    valid inputs, below the folder of the corpus.
    """

    name: str
    decode: Callable[[bytes], object]
    seeds: Callable[[], Sequence[bytes]]
    factor: int = 64
    floor_bytes: int = FLOOR_BYTES
    refusals: tuple[type[Exception], ...] = (TablefeedError,)
    corpus: tuple[str, ...] = ()

    def inputs(self) -> list[bytes]:
        """The inputs that failed once, then the seeds.

        The first seed is decoded: what is imported and cached then is not counted for another input.
        """
        failed = sorted((FAILED / self.name).glob("*"))
        seeds = self.seeds()
        self._answer(seeds[0])
        return [*(path.read_bytes() for path in failed), *seeds]

    def judge(self, data: bytes) -> None:
        """Decodes `data`. Raises what is not allowed, and AssertionError for too much memory or time."""
        with _in_time(), at_most(self.floor_bytes + self.factor * len(data)):
            self._answer(data)

    def _answer(self, data: bytes) -> None:
        try:
            self.decode(data)
        except self.refusals as error:
            assert str(error)  # noqa: PT017 - a refusal says why


@contextmanager
def _in_time() -> Iterator[None]:
    signal.signal(signal.SIGPROF, _too_long)
    signal.setitimer(signal.ITIMER_PROF, MOST_CPU_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _too_long(_signal: int, _frame: object) -> None:
    raise AssertionError(f"it took more than {MOST_CPU_S:.0f} s of a CPU")
