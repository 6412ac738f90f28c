"""Reads checkpoints of both specs and all three naming schemes (PROTOCOL.md, "Checkpoints", "Checkpoint Specs").

The files that a listing shows are the top level. It holds the facts, and the table's files too; or it names sidecars,
and then the sidecars hold all files. Removed files are kept in a checkpoint for VACUUM: only the writer of the next
checkpoint reads them. parquet.py reads Parquet; JSON is read like a commit.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO

import pyarrow as pa

from tablefeed.delta import fields, names
from tablefeed.delta.checkpoint.parquet import CheckpointParquet
from tablefeed.delta.codec import Gathered, read_lines
from tablefeed.delta.columns import FileRows
from tablefeed.delta.paths import below_root, decode_path
from tablefeed.errors import CorruptLogError
from tablefeed.model.action_fields import BadActionError
from tablefeed.model.actions import Facts
from tablefeed.model.logfile import LogFile, LogFileKind


@dataclass(frozen=True, slots=True, kw_only=True)
class TopLevel:
    """The top level of a checkpoint: facts, with at least a protocol and metadata, and the names of its sidecars.

    `sidecars` are names below the table's root. Without sidecars the top level holds the table's files itself.
    """

    facts: Facts
    sidecars: tuple[str, ...]


def read_top_level(parts: Iterable[tuple[LogFile, BinaryIO]], *, root_url: str) -> TopLevel:
    """The top level of one checkpoint, from all of its `parts`. The columns of the table's files are not read.

    Each part is opened and seekable; the caller closes it. `in_commit_timestamp_ms` is None: no checkpoint has
    commitInfo. Raises CorruptLogError, naming the file, for what is not Parquet or JSON, an action or a combination
    of them that the protocol does not allow, a checkpoint without protocol or metadata, one with two values for an
    application or a domain, and a sidecar outside `_delta_log/_sidecars`.
    """
    gathered = Gathered()
    sidecars: list[str] = []
    log_file = None
    for log_file, source in parts:
        with _blamed_on(log_file.name):
            found = _take(gathered, log_file, source)
            sidecars += (_sidecar_name(log_path, root_url=root_url) for log_path in found)
    with _blamed_on(log_file.name if log_file else ""):
        facts = gathered.facts()
    if log_file is not None and (facts.protocol is None or facts.metadata is None):
        missing = names.METADATA if facts.protocol else names.PROTOCOL
        raise CorruptLogError(f"it holds no {missing}", log_file=log_file.name)
    return TopLevel(facts=facts, sidecars=tuple(sidecars))


def read_files(source: BinaryIO, *, with_stats: bool, log_file: str) -> Iterator[pa.RecordBatch]:
    """The adds of one top-level file as batches of `columns.FILE_COLUMNS`, in the file's order.

    A top level with sidecars has no adds. Parquet is read while the iterator advances, a bounded number of rows at a
    time; `source` must stay open. `stats` is null without `with_stats`. Where the writer kept statistics only as a
    struct (`stats_parsed`), `stats` is made from that struct. Raises CorruptLogError as `read_top_level` does, and
    where a required field is null.
    """
    with _blamed_on(log_file):
        if log_file.endswith(".json"):
            yield from _json_files(source, names.ADD, with_stats=with_stats, log_file=log_file)
        else:
            yield from CheckpointParquet(source).files(with_stats=with_stats)


def read_sidecar_files(source: BinaryIO, *, with_stats: bool, log_file: str) -> Iterator[pa.RecordBatch]:
    """The adds of a sidecar, as `read_files`.

    Raises CorruptLogError also for a sidecar that holds a fact or names a sidecar ("Sidecar Files"): nobody would
    read it there.
    """
    with _blamed_on(log_file):
        parquet = CheckpointParquet(source)
        for kind, _ in parquet.actions(_TOP_LEVEL_ACTIONS):
            raise BadActionError("is no action of a sidecar", kind)
        yield from parquet.files(with_stats=with_stats)


def read_actions(source: BinaryIO, *, log_file: LogFile) -> list[dict[str, Any]] | None:
    """All actions of one top-level file as the log spells them; None where it names no sidecars.

    Raises CorruptLogError as `read_top_level` does.
    """
    with _blamed_on(log_file.name):
        found = [{kind: values} for _, kind, values in _actions(source, log_file=log_file.name)]
    return found if any(names.SIDECAR in action for action in found) else None


def read_removed(source: BinaryIO, *, log_file: str) -> Iterator[pa.RecordBatch]:
    """The removes of one top-level file or sidecar as batches of `columns.FILE_COLUMNS`, as `read_files` the adds."""
    with _blamed_on(log_file):
        if log_file.endswith(".json"):
            yield from _json_files(source, names.REMOVE, with_stats=False, log_file=log_file)
        else:
            yield from CheckpointParquet(source).removed()


def read_all_columns(source: BinaryIO, *, log_file: str) -> Iterator[pa.RecordBatch]:
    """All columns of a Parquet top-level file or sidecar, unknown columns too; read while the iterator advances.

    Yields nothing for a top-level file in JSON, where the other readers already parse everything. Raises
    CorruptLogError.
    """
    if not log_file.endswith(".json"):
        with _blamed_on(log_file):
            yield from CheckpointParquet(source).all_columns()


_TOP_LEVEL_ACTIONS = (
    names.PROTOCOL,
    names.METADATA,
    names.TXN,
    names.DOMAIN_METADATA,
    names.CHECKPOINT_METADATA,
    names.SIDECAR,
)


@contextmanager
def _blamed_on(log_file: str) -> Iterator[None]:
    try:
        yield
    except BadActionError as bad:
        raise CorruptLogError(str(bad), log_file=log_file) from bad
    except MemoryError as error:
        reason = f"reading it takes more memory than this process can have, or it is damaged: {error}"
        raise CorruptLogError(reason, log_file=log_file) from error
    except (pa.ArrowException, OSError, ValueError) as error:  # pyarrow raises any of these for broken Parquet
        raise CorruptLogError(f"it cannot be read as Parquet: {error}", log_file=log_file) from error


def _take(gathered: Gathered, log_file: LogFile, source: BinaryIO) -> list[str]:
    """Adds the facts of one top-level file to `gathered`; returns the paths of its sidecars as logged."""
    sidecars: list[str] = []
    versions: list[int] = []
    has_files = False
    for line, kind, values in _actions(source, log_file=log_file.name):
        try:
            if kind == names.SIDECAR:
                sidecars.append(fields.read_sidecar(values))
            elif kind == names.CHECKPOINT_METADATA:
                versions.append(fields.read_checkpoint_version(values))
            elif kind == names.ADD:
                has_files = True
            else:
                gathered.take(kind, values)
        except BadActionError as bad:
            raise CorruptLogError(bad.of(kind), log_file=log_file.name, line=line) from bad
    _check_spec(log_file, versions, has_sidecars=bool(sidecars), has_files=has_files)
    return sidecars


def _check_spec(log_file: LogFile, versions: list[int], *, has_sidecars: bool, has_files: bool) -> None:
    """Raises BadActionError for what no spec allows ("V2 Spec", "V1 Spec", "Checkpoint Naming Scheme")."""
    if len(versions) > 1:
        raise BadActionError("comes a second time", names.CHECKPOINT_METADATA)
    if versions and versions[0] != log_file.version:
        raise BadActionError(f"is of version {versions[0]}", names.CHECKPOINT_METADATA)
    if not versions and (has_sidecars or log_file.kind is LogFileKind.CHECKPOINT_V2):
        raise BadActionError("is missing", names.CHECKPOINT_METADATA)
    if has_sidecars and log_file.kind is LogFileKind.CHECKPOINT_PART:
        raise BadActionError("is no action of a checkpoint in parts", names.SIDECAR)
    if has_sidecars and has_files:
        raise BadActionError("is in a checkpoint with sidecars, which must hold all files", names.ADD)


def _actions(source: BinaryIO, *, log_file: str) -> Iterator[tuple[int | None, str, dict[str, Any]]]:
    """The line, kind and fields of each action but removes. Parquet: at most one add, empty, and only with sidecars."""
    if log_file.endswith(".json"):
        known = frozenset({*_TOP_LEVEL_ACTIONS, names.ADD})
        yield from read_lines(io.BytesIO(source.read()), log_file=log_file, known_actions=known)
        return
    parquet = CheckpointParquet(source)
    has_sidecars = False
    for kind, values in parquet.actions(_TOP_LEVEL_ACTIONS):
        has_sidecars |= kind == names.SIDECAR
        yield None, kind, values
    if has_sidecars and parquet.has_files():
        yield None, names.ADD, {}


def _sidecar_name(log_path: str, *, root_url: str) -> str:
    """The name below the table's root of the sidecar `log_path`. Raises BadActionError where it is not in its place."""
    path, folder = decode_path(log_path), f"{names.LOG_DIR}/{names.SIDECARS_DIR}/"
    is_name = "/" not in path and ":" not in path
    name = below_root(f"{folder}{path}" if is_name else path, root_url=root_url)
    if name is None or not name.startswith(folder):
        raise BadActionError(f"is {log_path!r}, which is not in {folder}", names.SIDECAR, "path")
    return name


def _json_files(source: BinaryIO, kind: str, *, with_stats: bool, log_file: str) -> Iterator[pa.RecordBatch]:
    rows = FileRows(with_stats=with_stats)
    stream = io.BytesIO(source.read())
    for line, action, values in read_lines(stream, log_file=log_file, known_actions=frozenset({kind})):
        rows.take(action, values, log_file=log_file, line=line, end=stream.tell())
        yield from rows.full()
    yield from rows.rest()
