"""The properties of a table as values, each with its default (PROTOCOL.md; Delta-Spark's DeltaConfig.scala).

A property is a text in the log. It is read here and nowhere else. An invalid text never fails here: each property says
what it means. The modules that cannot work with such a value refuse it; new_properties.py refuses it in a new table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from tablefeed.delta import names
from tablefeed.delta.intervals import DAY_MS, FOREVER_MS, duration_ms
from tablefeed.model.actions import Metadata, Txn

MOST_LEAVES = 32
"""Delta-Spark's default for `delta.dataSkippingNumIndexedCols`."""

_LONGEST_FOLDER_NAME = 255
"""The longest folder name that every store allows."""

T = TypeVar("T")


class _Property(Generic[T]):
    """What `read` makes of the text of the first of `names` that a table sets; `default` where it sets none."""

    def __init__(self, read: Callable[[str], T], *names: str, default: T) -> None:
        self._read, self.names, self._default = read, names, default

    def __get__(self, properties: TableProperties, _: object) -> T:
        for name in self.names:
            if name in properties.texts:
                return self._read(properties.texts[name])
        return self._default


class _Flag(_Property[bool]):
    """A property that is on where its text is `true`, in any case, and off for any other text."""

    def __init__(self, *names: str, default: bool = False) -> None:
        super().__init__(lambda text: text.lower() == "true", *names, default=default)


def _whole(text: str) -> int | None:
    return int(text) if re.fullmatch(r"[+-]?[0-9]{1,19}", text.strip(), re.ASCII) else None


def _versions(text: str) -> int:
    return int(text) if re.fullmatch(r"[0-9]{1,9}", text) and int(text) > 0 else 10


def _protected_before(text: str) -> int:
    return int(text) if re.fullmatch(r"[0-9]{1,19}", text) else 2**63


def _size_bytes(text: str) -> int | None:
    found = re.fullmatch(r"([0-9]{1,18})\s*([kmgt]?)b?", text.strip().lower())
    return (int(found[1]) << 10 * " kmgt".index(found[2] or " ")) or None if found else None


def _letters(text: str) -> int:
    return min(int(text), _LONGEST_FOLDER_NAME) if re.fullmatch(r"\+?0*[1-9][0-9]{0,9}", text) else 2


