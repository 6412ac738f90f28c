"""The wire strings of Delta Lake under the headings of PROTOCOL.md, and the parser of log file names.

Names only. fields.py has the fields of each action, features.py the names of the table features.
"""

from __future__ import annotations

import re

from tablefeed.model.actions import Version
from tablefeed.model.logfile import LogFile, LogFileKind

# "File Types"
LOG_DIR = "_delta_log"

# "Delta Log Entries", "Checkpoints", "Last Checkpoint File"
SIDECARS_DIR = "_sidecars"
LAST_CHECKPOINT = "_last_checkpoint"

# "Delta Log Entries": commits that count only once a catalog has ratified them
STAGED_COMMITS_DIR = "_staged_commits"

# "Actions": the one key of a line
METADATA = "metaData"
ADD = "add"
REMOVE = "remove"
CDC = "cdc"
TXN = "txn"
PROTOCOL = "protocol"
COMMIT_INFO = "commitInfo"
DOMAIN_METADATA = "domainMetadata"
SIDECAR = "sidecar"
CHECKPOINT_METADATA = "checkpointMetadata"

# "In-Commit Timestamps": the field of commitInfo
IN_COMMIT_TIMESTAMP = "inCommitTimestamp"

# "Commit Provenance Information": the field by which a writer finds its own commit again
TXN_ID = "txnId"

BAD_RECORDS = "badRecords"
"""Ours, in commitInfo: the files of the rows that were taken out of a batch (feed/commit/bad_rows.py)."""

COPIED_FROM = "tablefeed.replicate"
"""Ours, in commitInfo: the version of another table that the commit copies (feed/replication/origin.py)."""

# "Change Data Files", "Reader Requirements for AddCDCFile"
CHANGE_TYPE = "_change_type"
CHANGES_DIR = "_change_data"
COMMIT_VERSION = "_commit_version"
COMMIT_TIMESTAMP = "_commit_timestamp"

# Table properties, under the sections that define them
APPEND_ONLY = "delta.appendOnly"
CHECK_CONSTRAINT_PREFIX = "delta.constraints."
CHECKPOINT_POLICY = "delta.checkpointPolicy"
COLUMN_MAPPING_MODE = "delta.columnMapping.mode"
MAX_COLUMN_ID = "delta.columnMapping.maxColumnId"
ENABLE_CHANGE_DATA_FEED = "delta.enableChangeDataFeed"
ENABLE_CHANGE_DATA_CAPTURE = "delta.enableChangeDataCapture"  # Delta-Spark's earlier name of the same
ENABLE_DELETION_VECTORS = "delta.enableDeletionVectors"
ENABLE_ICEBERG_COMPAT_PREFIX = "delta.enableIcebergCompat"
ENABLE_IN_COMMIT_TIMESTAMPS = "delta.enableInCommitTimestamps"
IN_COMMIT_TIMESTAMPS_SINCE_VERSION = "delta.inCommitTimestampEnablementVersion"
IN_COMMIT_TIMESTAMPS_SINCE_TIME = "delta.inCommitTimestampEnablementTimestamp"
ENABLE_MATERIALIZE_PARTITION_COLUMNS = "delta.enableMaterializePartitionColumnsFeature"
ENABLE_ROW_TRACKING = "delta.enableRowTracking"
ENABLE_TYPE_WIDENING = "delta.enableTypeWidening"
ENABLE_VARIANT_SHREDDING = "delta.enableVariantShredding"
REDIRECT_READER_WRITER = "delta.redirectReaderWriter-preview"
REDIRECT_WRITER_ONLY = "delta.redirectWriterOnly-preview"
MATERIALIZED_ROW_ID_COLUMN = "delta.rowTracking.materializedRowIdColumnName"
MATERIALIZED_ROW_VERSION_COLUMN = "delta.rowTracking.materializedRowCommitVersionColumnName"
ROW_TRACKING_SUSPENDED = "delta.rowTrackingSuspended"

# "Row Tracking": the feature, its domain and what that holds, the tag in commitInfo
ROW_TRACKING = "rowTracking"
ROW_TRACKING_DOMAIN = "delta.rowTracking"
ROW_ID_HIGH_WATER_MARK = "rowIdHighWaterMark"
ROW_TRACKING_PRESERVED = "delta.rowTracking.preserved"

