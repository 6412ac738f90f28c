"""Finds what a version changed where it has no commit, and whether a commit and a state of one version agree.

A state lists files, not changes: a file was added if the state before lacks it, and removed if the state after does.
Either rows were deleted, or a compaction rewrote them: the `dataChange` flags of the added files say which, and row
counts prove it. Columns in, commits out; listing.py and `compared` say which files to read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from tablefeed.errors import ChangeDataError, LogError
from tablefeed.indextables.log import columns
from tablefeed.indextables.log.avro_state import Manifest, State, inconsistent
from tablefeed.indextables.log.listing import mixed_error
from tablefeed.indextables.log.version_file import Writer
from tablefeed.model.actions import AddFile, Commit, RemoveFile, Version


def compared(before: State, after: State) -> tuple[tuple[Manifest, ...], tuple[Manifest, ...]]:
    """The manifests of two states to read for their difference, each in `newest_first` order.

    They are those that the states do not share, or all where their tombstones differ.
    So to find what an append changed, only the manifest that it wrote is read, however large the table is.
    """
    shared: frozenset[str] = frozenset()
    if before.tombstones.equals(after.tombstones):
        shared = frozenset(each.name for each in before.manifests) & {each.name for each in after.manifests}
    of_before, of_after = ([each for each in s.newest_first if each.name not in shared] for s in (before, after))
    return tuple(of_before), tuple(of_after)


def state_commit(
    after: State,
    files: Iterable[pa.RecordBatch],
    *,
    before: Iterable[pa.RecordBatch],
    file_count_before: int | None,
    url: str,
) -> Commit:
    """The changes of the version of `after`. `files` are the files of that version, `before` those of the one before.

    Both are all live files, or what `avro_state.live_among` returns for `compared`. `file_count_before` is the count in
    the state before, None where the version before is no state. Removes come first, then adds, each sorted by path.
    If some added files are marked as no data change and have as many rows as the removed files, the removes are no data
    change either. If none is so marked, the removes deleted rows. Adds have the doc mapping that the state keeps.

    Raises ChangeDataError (INDEXTABLES_CHANGES_UNKNOWN) where the rows do not balance, and LogError where the
    difference is not that of the counts of the two states.
    """
    old, new = list(before), list(files)
    kept, known = columns.keys_of(new), columns.keys_of(old)
    adds = _sorted(
        _with_mapping(add, after.registry)
        for batch in new
        for add in columns.to_add_files(columns.without_keys(batch, known))
    )
    gone = _sorted(add for batch in old for add in columns.to_add_files(columns.without_keys(batch, kept)))
    if file_count_before is not None and after.file_count - file_count_before != len(adds) - len(gone):
        reason = f"adds {len(adds)} files and removes {len(gone)}, which does not match its count of files"
        raise inconsistent(after, reason, url=url)
    is_compaction = _is_compaction(adds, gone, version=after.version, url=url)
    removes = (
        RemoveFile(
            path=file.path,
            log_path=file.log_path,
            data_change=not is_compaction,
            deletion_timestamp_ms=after.created_ms,
            partition_values=file.partition_values,
            size_bytes=file.size_bytes,
        )
        for file in gone
    )
    facts = after.facts
    return Commit(
        version=after.version,
        files=(*removes, *adds),
        metadata=facts.metadata,
        protocol=facts.protocol,
        committed_at_ms=after.created_ms,
    )


def parted(commit: Commit, state_files: Iterable[pa.RecordBatch]) -> str | None:
    """How the state of the version of `commit` disagrees with it, in words; None where they agree.

    `state_files` are the live files of that state. They must include what the commit adds, and not what it removes.
    Where they disagree, two generations of IndexTables wrote this version: one sees only commits, one only states.
    """
    added, removed = {file.path for file in commit.added}, {file.path for file in commit.removed}
    missing, dead = added - removed, removed - added
    asked = pa.chunked_array([pa.array(sorted(missing | dead), pa.string())])
    for batch in state_files:
        if not missing and not dead:
            return None
        found = set(columns.with_keys(batch, asked)["key"].to_pylist())
        if found & dead:
            return f"still holds {min(found & dead)!r}, which the commit removes"
        missing -= found
    return f"does not hold {min(missing)!r}, which the commit adds" if missing else None


def is_orphan(
    commit: Commit,
    state: State,
    state_files: Iterable[pa.RecordBatch],
    *,
    writer: Writer | None,
    table_writer: Writer | None,
) -> bool:
    """Whether no reader can ever have seen a row of `commit`, with which the `state` of its version disagrees.

    `writer` (`version_file.writer_of`) wrote the commit, `table_writer` the commit that created its table; None: not
    known.

    That is so where a native writer added files to a state-only table. It counts only commits, so it begins at version
    1 although states exist. Scala readers of the table ignore commits and cannot read a native one; native readers
    begin at the newest state. So the table and the state must be Scala's and the commit native. Its files must also be
    younger than the state: if the state were later, its writer would have lost rows that readers could see.
    """
    adds, removes = commit.added, commit.removed
    has_more = commit.metadata or commit.protocol or commit.info or commit.txns
    if not adds or has_more or state.metadata is not None:
        return False
    if (writer, table_writer) != (Writer.NATIVE, Writer.SCALA):
        return False
    times = [add.modified_ms for add in adds] + [remove.deletion_timestamp_ms or 0 for remove in removes]
    if min(times) <= state.created_ms:
        return False
    asked = pa.chunked_array([pa.array([add.path for add in adds], pa.string())])
    return not any(columns.with_keys(batch, asked).num_rows for batch in state_files)


def parted_error(version: Version, where: str, *, url: str) -> LogError:
    """The error (INDEXTABLES_MIXED_LOG) for a version whose commit and state disagree; `where` says how.

    One of the two lost rows, and nothing shows which.
    """
    return mixed_error(
        f"version {version} is a JSON commit and a state, but the state {where}. One of the two lost rows. Decide "
        "which is right, move the files of the other out of the log, and write their rows",
        url=url,
    )


def _with_mapping(add: AddFile, registry: Mapping[str, str]) -> AddFile:
    split = add.split
    if split is None or split.doc_mapping is not None or split.doc_mapping_ref is None:
        return add
    return replace(add, split=replace(split, doc_mapping=registry.get(split.doc_mapping_ref)))


def _sorted(files: Iterable[AddFile]) -> list[AddFile]:
    return sorted(files, key=lambda file: file.path)


def _is_compaction(adds: Sequence[AddFile], gone: Sequence[AddFile], *, version: Version, url: str) -> bool:
    """Whether the rows of `gone` were rewritten into `adds`. Raises ChangeDataError where that is not certain."""
    rewritten = [add for add in adds if not add.data_change]
    if not rewritten:
        return False
    before, after = _row_count(gone), _row_count(rewritten)
    if before is not None and before == after:
        return True
    raise ChangeDataError(
        f"Version {version} of {url} is only a state, and which rows it changed is not certain: it adds "
        f"{len(rewritten)} files marked as no data change, with {_rows(after)}, and removes {len(gone)} files with "
        f"{_rows(before)}. Start the stream again from a later version.",
        url=url,
        version=version,
        error_class="INDEXTABLES_CHANGES_UNKNOWN",
    )


def _row_count(files: Sequence[AddFile]) -> int | None:
    counts = [file.split.num_records if file.split else None for file in files]
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _rows(count: int | None) -> str:
    return "an unknown number of rows" if count is None else f"{count} rows"
