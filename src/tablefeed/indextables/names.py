"""The wire strings of IndexTables' log, and what a log file's name says.

Names only: contents are the codecs'. The fields of each action are in one table in fields.py, those of the Avro
files in state_writer.py.
"""

from __future__ import annotations

import re

from tablefeed.model.actions import Version
from tablefeed.model.logfile import LogFile, LogFileKind

LOG_DIR = "_transaction_log"

# "names": those without a pattern below
LAST_CHECKPOINT = "_last_checkpoint"
MANIFESTS_DIR = "manifests"
STATE_MANIFEST = "_manifest.avro"

# "actions": the one key of a line. TXN and COMMIT_INFO are lines of ours, which IndexTables ignores in commits
# and refuses in checkpoints: there TXNS, a list of what TXN holds, is a second key in a line that it knows.
PROTOCOL = "protocol"
METADATA = "metaData"
ADD = "add"
REMOVE = "remove"
MERGE_SKIP = ("mergeskip", "skip")
TXN = "txn"
TXNS = "tablefeedTxns"
COMMIT_INFO = "commitInfo"

# commitInfo is ours, and so is what it holds
COMMIT_TIMESTAMP = "timestamp"

# metaData.configuration
DOC_MAPPING_PREFIX = "docMappingSchema."
COMPANION_ENABLED = "indextables.companion.enabled"
COMPANION_SOURCE = "indextables.companion.sourceTablePath"

# protocol.readerFeatures and writerFeatures: names of what the log's form shows anyway
AVRO_STATE = "avroState"
MULTI_PART_CHECKPOINT = "multiPartCheckpoint"
SCHEMA_DEDUPLICATION = "schemaDeduplication"

PROVIDER = "indextables"
HIVE_DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"
"""The partition value that says null; of tables by the row writer of 0.5.3 and before, null or ''."""

LAST_VERSION = 2**63 - 1
"""Versions are 64-bit integers: a file name with a greater version is not a log file's."""

_VERSION = r"(?P<version>[0-9]{20})"
_STATE_DIR = rf"state-v{_VERSION}"
_PATTERNS: tuple[tuple[re.Pattern[str], LogFileKind], ...] = (
    (re.compile(rf"{_VERSION}\.json"), LogFileKind.COMMIT),
    (re.compile(rf"{_STATE_DIR}/{re.escape(STATE_MANIFEST)}"), LogFileKind.STATE),
    (re.compile(rf"{_VERSION}\.checkpoint\.json"), LogFileKind.CHECKPOINT),
    # an older path of the reader knows the second form, whose parts have no id
    (re.compile(rf"{_VERSION}\.checkpoint\.(?P<id>[^./]+)\.(?P<part>[0-9]{{5}})\.json"), LogFileKind.CHECKPOINT_PART),
)
_PART_WITHOUT_ID = "part"


def parse_name(name: str, *, size_bytes: int, modified_ms: int) -> LogFile | None:
    """The log file with `name`, relative to the log directory; None where it is not a log file's name.

    A state is recognised by its `_manifest.avro`, which is put last: a state directory without it is no state. None for
    manifests, which have a meaning only through a state, for `_last_checkpoint`, and for Hadoop's `.NAME.crc` files.
    """
    for pattern, kind in _PATTERNS:
        match = pattern.fullmatch(name)
        if match is None:
            continue
        version, groups = int(match["version"]), match.groupdict()
        if version > LAST_VERSION:
            return None
        part, checkpoint_id = groups.get("part"), groups.get("id")
        return LogFile(
            name=name,
            kind=kind,
            version=Version(version),
            size_bytes=size_bytes,
            modified_ms=modified_ms,
            part=None if part is None else int(part),
            checkpoint_id=None if checkpoint_id == _PART_WITHOUT_ID else checkpoint_id,
        )
    return None


def commit_name(version: int) -> str:
    """The JSON commit of `version`."""
    return f"{version:020d}.json"


def checkpoint_name(version: int) -> str:
    """The JSON checkpoint of `version`: its actions, or in several parts their names."""
    return f"{version:020d}.checkpoint.json"


def checkpoint_part_names(version: int, *, part: int, checkpoint_id: str | None) -> tuple[str, ...]:
    """The names that part `part` of a checkpoint may have, the likelier first."""
    by_id = (f"{version:020d}.checkpoint.{checkpoint_id}.{part:05d}.json",) if checkpoint_id else ()
    return (*by_id, f"{version:020d}.checkpoint.{_PART_WITHOUT_ID}.{part:05d}.json")


def is_part_name(name: str) -> bool:
    """Whether `name` is that of a part of a checkpoint."""
    file = parse_name(name, size_bytes=0, modified_ms=0)
    return file is not None and file.kind is LogFileKind.CHECKPOINT_PART


def state_dir(version: int) -> str:
    """The directory of the state of `version`."""
    return f"state-v{version:020d}"


def state_name(version: int) -> str:
    """The file whose coming into being makes the state of `version`, and in state-only tables is its commit."""
    return f"{state_dir(version)}/{STATE_MANIFEST}"


def shared_manifest_name(manifest_id: str) -> str:
    """A manifest that states share. Ids are 8 hexadecimal digits by the Scala log, 16 by the native one."""
    return f"{MANIFESTS_DIR}/manifest-{manifest_id}.avro"


def manifest_name(path: str, *, version: int) -> str | None:
    """The name below the log directory of the manifest that the state of `version` calls `path`.

    With a slash `path` is of the log directory, without one of the state's own. None where it leads elsewhere.
    """
    segments = path.split("/")
    if not path or any(segment in ("", ".", "..") for segment in segments):
        return None
    return path if len(segments) > 1 else f"{state_dir(version)}/{path}"
