"""The arguments that say what change events mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import tzinfo
from enum import StrEnum
from typing import Any, Literal

import pyarrow as pa

from tablefeed.errors import IllegalOptionError
from tablefeed.feed.arguments import column_names, switch, text, whole_number, word, zone
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
    time_zone: tzinfo | None = None
    absent: tuple[str, ...] = ()
    snapshot_at: pa.Scalar | None = None


def asking(given: Mapping[str, Any]) -> Asking:  # Any: what a user passed
    """Gives those of the `given` arguments that say what events mean, checked for their types.

    Raises IllegalOptionError.
    """
    found = {field.name: _checked(field.name, given[field.name]) for field in fields(Asking) if field.name in given}
    if not found.get("source") and not given["sequence_by"]:
        explain = "must name a column of the changes, unless source is set"
        raise IllegalOptionError(option="sequence_by", value=str(given["sequence_by"]), explain=explain)
    order = found.get("sequence_by", ())
    if len({name.lower() for name in order}) < len(order):
        raise IllegalOptionError(option="sequence_by", value=", ".join(order), explain="names a column twice")
    return Asking(**found)


def _checked(name: str, given: Any) -> Any:
    match name:
        case "ignore_null_updates" | "merge_schema":
            return switch(given, argument=name)
        case "ties":
            return word(Ties, given, argument=name)
        case "stored_as_scd_type":
            return given
        case "keys" | "sequence_by" if given is None:
            return ()
        case _ if given is None:
            return None
        case "time_zone":
            return given if isinstance(given, tzinfo) else zone(given)
        case "source":
            return word(Source, given, argument=name)
        case "apply_as_deletes" | "apply_as_truncates":
            return text(given, argument=name)
        case "tombstone_gc_threshold_in_seconds":
            return whole_number(given, argument=name, least=0)
    return column_names((given,) if isinstance(given, str) else given, argument=name)
