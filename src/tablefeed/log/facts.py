"""The facts of a table, folded from its commits (PROTOCOL.md, "Action Reconciliation"). Values: no column, no file."""

from __future__ import annotations

from collections.abc import Iterable

from tablefeed.model.actions import Commit, Facts


def fold(facts: Facts, commits: Iterable[Commit]) -> Facts:
    """The facts after `commits`, which come in log order; `facts` itself is not changed.

    The newest metadata and protocol win, and for each application the last txn in log order, even if its version is
    lower, as in Delta-Spark. A tombstone removes its domain. The in-commit timestamp is the newest commit's own: None
    where its info has none.
    """
    protocol, metadata, timestamp_ms = facts.protocol, facts.metadata, facts.in_commit_timestamp_ms
    txns, domains = dict(facts.txns), dict(facts.domains)
    for commit in commits:
        protocol = commit.protocol or protocol
        metadata = commit.metadata or metadata
        txns.update((txn.app_id, txn) for txn in commit.txns)
        for domain in commit.domains:
            if domain.removed:
                domains.pop(domain.domain, None)
            else:
                domains[domain.domain] = domain
        timestamp_ms = _in_commit_timestamp_ms(commit)
    return Facts(protocol=protocol, metadata=metadata, txns=txns, domains=domains, in_commit_timestamp_ms=timestamp_ms)


# "In-Commit Timestamps": the field of commitInfo, which the model keeps as its writer wrote it
_IN_COMMIT_TIMESTAMP = "inCommitTimestamp"


def _in_commit_timestamp_ms(commit: Commit) -> int | None:
    value = (commit.info or {}).get(_IN_COMMIT_TIMESTAMP)
    return value if isinstance(value, int) else None
