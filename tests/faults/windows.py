"""A program: kills a process at each window of each scenario, lets another one finish, and compares.

    python -m faults.windows FOLDER [--every] [--scenario=NAME]

A window is a moment right before or after a call of a site (call_sites.py), at which a process of its own is killed by
SIGKILL. Each window is tried once as it is, and if something was written since the last one, also with the power lost
at that moment (power.py). Imports are done once: each process is a fork of this one. What readers and the next process
make of a disk is judged once: another window of the step that leaves the same disk (alike.py) has that verdict.

Each step of a scenario begins in a process of its own, where the step before it ended. By default a window is tried in
the first step that comes to it, in the middle of its calls; with `--every` in each step, at each call. FOLDER gets a
file `reports.json`: what was found, by scenario.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import shutil
import signal
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from faults.alike import contents
from faults.call_sites import CHANGING, DISK_MODULES, METHODS, watch
from faults.power import Disk

if TYPE_CHECKING:
    from faults.killed import Scenario
    from faults.steps import Step

When = Literal["before", "after"]
KEPT = ("checkpoint/offsets", "checkpoint/commits")
"""Spark's own files. Spark makes them durable; the model of its batches does not."""


_SYNC = "os.fsync"
_ONLY_DURABLE = (_SYNC, "open_folder:os.open", "sync_path:os.open", "below:os.open")
"""Disk sites that change nothing a process can see."""

_MAKES_A_FILE = os.O_CREAT | (getattr(os, "O_TMPFILE", 0) & ~os.O_DIRECTORY)


class Event(NamedTuple):
    """A call of `disk_site`, or of `store_site` itself where that is ""; `store_site` is "" in a helper's thread."""

    store_site: str
    disk_site: str
    when: When

    @property
    def changes(self) -> bool:
        return bool(self.disk_site) or self.when == "after"

    @property
    def is_new(self) -> bool:
        """Whether a process that dies now leaves another disk than one that died at the event before."""
        return not self.disk_site.endswith(_ONLY_DURABLE)

    @property
    def is_new_without_power(self) -> bool:
        """The same where the power is lost too: between two syncs nothing more becomes durable."""
        return self.disk_site.endswith(_SYNC) or self.when == "after"

    def __str__(self) -> str:
        return f"{self.when} {self.store_site}" + (f" > {self.disk_site}" if self.disk_site else "")


class Window(NamedTuple):
    """The `nth` time of an event, counted from 1, in one run of a scenario."""

    event: Event
    nth: int
    power: bool = False

    def __str__(self) -> str:
        return f"{self.event} ({self.nth}.{', power' if self.power else ''})"


