"""A table under any sequence of writes, merges, replays and faults holds what a plain dict says: each batch once.

The same model holds for a Delta table and for an IndexTables table, whose log is of commits, of states or of both. A
merge of another writer removes the names of the batches' files; in a log of states it compacts them away at once.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from support.commits import a_write, commit_files, still
from support.faulty_store import Fault, FaultyStore
from support.index_log import with_tombstones
from support.index_tables import put_state
from support.logs import LONG_ID, add, commit_path, live_paths, put, remove
from support.logs import log_of as delta_log
from tablefeed.errors import CommitUnknownError, ConflictError, StoreError, TableNotFoundError
from tablefeed.feed.commit.index_states import form_of
from tablefeed.feed.commit.loop import commit
from tablefeed.feed.commit.transaction import Transaction, micro_batch
from tablefeed.feed.snapshot.index_log import IndexTablesLog
from tablefeed.feed.snapshot.known_state import current_snapshot
from tablefeed.feed.snapshot.table_log import Snapshot, TableLog
from tablefeed.feed.write.orphans import delete_after_abort
from tablefeed.feed.write.write_plan import Planned, SplitPlan
from tablefeed.feed.write.write_rules import WriteRules
from tablefeed.indextables import names
from tablefeed.indextables.log import columns, version_file
from tablefeed.indextables.log.next_state import StateUpdate
from tablefeed.indextables.log.version_file import Writer
from tablefeed.indextables.split.indexing import Indexing
from tablefeed.indextables.split.split_name import split_name
from tablefeed.log.conflicts import WriteKind
from tablefeed.model.actions import AddFile, Commit, Metadata, RemoveFile, Txn, Version
from tablefeed.model.actions import Protocol as TableProtocol
from tablefeed.model.outcome import AlreadyApplied, Committed
from tablefeed.model.split import Split
from tablefeed.store import Store
from tablefeed.store.memory import MemoryStore

QUERIES = ("q1", "q2")

faults = st.lists(
    st.builds(
        Fault,
        operation=st.sampled_from(["put_if_absent", "read", "stat", "list", "delete", "directories", "replace"]),
        at=st.integers(1, 6),
        when=st.sampled_from(["before", "after"]),
    ),
    max_size=4,
)


class Table(Protocol):
    """What the model needs to know of a format."""

    flavours: Sequence[str]
    store: MemoryStore

    def log(self, store: Store) -> TableLog: ...
    def begin(self, flavour: str) -> None:
        """Makes the table as another writer left it, in some flavours with the file `first`."""

    def write(self, state: Snapshot | None, txn: Txn, number: int) -> Transaction:
        """One written file that is not committed yet; `number` is in its name."""

    def live(self) -> list[str]: ...
    def next_file(self) -> str:
        """The name of the log file that makes the next version."""

    def merge(self, paths: Sequence[str], into: str) -> None:
        """Another writer's commit, in the flavour of the log."""


class DeltaTable:
    flavours: Sequence[str] = ("none", "empty")

    def __init__(self) -> None:
        self.store = MemoryStore("orders")

    def log(self, store: Store) -> TableLog:
        return delta_log(store)

    def begin(self, flavour: str) -> None:
        if flavour == "empty":
            commit_files(self.log(self.store))

    def write(self, state: Snapshot | None, txn: Txn, number: int) -> Transaction:
        path = f"{txn.app_id}-{txn.txn_version}-{number}"
        return a_write(self.log(self.store), state, path, txn=(txn.app_id, txn.txn_version))

    def live(self) -> list[str]:
        log = self.log(self.store)
        return live_paths(log) if log.listing() else []

    def next_file(self) -> str:
        newest = current_snapshot(self.log(self.store))
        return commit_path(0 if newest is None else newest.version + 1)

    def merge(self, paths: Sequence[str], into: str) -> None:
        removes = [remove(path, data_change=False) for path in paths]
        version = self.log(self.store).load().version + 1
        put(self.store, version, [*removes, add(into, data_change=False)])


