"""The checksum of each version that we commit, beside its commit (PROTOCOL.md, "Version Checksum File").

It is made from the checksum of the version before and the actions of the commit, so its cost does not grow with the
table.
"""

from __future__ import annotations

from tablefeed.delta import names
from tablefeed.delta.checkpoint.checksum_writer import FileCounts, counts_after, encode_checksum, no_files, read_counts
from tablefeed.errors import ObjectNotFoundError
from tablefeed.feed.commit.own_log import in_log_of
from tablefeed.feed.snapshot.delta_log import DeltaSnapshot
from tablefeed.feed.snapshot.table_log import Snapshot, TableLog
from tablefeed.log.facts import fold
from tablefeed.model.actions import Commit, Facts, Version


def put_checksum(snapshot: Snapshot, commit: Commit, also_removed: FileCounts | None = None) -> bool:
    """Puts the checksum of our `commit`, which made `snapshot`; False where it cannot be computed.

    That is so where the version before has no checksum: then the next checkpoint begins anew (`put_checksums_from`). An
    existing checksum is kept. `also_removed`: see `transaction.Surroundings.on_committed`. Raises StoreError, and
    TableReplacedError where the table was replaced or deleted.
    """
    table_id = snapshot.metadata.table_id
    before = no_files() if commit.version == 0 else read_checksum(snapshot.log, commit.version - 1, table_id=table_id)
    counts = None if before is None else counts_after(before, commit, also_removed)
    return counts is not None and _write(snapshot, counts, commit, snapshot.facts)


def put_checksums_from(snapshot: DeltaSnapshot, counts: FileCounts) -> None:
    """Puts the checksum of the snapshot's version, whose files have the `counts`, and of each later version in turn.

    It ends at a version that has a checksum already, and at a commit that may add a file that is live already. Raises
    LogError and StoreError.
    """
    log, facts, version = snapshot.log, snapshot.facts, snapshot.version
    commit = log.commit_facts(version)
    if commit is None:
        return
    _write(snapshot, counts, commit, facts)
    known: FileCounts | None = read_checksum(log, version, table_id=snapshot.metadata.table_id)
    while known is not None and (commit := log.commit(Version(version + 1))) is not None and adds_new_files(commit):
        version, facts = commit.version, fold(facts, [commit])
        if read_checksum(log, version, table_id=snapshot.metadata.table_id) is not None:
            return  # the writer of this one continues from it
        after = counts_after(known, commit)
        known = after if after is not None and _write(snapshot, after, commit, facts) else None


def begin_checksums(snapshot: DeltaSnapshot) -> None:
    """Puts the checksum of the snapshot's version, where the version before has none: reads and counts all live files.

    Raises as `put_checksums_from`.
    """
    from tablefeed.delta.checkpoint.tally import Tally

    tally = Tally()
    for batch in snapshot.log.load_for_files(snapshot.version).live_files(with_stats=True):
        tally.take(batch)
    put_checksums_from(snapshot, tally.result())


def read_checksum(log: TableLog, version: int, *, table_id: str) -> FileCounts | None:
    """Gives the counts in the checksum of `version`; None where there is none, or `read_counts` does not accept it."""
    try:
        data = log.store.read(f"{names.LOG_DIR}/{names.checksum_name(version)}")
    except ObjectNotFoundError:
        return None
    return read_counts(data, table_id=table_id)


def adds_new_files(commit: Commit) -> bool:
    """Whether none of the files that `commit` adds was live before: this package wrote it, not as a copy of a commit.

    Other writers may add a live file again, such as to give its rows ids.
    """
    info = commit.info or {}
    engine = info.get("engineInfo")
    return isinstance(engine, str) and engine.startswith("tablefeed/") and names.COPIED_FROM not in info


def _write(snapshot: Snapshot, counts: FileCounts, commit: Commit, facts: Facts) -> bool:
    txn_id = (commit.info or {}).get(names.TXN_ID)
    data = encode_checksum(
        counts,
        facts,
        txn_id=txn_id if isinstance(txn_id, str) else None,
        schema_changed=commit.metadata is not None and commit.version > 0,
    )
    if data is None:
        return False
    # An existing checksum says the same, and must not be overwritten.
    path = f"{names.LOG_DIR}/{names.checksum_name(commit.version)}"
    snapshot.log.store.put_if_absent(path, data, within=in_log_of(snapshot))
    return True
