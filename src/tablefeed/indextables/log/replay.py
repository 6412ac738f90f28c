"""What a version changed where no commit tells it, and whether a commit and a state of one version are of one table.

A state says what is there, not what was done: added is what was not there before, removed what is not there any more.
Whether a removal took rows away or a compaction wrote them anew is told by the flags of what was added, and proven by
counting rows. Columns in, commits out; which files are read is told by listing.py and `compared`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from tablefeed.errors import ChangeDataError, LogError
from tablefeed.indextables.log import columns
from tablefeed.indextables.log.avro_state import Manifest, State, inconsistent
from tablefeed.indextables.log.listing import MIXED_CLASS
from tablefeed.indextables.log.version_file import Writer
from tablefeed.model.actions import AddFile, Commit, RemoveFile, Version

UNTOLD_CLASS = "INDEXTABLES_CHANGES_NOT_TOLD"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """The manifests of two states that have to be read to tell their difference, each in `newest_first` order."""

    before: tuple[Manifest, ...]
    after: tuple[Manifest, ...]


def compared(before: State, after: State) -> Compared:
    """What to read of two states: what they do not share, where their tombstones are the same; else all.

    So an append to a table of any size reads the one manifest that it wrote.
    """
    shared: frozenset[str] = frozenset()
    if before.tombstones.equals(after.tombstones):
        shared = frozenset(each.name for each in before.manifests) & {each.name for each in after.manifests}
    return Compared(
        before=tuple(manifest for manifest in before.newest_first if manifest.name not in shared),
        after=tuple(manifest for manifest in after.newest_first if manifest.name not in shared),
    )


def state_commit(
    after: State,
    files: Iterable[pa.RecordBatch],
    *,
    before: Iterable[pa.RecordBatch],
    file_count_before: int | None,
    url: str,
) -> Commit:
    """What the version of `after` changed: `files` are of it, `before` of the version before.

    Both are all live files, or what `avro_state.live_among` gives of `compared`. `file_count_before` is what the state
    before says, None where the version before is no state. Removes come first, then adds, each sorted by path. Where
    all that was added is marked as no data change, or part of it, what was removed is none either, if the rows of that
    part are as many as those that were removed; with no such part the removes took rows away. Adds have the doc mapping
    that the state keeps for them.

    Raises ChangeDataError (INDEXTABLES_CHANGES_NOT_TOLD) where the rows do not balance, and LogError where the
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
        reason = f"adds {len(adds)} files and removes {len(gone)}: not what the counts of files say"
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
    """Says in which the state of its version is not what `commit` led to, in words; None where it is.

    `state_files` are the live files of that state: what the commit adds has to be among them, what it removes must
    not. Where they part, a generation of IndexTables that sees only commits and one that sees only states have both
    written this version.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Forms:
    """In whose form (`version_file.writer_of`) a commit is, and the commit that made its table; None: not known."""

    commit: Writer | None
    table: Writer | None


def is_orphan(commit: Commit, state: State, state_files: Iterable[pa.RecordBatch], *, forms: Forms) -> bool:
    """Whether it is certain that no reader ever saw a row of `commit`, with which the `state` of its version parted.

    So it is where a native writer added files to a table of states. It counts commits and not states, and begins at 1
    behind the states' back: the Scala readers, whose table it is, do not look at commits and cannot read this one's
    form, and the native ones begin at the newest state. The table and the state have to be Scala's, then, the commit
    native, and its files younger than the state, which was there before it; if the state were the later one, its
    writer would have lost rows that were there to be seen.
    """
    adds, removes = commit.added, commit.removed
    told_more = commit.metadata or commit.protocol or commit.info or commit.txns
    if not adds or told_more or state.metadata is not None or forms != Forms(commit=Writer.NATIVE, table=Writer.SCALA):
        return False
    times = [add.modified_ms for add in adds] + [remove.deletion_timestamp_ms or 0 for remove in removes]
    if min(times) <= state.created_ms:
        return False
    asked = pa.chunked_array([pa.array([add.path for add in adds], pa.string())])
    return not any(columns.with_keys(batch, asked).num_rows for batch in state_files)


def parted_error(version: Version, where: str, *, url: str) -> LogError:
    """The error (INDEXTABLES_MIXED_LOG) of a version that is a commit and a state of two tables; `where` they part.

    One of the two lost rows, and nothing tells which.
    """
    return LogError(
        f"The log of {url} was written by two generations of IndexTables that do not see each other: version {version} "
        f"is a JSON commit and a state, and the state {where}. Settle which of the two stands, move the other's files "
        "out of the log and write their rows again with the one writer that the table is left to (0.5.4 and before, or "
        "0.5.5 and after).",
        url=url,
        error_class=MIXED_CLASS,
    )


def _with_mapping(add: AddFile, registry: Mapping[str, str]) -> AddFile:
    split = add.split
    if split is None or split.doc_mapping is not None or split.doc_mapping_ref is None:
        return add
    return replace(add, split=replace(split, doc_mapping=registry.get(split.doc_mapping_ref)))


def _sorted(files: Iterable[AddFile]) -> list[AddFile]:
    return sorted(files, key=lambda file: file.path)


def _is_compaction(adds: Sequence[AddFile], gone: Sequence[AddFile], *, version: Version, url: str) -> bool:
    """Whether what is `gone` was written anew. Raises ChangeDataError where that cannot be told."""
    rewritten = [add for add in adds if not add.data_change]
    if not rewritten:
        return False
    before, after = _row_count(gone), _row_count(rewritten)
    if before is not None and before == after:
        return True
    raise ChangeDataError(
        f"Version {version} of {url} is a state alone, and what it changed cannot be told: it adds {len(rewritten)} "
        f"files as no change of data, with {_rows(after)}, and removes {len(gone)} with {_rows(before)}. Start the "
        "stream again from a later version.",
        url=url,
        version=version,
        error_class=UNTOLD_CLASS,
    )


def _row_count(files: Sequence[AddFile]) -> int | None:
    counts = [file.split.num_records if file.split else None for file in files]
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _rows(count: int | None) -> str:
    return "an unknown number of rows" if count is None else f"{count} rows"
