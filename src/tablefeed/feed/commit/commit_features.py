"""What a table's features require of a commit besides its files: row ids and an in-commit timestamp.

Both depend on the state that the commit follows. So they are computed again for each attempt: after a lost race the
commit that won has used the ids and the time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tablefeed.delta import names, row_tracking
from tablefeed.delta.commit_info import in_commit_timestamp
from tablefeed.delta.properties import TableProperties
from tablefeed.errors import LogError
from tablefeed.feed.snapshot.table_log import Snapshot
from tablefeed.model.actions import AddFile, DomainMetadata, Metadata, Protocol, Version


@dataclass(frozen=True, slots=True, kw_only=True)
class Featured:
    """The added files with what the features require, the domains to commit with them, and fields of commitInfo."""

    files: tuple[AddFile, ...]
    domains: tuple[DomainMetadata, ...] = ()
    in_commit_timestamp_ms: int | None = None
    tags: Mapping[str, str] = field(default_factory=dict)


def featured(
    files: Sequence[AddFile], state: Snapshot | None, table: tuple[Protocol, Metadata], *, now_ms: int, url: str
) -> Featured:
    """Gives what a commit that adds `files` after `state` must hold; `table` is the protocol and metadata after it.

    `state` is None for version 0. Raises LogError where the log lacks the last row id in use or the in-commit timestamp
    of `state`, and CommitError where row ids cannot be assigned.
    """
    protocol, metadata = table
    properties = TableProperties.of(metadata)
    version = Version(0 if state is None else state.version + 1)
    domain = None
    if row_tracking.supports_row_tracking(protocol) and not properties.suspends_row_tracking:
        domains = {} if state is None else state.facts.domains
        files, domain = row_tracking.with_row_ids(files, domains, version=version, url=url)
    return Featured(
        files=tuple(files),
        domains=() if domain is None else (domain,),
        in_commit_timestamp_ms=_in_commit_timestamp(state, metadata, now_ms=now_ms),
        # No row that has an id is copied or changed here: rows that stay keep their files.
        tags={names.ROW_TRACKING_PRESERVED: "true"} if properties.tracks_rows else {},
    )


def _in_commit_timestamp(state: Snapshot | None, metadata: Metadata, *, now_ms: int) -> int | None:
    if not TableProperties.of(metadata).keeps_commit_times:
        return None
    if state is None or not state.properties.keeps_commit_times:
        return in_commit_timestamp(now_ms=now_ms, previous_ms=None)
    return in_commit_timestamp(now_ms=now_ms, previous_ms=_previous_ms(state))


def _previous_ms(state: Snapshot) -> int:
    known, info = state.facts.in_commit_timestamp_ms, None
    if known is None:
        # A snapshot that was read from the checkpoint of its own version has read no commit.
        commit = state.log.commit(state.version)
        info = None if commit is None else commit.info
        found = None if info is None else info.get(names.IN_COMMIT_TIMESTAMP)
        known = found if type(found) is int else None
    if known is None:
        raise LogError(
            f"Version {state.version} of {state.log.url} has no in-commit timestamp, which every commit of the table "
            f"must have ({names.ENABLE_IN_COMMIT_TIMESTAMPS}). Nothing was committed: another writer broke the log; "
            "turn the property off and on again.",
            url=state.log.url,
            error_class="DELTA_MISSING_COMMIT_INFO" if info is None else "DELTA_MISSING_COMMIT_TIMESTAMP",
        )
    return known
