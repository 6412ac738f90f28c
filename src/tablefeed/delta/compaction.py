"""The bytes of a log compaction file (PROTOCOL.md, "Log Compaction Files", "Action Reconciliation").

Nothing is left out for its age, and tombstones of domains stay: what the commits undid of an earlier state, their
compaction must undo too.
"""

from __future__ import annotations

from collections.abc import Sequence

from tablefeed.delta.codec import encode_commit
from tablefeed.delta.paths import decode_path
from tablefeed.model.actions import AddFile, CdcFile, Commit, DomainMetadata, FileAction, RemoveFile, Txn


def compact(commits: Sequence[Commit]) -> bytes:
    """One file of what `commits`, in log order, say together: of each file, application and domain the last action.

    It has no commitInfo and no cdc. Of a file that was added and removed again the remove stays.
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
                files[_key(file)] = file
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


def _key(file: AddFile | RemoveFile) -> tuple[str, str | None]:
    return decode_path(file.log_path), file.deletion_vector.unique_id if file.deletion_vector else None