class IndexTable:
    flavours: Sequence[str] = ("new", "commits", "states")
    metadata = Metadata(table_id="t", schema_string=LONG_ID, format_provider="indextables")
    mapping, mapping_ref = "[]", "T1PNoYwrqgwDVLtf"

    def __init__(self) -> None:
        self.store = MemoryStore("orders")

    def log(self, store: Store) -> IndexTablesLog:
        return IndexTablesLog(store, location="memory://orders", storage_options={})

    def begin(self, flavour: str) -> None:
        self.store.replace("first", b"rows")
        protocol = TableProtocol(min_reader_version=4, min_writer_version=4)
        self._put_commit(Commit(version=Version(0), protocol=protocol, metadata=self.metadata, committed_at_ms=None))
        first = self._split("first")
        if flavour == "commits":
            known = {names.DOC_MAPPING_PREFIX + self.mapping_ref: self.mapping}
            metadata = replace(self.metadata, configuration=known)
            self._put_commit(Commit(version=Version(1), metadata=metadata, files=(first,), committed_at_ms=None))
        if flavour == "states":
            self._put_state(Version(1), added=[first])

    def write(self, state: Snapshot | None, txn: Txn, number: int) -> Transaction:
        path = split_name(0, txn, chance=uuid.UUID(int=number << 96 | 1 << 127))
        self.store.replace(path, b"rows")
        assert state is not None
        plan = SplitPlan(
            location="memory://orders",
            url="memory://orders",
            storage_options={},
            found=Planned.of(state),
            schema=state.schema,
            partition_columns=(),
            alignment=(0,),
            rules=WriteRules(),
            recorded={},
            records_all=False,
            indexing=Indexing(),
            named={},
        )
        operation = micro_batch(WriteKind.APPEND, txn.app_id, txn.txn_version)
        files = (self._split(path),)
        return Transaction(plan=plan, files=files, kind=WriteKind.APPEND, operation=operation, txn=txn)

    def live(self) -> list[str]:
        return [split.path for split in self._live()]

    def next_file(self) -> str:
        log = self.log(self.store)
        state = log.load()
        following = Version(state.version + 1)
        return names.commit_name(following) if form_of(log, state).has_commits else names.state_name(following)

    def merge(self, paths: Sequence[str], into: str) -> None:
        log = self.log(self.store)
        state = log.load()
        version = Version(state.version + 1)
        rows = sum(add.split.num_records or 0 for add in self._live() if add.split)
        merged = self._split(into, rows=rows, data_change=False)
        if form_of(log, state).has_commits:
            removes = [RemoveFile(path=path, log_path=path, data_change=False) for path in paths]
            self._put_commit(Commit(version=version, files=(*removes, merged), committed_at_ms=1))
        else:
            self._put_state(version, added=[merged], removed=tuple(paths))

    def _live(self) -> list[AddFile]:
        log = self.log(self.store)
        state = log.load()
        return [add for batch in log.files_of(state.version, state.unreadable) for add in columns.to_add_files(batch)]

    def _split(self, path: str, *, rows: int = 1, data_change: bool = True) -> AddFile:
        return AddFile(
            path=path,
            log_path=path,
            partition_values={},
            size_bytes=10,
            modified_ms=1,
            data_change=data_change,
            split=Split(num_records=rows, doc_mapping=self.mapping, doc_mapping_ref=self.mapping_ref),
        )

    def _put_commit(self, entry: Commit) -> None:
        data = version_file.encode_commit(entry, writer=Writer.SCALA)
        self.store.replace(f"{names.LOG_DIR}/{names.commit_name(entry.version)}", data)

    def _put_state(self, version: Version, *, added: list[AddFile], removed: tuple[str, ...] = ()) -> None:
        log = self.log(self.store)
        registry = {self.mapping_ref: self.mapping}
        update = StateUpdate(version=version, created_ms=1, added=added, registry=registry)
        put_state(log, with_tombstones(log.state(Version(version - 1)), removed), update)


@dataclass(frozen=True)
class Attempt:
    """One attempt at a batch: what it wrote against which state."""

    state: Snapshot | None
    write: Transaction
    txn: Txn