# "Clustered Table": the feature, its domain and what that holds
CLUSTERING = "clustering"
CLUSTERING_DOMAIN = "delta.clustering"
CLUSTERING_COLUMNS = "clusteringColumns"

# "Writer Requirements for IcebergCompatV2", and the tag that Delta-Spark looks for when it upgrades a table
NESTED_IDS = "delta.columnMapping.nested.ids"
ATOMIC_CONVERSION = "delta.universalFormat.iceberg.atomicConversion.supported"
ICEBERG_COMPAT_TAG = "ICEBERG_COMPAT_VERSION"
MATERIALIZE_PARTITION_COLUMNS = "materializePartitionColumns"

# "Table Features for New and Existing Tables": Delta-Spark's property that lists a feature; never kept in a table
FEATURE_PREFIX = "delta.feature."

# "Protocol Evolution": the versions as Delta-Spark takes them for properties of a new table; never kept in one
MIN_READER_VERSION = "delta.minReaderVersion"
MIN_WRITER_VERSION = "delta.minWriterVersion"

# "Checkpoints": what goes into one, and the retention of what is removed. The protocol names few of these; the rest are
# Delta-Spark's (DeltaConfig.scala)
CHECKPOINT_INTERVAL = "delta.checkpointInterval"
CHECKPOINT_STATS_AS_JSON = "delta.checkpoint.writeStatsAsJson"
CHECKPOINT_STATS_AS_STRUCT = "delta.checkpoint.writeStatsAsStruct"
INDEXED_LEAVES = "delta.dataSkippingNumIndexedCols"
INDEXED_COLUMNS = "delta.dataSkippingStatsColumns"
PREFIX_LENGTH = "delta.dataSkippingStringPrefixLength"
DELETED_FILE_RETENTION = "delta.deletedFileRetentionDuration"
TXN_RETENTION = "delta.setTransactionRetentionDuration"

# "Table Properties"; only the first two are in the protocol
COMPRESSION_CODEC = "delta.parquet.compression.codec"
PARQUET_VERSION = "delta.parquet.format.version"
TARGET_FILE_SIZE = "delta.targetFileSize"
OPTIMIZE_WRITE = "delta.autoOptimize.optimizeWrite"
RANDOMIZE_FILE_PREFIXES = "delta.randomizeFilePrefixes"
RANDOM_PREFIX_LENGTH = "delta.randomPrefixLength"
AUTO_COMPACT = "delta.autoOptimize.autoCompact"
AUTO_OPTIMIZE = "delta.autoOptimize"  # its older name

# What Delta-Spark writes after a commit besides the log
SYMLINK_MANIFESTS = "delta.compatibility.symlinkFormatManifest.enabled"
OTHER_FORMATS = "delta.universalFormat.enabledFormats"

# "Metadata Cleanup", "Checkpoint Protection"
LOG_RETENTION = "delta.logRetentionDuration"
ENABLE_LOG_CLEANUP = "delta.enableExpiredLogCleanup"
CHECKPOINT_PROTECTION_BEFORE = "delta.requireCheckpointProtectionBeforeVersion"

# "Column Metadata" and the sections of the features that use it
COLUMN_INVARIANTS = "delta.invariants"
GENERATION_EXPRESSION = "delta.generationExpression"
CURRENT_DEFAULT = "CURRENT_DEFAULT"
COMMENT = "comment"  # Spark's, of a column
EXISTS_DEFAULT = "EXISTS_DEFAULT"  # Spark's own, never in a table's schema
CHAR_VARCHAR_TYPE = "__CHAR_VARCHAR_TYPE_STRING"  # Spark's own
COLLATIONS = "__COLLATIONS"  # Spark's own
IDENTITY_PREFIX = "delta.identity."
IDENTITY_START = "delta.identity.start"
IDENTITY_STEP = "delta.identity.step"
IDENTITY_MARK = "delta.identity.highWaterMark"
IDENTITY_TAKES_GIVEN = "delta.identity.allowExplicitInsert"
IDENTITY_ONLY_TAG = "delta.identity.schemaUpdate"  # Delta-Spark's tag in commitInfo: metaData only moves marks
TYPE_CHANGES = "delta.typeChanges"
COLUMN_ID = "delta.columnMapping.id"
PHYSICAL_NAME = "delta.columnMapping.physicalName"

