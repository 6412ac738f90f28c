"""One JSON file of an IndexTables log, a commit or a checkpoint, to and from the actions it holds ("version files").

Bytes and values only: the caller passes the commit's version and its file's time. Here are the three forms of the file,
its lines, and the time of a commit; fields.py has the fields of the actions.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from itertools import chain
from typing import Any

import orjson

from tablefeed.errors import CorruptLogError, UnsupportedFeatureError
from tablefeed.indextables import names
from tablefeed.indextables.log import fields
from tablefeed.model import action_fields
from tablefeed.model.action_fields import BadActionError
from tablefeed.model.actions import AddFile, Commit, FileAction, Metadata, Protocol, RemoveFile, Txn, Version

_MARKED, _GZIP_CODEC = b"\x01", b"\x01"
_GZIP = b"\x1f\x8b"


_READ: Mapping[str, Callable[[dict[str, Any]], AddFile | RemoveFile | Metadata | Protocol | Txn]] = {
    names.ADD: fields.read_add,
    names.REMOVE: fields.read_remove,
    names.METADATA: fields.read_metadata,
    names.PROTOCOL: lambda values: Protocol(**action_fields.read_fields(action_fields.PROTOCOL, values)),
    names.TXN: lambda values: Txn(**action_fields.read_fields(action_fields.TXN, values)),
}


class Writer(StrEnum):
    """The writer whose form is used. The native log leaves out what the Scala log writes as null. Headers differ."""

    SCALA = "scala"
    NATIVE = "native"


def decode_commit(data: bytes, *, version: Version, url: str, log_file: str, modified_ms: int | None) -> Commit:
    """The actions of one commit file, adds and removes in their order; a commit without any line is one.

    `committed_at_ms` is the time in our own commitInfo, else the newest time of an add or a remove, else `modified_ms`:
    IndexTables keeps no time of a commit. Files that a merge skipped (`mergeskip` or `skip`) are a list in `info`,
    under the first of these names. Blank lines, unknown actions and unknown fields are ignored, null is absent,
    and the last metaData or protocol line counts. Raises CorruptLogError, naming `log_file` and where possible the
    line, for a malformed file, and UnsupportedFeatureError for an unknown compression.
    """
    files: list[FileAction] = []
    txns: list[Txn] = []
    metadata: Metadata | None = None
    protocol: Protocol | None = None
    info: dict[str, Any] | None = None
    skips: list[dict[str, Any]] = []
    for line, action, values in read_lines(data, url=url, log_file=log_file):
        match read_action(action, values, url=url, log_file=log_file, line=line):
            case AddFile() | RemoveFile() as file:
                files.append(file)
            case Metadata() as metadata:
                pass
            case Protocol() as protocol:
                pass
            case Txn() as txn:
                txns.append(txn)
            case None if action == names.COMMIT_INFO:
                info = values
            case None:
                skips.append(values)
    return Commit(
        version=version,
        files=tuple(files),
        txns=tuple(txns),
        metadata=metadata,
        protocol=protocol,
        info={**(info or {}), names.MERGE_SKIP[0]: skips} if skips else info,
        committed_at_ms=_committed_at_ms(info, files, modified_ms),
    )


def encode_commit(commit: Commit, *, writer: Writer, first: Iterable[FileAction] = ()) -> bytes:
    """The bytes of `commit`; `decode_commit` gives `commit` back but for what `writer` has no words for.

    The order is protocol, metaData, commitInfo, `mergeskip`, txns, files in their order, each on a line; compressed.
    `first` are files to write before its own, taken one by one, since there may be many. `committed_at_ms` is not
    written. The same commit gives the same bytes.
    """
    native = writer is Writer.NATIVE
    lines: list[dict[str, object]] = []
    if commit.protocol is not None:
        lines.append({names.PROTOCOL: fields.write_values(action_fields.PROTOCOL, commit.protocol, native=native)})
    if commit.metadata is not None:
        lines.append({names.METADATA: fields.write_metadata(commit.metadata, native=native)})
    info = dict(commit.info or {})
    skips = info.pop(names.MERGE_SKIP[0], None)
    if info:
        lines.append({names.COMMIT_INFO: info})
    lines += ({names.MERGE_SKIP[0]: skip} for skip in (skips if isinstance(skips, list) else ()))
    lines += ({names.TXN: action_fields.write_fields(action_fields.TXN, txn)} for txn in commit.txns)
    of_files = (fields.write_file(file, native=native) for file in chain(first, commit.files))
    files = ({action: values} for action, values in of_files)
    text = b"".join(orjson.dumps(line, default=dict, option=orjson.OPT_APPEND_NEWLINE) for line in chain(lines, files))
    return compress(text, writer=writer)


def writer_of(data: bytes) -> Writer | None:
    """The writer whose form a commit file has; None where both or neither may have written it."""
    if data.startswith(_GZIP):
        return Writer.NATIVE
    return Writer.SCALA if data.startswith(_MARKED + _GZIP_CODEC) else None


def compress(text: bytes, *, writer: Writer) -> bytes:
    """The file of `text` as `writer` compresses it: gzip with two bytes before it (Scala), or gzip alone (native).

    Both writers read the form with the two bytes. Scala readers treat gzip without them as plain text.
    """
    return mark(writer) + gzip.compress(text, mtime=0)


def mark(writer: Writer) -> bytes:
    """The bytes before the gzip of a file."""
    return b"" if writer is Writer.NATIVE else _MARKED + _GZIP_CODEC


def decompress(data: bytes, *, url: str, log_file: str) -> bytes:
    """The text of a version file in any of its forms. Raises CorruptLogError and UnsupportedFeatureError."""
    if data[:1] == _MARKED and data[1:2] not in (b"", _GZIP_CODEC):
        raise UnsupportedFeatureError(
            f"{url} cannot be read: {log_file} is compressed with codec {data[1]}, but only 1 (gzip) is supported. "
            "Write the table with spark.indextables.transaction.compression.codec=gzip.",
            url=url,
            features=(f"codec {data[1]}",),
            error_class="INDEXTABLES_UNSUPPORTED_CODEC",
        )
    packed = data[2:] if data[:2] == _MARKED + _GZIP_CODEC else data
    if packed is data and not data.startswith(_GZIP):
        if not data:
            raise CorruptLogError("it is empty: its writer died, or it was cut off", url=url, log_file=log_file)
        return data
    if not packed:
        raise CorruptLogError("it is not a valid gzip file: it ends after its header", url=url, log_file=log_file)
    try:
        return gzip.decompress(packed)
    except (OSError, EOFError, zlib.error) as error:
        raise CorruptLogError(f"it is not a valid gzip file: {error}", url=url, log_file=log_file) from error


def read_lines(data: bytes, *, url: str, log_file: str) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """The line number, key and fields of each known action of a JSON file of the log, in order.

    Raises as `decode_commit` for malformed lines. Fields are as parsed and not yet checked.
    """
    for number, values in read_objects(data, url=url, log_file=log_file):
        known = [key for key, value in values.items() if key in fields.ACTIONS and value is not None]
        for key in known:
            action = values[key]
            if len(known) > 1 or not isinstance(action, dict):
                reason = f"the line holds {' and '.join(known)}" if len(known) > 1 else f"{key} is not a JSON object"
                raise CorruptLogError(reason, url=url, log_file=log_file, line=number)
            yield number, key, action
        for txn in _txns(values, url=url, log_file=log_file, line=number):
            yield number, names.TXN, txn


def read_action(
    action: str, values: dict[str, Any], *, url: str, log_file: str, line: int
) -> AddFile | RemoveFile | Metadata | Protocol | Txn | None:
    """What `values` spell under the key `action`; None for an action that is kept as it is. Raises CorruptLogError."""
    read = _READ.get(action)
    try:
        return None if read is None else read(values)
    except BadActionError as bad:
        raise CorruptLogError(bad.of(action), url=url, log_file=log_file, line=line) from bad


def read_objects(data: bytes, *, url: str, log_file: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """The line number and the JSON object of each line that is not blank. Raises as `decode_commit`."""
    for number, line in enumerate(decompress(data, url=url, log_file=log_file).split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            values = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise CorruptLogError(f"the line is not JSON: {error}", url=url, log_file=log_file, line=number) from error
        if not isinstance(values, dict):
            raise CorruptLogError("the line is not a JSON object", url=url, log_file=log_file, line=number)
        yield number, values


def _txns(values: dict[str, Any], *, url: str, log_file: str, line: int) -> list[dict[str, Any]]:
    """Our transaction identifiers beside the action of a line of a checkpoint."""
    found = values.get(names.TXNS) or []
    if isinstance(found, list) and all(isinstance(each, dict) for each in found):
        return found
    raise CorruptLogError(f"{names.TXNS} is not a list of objects", url=url, log_file=log_file, line=line)


def _committed_at_ms(info: dict[str, Any] | None, files: list[FileAction], modified_ms: int | None) -> int | None:
    timestamp = (info or {}).get(names.COMMIT_TIMESTAMP)
    if type(timestamp) is int:
        return timestamp
    times = [file.modified_ms for file in files if isinstance(file, AddFile)]
    times += [file.deletion_timestamp_ms or 0 for file in files if isinstance(file, RemoveFile)]
    return max(times, default=0) or modified_ms
