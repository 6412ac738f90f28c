"""Decodes and encodes one JSON commit of a Delta log (PROTOCOL.md, "Delta Log Entries").

Bytes and values only: the caller passes the commit's version and its file's time. Here are the lines, and how many of
each action one version may hold; fields.py has the fields of the actions.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

import orjson

from tablefeed.delta import fields, names
from tablefeed.errors import CorruptLogError
from tablefeed.model.action_fields import BadActionError
from tablefeed.model.actions import Commit, DomainMetadata, Facts, FileAction, Metadata, Protocol, Txn, Version

FILE_ACTIONS = frozenset({names.ADD, names.REMOVE, names.CDC})
"""The actions of which a commit has one for each file."""

_Action = TypeVar("_Action", Metadata, Protocol)
COMMIT_ACTIONS = FILE_ACTIONS | {
    names.METADATA,
    names.PROTOCOL,
    names.TXN,
    names.DOMAIN_METADATA,
    names.COMMIT_INFO,
}
"""All actions of a commit that are read here."""

ADD_BEGIN = b'{"%s":{' % names.ADD.encode()
"""How known writers begin the line of an add. Lines that begin otherwise are read too, only more slowly."""
_FILE_BEGINS = (ADD_BEGIN, b'{"%s":{' % names.REMOVE.encode())
_FILE_ENDS = (b"}}\n", b"}}")
_MORE_THAN_FILE = re.compile(
    rb'\}[^"}\n]*(?:\{|,[ \t\r]*"(?:%s)")'  # not within a text, where quotes are escaped
    % b"|".join(name.encode() for name in sorted(COMMIT_ACTIONS - FILE_ACTIONS))
)
"""Finds, behind a file action on its line, another object, or another action of the same object."""

_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")  # byte order marks of UTF-8 and UTF-16


def decode_commit(data: bytes, *, version: Version, log_file: str, modified_ms: int | None) -> Commit:
    """The actions of one commit file, file actions in their order.

    `committed_at_ms` is commitInfo's in-commit timestamp where it has one, else `modified_ms`. Blank lines, unknown
    actions and unknown fields are ignored; null is absent. Raises CorruptLogError, naming `log_file` and the
    line, for what the protocol does not allow: a line that is not UTF-8, not JSON or not an object; a field that is
    missing or of another type; a number beyond 64 bits; a second metaData or protocol; an empty file.
    """
    return _decoded(io.BytesIO(data), version=version, log_file=log_file, modified_ms=modified_ms, with_files=True)


def decode_facts(data: bytes, *, version: Version, log_file: str, modified_ms: int | None) -> Commit:
    """`decode_commit` without its files, which are not judged: a line that begins and ends as a file's is skipped.

    No line is skipped where one may hold a second action behind a file's: such a line is refused.
    """
    lines: Iterable[bytes] = io.BytesIO(data)
    if _MORE_THAN_FILE.search(data) is None:
        lines = (b"{}\n" if line.startswith(_FILE_BEGINS) and line.endswith(_FILE_ENDS) else line for line in lines)
    joined = io.BytesIO(b"".join(lines))
    return _decoded(joined, version=version, log_file=log_file, modified_ms=modified_ms, with_files=False)


def _decoded(data: io.BytesIO, *, version: Version, log_file: str, modified_ms: int | None, with_files: bool) -> Commit:
    files: list[FileAction] = []
    gathered = Gathered()
    line, action = 0, ""
    try:
        for line, action, values in read_lines(data, log_file=log_file):  # noqa: B007 - named below
            if action not in FILE_ACTIONS:
                gathered.take(action, values)
            elif with_files:
                files.append(fields.read_file(action, values))
    except BadActionError as bad:
        raise CorruptLogError(bad.of(action), log_file=log_file, line=line) from bad
    return gathered.commit(files, version=version, modified_ms=modified_ms)


def encode_commit(commit: Commit, files: Iterable[bytes | memoryview] = ()) -> bytes:
    """The bytes of `commit`, a line for each action, in Delta-Spark's order; `decode_commit` gives `commit` back.

    The order is commitInfo, metaData, protocol, txns, files in their order, `files`, domains. What is None is left out.
    `committed_at_ms` is not written: it is commitInfo's in-commit timestamp, or the time of the file. `files` are lines
    of further files (removes.py).
    """
    before, after = encode_around(commit)
    return b"".join((before, *files, after))


def encode_around(commit: Commit) -> tuple[bytes, bytes]:
    """The lines of `commit` that come before those of further files, and the lines that come after them."""
    return json_lines(_head(commit)), json_lines(map(fields.write_action, commit.domains))


def json_lines(actions: Iterable[Mapping[str, object]]) -> bytes:
    """The actions as a JSON log file has them."""
    return b"".join(orjson.dumps(action, default=dict, option=orjson.OPT_APPEND_NEWLINE) for action in actions)


def _head(commit: Commit) -> Iterator[Mapping[str, object]]:
    if commit.info is not None:
        yield {names.COMMIT_INFO: commit.info}
    first = (action for action in (commit.metadata, commit.protocol) if action is not None)
    yield from map(fields.write_action, (*first, *commit.txns, *commit.files))


def read_lines(
    data: io.BytesIO,
    *,
    log_file: str,
    known_actions: frozenset[str] = COMMIT_ACTIONS,
    first_line: int = 1,
) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """The line number, key and fields of each action in `known_actions` of a JSON log file, in order.

    `data` begins with line `first_line` of the file and is read while the iterator advances. Fields are as parsed and
    not yet checked. Raises CorruptLogError for a malformed line or an empty file, as `decode_commit` does.
    """
    if first_line == 1 and data.read(3).startswith(_MARKS):
        raise CorruptLogError("it begins with a byte order mark", log_file=log_file, line=1)
    data.seek(0)
    seen = False
    for number, line in enumerate(data, first_line):
        try:
            actions = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            if not line.strip():
                continue
            actions = _commit_info_alone(line)
            if actions is None:
                raise CorruptLogError(_fault_of(line), log_file=log_file, line=number) from error
        seen = True
        if not isinstance(actions, dict):
            raise CorruptLogError("the line is not a JSON object", log_file=log_file, line=number)
        known = [key for key in actions if key in known_actions and actions[key] is not None]
        if known == [names.COMMIT_INFO]:
            yield number, names.COMMIT_INFO, _any_json(actions[names.COMMIT_INFO], line)
            continue
        for key in known:
            if len(known) > 1 or not isinstance(actions[key], dict):
                reason = f"the line holds {' and '.join(known)}" if len(known) > 1 else f"{key} is not a JSON object"
                raise CorruptLogError(reason, log_file=log_file, line=number)
            yield number, key, actions[key]
    if not seen:
        raise CorruptLogError("it is empty: its writer died, or it was cut off", log_file=log_file)


_MANY_DIGITS = re.compile(rb"[0-9]{19}")


def _any_json(info: Any, line: bytes) -> dict[str, Any]:
    """The commitInfo of `line`, which may be any JSON ("Commit Provenance Information").

    A value that is no object is returned under the key `commitInfo`. Where `line` has long numbers it is parsed again:
    orjson, which parsed `info`, rounds integers beyond 64 bits.
    """
    if _MANY_DIGITS.search(line):
        info = (_commit_info_alone(line) or {}).get(names.COMMIT_INFO, info)
    return info if isinstance(info, dict) else {names.COMMIT_INFO: info}


def _commit_info_alone(line: bytes) -> dict[str, Any] | None:
    """The parsed `line` where commitInfo is its only action, in JSON that orjson refuses or rounds; None otherwise.

    Accepts numbers of any size, lone surrogates, and any depth that Python's stack allows: commitInfo is free.
    """
    if not line.lstrip().startswith(b'{"%s"' % names.COMMIT_INFO.encode()):
        return None
    try:
        actions = json.loads(line, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return None
    return actions if isinstance(actions, dict) and list(actions) == [names.COMMIT_INFO] else None


def _refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is not JSON")


def _fault_of(line: bytes) -> str:
    try:
        line.decode()
    except UnicodeDecodeError:
        return "the line is not UTF-8"
    return "the line is not JSON" if line.endswith(b"\n") else "the last line is cut off: it is not JSON"


class Gathered:
    """Collects the actions of one version or one checkpoint that are not file actions."""

    def __init__(self) -> None:
        self._metadata: Metadata | None = None
        self._protocol: Protocol | None = None
        self._info: Mapping[str, object] | None = None
        self._in_commit_timestamp_ms: int | None = None
        self._txns: list[Txn] = []
        self._domains: list[DomainMetadata] = []

    def take(self, action: str, values: dict[str, Any]) -> None:
        """Adds one action. Raises BadActionError where it is malformed or a second metaData or protocol."""
        match action:
            case names.METADATA:
                self._metadata = _only(self._metadata, fields.read_metadata(values))
            case names.PROTOCOL:
                self._protocol = _only(self._protocol, fields.read_fact(Protocol, values))
            case names.TXN:
                self._txns.append(fields.read_fact(Txn, values))
            case names.DOMAIN_METADATA:
                self._domains.append(fields.read_fact(DomainMetadata, values))
            case names.COMMIT_INFO if self._info is None:
                self._info = values
                self._in_commit_timestamp_ms = fields.read_in_commit_timestamp(values)

    def facts(self) -> Facts:
        """The facts of a checkpoint. commitInfo is left out, and so are removed domains.

        Raises BadActionError where an application or domain has two different values: nothing says which came last.
        """
        _refuse_two_values(names.TXN, ((txn.app_id, txn.txn_version) for txn in self._txns))
        _refuse_two_values(names.DOMAIN_METADATA, ((domain.domain, domain) for domain in self._domains))
        return Facts(
            protocol=self._protocol,
            metadata=self._metadata,
            txns={txn.app_id: txn for txn in self._txns},
            domains={domain.domain: domain for domain in self._domains if not domain.removed},
        )

    def commit(self, files: Iterable[FileAction], *, version: Version, modified_ms: int | None) -> Commit:
        """The commit of `version`, with `files`."""
        in_commit_ms = self._in_commit_timestamp_ms
        return Commit(
            version=version,
            files=tuple(files),
            txns=tuple(self._txns),
            metadata=self._metadata,
            protocol=self._protocol,
            domains=tuple(self._domains),
            info=self._info,
            committed_at_ms=modified_ms if in_commit_ms is None else in_commit_ms,
        )


def _refuse_two_values(action: str, values: Iterable[tuple[str, object]]) -> None:
    found: dict[str, object] = {}
    for key, value in values:
        if found.setdefault(key, value) != value:
            raise BadActionError(f"has two values for {key!r}", action)


def _only(earlier: _Action | None, value: _Action) -> _Action:
    if earlier is not None:
        raise BadActionError("comes a second time in one version")
    return value
