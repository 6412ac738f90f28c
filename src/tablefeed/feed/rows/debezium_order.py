"""The order of Debezium's events: their place in the log of the source, as the field `source` reports it.

The fields are those of the connectors' SourceInfoStructMaker classes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.errors import TABLE, InvalidEventsError
from tablefeed.feed.rows.columns import LONG, first, where
from tablefeed.feed.rows.events import key_numbers
from tablefeed.model.shown import shown

OFFSET = "__offset"
POSITION = pa.struct({"log": pa.string(), "position": LONG, "row": LONG, "live": LONG})
"""An event's place in the source's log. At one place an event of a snapshot is older than any other."""

Position = tuple[str | None, int | None, int | None, int]

_SEQUENCE = re.compile(r'\[(?:"(\d{1,20})"|null), ?(?:"(\d{1,20})"|null)\]', re.ASCII)


def position(source: Mapping[str, Any], op: str) -> Position:
    """Gives the position of an event in the log of its source. Positions order all events of a key."""
    is_live = int(op != "r")
    log: str | None
    match source.get("connector"):
        case "postgresql":
            return _of_postgres(source, is_live)
        case "mysql" | "mariadb":
            number = str(source.get("file") or "").rpartition(".")[2]
            log, at, row = number.zfill(20) if number else None, source.get("pos"), source.get("row") or 0
        case "sqlserver":
            commit, change = source.get("commit_lsn"), source.get("change_lsn")
            log = f"{commit} {change or ''}" if commit and (change or not is_live) else None
            at, row = source.get("event_serial_no") or 0, 0
        case None:
            why = "a null value, or an event whose source names no connector, has no position in a log"
            raise refused(f"{why}. Keep Kafka's columns offset and partition, or filter it.")
        case other:
            raise refused(
                f"the order of Debezium's connector {shown(other)} is not known. Set sequence_by, as to {OFFSET}."
            )
    return (log, at, row, is_live) if is_live else (log or "", at or 0, row, is_live)


def _of_postgres(source: Mapping[str, Any], is_live: int) -> Position:
    """Orders events by the last commit before them, and those between two commits by their LSN.

    The change of a transaction may have a smaller LSN than a snapshot that does not see it, because the transaction was
    open. `sequence` has the LSN of the last commit, and that of the event. Only `sequence` has the LSN of an event of
    an incremental snapshot. Before the first commit that a connector sees, the event's own LSN is the best bound.
    """
    lsn, said = source.get("lsn"), source.get("sequence")
    if said is None:
        return "", lsn if is_live else lsn or 0, 0, is_live
    found = _SEQUENCE.fullmatch(said) if type(said) is str else None
    if found is None:
        raise refused(f"source.sequence is {shown(said)} in an event of Postgres, not two LSNs. Set sequence_by.")
    commit, own = (None if each is None else int(each) for each in found.groups())
    lsn = own if lsn is None else lsn
    log = str((lsn or 0) if commit is None else commit).zfill(20)
    # An event of a snapshot is older than every change that comes between the same two commits.
    return (log, lsn, 0, is_live) if is_live else (log, 0, lsn or 0, is_live)


def refuse_shared_places(keys: pa.Table, positions: pa.StructArray, is_upsert: pa.Array) -> None:
    """Raises InvalidEventsError where events of MySQL have one place in its log, and their rows do not order them.

    With binlog_transaction_compression, all changes of a transaction have its place, and each statement counts rows
    anew. Otherwise a key's events at one place are in the order of their rows, and an upsert follows a delete there.
    """
    log, at, row, is_live = (pc.struct_field(positions, [i]) for i in range(4))
    live = where(pc.equal(is_live, 1))
    columns = [*keys.columns, log, at]
    places = pa.table(columns, [str(number) for number in range(len(columns))]).take(live)
    (numbers,) = key_numbers([places], places.column_names)
    rank = pc.add(pc.multiply(row, 2), is_upsert.cast(LONG)).take(live)
    events = pa.table({"number": numbers, "rank": rank, "at": pa.array(range(len(numbers)))})
    # Kafka may deliver events again: the first time counts.
    once = events.group_by(["number", "rank"], use_threads=False).aggregate([("at", "min")])
    once = once.sort_by([("number", "ascending"), ("at_min", "ascending")])
    number, rank = once["number"].combine_chunks(), once["rank"].combine_chunks()
    back = pc.and_(pc.equal(number[1:], number[:-1]), pc.less(rank[1:], rank[:-1]))
    if (found := first(back)) is not None:
        place = at[live[once["at_min"][found].as_py()].as_py()]
        raise refused(
            f"several changes of one key have the place {place} in MySQL's log, as with "
            "binlog_transaction_compression, so their order is not known. Keep Kafka's columns offset and partition, "
            "or turn that compression off."
        )


def refused(why: str) -> InvalidEventsError:
    """The error for events that cannot be applied."""
    return InvalidEventsError(f"{TABLE} cannot take these changes: {why}")
