"""IndexTables' own settings that are accepted on a write because they have no effect or ask for what is done anyway.

Settings with an effect are in option_tables.py. Any other name is refused as unknown: a setting that changes how
columns are indexed must not be ignored.
"""

from __future__ import annotations

from collections.abc import Mapping

PREFIX = "spark.indextables."

_STATE = f"{PREFIX}state."
_SHAPE = "States are cut and rewritten by IndexTables' defaults: leave it out."
_TRIES = "Races are run as IndexTables runs them by default: leave it out."
_CUT = "The extremes of texts are cut at 32 characters, as IndexTables does it by default: leave it out."
_RETENTION = (
    "No write deletes anything of a log, and `tablefeed.checkpoint(clean_up=True)` keeps what is kept by default; "
    "set it for PURGE INDEXTABLES."
)
_COMPRESSION = "What is put in the log is always compressed as IndexTables does it by default: leave it out."

HELD: Mapping[str, tuple[str, str]] = {
    f"{_STATE}format": ("avro", "The form of the log is that of the table: leave it out."),
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
    f"{_STATE}compaction.afterMerge": ("true", "Splits are merged by MERGE SPLITS alone: set it there."),
    f"{PREFIX}protocol.autoUpgrade": ("false", "No write changes a table's protocol: leave it out."),
    f"{PREFIX}protocol.checkEnabled": ("true", "A table of an unknown protocol is never written: leave it out."),
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
