"""The properties that a new table may be given, checked as Delta-Spark checks them (DeltaConfig.scala).

Names are matched in any case, because Spark passes options on in lower case, and kept as Delta-Spark spells them.
Properties without the prefix `delta.` are the user's own and not checked; one that lacks only the prefix is warned
of. Delta-Spark ignores `delta.targetFileSize`; Databricks, delta-rs and our writers follow it.
"""

from __future__ import annotations

import difflib
import logging
import re
from collections.abc import Callable, Mapping

from tablefeed.delta import names
from tablefeed.delta.features import FEATURES
from tablefeed.delta.file_layout import CODECS, VERSIONS, data_pages, named_codec
from tablefeed.delta.intervals import parse_interval
from tablefeed.delta.properties import BOOLEANS, TableProperties, column_names
from tablefeed.errors import IllegalOptionError

logger = logging.getLogger(__name__)

PREFIX = "delta."

_Check = tuple[Callable[[str], bool], str]


def _within(least: int, most: int = 2**31 - 1) -> Callable[[str], bool]:
    return lambda text: re.fullmatch(r"[+-]?[0-9]{1,19}", text) is not None and least <= int(text) <= most


def _one_of(*words: str) -> Callable[[str], bool]:
    return lambda text: text.lower() in words


_BOOLEAN: _Check = (_one_of("true", "false"), "must be 'true' or 'false'")
_DURATION: _Check = (
    lambda text: parse_interval(text) is not None,
    "must be a calendar interval such as '2 weeks', without months and years",
)

_KNOWN: Mapping[str, _Check] = {
    **dict.fromkeys(BOOLEANS, _BOOLEAN),
    names.MIN_READER_VERSION: (_within(1, 3), "must be 1, 2 or 3"),
    names.MIN_WRITER_VERSION: (_within(1, 7), "must be a whole number from 1 to 7"),
    names.LOG_RETENTION: _DURATION,
    "delta.sampleRetentionDuration": _DURATION,
    "delta.checkpointRetentionDuration": _DURATION,
    names.CHECKPOINT_INTERVAL: (_within(1), "must be a positive integer"),
    names.AUTO_COMPACT: (_one_of("true", "false", "auto", "legacy"), "must be 'true', 'false' or 'auto'"),
    "delta.enableFullRetentionRollback": _BOOLEAN,
    "delta.dropFeatureTruncateHistory.retentionDuration": _DURATION,
    names.DELETED_FILE_RETENTION: _DURATION,
    names.RANDOM_PREFIX_LENGTH: (_within(1), "must be a positive integer"),
    names.ENABLE_VARIANT_SHREDDING: _BOOLEAN,
    names.INDEXED_LEAVES: (_within(-1), "must be a whole number from -1"),
    names.INDEXED_COLUMNS: (
        lambda text: column_names(text) is not None,
        "must be a list of columns with commas; names with other characters than letters, digits and _ need backticks",
    ),
    names.PREFIX_LENGTH: (_within(0), "must be a whole number from 0"),
    names.SYMLINK_MANIFESTS: (_one_of("false"), "must be 'false': no manifest is written"),
    names.COLUMN_MAPPING_MODE: (_one_of("none", "name", "id"), "must be 'none', 'name' or 'id'"),
    names.TXN_RETENTION: _DURATION,
    "delta.isolationLevel": (_one_of("serializable"), "must be Serializable"),
    names.CHECKPOINT_POLICY: (_one_of("classic", "v2"), "must be 'classic' or 'v2'"),
    names.ATOMIC_CONVERSION: _BOOLEAN,
    names.OTHER_FORMATS: (lambda text: not text, "must be empty: no other format is written"),
    **{f"{names.ENABLE_ICEBERG_COMPAT_PREFIX}V{version}": _BOOLEAN for version in (1, 2, 3)},
    "delta.castIcebergTimeType": _BOOLEAN,
    "delta.ignoreIcebergBucketPartition": _BOOLEAN,
    names.CHECKPOINT_PROTECTION_BEFORE: (_within(0, 2**63 - 1), "must be a whole number from 0"),
    "delta.writePartitionColumnsToParquet": _BOOLEAN,
    names.COMPRESSION_CODEC: (lambda text: named_codec(text) is not None, f"must be {CODECS}"),
    names.TARGET_FILE_SIZE: (
        lambda text: TableProperties({names.TARGET_FILE_SIZE: text}).target_file_bytes is not None,
        "must be a size in bytes, or with a unit such as '128mb'",
    ),
    names.PARQUET_VERSION: (lambda text: data_pages(text) is not None, f"must be {VERSIONS}"),
}

