"""IndexTables' own settings that are accepted on a write: they have no effect, or have the value that always holds.

Settings with an effect are in option_tables.py. Any other name is refused as unknown: a setting that changes how
columns are indexed must not be ignored.
"""

from __future__ import annotations

from collections.abc import Mapping

PREFIX = "spark.indextables."

_STATE = f"{PREFIX}state."
_SHAPE = "tablefeed splits and compacts states as IndexTables does by default. Leave it out."
_TRIES = "tablefeed retries concurrent writes as IndexTables does by default. Leave it out."
_CUT = "tablefeed truncates text bounds to 32 characters, as IndexTables does by default. Leave it out."
_RETENTION = (
    "No write deletes log files, and `tablefeed.checkpoint(clean_up=True)` has IndexTables' default retention. Set it "
    "for PURGE INDEXTABLES."
)
_COMPRESSION = "tablefeed compresses log files as IndexTables does by default. Leave it out."

HELD: Mapping[str, tuple[str, str]] = {
    f"{_STATE}format": ("avro", "The table decides the format of its log. Leave it out."),
    f"{_STATE}compression": ("zstd", _COMPRESSION),
    f"{_STATE}entriesPerManifest": ("50000", _SHAPE),
    f"{_STATE}compaction.tombstoneThreshold": ("0.10", _SHAPE),
    f"{_STATE}compaction.maxManifests": ("20", _SHAPE),
    f"{_STATE}compaction.largeRemoveThreshold": ("2147483647", _SHAPE),
    f"{_STATE}schema.renormalizeThreshold": ("5", _SHAPE),
    f"{_STATE}retry.maxAttempts": ("10", _TRIES),
    f"{_STATE}retry.baseDelayMs": ("100", _TRIES),
    f"{_STATE}retry.maxDelayMs": ("5000", _TRIES),
    f"{PREFIX}transaction.retry.maxAttempts": ("10", _TRIES),
    f"{PREFIX}transaction.retry.baseDelayMs": ("100", _TRIES),
    f"{PREFIX}transaction.retry.maxDelayMs": ("5000", _TRIES),
    f"{PREFIX}transaction.compression.enabled": ("true", _COMPRESSION),
    f"{PREFIX}transaction.compression.codec": ("gzip", _COMPRESSION),
    f"{PREFIX}checkpoint.compression.enabled": ("true", _COMPRESSION),
    f"{PREFIX}stats.truncation.enabled": ("true", _CUT),
    f"{PREFIX}stats.truncation.maxLength": ("32", _CUT),
    f"{PREFIX}purge.txLogRetentionHours": ("720", _RETENTION),
    f"{PREFIX}checkpointRetention.duration": ("7200000", _RETENTION),
    f"{PREFIX}logRetention.duration": ("2592000000", _RETENTION),
    f"{_STATE}retention.versions": ("2", _RETENTION),
    f"{_STATE}retention.hours": ("168", _RETENTION),
    f"{_STATE}gc.minManifestAgeHours": ("1", _RETENTION),
    f"{_STATE}compaction.afterMerge": ("true", "Only MERGE SPLITS merges splits. Set it there."),
    f"{PREFIX}protocol.autoUpgrade": ("false", "No write changes a table's protocol. Leave it out."),
    f"{PREFIX}protocol.checkEnabled": ("true", "A table with an unknown protocol is never written to. Leave it out."),
}
"""By name: the one accepted value, which is IndexTables' default and what tablefeed does; the remedy for any other."""

_CACHE = f"{PREFIX}transaction.cache."

WITHOUT_EFFECT = frozenset(
    {
        *(f"{_CACHE}{name}" for name in ("enabled", "ttl.ms", "version.ttl.ms", "snapshot.ttl.ms", "fileList.ttl.ms")),
        *(f"{_CACHE}{name}" for name in ("metadata.ttl.ms", "version.capacity", "snapshot.capacity")),
        f"{_CACHE}fileList.capacity",
        f"{PREFIX}transaction.maxConcurrentReads",
        f"{PREFIX}transaction.compression.gzip.level",
        f"{PREFIX}checkpoint.maxRetries",
        f"{PREFIX}checkpoint.parallelism",
        f"{PREFIX}checkpoint.read.timeoutSeconds",
        f"{_STATE}compressionLevel",
        f"{_STATE}read.parallelism",
    }
)
"""Settings that change only how fast IndexTables works, not which rows are written or how."""
