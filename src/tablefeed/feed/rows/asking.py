"""The arguments that say what change events mean."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

import pyarrow as pa

from tablefeed.feed.rows.folding import Ties


class Source(StrEnum):
    """The system that the changes come from; envelopes.py knows the form of its changes."""

    TABLEFEED = "tablefeed"
    CHANGES = "changes"
    DEBEZIUM = "debezium"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """The arguments of `apply_changes` that say what events mean, under their names there; checked for their types.

    `absent` are columns of the changes whose fields may be missing; the column ABSENT says in which events. If the
    changes are the rows of a snapshot, `snapshot_at` is its version.
    """

    keys: tuple[str, ...]
    sequence_by: tuple[str, ...]
    source: Source | None = None
    apply_as_deletes: str | None = None
    apply_as_truncates: str | None = None
    column_list: tuple[str, ...] | None = None
    except_column_list: tuple[str, ...] | None = None
    ignore_null_updates: bool = False
    ignore_null_updates_column_list: tuple[str, ...] | None = None
    ignore_null_updates_except_column_list: tuple[str, ...] | None = None
    stored_as_scd_type: Literal[1, 2] = 1
    track_history_column_list: tuple[str, ...] | None = None
    track_history_except_column_list: tuple[str, ...] | None = None
    ties: Ties = Ties.FAIL
    merge_schema: bool = False
    tombstone_gc_threshold_in_seconds: int | None = None
    absent: tuple[str, ...] = ()
    snapshot_at: pa.Scalar | None = None
