"""Decides whether data files that we wrote stay valid after a concurrent change of the table's protocol or metadata.

They do where the change turns on what our commit then adds (row ids, in-commit timestamps) or what new files need not
have (deletion vectors, checkpoints), or where it only moves the high-water marks of identity columns. Delta-Spark's
list (ConflictChecker.scala) also has turning on column mapping, for which our files would lack ids, and Iceberg's.
"""

from __future__ import annotations

from collections.abc import Mapping

from tablefeed.delta import names
from tablefeed.delta.features import supported_features
from tablefeed.delta.properties import TableProperties
from tablefeed.delta.schema.iceberg_compat import compat_version
from tablefeed.delta.schema.identity import differ_in_marks_alone
from tablefeed.model.actions import Commit, Metadata, Protocol
from tablefeed.model.schema import Struct

_HONOURED_FEATURES = frozenset(
    {
        names.ROW_TRACKING,
        "domainMetadata",
        "inCommitTimestamp",
        "deletionVectors",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        "timestampNtz",
        # Listed in the protocol they ask for nothing; the property that activates them is not in the list below.
        "appendOnly",
        "changeDataFeed",
    }
)

_HONOURED_PROPERTIES: Mapping[str, str | None] = {
    names.ENABLE_ROW_TRACKING: "true",
    names.MATERIALIZED_ROW_ID_COLUMN: None,
    names.MATERIALIZED_ROW_VERSION_COLUMN: None,
    names.ENABLE_IN_COMMIT_TIMESTAMPS: "true",
    names.IN_COMMIT_TIMESTAMPS_SINCE_VERSION: None,
    names.IN_COMMIT_TIMESTAMPS_SINCE_TIME: None,
    names.ENABLE_DELETION_VECTORS: "true",
    names.CHECKPOINT_POLICY: "v2",
}
"""For each property the value that it may be set to; None: any value, where the property was not set before."""


def only_adds_features(before: Protocol, after: Protocol) -> bool:
    """Whether `after` has all features of `before`, and its other features leave our files valid."""
    had, has = supported_features(before), supported_features(after)
    return had <= has and has - had <= _HONOURED_FEATURES


def only_enables(before: Mapping[str, str], after: Metadata) -> bool:
    """Whether each property of `after` that differs from `before` was only turned on and leaves our files valid."""
    now = after.configuration
    changed = {name for name, value in now.items() if before.get(name) != value}
    return (
        before.keys() <= now.keys()
        and (not changed or compat_version(TableProperties(now)) is None)
        and all(name in _HONOURED_PROPERTIES and _may_become(name, before.get(name), now[name]) for name in changed)
    )


def only_moves_marks(schema: Struct, configuration: Mapping[str, str], winner: Commit, after: Struct) -> bool:
    """Whether the metadata of `winner` differs from the given one only in the high-water marks of identity columns.

    `after` is its schema. As in Delta-Spark, the commit must also have the tag that says so. The tag alone is not
    trusted.
    """
    tags = (winner.info or {}).get("tags")
    says_so = isinstance(tags, Mapping) and str(tags.get(names.IDENTITY_ONLY_TAG)).lower() == "true"
    if winner.metadata is None or not says_so or dict(winner.metadata.configuration) != dict(configuration):
        return False
    return differ_in_marks_alone(schema, after)


def _may_become(name: str, then: str | None, now: str) -> bool:
    wanted = _HONOURED_PROPERTIES[name]
    return then is None if wanted is None else now.lower() == wanted