@dataclass(frozen=True, slots=True)
class TableProperties:
    """The properties of one table: `texts` has them as the log does, by name."""

    texts: Mapping[str, str]

    appends_only = _Flag(names.APPEND_ONLY)
    allows_vectors = _Flag(names.ENABLE_DELETION_VECTORS)
    keeps_commit_times = _Flag(names.ENABLE_IN_COMMIT_TIMESTAMPS)
    commit_times_since_version = _Property(str, names.IN_COMMIT_TIMESTAMPS_SINCE_VERSION, default=None)
    commit_times_since_ms = _Property(str, names.IN_COMMIT_TIMESTAMPS_SINCE_TIME, default=None)
    widens_types = _Flag(names.ENABLE_TYPE_WIDENING)
    stores_partition_columns = _Flag(names.ENABLE_MATERIALIZE_PARTITION_COLUMNS)
    records_changes = _Flag(names.ENABLE_CHANGE_DATA_FEED, names.ENABLE_CHANGE_DATA_CAPTURE)
    """Whether commits must record which rows they change ("Change Data Files", "Writer Requirements")."""
    mapping_word = _Property(str, names.COLUMN_MAPPING_MODE, default="none")
    """As the table writes it; `column_mapping.mapping_mode` refuses an unknown mode."""
    largest_column_id = _Property(str, names.MAX_COLUMN_ID, default="0")
    """As the table writes it; mapping_assignment.py refuses what is no number."""

    tracks_rows = _Flag(names.ENABLE_ROW_TRACKING)
    suspends_row_tracking = _Flag(names.ROW_TRACKING_SUSPENDED)
    row_id_column = _Property(str, names.MATERIALIZED_ROW_ID_COLUMN, default=None)
    row_version_column = _Property(str, names.MATERIALIZED_ROW_VERSION_COLUMN, default=None)
    """Where files may keep ids and versions of rows, besides the table's columns."""

    has_stats_as_text = _Flag(names.CHECKPOINT_STATS_AS_JSON, default=True)
    has_stats_as_struct = _Flag(names.CHECKPOINT_STATS_AS_STRUCT, default=True)
    """Delta-Spark's default is true. The protocol's text says "false", but does not forbid the struct."""
    indexed_leaves = _Property[int | None](_whole, names.INDEXED_LEAVES, default=MOST_LEAVES)
    """How many leaves have statistics, less than 0: all of them; None for a text that is no number."""
    indexed_columns = _Property(lambda text: column_names(text) or [], names.INDEXED_COLUMNS, default=None)
    """The columns that have statistics, by their name parts: none for a malformed text, None where none is set."""
    prefix_length = _Property(_whole, names.PREFIX_LENGTH, default=None)
    """How long texts in statistics are; None where the table names no number."""

    checkpoint_interval = _Property(_versions, names.CHECKPOINT_INTERVAL, default=10)
    """Versions from one checkpoint to the next, at least. Ten is Delta-Spark's default; the protocol names none."""
    wants_v2_checkpoints = _Property(lambda text: text.lower() == "v2", names.CHECKPOINT_POLICY, default=False)
    protected_before = _Property(_protected_before, names.CHECKPOINT_PROTECTION_BEFORE, default=0)
    """The version before which the log may be cleaned up only as a whole ("Checkpoint Protection"); 0 for none."""
    deleted_files_ms = _Property(duration_ms, names.DELETED_FILE_RETENTION, default=7 * DAY_MS)
    txns_ms = _Property(duration_ms, names.TXN_RETENTION, default=None)
    """How long transaction identifiers are kept; None: for ever."""
    log_ms = _Property(duration_ms, names.LOG_RETENTION, default=30 * DAY_MS)

    codec = _Property(str, names.COMPRESSION_CODEC, default="")
    parquet_version = _Property(str, names.PARQUET_VERSION, default="1.0.0")
    """As the table writes it; file_layout.py refuses a version that the protocol does not allow."""
    target_file_bytes = _Property(_size_bytes, names.TARGET_FILE_SIZE, default=None)
    """None where the table names no size, or one that cannot be parsed."""
    gathers_files = _Flag(names.OPTIMIZE_WRITE)
    has_random_folders = _Flag(names.RANDOMIZE_FILE_PREFIXES)
    folder_letters = _Property(_letters, names.RANDOM_PREFIX_LENGTH, default=2)
    _folds_files = _Property(lambda text: text.lower() in ("true", "auto", "legacy"), names.AUTO_COMPACT, default=False)
    _folded_files = _Flag(names.AUTO_OPTIMIZE)
    _cleans_log = _Flag(names.ENABLE_LOG_CLEANUP, default=True)

    @classmethod
    def of(cls, metadata: Metadata) -> TableProperties:
        """The properties in `metadata`."""
        return cls(metadata.configuration)

    @property
    def sets_checkpoint_interval(self) -> bool:
        """Whether the table names an interval, so that no writer chooses another one."""
        return names.CHECKPOINT_INTERVAL in self.texts

    @property
    def folds_files(self) -> bool:
        """Whether small files are folded after a commit. The property's older name counts beside the newer one."""
        return self._folds_files or self._folded_files

    @property
    def cleans_log(self) -> bool:
        """Whether old commits are removed."""
        return self._cleans_log and self.log_ms < FOREVER_MS

    @property
    def iceberg_versions(self) -> tuple[int, ...]:
        """The versions of Iceberg compatibility that are on."""
        on = ((n, self.texts.get(f"{names.ENABLE_ICEBERG_COMPAT_PREFIX}V{n}", "")) for n in (1, 2, 3))
        return tuple(n for n, text in on if text.lower() == "true")

    @property
    def constraints(self) -> Mapping[str, str]:
        """The SQL of the CHECK constraints, by property."""
        return {name: sql for name, sql in self.texts.items() if name.startswith(names.CHECK_CONSTRAINT_PREFIX)}

    def keeps_txn(self, txn: Txn, *, now_ms: int) -> bool:
        """Whether `txn` goes into a checkpoint. A txn without a time is dropped where the table has a duration."""
        if self.txns_ms is None:
            return True
        return txn.last_updated_ms is not None and txn.last_updated_ms > now_ms - self.txns_ms

    def log_cutoff_ms(self, *, now_ms: int) -> int:
        """A midnight in UTC, in milliseconds: commits at or before it are old enough to be removed."""
        return (now_ms - self.log_ms) // DAY_MS * DAY_MS


BOOLEANS = tuple(p.names[0] for p in vars(TableProperties).values() if isinstance(p, _Flag))
"""The names of the boolean properties."""


def column_names(text: str) -> list[list[str]] | None:
    """The name parts of each column in `text`, a list with commas and dots; None where it is malformed.

    In backticks a dot or a comma is part of a name, and two backticks mean one (Spark's multipartIdentifierList).
    """
    if not text.strip():
        return []
    paths: list[list[str]] = [[]]
    rest = text
    while True:
        part, rest = _part(rest.lstrip())
        if not part:
            return None
        paths[-1].append(part)
        rest = rest.lstrip()
        if not rest:
            return paths
        if rest[0] not in ",.":
            return None
        if rest[0] == ",":
            paths.append([])
        rest = rest[1:]


def _part(text: str) -> tuple[str, str]:
    """The name at the beginning of `text`, "" where there is none, and the rest of `text`."""
    found = _PART.match(text)
    if found is None:
        return "", text
    quoted = found["quoted"]
    return found["plain"] if quoted is None else quoted.replace("``", "`"), text[found.end() :]


_PART = re.compile(r"(?P<plain>\w+)|`(?P<quoted>(?:[^`]|``)+)`")
