"""What operations cost in requests to an object store, counted in front of the server: docs/reference/requests.md.

The page has the expected numbers. A bound that is a rule of its own is a test of its own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa
import pytest

import tablefeed
from support.gateway import Gateway
from support.object_stores import BEHIND_GATEWAYS
from support.pages import page
from support.request_counts import KINDS, counted, kind_of
from tablefeed.feed.api.follow import LOOKS_BEFORE_LISTING
from tablefeed.feed.commit.loop import commit
from tablefeed.feed.commit.transaction import Transaction, micro_batch
from tablefeed.feed.scan.task import read_task
from tablefeed.feed.snapshot.known_state import last_known, newest_state, remember
from tablefeed.feed.snapshot.open_log import open_log
from tablefeed.feed.stream.source import StreamSource
from tablefeed.feed.stream.source_options import SourceOptions
from tablefeed.feed.upkeep.after_commit import surroundings
from tablefeed.feed.upkeep.background import wait_until_done
from tablefeed.feed.write.sink import plan_write, write_task
from tablefeed.log.conflicts import WriteKind
from tablefeed.log.plan import Limits
from tablefeed.model.actions import Txn
from tablefeed.model.offset import Offset

ID = pa.schema([("id", pa.int64())])


@pytest.fixture(params=BEHIND_GATEWAYS)
def store(request: pytest.FixtureRequest) -> Gateway:
    """An empty bucket, behind a gateway that counts."""
    gateway: Gateway = request.getfixturevalue(request.param)
    gateway.begin()
    return gateway


@dataclass
class Table:
    """A table of one column that has `commits` commits; the first one adds `files` files of two rows, others one."""

    store: Gateway
    files: int = 1
    commits: int = 1
    name: str = "orders"
    properties: Mapping[str, str] = field(default_factory=dict)
    now_s: float = 0.0

    def __post_init__(self) -> None:
        self.url = self.store.url(self.name)
        self.append(self.files)
        self.append_each(self.commits - 1)

    def append(self, files: int) -> None:
        """Makes a commit of so many files."""
        rows, options = pa.table({"id": range(2 * files)}, schema=ID), self.store.options
        properties = self.properties or None
        tablefeed.append(self.url, rows, max_records_per_file=2, properties=properties, storage_options=options)
        wait_until_done()

    def append_each(self, commits: int) -> None:
        """Makes so many commits of one file each."""
        for _ in range(commits):
            self.append(1)

    def checkpoint(self) -> None:
        """Writes a checkpoint."""
        tablefeed.checkpoint(self.url, storage_options=self.store.options)

    def open(self) -> tablefeed.Table:
        """Opens the newest version."""
        return tablefeed.open_table(self.url, storage_options=self.store.options)

    def counted(self, call: Callable[[], object]) -> Counter[str]:
        """The requests of `call`."""
        return counted(self.store, call)

    def stream(self) -> tuple[StreamSource, Offset]:
        """A stream that has delivered everything and has looked once since, with this table's clock."""
        log = open_log(self.url, self.store.options)
        source = StreamSource(log, read_schema=log.load().schema, options=SourceOptions(), clock=lambda: self.now_s)
        end = source.latest(source.initial(), Limits())
        source.tasks(source.initial(), end)
        source.delivered(end)
        assert source.latest(end, Limits()) == end
        return source, end


# --- the operations of the page: each gives its requests with n files and c commits ---------------------------------


def look(store: Gateway, n: int, c: int, *, after_s: float) -> Counter[str]:
    table = Table(store, files=n, commits=c)
    source, end = table.stream()
    table.now_s += after_s
    return table.counted(lambda: source.latest(end, Limits()))


def batch_of_a_stream(store: Gateway, n: int, c: int) -> Counter[str]:
    table = Table(store, commits=c)
    source, start = table.stream()
    table.append(n)

    def batch() -> None:
        end = source.latest(start, Limits())
        tasks = source.tasks(start, end)
        assert sum(rows.num_rows for task in tasks for rows in read_task(task, ID)) == 2 * n
        source.delivered(end)

    return table.counted(batch)


def batch_of_a_sink(store: Gateway, n: int, c: int) -> Counter[str]:
    """A batch with the calls that Spark's sink makes."""
    table = Table(store, commits=c)

    def batch() -> None:
        log, state = newest_state(table.url, store.options)
        plan = plan_write(log, state, ID, partition_by=(), kind=WriteKind.APPEND)
        txn = Txn(app_id="query", txn_version=0)
        rows = [pa.record_batch({"id": [1]}, schema=ID)]
        files = tuple(add for task in range(n) for add in write_task(plan, rows, task=task, txn=txn, now_ms=0))
        operation = micro_batch(WriteKind.APPEND, "query", 0)
        ours = Transaction(plan=plan, files=files, kind=WriteKind.APPEND, operation=operation, txn=txn)
        log, known = last_known(table.url, store.options)
        remember(log, commit(log, known, ours, surroundings())[1])

    return table.counted(batch)


def append(store: Gateway, n: int, c: int) -> Counter[str]:
    table = Table(store, commits=c)
    return table.counted(lambda: table.append(n))


def delete(store: Gateway, n: int, c: int) -> Counter[str]:
    table = Table(store, files=n)
    for _ in range(c - 1):
        tablefeed.append(table.url, pa.table({"id": [-1]}, schema=ID), storage_options=store.options)
    where = " or ".join(f"id = {2 * file}" for file in range(n))
    return table.counted(lambda: tablefeed.delete(table.url, where, storage_options=store.options))


def opened(store: Gateway, n: int, c: int) -> Counter[str]:
    table = Table(store, files=n)
    table.checkpoint()
    table.append_each(c)
    return table.counted(table.open)


