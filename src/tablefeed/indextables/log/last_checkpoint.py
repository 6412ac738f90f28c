"""`_last_checkpoint`: a hint where the newest checkpoint or state is ("states"). The listing decides.

Decodes the hint, and encodes it for readers of IndexTables that look there first. A writer replaces the file only by
one of a newer version, and on a local disk removes its sibling `._last_checkpoint.crc`.
"""

from __future__ import annotations

from dataclasses import dataclass

import orjson

from tablefeed.indextables import names
from tablefeed.model.actions import Version

AVRO_STATE = "avro-state"
"""The format of a hint at a state. Any other format, or none, is a hint at a JSON checkpoint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hint:
    """What the file says about the checkpoint or state of `version`; None: nothing."""

    version: Version
    action_count: int | None = None
    size_bytes: int | None = None
    file_count: int | None = None
    created_ms: int | None = None
    part_count: int | None = None
    checkpoint_id: str | None = None
    is_state: bool = False


def parse_last_checkpoint(data: bytes) -> Hint | None:
    """The hint in `data`, None where it is malformed: readers find the checkpoint in the listing too."""
    try:
        values = orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(values, dict) or not _is_count(values.get("version")):
        return None
    numbers = {name: values.get(wire) for name, wire in _NUMBERS.items()}
    checkpoint_id = values.get("checkpointId")
    return Hint(
        version=Version(values["version"]),
        **{name: value for name, value in numbers.items() if _is_count(value)},
        checkpoint_id=checkpoint_id if isinstance(checkpoint_id, str) else None,
        is_state=values.get("format") == AVRO_STATE,
    )


def encode_last_checkpoint(hint: Hint) -> bytes:
    """The file of `hint`, with null for None as the Scala log writes it; both logs read that."""
    values: dict[str, object] = {"version": hint.version}
    values |= {wire: getattr(hint, name) for name, wire in _NUMBERS.items()}
    values["checkpointId"] = hint.checkpoint_id
    values["format"] = AVRO_STATE if hint.is_state else None
    values["stateDir"] = names.state_dir(hint.version) if hint.is_state else None
    return orjson.dumps(values)


_NUMBERS = {
    "action_count": "size",
    "size_bytes": "sizeInBytes",
    "file_count": "numFiles",
    "created_ms": "createdTime",
    "part_count": "parts",
}


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value < 2**63
