"""A table under any sequence of writes, races, replays and faults holds what a plain dict says: each batch once."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from support.logs import a_write, live_paths, log_of, still
from tablefeed.errors import CommitUnknownError, ConflictError, StoreError
from tablefeed.feed.commit.loop import commit
from tablefeed.feed.commit.transaction import Transaction
from tablefeed.feed.snapshot.table_log import Snapshot, required_commit
from tablefeed.feed.write.orphans import delete_replayed
from tablefeed.model.actions import Txn
from tablefeed.model.outcome import AlreadyApplied, Committed
from tablefeed.store import Fault, FaultyStore, MemoryStore

QUERIES = ("q1", "q2")

faults = st.lists(
    st.builds(
        Fault,
        operation=st.sampled_from(["put_if_absent", "read", "stat", "list", "delete"]),
        at=st.integers(1, 4),
        when=st.sampled_from(["before", "after"]),
    ),
    max_size=4,
)


class Planned:
    """One attempt at a batch: what it wrote against which state."""

    def __init__(self, state: Snapshot | None, write: Transaction, query: str, batch: int) -> None:
        self.state, self.write, self.query, self.batch = state, write, query, batch


class Queries(RuleBasedStateMachine):
    """Two queries, any number of attempts alive at once; each batch of a query carries one row, which is its file."""

    def __init__(self) -> None:
        super().__init__()
        self.store = MemoryStore("orders")
        self.log = log_of(self.store)
        self.numbers: Iterator[int] = itertools.count()
        self.next_batch = dict.fromkeys(QUERIES, 0)
        self.acknowledged: set[tuple[str, int]] = set()
        self.attempts: list[Planned] = []
        self.batch_of: dict[str, tuple[str, int]] = {}

    @initialize(exists=st.booleans())
    def begin(self, *, exists: bool) -> None:
        if exists:
            commit(self.log, None, a_write(self.log, None), still())

    def _state(self) -> Snapshot | None:
        return self.log.load() if self.log.listing() else None

    @rule(query=st.sampled_from(QUERIES))
    def plan(self, query: str) -> None:
        """A task writes its file; what becomes of the attempt is decided later, or never."""
        batch, state = self.next_batch[query], self._state()
        file = f"{query}-{batch}-{next(self.numbers)}"
        write = a_write(self.log, state, file, txn=(query, batch))
        self.batch_of[file] = (query, batch)
        if write.plan.recorded.get(query, -1) < batch:
            self.attempts.append(Planned(state, write, query, batch))

    @precondition(lambda self: self.attempts)
    @rule(data=st.data(), broken=faults)
    def commit(self, data: st.DataObject, broken: list[Fault]) -> None:
        """Any attempt, however old, tries to commit, and dies or not."""
        attempt = data.draw(st.sampled_from(self.attempts))
        log = log_of(FaultyStore(self.store, faults=broken))
        try:
            outcome, _ = commit(log, attempt.state, attempt.write, still())
        except (CommitUnknownError, StoreError, ConflictError):
            return
        match outcome:
            case Committed() | AlreadyApplied():
                self.acknowledged.add((attempt.query, attempt.batch))
                self.next_batch[attempt.query] = max(self.next_batch[attempt.query], attempt.batch + 1)

    @precondition(lambda self: self.attempts)
    @rule(data=st.data(), broken=faults)
    def abort(self, data: st.DataObject, broken: list[Fault]) -> None:
        """Spark gives an attempt up, which may well have been committed."""
        attempt = data.draw(st.sampled_from(self.attempts))
        log, plan = log_of(FaultyStore(self.store, faults=broken)), attempt.write.plan
        txn = Txn(app_id=attempt.query, txn_version=attempt.batch)
        delete_replayed(log, attempt.write.files, txn, plan.next_version)

    @invariant()
    def every_acknowledged_batch_stands_and_every_batch_at_most_once(self) -> None:
        stands = [self.batch_of[path] for path in live_paths(self.log)] if self.log.listing() else []
        assert len(stands) == len(set(stands)), "twice"
        assert self.acknowledged <= set(stands), "lost"

    @invariant()
    def every_file_that_the_log_names_is_there(self) -> None:
        missing = [path for path in live_paths(self.log) if not self.store.exists(path)] if self.log.listing() else []
        assert missing == []

    @invariant()
    def the_log_has_no_hole_and_one_metadata(self) -> None:
        commits = [required_commit(self.log, log_file) for log_file in self.log.listing()]
        assert [c.version for c in commits] == list(range(len(commits)))
        assert sum(c.metadata is not None for c in commits) == min(len(commits), 1)


TestQueries = Queries.TestCase
TestQueries.settings = settings(max_examples=30, stateful_step_count=20)  # 3 s, whatever the profile
