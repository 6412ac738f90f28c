"""What the user asked of a stream, as the feed takes it. How it is spelt is the caller's."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import tzinfo
from typing import Literal

from tablefeed.feed.stream.schema_tracking import TrackingOptions
from tablefeed.feed.stream.stream_bounds import Bound
from tablefeed.log.admission import ChangePolicy
from tablefeed.log.java_regex import JavaRegex
from tablefeed.log.plan import Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """What the user asked of a stream. Without a starting version or time: the whole table first, then its changes.

    Nothing after the ending version or time is delivered. Of version and time not both are given. A timestamp without
    a zone is in `time_zone`, in UTC where that is None.
    """

    starting_version: int | Literal["latest"] | None = None
    starting_timestamp: str | None = None
    starting_bound_inclusive: bool = True
    ending_version: int | None = None
    ending_timestamp: str | None = None
    ending_bound_inclusive: bool = True
    time_zone: tzinfo | None = None
    limits: Limits = field(default_factory=Limits)
    policy: ChangePolicy = field(default_factory=ChangePolicy)
    fail_on_data_loss: bool = True
    exclude: JavaRegex | None = None
    """Files whose path as logged it finds are not read."""
    change_feed: bool = False
    """Whether the rows that commits changed are delivered, rather than the files that they added."""
    where: str | None = None
    """Only rows of which this predicate is true are delivered (where.py)."""
    event_time_column: str | None = None
    """The column by whose times the whole table, where it comes first, is delivered; None: in the order of files."""
    least_tasks: int | None = None
    """Over how many tasks a batch is spread at the least (spread.py)."""
    ignore_added_columns: bool = False
    """Whether the stream goes on, without them, where columns are added to the table. Not with `tracking`."""
    tracking: TrackingOptions | None = None
    """Where changes of the table's schema are tracked; None: such a change ends the stream."""

    @property
    def start(self) -> Bound:
        """Where the stream begins."""
        return Bound(
            version=self.starting_version,
            timestamp=self.starting_timestamp,
            time_zone=self.time_zone,
            inclusive=self.starting_bound_inclusive,
        )

    @property
    def end(self) -> Bound:
        """Where it ends."""
        return Bound(
            version=self.ending_version,
            timestamp=self.ending_timestamp,
            time_zone=self.time_zone,
            inclusive=self.ending_bound_inclusive,
        )