def opened_without_checkpoint(store: Gateway, n: int, c: int) -> Counter[str]:
    return counted(store, Table(store, files=n, commits=c).open)


def rows_read(store: Gateway, n: int, c: int) -> Counter[str]:  # noqa: ARG001 - however many there are
    table = Table(store, files=n).open()
    return counted(store, table.to_arrow)


def checkpoint(store: Gateway, n: int, c: int) -> Counter[str]:
    table = Table(store, files=n)
    table.checkpoint()
    table.append_each(c)
    return table.counted(table.checkpoint)


def checkpoint_behind(store: Gateway, n: int, c: int) -> Counter[str]:
    """The requests of the append that begins it, without those of any other append."""
    table = Table(store, files=n, commits=2 * c, properties={"delta.checkpointInterval": str(c)})
    other = Table(store, name="another")
    return table.counted(lambda: table.append(1)) - other.counted(lambda: other.append(1))


def commit_followed(store: Gateway, n: int, c: int) -> Counter[str]:
    table = Table(store, commits=c)
    commits = tablefeed.follow(table.url, after=c - 2, storage_options=store.options)
    next(commits)
    table.append(n)
    return table.counted(lambda: next(commits))


def made(store: Gateway, n: int, c: int) -> Counter[str]:  # noqa: ARG001 - one
    Table(store)
    return counted(store, lambda: Table(store, files=n, name="another"))


def first_write(store: Gateway, n: int, c: int) -> Counter[str]:  # noqa: ARG001 - one
    store.begin()
    return counted(store, lambda: Table(store)) - counted(store, lambda: Table(store, name="another"))


OPERATIONS: Mapping[str, Callable[[Gateway, int, int], Counter[str]]] = {
    "a look of an idle stream": partial(look, after_s=1),
    "the one look of a minute that also lists the log": partial(look, after_s=60),
    "a batch of a stream: one commit of n files, planned and read": batch_of_a_stream,
    "a batch of a sink: n files, planned, written and committed": batch_of_a_sink,
    "`append` of n files": append,
    "`delete` of some rows of n files": delete,
    "`open_table`, with a checkpoint": opened,
    "`open_table`, without a checkpoint": opened_without_checkpoint,
    "the rows of n files of an open table": rows_read,
    "`checkpoint`": checkpoint,
    "a checkpoint in the background, after a commit": checkpoint_behind,
    "the next commit of `follow`": commit_followed,
    "the first `append`, which makes the table": made,
    "the first write of a process to a bucket, besides": first_write,
}


def costs() -> dict[str, list[str]]:
    """The cells of the page's table, by operation: for each kind of request, and for all."""
    rows = [[cell.strip() for cell in line.strip("|\n").split("|")] for line in page("requests.md").splitlines()]
    return {row[0]: row[1:] for row in rows if len(row) == len(KINDS) + 2 and row[0] in OPERATIONS}


def value(cell: str, *, n: int, c: int) -> int:
    """The number that a cell says, such as `5 + c + 2n`."""
    terms = [re.fullmatch(r"(\d*)([nc]?)", term) for term in cell.split(" + ")]
    assert all(terms), f"not a sum: {cell!r}"
    return sum(int(term[1] or "1") * {"": 1, "n": n, "c": c}[term[2]] for term in terms if term)


@pytest.mark.in_turn
@pytest.mark.parametrize("operation", OPERATIONS)
def test_each_operation_costs_what_the_page_says(store: Gateway, operation: str) -> None:
    *cells, of_all = costs()[operation]
    for n, c in ((1, 1), (3, 2)):
        store.begin()
        found = OPERATIONS[operation](store, n, c)

        assert {kind: found[kind] for kind in KINDS} == {
            kind: value(cell, n=n, c=c) for kind, cell in zip(KINDS, cells, strict=True)
        }
        assert found.total() == value(of_all, n=n, c=c)


def test_a_batch_of_a_stream_costs_at_most_six_requests_and_one_for_each_file() -> None:
    of_all = costs()["a batch of a stream: one commit of n files, planned and read"][-1]

    assert all(value(of_all, n=n, c=1) <= 6 + n for n in range(1, 1001))


@pytest.mark.slow
def test_an_idle_hour_with_a_look_a_second_costs_3660_requests(gateway: Gateway) -> None:
    table, minutes = Table(gateway), 5
    source, end = table.stream()

    def idle() -> None:
        for _ in range(60 * minutes):
            table.now_s += 1
            assert source.latest(end, Limits()) == end

    hour = {kind: requests * 60 // minutes for kind, requests in table.counted(idle).items()}
    assert hour == {"HEAD": 3600, "LIST": 60}
    assert "3,660" in page("requests.md")


def test_a_follower_that_waits_looks_once_a_pause_and_lists_the_log_at_each_eighth_look(gateway: Gateway) -> None:
    table, looks, waiting = Table(gateway), Counter[str](), list[str]()

    def commit_comes(told: str) -> bool:
        looks[told] += told.endswith("00001.json") and told.startswith("HEAD")
        if looks[told] == 2 * LOOKS_BEFORE_LISTING + 1 and not waiting:
            waiting.extend(gateway.requests)
            table.append(1)
        return False

    commits = tablefeed.follow(table.url, poll_interval_s=0.001, storage_options=gateway.options)
    gateway.requests.clear()
    gateway.throttles = commit_comes
    assert next(commits).version == 1

    gets_at_first = lists_at_first = 1
    assert Counter(kind_of(gateway, told) for told in waiting) == {
        "HEAD": 2 * LOOKS_BEFORE_LISTING + 1,
        "GET": gets_at_first,
        "LIST": lists_at_first + 2,
    }