_VERSION = r"(?P<version>[0-9]{20})"
_PART = r"(?P<part>[0-9]{10})\.(?P<part_count>[0-9]{10})"
_UUID = r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"

_PATTERNS: tuple[tuple[re.Pattern[str], LogFileKind], ...] = (
    (re.compile(rf"{_VERSION}\.json"), LogFileKind.COMMIT),
    (re.compile(rf"{_VERSION}\.crc"), LogFileKind.CHECKSUM),
    (re.compile(rf"{_VERSION}\.checkpoint\.parquet"), LogFileKind.CHECKPOINT),
    (re.compile(rf"{_VERSION}\.checkpoint\.{_PART}\.parquet"), LogFileKind.CHECKPOINT_PART),
    (re.compile(rf"{_VERSION}\.checkpoint\.{_UUID}\.(?:json|parquet)"), LogFileKind.CHECKPOINT_V2),
    (re.compile(rf"{_VERSION}\.(?P<last_version>[0-9]{{20}})\.compacted\.json"), LogFileKind.COMPACTION),
)
LAST_VERSION = 2**63 - 1
"""Versions are 64-bit integers: a file name with a greater version is not a log file's."""

LAST_TIME_MS = 2**63 - 1
"""In-commit timestamps are 64-bit integers."""


def parse_name(name: str, *, size_bytes: int, modified_ms: int) -> LogFile | None:
    """The log file that has `name` in the log directory, or None where it is not a log file's name.

    None for temporary files, the `.NAME.crc` files that Hadoop writes, directories and any other name: the protocol
    gives them no meaning. The version of a compaction is the first that it covers. None also for a compaction that
    covers fewer than two versions ("Log Compaction Files").
    """
    for pattern, kind in _PATTERNS:
        match = pattern.fullmatch(name)
        if match is None:
            continue
        numbers = {name: int(digits) for name, digits in match.groupdict().items()}
        part, part_count = numbers.get("part"), numbers.get("part_count")
        version, last = numbers["version"], numbers.get("last_version")
        if max(version, last or 0) > LAST_VERSION or (last is not None and last <= version):
            return None
        if part is not None and not 1 <= part <= numbers["part_count"]:
            return None
        return LogFile(
            name=name,
            kind=kind,
            version=Version(version),
            size_bytes=size_bytes,
            modified_ms=modified_ms,
            part=part,
            part_count=part_count,
            last_version=None if last is None else Version(last),
        )
    return None


def commit_name(version: int) -> str:
    """The commit of `version` ("Delta Log Entries")."""
    return f"{version:020d}.json"


def checksum_name(version: int) -> str:
    """The checksum of `version` ("Version Checksum File")."""
    return f"{version:020d}.crc"


def checkpoint_name(version: int) -> str:
    """The checkpoint of `version` in one file ("Classic checkpoint")."""
    return f"{version:020d}.checkpoint.parquet"


def checkpoint_part_name(version: int, *, part: int, part_count: int) -> str:
    """Part `part`, from 1, of the checkpoint of `version` ("Multi-part checkpoint")."""
    return f"{version:020d}.checkpoint.{part:010d}.{part_count:010d}.parquet"


def checkpoint_uuid_name(version: int, *, uuid: str) -> str:
    """The top level of a checkpoint of the V2 spec, in JSON ("UUID-named checkpoint")."""
    return f"{version:020d}.checkpoint.{uuid}.json"


def sidecar_name(version: int, *, part: int, part_count: int, uuid: str) -> str:
    """The name of a sidecar, Delta-Spark's: it shows people the checkpoint it belongs to ("Sidecar Files")."""
    return f"{version:020d}.checkpoint.{part:010d}.{part_count:010d}.{uuid}.parquet"


def compaction_name(first: int, last: int) -> str:
    """The commits from `first` to `last` in one file ("Log Compaction Files")."""
    return f"{first:020d}.{last:020d}.compacted.json"