class Watcher:
    """Counts the events of this process, and kills it at a window."""

    def __init__(self) -> None:
        self.is_on = False
        self.counts: Counter[Event] = Counter()
        self.unknown: set[str] = set()
        self.window: Window | None = None
        self.disk: Disk | None = None
        self._here = threading.local()
        self._lock = threading.Lock()

    def __call__(self, site: str, function: Callable[..., Any]) -> Callable[..., Any]:  # Any: of any function
        if not self.is_on:
            return function
        if site.partition(":")[0] in DISK_MODULES:
            return lambda *args, **kwargs: self._on_disk(site, function, args, kwargs)
        method = site.rpartition(":")[2].partition("#")[0]
        if method.startswith("?"):
            # Only now the object shows whether it is a store.
            if not _is_of_a_store(function):
                return function
            self.unknown.add(site)
        return lambda *args, **kwargs: self._of_a_store(site, method.removeprefix("?"), function, args, kwargs)

    def _of_a_store(
        self, site: str, method: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        self.meet(Event(site, "", "before"))
        with self.inside(site):
            result = function(*args, **kwargs)
        if method in ("create", "publish"):
            return _Opened(self, site, result)
        if method in CHANGING:
            self.meet(Event(site, "", "after"))
        return result

    def _on_disk(self, site: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self.meet(Event(getattr(self._here, "site", ""), site, "before"))
        result = function(*args, **kwargs)
        if self.disk is not None and site.endswith(_SYNC):
            self.disk.synced(*args)
        elif self.disk is not None and ":os.open" in site and args[1] & _MAKES_A_FILE:
            self.disk.created(result)
        return result

    @contextlib.contextmanager
    def inside(self, site: str) -> Iterator[None]:
        """Names the store site that the disk sites of this thread belong to."""
        outer = getattr(self._here, "site", "")
        self._here.site = outer or site
        try:
            yield
        finally:
            self._here.site = outer

    def done(self, site: str) -> None:
        self.meet(Event(site, "", "after"))

    def meet(self, event: Event) -> None:
        """Counts an event, and dies where it is the window's."""
        with self._lock:  # never given back by a process that dies: its other threads do nothing more
            self.counts[event] += 1
            if self.window is not None and self.window[:2] == (event, self.counts[event]):
                if self.disk is not None:
                    self.disk.lose_power()
                os.kill(os.getpid(), signal.SIGKILL)


class _Opened:
    """A file of `create` or `publish`, whose disk sites belong to its store site when it is opened and closed."""

    def __init__(self, watcher: Watcher, site: str, opened: Any) -> None:
        self._watcher, self._site, self._opened = watcher, site, opened

    def __enter__(self) -> Any:
        with self._watcher.inside(self._site):
            return self._opened.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Any:
        with self._watcher.inside(self._site):
            result = self._opened.__exit__(kind, error, trace)
        if error is None:
            self._watcher.done(self._site)
        return result


def _is_of_a_store(function: Callable[..., Any]) -> bool:
    of = getattr(function, "__self__", None)
    return all(hasattr(of, method) for method in METHODS)


WATCHER = Watcher()
"""What the call sites of this process go through."""


@dataclass(slots=True)
class Report:
    """What was found in one scenario. A failure names its window."""

    scenario: str
    windows: int = 0
    power: int = 0
    disks: int = 0
    seconds: float = 0.0
    reached: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


# --- processes -----------------------------------------------------------------------------------------------------


def forked(work: Callable[[], object], answer: Path) -> tuple[int, Any]:
    """Does `work` in a process of its own; gives its exit status, and what it returned, if it ended."""
    answer.unlink(missing_ok=True)
    pid = os.fork()
    if not pid:
        code = 1
        try:
            result = work()
            answer.write_text(json.dumps({"result": result}))
            code = 0
        except BaseException:  # noqa: BLE001 - a child reports all that ends it
            answer.write_text(json.dumps({"error": traceback.format_exc()[-2_000:]}))
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    found = json.loads(answer.read_text()) if answer.exists() else {}
    return status, found.get("result", found.get("error"))


# --- a scenario ----------------------------------------------------------------------------------------------------

END = Event("", "", "after")
"""The end of a step."""


class Trial:
    """The steps of one scenario: what each does undisturbed, and what becomes of it where its process dies."""

    def __init__(self, scenario: Scenario, folder: Path) -> None:
        self.report = Report(scenario=scenario.name)
        self._scenario, self._folder = scenario, folder
        self._answer = folder / "answer"

    def run(self, *, tried: set[tuple[Event, bool]] | None) -> Report:
        """Tries the windows whose events are not in `tried`, and adds them; None: all windows, at each call."""
        began = time.monotonic()
        before = self._folder / "made"
        before.mkdir(parents=True)
        self._in_child(lambda: _done(self._scenario.prepare, before))
        for number, step in enumerate(self._scenario.steps):
            before = self._try_step(step, before, self._folder / f"after-{number}", tried)
        self.report.seconds = time.monotonic() - began
        return self.report

    def _try_step(self, step: Step, before: Path, after: Path, tried: set[tuple[Event, bool]] | None) -> Path:
        from faults.compared import finished, history

        shutil.copytree(before, after)
        counts = self._events(step, after)
        histories = self._in_child(lambda: history(before, after))
        end = self._in_child(lambda: finished(_copied(after, self._folder / "finished")))
        verdicts: dict[tuple[str, bool], str] = {}
        for window in _windows(counts, tried):
            self.report.windows += 1
            self.report.power += window.power
            root = _copied(before, self._folder / "tried")
            began_ns = time.time_ns()
            try:
                self._kill(window, step, root)
                is_done = window.event == END
                disk = contents(root, since_ns=began_ns), is_done
                if disk not in verdicts:
                    self.report.disks += 1
                    verdicts[disk] = self._verdict(step, root, histories, end, is_done=is_done)
                failure = verdicts[disk]
            except (AssertionError, RuntimeError) as error:
                failure = str(error)
            if failure:
                self.report.failures.append(f"{window}: {failure}")
        return after

    def _events(self, step: Step, root: Path) -> Counter[Event]:
        """Takes the step undisturbed, and counts its events."""

        def work() -> Any:
            WATCHER.is_on = True
            _done(step, root)
            return [[*event, count] for event, count in WATCHER.counts.items()], sorted(WATCHER.unknown)

        found, unknown = self._in_child(work)
        counts = Counter({Event(*event): count for *event, count in found})
        self.report.reached = sorted({*self.report.reached, *(site for event in counts for site in event[:2] if site)})
        self.report.unknown = sorted({*self.report.unknown, *unknown})
        return counts

    def _kill(self, window: Window, step: Step, root: Path) -> None:
        def dies() -> None:
            WATCHER.window = window
            WATCHER.disk = Disk(root, kept=KEPT) if window.power else None
            WATCHER.is_on = True
            _done(step, root)
            WATCHER.meet(END)

        status, result = forked(dies, self._answer)
        # Threads share their work differently each time: a later call may not have come.
        assert os.WIFSIGNALED(status) or (status == 0 and window.nth > 1), f"the process was not killed: {result}"

    def _verdict(self, step: Step, root: Path, histories: Any, end: Any, *, is_done: bool) -> str:
        """What is wrong with what a killed process left, or with what the next one makes of it; "" if nothing is."""
        from faults.compared import check_history, finished

        def restarted() -> Any:
            _done(step, root)
            return finished(root)

        try:
            self._in_child(lambda: check_history(root, histories, is_done=is_done))
            found = self._in_child(restarted)
        except RuntimeError as error:
            return str(error)
        return "" if found == end else f"the restart ended with {found}, not with {end}"

    def _in_child(self, work: Callable[[], object]) -> Any:
        """Gives what `work` returns in a process of its own. Raises what is raised there as RuntimeError."""
        status, result = forked(work, self._answer)
        if status:
            raise RuntimeError(f"status {status}: {result}")
        return result


def _windows(counts: Counter[Event], tried: set[tuple[Event, bool]] | None) -> Iterator[Window]:
    """Gives the windows of a step; the lost power at its end first."""
    yield Window(END, 1, power=True)
    for event, count in counts.items():
        for power in (False, True):
            if tried is None:
                yield from (Window(event, nth, power) for nth in range(1, count + 1) if event.changes or not power)
            elif (event, power) not in tried and (event.is_new_without_power if power else event.is_new):
                tried.add((event, power))
                yield Window(event, (count + 1) // 2, power)


def _done(step: Step, root: Path) -> None:
    from tablefeed.feed.upkeep.background import wait_until_done

    step(root)
    wait_until_done()


def _copied(root: Path, to: Path) -> Path:
    if to.exists():
        shutil.rmtree(to)
    shutil.copytree(root, to)
    return to


def main(folder: Path, given: Sequence[str]) -> int:
    """Tries all windows below `folder`, and writes `reports.json` there; gives the number of failures."""
    watch(WATCHER)
    from faults.killed import SCENARIOS, warm_up

    warm_up()
    gc.collect()
    gc.freeze()  # else a collection in a child copies each page that has an object
    chosen = {option.removeprefix("--scenario=") for option in given if option.startswith("--scenario=")}
    tried: set[tuple[Event, bool]] | None = None if "--every" in given else set()
    reports = []
    for number, scenario in enumerate(SCENARIOS):
        if chosen and scenario.name not in chosen:
            continue
        reports.append(Trial(scenario, folder / str(number)).run(tried=tried))
        shutil.rmtree(folder / str(number))
        sys.stdout.write("\n    ".join([_line(reports[-1]), *reports[-1].failures]) + "\n")
        sys.stdout.flush()
    (folder / "reports.json").write_text(json.dumps([asdict(report) for report in reports]))
    return sum(len(report.failures) for report in reports)


def _line(report: Report) -> str:
    failed = f", {len(report.failures)} FAILED" if report.failures else ""
    return (
        f"{report.seconds:5.1f} s  {report.windows:4} windows, {report.power:3} of them without power, "
        f"{report.disks:3} disks: {report.scenario}{failed}"
    )


if __name__ == "__main__":
    sys.exit(min(main(Path(sys.argv[1]).resolve(), sys.argv[2:]), 1))
