"""Reads version checksums, `VERSION.crc` (PROTOCOL.md, "Version Checksum File"), and compares them with the log.

A checksum never replaces a log file. It can be well-formed and still be wrong, stale or forged. Only reading the log
can show that it is right, so trusting a checksum is the only way to save work with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import orjson

from tablefeed.delta import fields
from tablefeed.model.action_fields import BadActionError
from tablefeed.model.actions import Facts, Metadata, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Checksum:
    """The contents of a version checksum. None: an old writer left the field out, though it is required today."""

    file_count: int
    size_bytes: int
    metadata: Metadata | None
    protocol: Protocol | None


def parse_checksum(data: bytes) -> Checksum | None:
    """The checksum that `data` holds; None where it is not one JSON object of the protocol's shape."""
    try:
        values = orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(values, dict) or any(values.get(name) != 1 for name in ("numMetadata", "numProtocol")):
        return None
    file_count, size_bytes = _count(values.get("numFiles")), _count(values.get("tableSizeBytes"))
    if file_count is None or size_bytes is None:
        return None
    metadata, protocol = values.get("metadata"), values.get("protocol")
    if any(value is not None and not isinstance(value, dict) for value in (metadata, protocol)):
        return None
    try:
        return Checksum(
            file_count=file_count,
            size_bytes=size_bytes,
            metadata=None if metadata is None else fields.read_metadata(metadata),
            protocol=None if protocol is None else fields.read_fact(Protocol, protocol),
        )
    except BadActionError:
        return None


def differences(checksum: Checksum, facts: Facts, *, file_count: int, size_bytes: int) -> Iterator[str]:
    """The differences between the checksum and the log, in words for people; nothing where they agree."""
    if checksum.file_count != file_count:
        yield f"numFiles is {checksum.file_count}, the log has {file_count} live files"
    if checksum.size_bytes != size_bytes:
        yield f"tableSizeBytes is {checksum.size_bytes}, the log's live files have {size_bytes} bytes"
    if checksum.protocol is not None and checksum.protocol != facts.protocol:
        yield "protocol is not the log's"
    if checksum.metadata is not None and checksum.metadata != facts.metadata:
        yield "metadata is not the log's"


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
