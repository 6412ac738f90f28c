"""Writes and checks log compaction files (PROTOCOL.md, "Log Compaction Files", "Action Reconciliation").

Nothing is left out for its age, and removed domains are kept: a compaction must remove from the state before it what
its commits removed. The order of actions in a compaction has no meaning. So a compaction with several actions for one
key does not say which came last, and must not be used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.delta import names
from tablefeed.delta.codec import encode_commit
from tablefeed.delta.columns import decode_paths
from tablefeed.delta.paths import file_key
from tablefeed.model.actions import CdcFile, Commit, DomainMetadata, FileAction, Txn


def compact(commits: Sequence[Commit]) -> bytes:
    """The bytes of a compaction of `commits`, in log order: the last action of each file, application and domain.

    It has no commitInfo and no cdc. For a file that was added and then removed, it holds the remove.
    """
    files: dict[tuple[str, str | None], FileAction] = {}
    txns: dict[str, Txn] = {}
    domains: dict[str, DomainMetadata] = {}
    metadata = protocol = None
    for commit in commits:
        metadata, protocol = commit.metadata or metadata, commit.protocol or protocol
        txns.update((txn.app_id, txn) for txn in commit.txns)
        domains.update((domain.domain, domain) for domain in commit.domains)
        for file in commit.files:
            if not isinstance(file, CdcFile):
                files[file_key(file)] = file
    last = commits[-1]
    return encode_commit(
        Commit(
            version=last.version,
            files=tuple(files[key] for key in sorted(files, key=lambda key: (key[0], key[1] or ""))),
            txns=tuple(txns[app_id] for app_id in sorted(txns)),
            metadata=metadata,
            protocol=protocol,
            domains=tuple(domains[domain] for domain in sorted(domains)),
            committed_at_ms=None,
        )
    )


def unreconciled_facts(compaction: Commit) -> str | None:
    """Why the facts of `compaction`, which begins at version 0, cannot be those of its commits; None: no reason found.

    Reasons: it lacks a metaData or protocol, which version 0 has, or has several actions for an application or a
    domain. A second metaData or protocol is an error when the file is decoded.
    """
    if compaction.protocol is None or compaction.metadata is None:
        return f"it holds no {names.METADATA if compaction.protocol else names.PROTOCOL}"
    keys = Counter([f"application {txn.app_id!r}" for txn in compaction.txns])
    keys.update(f"domain {domain.domain!r}" for domain in compaction.domains)
    return next((f"it has several actions for the {key}" for key, count in keys.items() if count > 1), None)


def unreconciled_files(files: Sequence[pa.RecordBatch]) -> str | None:
    """Why the rows of `files` (`columns.FILE_COLUMNS`) are not reconciled; None where they are.

    A path may be removed with one deletion vector and added with another, but it is added only once.
    """
    if not files:
        return None
    rows = pa.Table.from_batches(files).select(["key", "is_add", "log_path", "deletion_vector"])
    twice = _twice(rows["key"])
    if twice is None and rows["deletion_vector"].null_count < rows.num_rows:
        added = rows.filter(rows["is_add"])["log_path"]
        twice = _twice(pa.chunked_array([decode_paths(chunk) for chunk in added.chunks], pa.string()))
    return None if twice is None else f"it has several actions for the file {twice.partition(chr(0))[0]!r}"


def _twice(keys: pa.ChunkedArray) -> str | None:
    if pc.count_distinct(keys).as_py() == len(keys):
        return None
    counts = keys.value_counts()
    twice: str = counts.field("values").filter(pc.greater(counts.field("counts"), 1))[0].as_py()
    return twice
