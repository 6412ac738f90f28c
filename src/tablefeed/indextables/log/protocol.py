"""Decides which tables are accepted: by protocol version and features, and by whether the table is a companion.

Nothing is read of a table that is refused here.
"""

from __future__ import annotations

from tablefeed.errors import UnsupportedFeatureError
from tablefeed.indextables import names
from tablefeed.model.actions import Metadata, Protocol

NEWEST_PROTOCOL = 4
"""1: adds and removes. 2: footer offsets, `mergeskip`. 3: checkpoints in parts, doc mappings by hash. 4: states."""

KNOWN_FEATURES = frozenset({names.AVRO_STATE, names.MULTI_PART_CHECKPOINT, names.SCHEMA_DEDUPLICATION})
"""The features that are accepted. IndexTables checks none, but a feature that is unknown here could change rows."""

NEW_TABLE = Protocol(min_reader_version=4, min_writer_version=4)
"""What IndexTables gives a new table."""


def refuse_reading(protocol: Protocol, *, url: str) -> None:
    """Raises UnsupportedFeatureError unless a reader may take the table."""
    _refuse("read", protocol.min_reader_version, protocol.reader_features, url=url)


def refuse_writing(protocol: Protocol, *, url: str) -> None:
    """Raises UnsupportedFeatureError unless a writer may take the table."""
    refuse_reading(protocol, url=url)
    _refuse("written", protocol.min_writer_version, protocol.writer_features, url=url)


def refuse_companion(metadata: Metadata, *, url: str) -> None:
    """Raises UnsupportedFeatureError for a companion: an index of another table's files, whose splits hold no rows.

    The configuration says so. Where it was lost, the splits say so as they are opened (`split_file.read_split`).
    """
    configuration = metadata.configuration
    if configuration.get(names.COMPANION_ENABLED, "").lower() != "true":
        return
    source = configuration.get(names.COMPANION_SOURCE)
    raise UnsupportedFeatureError(
        f"{url} is an IndexTables companion: it indexes the files of {source or 'another table'} and holds no rows of "
        f"its own. Re-indexing would look like deleting and inserting rows. Read {source or 'that table'} itself.",
        url=url,
        features=("companion",),
        error_class="INDEXTABLES_COMPANION_TABLE",
    )


def _refuse(done: str, version: int, features: frozenset[str] | None, *, url: str) -> None:
    unknown = sorted((features or frozenset()) - KNOWN_FEATURES)
    if not 1 <= version <= NEWEST_PROTOCOL:
        unknown = [f"protocol version {version}", *unknown]
    if unknown:
        raise UnsupportedFeatureError(
            f"{url} cannot be {done}: it needs {', '.join(unknown)}, but only protocol versions 1 to {NEWEST_PROTOCOL} "
            f"and {', '.join(sorted(KNOWN_FEATURES))} are supported. Upgrade tablefeed, or use IndexTables itself.",
            url=url,
            features=tuple(unknown),
            error_class="INDEXTABLES_UNSUPPORTED_PROTOCOL",
        )