class Queries(RuleBasedStateMachine):
    """Two queries, any number of attempts alive at once; each batch of a query carries one row, which is its file."""

    table: Table

    def __init__(self) -> None:
        super().__init__()
        self.numbers: Iterator[int] = itertools.count()
        self.next_batch = dict.fromkeys(QUERIES, 0)
        self.acknowledged: set[Txn] = set()
        self.attempts: list[Attempt] = []
        self.batches_in: dict[str, list[Txn]] = {"first": []}

    @initialize(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        self.table.begin(data.draw(st.sampled_from(self.table.flavours)))

    @rule(query=st.sampled_from(QUERIES))
    def plan(self, query: str) -> None:
        """A task writes its file; what becomes of the attempt is decided later, or never."""
        txn, state = Txn(app_id=query, txn_version=self.next_batch[query]), current_snapshot(self._log())
        write = self.table.write(state, txn, next(self.numbers))
        self.batches_in[write.files[0].path] = [txn]
        if write.plan.recorded.get(query, -1) < txn.txn_version:
            self.attempts.append(Attempt(state, write, txn))

    @precondition(lambda self: self.attempts)
    @rule(data=st.data(), broken=faults)
    def commit(self, data: st.DataObject, broken: list[Fault]) -> None:
        """Any attempt, however old, tries to commit, and dies or not."""
        attempt = data.draw(st.sampled_from(self.attempts))
        try:
            outcome, _ = commit(self._log(*broken), attempt.state, attempt.write, still())
        except (CommitUnknownError, StoreError, ConflictError, TableNotFoundError):
            return
        match outcome:
            case Committed() | AlreadyApplied():
                self._acknowledge(attempt.txn)

    @precondition(lambda self: self.attempts)
    @rule(data=st.data(), at=st.integers(1, 4))
    def race(self, data: st.DataObject, at: int) -> None:
        """While an attempt puts, a twin of the same batch commits: whoever loses the put finds the batch committed."""
        ours = data.draw(st.sampled_from(self.attempts))
        twin = data.draw(st.sampled_from([each for each in self.attempts if each.txn == ours.txn]))

        def overtake() -> None:
            commit(self._log(), twin.state, twin.write, still())
            self._acknowledge(twin.txn)

        commit(self._log(Fault(operation="put_if_absent", at=at, hook=overtake)), ours.state, ours.write, still())
        self._acknowledge(ours.txn)

    @precondition(lambda self: self.attempts)
    @rule(data=st.data())
    def lose_an_answer(self, data: st.DataObject) -> None:
        """The put of a commit succeeds and its answer is lost: the writer finds its own commit."""
        attempt = data.draw(st.sampled_from(self.attempts))
        was_recorded = any(
            txn.app_id == attempt.txn.app_id and txn.txn_version >= attempt.txn.txn_version for txn in self._committed()
        )
        lost = Fault(operation="put_if_absent", name=self.table.next_file(), when="after")
        outcome, _ = commit(self._log(lost), attempt.state, attempt.write, still())
        assert isinstance(outcome, AlreadyApplied if was_recorded else Committed)
        self._acknowledge(attempt.txn)

    @precondition(lambda self: self.attempts)
    @rule(data=st.data(), broken=faults)
    def abort(self, data: st.DataObject, broken: list[Fault]) -> None:
        """Spark gives an attempt up, which may well have been committed."""
        attempt = data.draw(st.sampled_from(self.attempts))
        delete_after_abort(self._log(*broken), attempt.write.files, attempt.txn, attempt.write.plan.next_version)

    @precondition(lambda self: self.table.live())
    @rule()
    def merge(self) -> None:
        """Another writer merges all files into one."""
        paths, into = self.table.live(), f"{uuid.UUID(int=next(self.numbers))}.split"
        self.batches_in[into] = [txn for path in paths for txn in self.batches_in[path]]
        self.table.store.replace(into, b"rows")
        self.table.merge(paths, into)

    @invariant()
    def every_acknowledged_batch_is_committed_and_every_batch_at_most_once(self) -> None:
        committed = self._committed()
        assert len(committed) == len(set(committed)), "twice"
        assert self.acknowledged <= set(committed), "lost"

    @invariant()
    def every_file_that_the_log_names_is_there(self) -> None:
        assert [path for path in self.table.live() if not self.table.store.exists(path)] == []

    @invariant()
    def every_version_says_what_it_changed(self) -> None:
        assert None not in self._commits()[1:]  # a state alone need not say what version 0 was

    def _acknowledge(self, txn: Txn) -> None:
        self.acknowledged.add(txn)
        self.next_batch[txn.app_id] = max(self.next_batch[txn.app_id], txn.txn_version + 1)

    def _committed(self) -> list[Txn]:
        return [txn for path in self.table.live() for txn in self.batches_in[path]]

    def _commits(self) -> list[Commit | None]:
        newest = current_snapshot(self._log())
        return [self._log().commit(Version(v)) for v in range(0 if newest is None else newest.version + 1)]

    def _log(self, *broken: Fault) -> TableLog:
        return self.table.log(FaultyStore(self.table.store, faults=broken))


class DeltaQueries(Queries):
    def __init__(self) -> None:
        super().__init__()
        self.table = DeltaTable()

    @invariant()
    def one_commit_has_the_metadata(self) -> None:
        commits = self._commits()
        assert sum(each is not None and each.metadata is not None for each in commits) == min(len(commits), 1)


class IndexQueries(Queries):
    def __init__(self) -> None:
        super().__init__()
        self.table = IndexTable()


TestDeltaQueries = DeltaQueries.TestCase
TestIndexQueries = IndexQueries.TestCase
TestDeltaQueries.settings = settings(max_examples=12, stateful_step_count=20, deadline=None)  # whatever the profile
TestIndexQueries.settings = TestDeltaQueries.settings
