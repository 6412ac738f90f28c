"""Fuzzes decoders: `python -m fuzzing [--seconds S | --cases N] [--seed S] [TARGET...]`, with `tests` on PYTHONPATH.

`--cases` tries as many changed seeds, the same ones for the same seed. `--seconds` is guided by coverage where atheris
is installed, and otherwise tries changed seeds for so long. Each target runs in a process of its own, so that a crash
ends only that. The process keeps the input that it tries below `build/fuzzing`: after a crash or a hang it is there.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import os
import resource
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from fuzzing.target import Target

_WORK = Path("build/fuzzing")
_MOST_VIRTUAL_BYTES = 8 << 30
"""Of address space. An input that wants more gets a MemoryError, which is reported as any other exception."""
_MOST_OF_A_PATTERN, _MOST_SEED_BYTES = 60, 64 << 10


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzzing", description=__doc__.partition(":")[0])
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="all where none is named")
    parser.add_argument("--cases", type=int, help="how many changed seeds to try, instead of --seconds")
    parser.add_argument("--seconds", type=int, default=60, help="how long a target runs (60)")
    parser.add_argument("--seed", type=int, help="of the changes; made up and printed where it is left out")
    asked = parser.parse_args()
    asked.seed = int.from_bytes(os.urandom(3), "big") if asked.seed is None else asked.seed
    is_guided = asked.cases is None and importlib.util.find_spec("atheris") is not None
    if is_guided:
        import atheris

        with contextlib.redirect_stderr(io.StringIO()), atheris.instrument_imports(include=["tablefeed"]):
            from fuzzing.targets import TARGETS
    else:
        from fuzzing.targets import TARGETS
    failed = [
        name
        for name in asked.targets or TARGETS
        if not _in_own_process(TARGETS[name], (_guided if is_guided else _plain), asked)
    ]
    for name in failed:
        _say(f"{name}: FAILED. The input is {_current(name)}; put it in tests/fuzzing/failed/{name}")
    return 1 if failed else 0


def _in_own_process(
    target: Target, fuzz: Callable[[Target, argparse.Namespace], None], asked: argparse.Namespace
) -> bool:
    """Whether `target` withstood. Nothing has started a thread yet, so that a fork is safe."""
    child = os.fork()
    if child == 0:
        _run(target, fuzz, asked)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        _say(f"{target.name}: ended by signal {os.WTERMSIG(status)}")
    return status == 0


def _run(target: Target, fuzz: Callable[[Target, argparse.Namespace], None], asked: argparse.Namespace) -> NoReturn:
    _WORK.mkdir(parents=True, exist_ok=True)
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_VIRTUAL_BYTES, resource.RLIM_INFINITY))
    # What hangs outside of Python is ended by the kernel.
    most_cpu_s = 600 if asked.cases is not None else asked.seconds + 120
    resource.setrlimit(resource.RLIMIT_CPU, (most_cpu_s, resource.RLIM_INFINITY))
    try:
        fuzz(target, asked)
    except BaseException:  # noqa: BLE001 - whatever it is, it is reported
        _say(f"{target.name}: {traceback.format_exc()}")
        os._exit(1)
    os._exit(0)


def _plain(target: Target, asked: argparse.Namespace) -> None:
    """Tries the inputs of `target`, then changed ones: as many as asked, or as long."""
    keep, begun_s, count = _keeper(target.name), time.monotonic(), 0
    inputs = target.inputs()
    for data in inputs:
        target.judge(keep(data))
    for data in _changed(inputs, asked.seed):
        if count == asked.cases or (asked.cases is None and time.monotonic() - begun_s >= asked.seconds):
            break
        target.judge(keep(data))
        count += 1
    _say(f"{target.name}: {len(inputs)} inputs, {count} changed, {time.monotonic() - begun_s:.0f} s, seed {asked.seed}")


def _changed(inputs: list[bytes], seed: int) -> Iterator[bytes]:
    from fuzzing.mutation import mutated

    random = Random(seed)  # noqa: S311 - chooses inputs
    while True:
        yield mutated(random.choice(inputs), inputs, random)


def _guided(target: Target, asked: argparse.Namespace) -> None:
    """Tries inputs that reach new code, by libFuzzer, which ends the process."""
    import atheris

    from fuzzing.mutation import mutated

    inputs = [*target.inputs(), *_of_corpus(target)]
    corpus = _WORK / "corpus" / target.name
    corpus.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(inputs):
        (corpus / f"seed{number}").write_bytes(data)
    random = Random(asked.seed)  # noqa: S311 - chooses inputs
    keep = _keeper(target.name)
    _say(f"{target.name}: {len(inputs)} inputs, seed {asked.seed}")

    def change(data: bytes, most: int, _seed: int) -> bytes:
        if random.random() < 0.5:
            changed: bytes = atheris.Mutate(data, most)
            return changed
        return mutated(data, inputs, random)[:most]

    options = [f"-max_total_time={asked.seconds}", f"-seed={asked.seed or 1}", "-max_len=262144", "-len_control=0"]
    options += ["-rss_limit_mb=0", "-timeout=600", f"-artifact_prefix={_WORK}/{target.name}-", "-print_final_stats=1"]
    atheris.Setup(["fuzzing", *options, str(corpus)], lambda data: target.judge(keep(data)), custom_mutator=change)
    atheris.Fuzz()


def _of_corpus(target: Target) -> Iterator[bytes]:
    """A few files of the corpus, where there is one: the smallest of each pattern, no two of the same size."""
    from support.corpus import corpus_folder

    folder = corpus_folder()
    if folder is None:
        return
    for pattern in target.corpus:
        by_size = {path.stat().st_size: path for path in sorted(folder.glob(pattern)) if path.is_file()}
        for size in sorted(by_size)[:_MOST_OF_A_PATTERN]:
            if size <= _MOST_SEED_BYTES:
                yield by_size[size].read_bytes()


def _current(name: str) -> Path:
    return _WORK / f"{name}.input"


def _keeper(name: str) -> Callable[[bytes], bytes]:
    """Gives a function that keeps an input in a file before it is tried."""
    handle = os.open(_current(name), os.O_RDWR | os.O_CREAT, 0o644)

    def keep(data: bytes) -> bytes:
        os.ftruncate(handle, 0)
        os.pwrite(handle, data, 0)
        return data

    return keep


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
