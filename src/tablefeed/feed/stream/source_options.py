"""The options of a stream as typed values. The texts that users write for them are read by the caller."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from tablefeed.feed.arguments import Bound
from tablefeed.feed.changes.java_regex import JavaRegex
from tablefeed.log.admission import ChangePolicy
from tablefeed.log.plan import Limits

RENAME, DROP = "allowSourceColumnRename", "allowSourceColumnDrop"
TYPE_CHANGE = "allowSourceColumnTypeChange"
"""The options that let a stream go on over a change of its tracked schema, one for each kind of change."""

Allowed = Mapping[str, int | Literal["always"] | None]
"""By option, which changes of its kind the user allows: the change of one version, all of them, or none (None)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackingOptions:
    """Where a stream tracks metadata, and which changes it may pass. Sources of one query differ in `tracking_id`."""

    location: str
    tracking_id: str | None = None
    allowed: Allowed = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """The options of one stream. Unless its `start` is named, it delivers the whole table, then its changes.

    Nothing after `end` is delivered.
    """

    start: Bound = field(default_factory=Bound)
    end: Bound = field(default_factory=Bound)
    limits: Limits = field(default_factory=Limits)
    policy: ChangePolicy = field(default_factory=ChangePolicy)
    fail_on_data_loss: bool = True
    exclude: JavaRegex | None = None
    """A file is not read where this finds a match in its path as logged."""
    change_feed: bool = False
    """Whether the rows that commits changed are delivered, instead of the rows of the files that they added."""
    where: str | None = None
    """Only rows for which this predicate is true are delivered (where.py)."""
    event_time_column: str | None = None
    """The column by whose times the initial snapshot is ordered; None: it is delivered file by file."""
    least_tasks: int | None = None
    """The least number of tasks to spread a batch over (spread.py)."""
    ignore_added_columns: bool = False
    """Whether the stream goes on without columns that are added to the table. Not together with `tracking`."""
    tracking: TrackingOptions | None = None
    """Where changes of the table's schema are tracked; None: such a change ends the stream."""
