"""Makes a target equal to its source, commit by commit, each exactly once.

The files of a commit are copied first. Then the commit is put as the target's next version, with the txn (application,
version of the source). If the process dies in between, the next run finds the files and only commits. If another run
wins the put, or the store's answer is lost, the target's log shows which versions it has.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable

from tablefeed.delta import codec, features, names
from tablefeed.errors import ConflictError, DataFileError, LogError, TableNotFoundError, naming
from tablefeed.feed.commit.entry import ENGINE, next_commit_time, next_version
from tablefeed.feed.commit.settled_put import put_settled
from tablefeed.feed.commit.transaction import Put, Surroundings
from tablefeed.feed.replication.actions import (
    is_copied,
    keeps_times,
    names_of,
    own_file,
    own_info,
    own_metadata,
    state_names,
)
from tablefeed.feed.replication.copies import Copies, CopyFiles
from tablefeed.feed.replication.origin import (
    Origin,
    check_same_source,
    check_unchanged,
    origin_of,
    read_commit,
    required,
)
from tablefeed.feed.replication.whole_version import snapshot_put
from tablefeed.feed.snapshot.delta_log import DeltaLog, DeltaSnapshot
from tablefeed.log.facts import fold
from tablefeed.model.actions import Commit, Facts, RemoveFile, Txn, Version
from tablefeed.model.outcome import Replicated

logger = logging.getLogger(__name__)


class Replication:
    """One run, which copies `source` to `target` as the application `app_id`. Made for one call of `run`.

    `reads_after` is called with a version before files of later versions are read.
    """

    def __init__(
        self,
        source: DeltaLog,
        target: DeltaLog,
        app_id: str,
        around: Surroundings,
        *,
        reads_after: Callable[[Version], None] = lambda _version: None,
        copy_files: CopyFiles | None = None,
    ) -> None:
        self._source, self._target, self._app_id, self._around = source, target, app_id, around
        self._reads_after = reads_after
        self._copies = Copies(source, target, copy_files)
        self._commit_count = 0

    def run(self, newest: DeltaSnapshot, *, first: Version, until: Version, resync: bool) -> Replicated:
        """Copies up to the version `until` of the source, whose newest state is `newest`.

        If there is no target, its first commit is the whole version `first` of the source. With `resync`, a target that
        cannot be continued gets the whole version `until`. Raises ConflictError, LogError, DataFileError and
        UnsupportedFeatureError, each before the version that caused it is committed.
        """
        self._newest, target = newest, newest_of(self._target)
        while target is None:
            target = self._put_snapshot(first, None) or newest_of(self._target)
        try:
            origin = origin_of(target, self._app_id)
            # Another run may have copied a later version than this one read at first.
            check_same_source(newest if origin.version <= newest.version else self._source.load(), origin)
            self._reads_after(origin.version)
            while origin.version < until:
                target, origin = self._next(target, origin)
                self._reads_after(origin.version)
        except (ConflictError, DataFileError, LogError) as error:
            if not resync or self._app_id not in target.facts.txns:
                raise
            logger.warning("copied anew table=%s: %s", self._target.url, error)
            done = self._put_snapshot(until, newest_of(self._target))
            if done is None:  # another commit has that version, perhaps of a run that goes on from there
                return self.run(newest, first=first, until=until, resync=True)
            target, origin = done, origin_of(done, self._app_id)
        return Replicated(
            version=target.version,
            source_version=origin.version,
            commits=self._commit_count,
            files=self._copies.file_count,
        )

    def _next(self, target: DeltaSnapshot, origin: Origin) -> tuple[DeltaSnapshot, Origin]:
        """Copies the commit after `origin`; gives the new target, to which another run may have copied more."""
        version = Version(origin.version + 1)
        commit, digest = required(read_commit(self._source, version), version, self._source)
        table_id = origin.table_id if commit.metadata is None else commit.metadata.table_id
        after = Origin(table_id=table_id, version=version, digest=digest)
        self._check(commit, target)
        live = frozenset(file.path for file in commit.removed)
        needed = [file for file in commit.files if not isinstance(file, RemoveFile)]
        self._copies.bring((name for file in needed for name in names_of(file, self._source.url)), live)
        domains = filter(is_copied, commit.domains)
        self._copies.bring(name for domain in domains for name in state_names(domain, self._source.url))
        put = self._put_of(commit, target, after)
        done = self._committed(put)
        if done is not None:
            return done, after
        found = newest_of(self._target)
        if found is None:
            raise ConflictError(
                f"Nothing was committed to {self._target.url}: the table is gone. It was deleted during the run. Call "
                "again to copy the source anew.",
                url=self._target.url,
                winner=-1,
                error_class="DELTA_METADATA_CHANGED",
            )
        return found, origin_of(found, self._app_id)

    def _put_of(self, source: Commit, base: DeltaSnapshot, origin: Origin) -> Put:
        """Gives the commit that does to the target, at `base`, what `source` did to its table."""
        now_ms, version, time_ms = self._around.now_ms(), next_version(base), None
        if keeps_times(source.metadata or base.metadata):
            theirs_ms = (source.info or {}).get(names.IN_COMMIT_TIMESTAMP)
            with naming(self._target.url):
                time_ms = next_commit_time(base, theirs_ms if isinstance(theirs_ms, int) else now_ms)
        metadata = source.metadata and own_metadata(
            source.metadata, base, table_id=base.metadata.table_id, version=version, commit_time_ms=time_ms
        )
        changed: dict[str, object] = {
            names.IN_COMMIT_TIMESTAMP: time_ms,
            "readVersion": base.version,
            "engineInfo": ENGINE,
            names.TXN_ID: str(uuid.uuid4()),
            names.COPIED_FROM: origin.as_info(),
        }
        entry = Commit(
            version=version,
            files=tuple(own_file(file, now_ms) for file in source.files),
            txns=(self._txn(origin.version, now_ms),),
            metadata=metadata,
            protocol=source.protocol,
            domains=tuple(filter(is_copied, source.domains)),
            info=own_info(source.info, **changed),
            committed_at_ms=None,
        )
        data = codec.encode_commit(entry)
        return Put(log=self._target, base=base, name=names.commit_name(version), data=data, commit=entry)

    def _put_snapshot(self, version: Version, base: DeltaSnapshot | None) -> DeltaSnapshot | None:
        self._reads_after(version)
        source = self._source.load_for_files(version)
        with naming(self._source.url):
            features.check_writable(source.protocol, source.metadata, removes=False)
        found = read_commit(self._source, version)
        origin = Origin(table_id=source.metadata.table_id, version=version, digest=found and found[1])
        txn = self._txn(version, self._around.now_ms())
        return self._committed(snapshot_put(source, origin, self._target, base, txn, self._copies))

    def _check(self, commit: Commit, target: DeltaSnapshot) -> None:
        """Raises UnsupportedFeatureError if the commit adds a feature that is not handled."""
        if commit.protocol is not None or commit.metadata is not None:
            protocol, metadata = commit.protocol or target.protocol, commit.metadata or target.metadata
            with naming(self._source.url):
                features.check_writable(protocol, metadata, removes=False)

    def _committed(self, put: Put) -> DeltaSnapshot | None:
        """Gives the target after `put`; None if another commit took the version. All that `put` needs was read."""
        check_unchanged(self._newest)
        head = put_settled(put, self._around)
        if head is None:
            return None
        self._commit_count += 1
        logger.info("copied table=%s version=%d from=%s", put.log.url, put.version, self._source.url)
        facts = fold(Facts() if put.base is None else put.base.facts, [put.commit])
        after = self._target.snapshot(put.version, facts, head=head)
        self._around.on_committed(after, put.commit, put.also_removed)
        return after

    def _txn(self, version: Version, now_ms: int) -> Txn:
        return Txn(app_id=self._app_id, txn_version=version, last_updated_ms=now_ms)


def newest_of(target: DeltaLog) -> DeltaSnapshot | None:
    """Gives the newest state of the target, None where there is none; refuses, by name, one that cannot be written."""
    try:
        newest = target.load()
    except TableNotFoundError:
        if target.store.is_file_at_root():
            raise
        return None
    with naming(target.url):
        features.check_writable(newest.protocol, newest.metadata, removes=False)
    return newest
