"""Which files of a commit a stream of appends delivers, and which commits it refuses.

Knows one commit at a time. The rule is Delta-Spark's: a commit is validated whole before any file of it is delivered,
and only added files that change data count. plan.py applies limits and positions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tablefeed.errors import TABLE, ChangeRefusedError
from tablefeed.model.actions import AddFile, Commit, RemoveFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedies:
    """What errors tell a user to do `of_changes`, commits that rewrite rows, and `of_deletes`, in the user's words."""

    of_changes: str
    of_deletes: str


OPTIONS = Remedies(
    of_changes="Set the option readChangeFeed=true to receive the changed rows, if the table records them; "
    "skipChangeCommits=true to pass such commits; or ignoreChanges=true to receive rewritten files whole. Or restart "
    "from a full snapshot with a new checkpoint.",
    of_deletes="Set the option readChangeFeed=true to receive the deleted rows, if the table records them; or "
    "skipChangeCommits=true or ignoreDeletes=true to pass such commits. Or restart from a full snapshot with a new "
    "checkpoint.",
)
"""The remedies of a stream in Spark."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePolicy:
    """What to do with commits that delete or rewrite rows. Stronger flags imply weaker ones.

    `ignore_deletes` passes commits that only delete; `ignore_changes` also delivers rewritten files whole, unchanged
    rows included; `skip_change_commits` delivers nothing of a commit that removes data. `remedies` are for errors.
    """

    ignore_deletes: bool = False
    ignore_changes: bool = False
    skip_change_commits: bool = False
    remedies: Remedies = OPTIONS

    @property
    def allows_changes(self) -> bool:
        """Whether commits that remove and add data are let through."""
        return self.ignore_changes or self.skip_change_commits

    @property
    def allows_deletes(self) -> bool:
        """Whether commits that only remove data are let through."""
        return self.allows_changes or self.ignore_deletes


def delivered_files(commit: Commit, policy: ChangePolicy) -> tuple[AddFile, ...]:
    """Gives the files of `commit` that a stream of appends delivers, in log order; their index is the offset's.

    Raises ChangeRefusedError where the commit deletes (DELTA_SOURCE_IGNORE_DELETE) or rewrites rows
    (DELTA_SOURCE_TABLE_IGNORE_CHANGES) and `policy` does not say what to do with that.
    """
    removed = next((f for f in commit.files if isinstance(f, RemoveFile) and f.data_change), None)
    added = tuple(f for f in commit.files if isinstance(f, AddFile) and f.data_change)
    if removed is None:
        return added
    if policy.skip_change_commits:
        return ()
    if added and not policy.allows_changes:
        raise _changes_refused(commit, removed, policy.remedies.of_changes)
    if not added and not policy.allows_deletes:
        raise ChangeRefusedError(
            f"Version {commit.version} of {TABLE} deletes rows (for example {removed.path}), and only appends are "
            f"delivered. {policy.remedies.of_deletes}",
            version=commit.version,
            error_class="DELTA_SOURCE_IGNORE_DELETE",
        )
    return added


def first_said(files: Sequence[AddFile]) -> Iterator[tuple[int, AddFile]]:
    """Gives each of `files`, added by one commit, with its index; a file that the commit adds twice comes once.

    Two adds are of the same file where path and deletion vector are equal, as in a snapshot. Indexes do not change.
    """
    said: set[tuple[str, str | None]] = set()
    for index, file in enumerate(files):
        key = (file.path, None if file.deletion_vector is None else file.deletion_vector.unique_id)
        if key not in said:
            said.add(key)
            yield index, file


def _changes_refused(commit: Commit, removed: RemoveFile, remedy: str) -> ChangeRefusedError:
    info = commit.info or {}
    what = f"{info['operation']} ({info.get('operationParameters')})" if "operation" in info else removed.path
    return ChangeRefusedError(
        f"Version {commit.version} of {TABLE} rewrites or deletes rows: {what}. Only appends are delivered. {remedy}",
        version=commit.version,
        error_class="DELTA_SOURCE_TABLE_IGNORE_CHANGES",
    )
