"""An IndexTables table under any sequence of writes, merges, replays and faults holds each batch once.

As test_commit_model.py, for logs of commits, of states and of both. A merge of another writer takes the names of the
batches' splits away, and in a log of states compacts them away at once.
"""

from __future__ import annotations

import itertools
import os
import uuid
from collections.abc import Iterator
from dataclasses import replace

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from support.logs import still
from tablefeed.errors import CommitUnknownError, ConflictError, StoreError, TableNotFoundError
from tablefeed.feed.commit.index_states import form_of
from tablefeed.feed.commit.loop import commit
from tablefeed.feed.commit.operations import micro_batch
from tablefeed.feed.commit.transaction import Transaction
from tablefeed.feed.snapshot.index_log import IndexTablesLog
from tablefeed.feed.snapshot.table_log import Snapshot
from tablefeed.feed.write.align import Alignment
from tablefeed.feed.write.write_plan import Planned, SplitPlan
from tablefeed.feed.write.write_rules import WriteRules
from tablefeed.indextables import names
from tablefeed.indextables.log import columns, version_file
from tablefeed.indextables.log.next_state import NextState, StateShape, StateUpdate, next_state
from tablefeed.indextables.log.version_file import Writer
from tablefeed.indextables.split.indexing import Indexing
from tablefeed.indextables.split.split_name import split_name
from tablefeed.log.conflicts import WriteKind
from tablefeed.model.actions import AddFile, Commit, Metadata, Protocol, RemoveFile, Txn, Version
from tablefeed.model.outcome import AlreadyApplied, Committed
from tablefeed.model.split import Split
from tablefeed.store import Fault, FaultyStore, MemoryStore, Store

QUERIES = ("q1", "q2")
METADATA = Metadata(
    table_id="t",
    schema_string='{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}}]}',
    format_provider="indextables",
)
MAPPING, MAPPING_REF = "[]", "T1PNoYwrqgwDVLtf"

faults = st.lists(
    st.builds(
        Fault,
        operation=st.sampled_from(["put_if_absent", "read", "stat", "list", "delete", "directories", "replace"]),
        at=st.integers(1, 6),
        when=st.sampled_from(["before", "after"]),
    ),
    max_size=4,
)


def log_of(store: Store) -> IndexTablesLog:
    return IndexTablesLog(store, location="memory://orders", storage_options={})


def a_split(path: str, *, rows: int = 1, data_change: bool = True) -> AddFile:
    return AddFile(
        path=path,
        log_path=path,
        partition_values={},
        size_bytes=10,
        modified_ms=1,
        data_change=data_change,
        split=Split(num_records=rows, doc_mapping=MAPPING, doc_mapping_ref=MAPPING_REF),
    )


class Attempt:
    """One attempt at a batch: what it wrote against which state."""

    def __init__(self, state: Snapshot, write: Transaction, query: str, batch: int) -> None:
        self.state, self.write, self.query, self.batch = state, write, query, batch