WRITERS_OWN = (
    names.MAX_COLUMN_ID,
    names.IN_COMMIT_TIMESTAMPS_SINCE_VERSION,
    names.IN_COMMIT_TIMESTAMPS_SINCE_TIME,
    names.MATERIALIZED_ROW_ID_COLUMN,
    names.MATERIALIZED_ROW_VERSION_COLUMN,
)
"""The properties that only writers set."""

_BY_FOLDED = {name.lower(): name for name in (*_KNOWN, *WRITERS_OWN)}
_FEATURES = {name.lower(): name for name in FEATURES}


def checked_properties(given: Mapping[str, str]) -> dict[str, str]:
    """`given` as a new table's properties, each name as Delta-Spark spells it.

    Raises IllegalOptionError for an unknown name with the prefix `delta.`, for an invalid value, for a property that
    only writers set, and for one that is given twice, in names that differ in case.
    """
    found: dict[str, str] = {}
    for given_name, given_value in given.items():
        name, value = _checked(given_name, given_value)
        if name in found:
            explain = "is for a property that is given twice, in names that differ in case"
            raise IllegalOptionError(option=given_name, value=given_value, explain=explain)
        found[name] = value
    return found


def is_kept(name: str) -> bool:
    """Whether a new table keeps the property `name`. False where it only sets the table's protocol."""
    return name not in (names.MIN_READER_VERSION, names.MIN_WRITER_VERSION) and not name.startswith(
        names.FEATURE_PREFIX
    )


def known_name(name: str) -> str:
    """Gives `name`, in any case, as Delta-Spark spells that property; an unknown name as it is."""
    return _BY_FOLDED.get(name.lower(), name)


def _checked(name: str, value: str) -> tuple[str, str]:
    def refused(explain: str, error_class: str | None = None, *, option: str = name) -> IllegalOptionError:
        return IllegalOptionError(option=option, value=value, explain=explain, error_class=error_class)

    folded = name.lower()
    if not folded.startswith(PREFIX):
        if f"{PREFIX}{folded}" in _BY_FOLDED:
            meant = known_name(f"{PREFIX}{name}")
            logger.warning("The property %r has no effect: the table's own is %r. It is stored as given.", name, meant)
        return name, value
    if folded.startswith(names.CHECK_CONSTRAINT_PREFIX):
        return folded, value  # whose name ALTER TABLE ... DROP CONSTRAINT finds in lower case alone
    if folded.startswith(names.FEATURE_PREFIX):
        feature = folded.removeprefix(names.FEATURE_PREFIX)
        if value.lower() not in ("supported", "enabled"):
            raise refused("must be 'supported'", "DELTA_UNSUPPORTED_FEATURE_STATUS")
        if feature == names.CLUSTERING:
            raise refused("cannot be set alone: make the table with clusterBy")
        return names.FEATURE_PREFIX + _FEATURES.get(feature, name[len(names.FEATURE_PREFIX) :]), value
    known = _BY_FOLDED.get(folded)
    if known is None:
        close = difflib.get_close_matches(folded, _BY_FOLDED, n=1, cutoff=0.8)
        hint = f"; did you mean {_BY_FOLDED[close[0]]!r}?" if close else ""
        raise refused(f"is not for a known table property{hint}", "DELTA_UNKNOWN_CONFIGURATION")
    if known in WRITERS_OWN:
        explain = "cannot be set, because writers set this property themselves; leave it out"
        raise refused(explain, "DELTA_CANNOT_MODIFY_TABLE_PROPERTY", option=known)
    is_valid, explain = _KNOWN[known]
    if not is_valid(value):
        raise refused(explain, option=known)
    return known, value
