"""Deletes data files that no commit names.

When a write leaves such files, and what then decides which of its files are deleted:

- a task fails while it writes: `deleted_on_error`, all
- the commit meets an error, such as a conflict, before its put: `delete_after_error`, all unless a commit names one
- the commit finds that the table records the write already: `delete_after_replay`, those that this commit does not name
- Spark aborts a batch that another run may have committed: `delete_after_abort`, as after a replay if it did, else none

Whoever deletes files has an outcome or an error to report that matters more. So a file that cannot be deleted stays,
and so does every file that a commit may name: VACUUM deletes it later.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tablefeed.delta.deletion_vectors import stored_at
from tablefeed.errors import StoreError, TablefeedError, naming
from tablefeed.feed.snapshot.table_log import TableLog
from tablefeed.model.actions import AddFile, Commit, Txn, Version
from tablefeed.store import Store, Within

if TYPE_CHECKING:
    import pyarrow as pa

    from tablefeed.data.write import NewFile, OpenFile

logger = logging.getLogger(__name__)


def delete_orphans(store: Store, paths: Iterable[str]) -> None:
    """Deletes the files `paths`, which no commit names. Where some cannot be deleted, one warning is logged."""
    failed: list[StoreError] = []
    for path in paths:
        try:
            store.delete(path)
        except StoreError as error:
            failed.append(error)
    if failed:
        logger.warning("orphans table=%s files=%d: %s", store.url, len(failed), failed[0])


@contextmanager
def deleted_on_error(store: Store) -> Iterator[list[str]]:
    """Gives a list for the paths of the files that the block writes; where the block raises, deletes these files."""
    written: list[str] = []
    try:
        yield written
    except BaseException:
        delete_orphans(store, written)
        raise


@contextmanager
def new_files(
    store: Store, path_of: Callable[[Mapping[str, pa.Scalar], int], str], *, within: Within | None = None
) -> Iterator[OpenFile]:
    """Gives what creates the files of `write_files`; where the block raises, deletes the files that it created.

    Errors of the block name the table of `store`. `path_of` names a new file for its partition values and its number,
    from 0. `within`: see `Store.create`.
    """
    from tablefeed.data.write import NewFile

    with naming(store.url), deleted_on_error(store) as created:

        def new_file(values: Mapping[str, pa.Scalar], number: int) -> NewFile:
            created.append(path_of(values, number))
            return NewFile(path=created[-1], opened=store.create(created[-1], within=within))

        yield new_file


def delete_after_abort(log: TableLog, files: Sequence[AddFile], txn: Txn, first: Version) -> None:
    """Deletes those of `files` that the commit of `first_recording` does not name; nothing where there is none."""
    commit = first_recording(log, txn, first) if files else None
    if commit is not None:
        delete_after_replay(log.store, (file.path for file in files), commit)


def delete_after_replay(store: Store, paths: Iterable[str], commit: Commit) -> None:
    """Deletes those of the files `paths` that `commit`, which recorded their txn, does not name."""
    is_named = _named(commit)
    delete_orphans(store, (path for path in paths if not is_named(path)))


def delete_after_error(log: TableLog, paths: Iterable[str], versions: Iterable[int]) -> None:
    """Deletes the files `paths` unless a commit of `versions` names one: then an earlier try of the write succeeded.

    `versions` are all that the write can have tried. Where one of them is gone or cannot be read, nothing is deleted.
    """
    ours = tuple(dict.fromkeys(paths))
    try:
        for version in versions if ours else ():
            commit = log.commit(Version(version))
            if commit is None or any(map(_named(commit), ours)):
                return
    except TablefeedError as error:
        logger.warning("orphans table=%s files=%d: %s", log.url, len(ours), error)
    else:
        delete_orphans(log.store, ours)


def _named(commit: Commit) -> Callable[[str], bool]:
    """Gives whether `commit` names the file of a path: as a file, as that of a deletion vector, or in a domain."""
    vectors = (add.deletion_vector for add in commit.added if add.deletion_vector is not None)
    stored = (stored_at(vector) for vector in vectors)
    paths = {file.path for file in commit.files} | {each.path for each in stored if each is not None}
    domains = [domain.configuration for domain in commit.domains]
    return lambda path: path in paths or any(path in configuration for configuration in domains)


def first_recording(log: TableLog, txn: Txn, first: Version) -> Commit | None:
    """Gives the first commit from `first` on that records `txn` or a later version of its application.

    None also where the store fails, which is logged: the files that the commit names are then not known.
    """
    version = first
    try:
        while (commit := log.commit(version)) is not None:
            if any(each.app_id == txn.app_id and each.txn_version >= txn.txn_version for each in commit.txns):
                return commit
            version = Version(version + 1)
    except StoreError as error:
        logger.warning("orphans table=%s app_id=%s txn_version=%d: %s", log.url, txn.app_id, txn.txn_version, error)
    return None