class Queries(RuleBasedStateMachine):
    """Two queries, any number of attempts alive at once; each batch of a query carries one row, which is its split."""

    def __init__(self) -> None:
        super().__init__()
        self.store = MemoryStore("orders")
        self.log = log_of(self.store)
        self.numbers: Iterator[int] = itertools.count()
        self.next_batch = dict.fromkeys(QUERIES, 0)
        self.acknowledged: set[tuple[str, int]] = set()
        self.attempts: list[Attempt] = []
        self.batches_in: dict[str, list[tuple[str, int]]] = {}

    @initialize(flavour=st.sampled_from(["new", "commits", "states"]))
    def begin(self, flavour: str) -> None:
        """The table as another writer left it, with one split of its own."""
        self.batches_in["first.split"] = []
        self.store.replace("first.split", b"rows")
        protocol = Protocol(min_reader_version=4, min_writer_version=4)
        self._put_commit(Commit(version=Version(0), protocol=protocol, metadata=METADATA, committed_at_ms=None))
        first = a_split("first.split")
        if flavour == "commits":
            known = {names.DOC_MAPPING_PREFIX + MAPPING_REF: MAPPING}
            metadata = replace(METADATA, configuration=known)
            self._put_commit(Commit(version=Version(1), metadata=metadata, files=(first,), committed_at_ms=None))
        if flavour == "states":
            self._put_state(Version(1), added=[first])

    def _put_commit(self, entry: Commit) -> None:
        data = version_file.encode_commit(entry, writer=Writer.SCALA)
        self.store.replace(f"{names.LOG_DIR}/{names.commit_name(entry.version)}", data)

    def _put_state(self, version: Version, *, added: list[AddFile], removed: tuple[str, ...] = ()) -> None:
        base = self.log.state(Version(version - 1))
        update = StateUpdate(
            version=version, created_ms=1, added=added, removed=removed, registry={MAPPING_REF: MAPPING}
        )
        new: NextState = next_state(
            base,
            update,
            writer=Writer.SCALA,
            shape=StateShape(),
            live=lambda: () if base is None else self.log.live_in(base),
            new_id=lambda: uuid.uuid4().hex,
            sync=lambda: os.urandom(16),
            url=self.log.url,
        )
        for name, data in (*new.manifests, (names.state_name(version), new.state_file)):
            self.store.replace(f"{names.LOG_DIR}/{name}", data)

    def _live(self) -> list[AddFile]:
        state = self.log.load()
        files = self.log.files_of(state.version, state.unreadable)
        return [add for batch in files for add in columns.to_add_files(batch)]

    @rule(query=st.sampled_from(QUERIES))
    def plan(self, query: str) -> None:
        """A task writes its split; what becomes of the attempt is decided later, or never."""
        batch, state = self.next_batch[query], self.log.load()
        txn = Txn(app_id=query, txn_version=batch)
        path = split_name(0, txn, chance=uuid.UUID(int=next(self.numbers) << 96 | 1 << 127))
        self.batches_in[path] = [(query, batch)]
        self.store.replace(path, b"rows")
        plan = SplitPlan(
            location=self.log.location,
            url=self.log.url,
            storage_options={},
            found=Planned.of(state),
            schema=state.schema,
            partition_columns=(),
            alignment=Alignment(sources=(0,)),
            rules=WriteRules(),
            recorded={},
            records_all=False,
            indexing=Indexing(),
        )
        write = Transaction(
            plan=plan,
            files=(a_split(path),),
            kind=WriteKind.APPEND,
            operation=micro_batch(WriteKind.APPEND, query, batch),
            txn=txn,
        )
        self.attempts.append(Attempt(state, write, query, batch))

    @precondition(lambda self: self.attempts)
    @rule(data=st.data(), broken=faults)
    def commit(self, data: st.DataObject, broken: list[Fault]) -> None:
        """Any attempt, however old, tries to commit, and dies or not."""
        attempt = data.draw(st.sampled_from(self.attempts))
        log = log_of(FaultyStore(self.store, faults=broken))
        try:
            outcome, _ = commit(log, attempt.state, attempt.write, still())
        except (CommitUnknownError, StoreError, ConflictError, TableNotFoundError):
            return
        match outcome:
            case Committed() | AlreadyApplied():
                self.acknowledged.add((attempt.query, attempt.batch))
                self.next_batch[attempt.query] = max(self.next_batch[attempt.query], attempt.batch + 1)

    @rule()
    def merge(self) -> None:
        """Another writer merges all splits into one, in the flavour of the log."""
        files = self._live()
        if not files:
            return
        state = self.log.load()
        version, path = Version(state.version + 1), f"{uuid.UUID(int=next(self.numbers))}.split"
        self.batches_in[path] = [batch for add in files for batch in self.batches_in[add.path]]
        self.store.replace(path, b"rows")
        rows = sum(add.split.num_records or 0 for add in files if add.split)
        merged = a_split(path, rows=rows, data_change=False)
        form = form_of(self.log, state)
        if form.has_commits:
            removes = [RemoveFile(path=add.path, log_path=add.path, data_change=False) for add in files]
            self._put_commit(Commit(version=version, files=(*removes, merged), committed_at_ms=1))
        else:
            self._put_state(version, added=[merged], removed=tuple(add.path for add in files))

    @invariant()
    def every_acknowledged_batch_stands_and_every_batch_at_most_once(self) -> None:
        stands = [batch for add in self._live() for batch in self.batches_in[add.path]]
        assert len(stands) == len(set(stands)), "twice"
        assert self.acknowledged <= set(stands), "lost"

    @invariant()
    def every_split_that_the_log_names_is_there(self) -> None:
        assert [add.path for add in self._live() if not self.store.exists(add.path)] == []

    @invariant()
    def every_version_tells_what_it_did(self) -> None:
        newest = self.log.load().version
        assert all(self.log.commit(Version(version)) is not None for version in range(1, newest + 1))


TestQueries = Queries.TestCase
TestQueries.settings = settings(max_examples=30, stateful_step_count=20, deadline=None)
