"""Parses the options that the user set, by the tables in option_tables.py.

Names are matched in any case, values are text. A name in no table is refused, and the error suggests the nearest one:
a misspelt limit that is silently ignored can overload a cluster.
"""

from __future__ import annotations

import difflib
import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from tablefeed.errors import (
    ConflictingOptionsError,
    IllegalOptionError,
    IncompleteOptionsError,
    MissingPathError,
    TablefeedError,
    UnknownOptionError,
    UnsupportedOptionError,
)
from tablefeed.feed.arguments import Bound
from tablefeed.feed.stream.source_options import DROP, RENAME, TYPE_CHANGE, TrackingOptions
from tablefeed.feed.write.write_rules import TYPEMAP_PREFIX
from tablefeed.spark.option_tables import IGNORED, NOT_YET, OTHERS, ROW_CHANGES, SPECS
from tablefeed.spark.parsed_options import ParsedOptions

logger = logging.getLogger(__name__)

STORAGE_PREFIX = "storage."
"""`storage.<key>` goes to the store as `<key>`."""

PROPERTY_PREFIX = "delta."
"""`delta.<name>` on a write is a property of the table that the write creates."""

_SPARKS_OWN = frozenset({"path", "checkpointlocation", "queryname", "outputmode"})


def parse_options(options: Mapping[str, str], direction: str) -> ParsedOptions:
    """Parses `options` for a direction of `SPECS`. Raises OptionError for the first option that cannot be obeyed."""
    specs = {spec.name.lower(): spec for spec in SPECS[direction]}
    ignored = {name.lower() for name in IGNORED[direction]}
    others, instead = OTHERS.get(direction, (frozenset(), ""))
    other = {name.lower(): name for name in others}
    not_yet = {name.lower(): (name, *known) for name, known in NOT_YET.items()}
    values = {spec.name: spec.default for spec in specs.values()}
    storage: dict[str, str] = {}
    properties: dict[str, str] = {}
    index_as: dict[str, str] = {}
    is_of_changes = direction.endswith("write of changes")
    for key, value in options.items():
        folded = key.lower()
        if folded.startswith(STORAGE_PREFIX):
            storage[key[len(STORAGE_PREFIX) :]] = value
        elif folded.startswith(PROPERTY_PREFIX) and direction.endswith("write"):
            properties[key] = value
        elif folded.startswith(TYPEMAP_PREFIX) and direction.endswith("write"):
            index_as[key[len(TYPEMAP_PREFIX) :]] = value
        elif folded.startswith("fs."):
            raise UnsupportedOptionError(
                option=key,
                remedy="Hadoop's file-system options do not reach Python. Give the store's own names with the prefix "
                "'storage.', for S3: storage.aws_access_key_id, storage.aws_secret_access_key, storage.aws_region, "
                "storage.aws_endpoint_url.",
            )
        elif folded in specs:
            values[specs[folded].name] = specs[folded].parse(specs[folded].name, value)
        elif folded in other or (is_of_changes and folded.startswith((PROPERTY_PREFIX, TYPEMAP_PREFIX))):
            raise UnsupportedOptionError(option=other.get(folded, key), remedy=instead)
        elif folded in ignored:
            if folded not in _SPARKS_OWN:
                logger.warning("option=%s has no effect on a %s", key, direction)
        elif folded in not_yet:
            name, accepted, remedy = not_yet[folded]
            if accepted is None or not _says_the_same(value, accepted):
                raise UnsupportedOptionError(option=name, remedy=remedy)
        else:
            raise _not_here(key, direction)
    return ParsedOptions(values=values, storage=storage, properties=properties, index_as=index_as)


def _says_the_same(value: str, accepted: str) -> bool:
    """Whether `value` equals `accepted`, as text in any case or as a number."""
    try:
        return value.lower() == accepted or float(value) == float(accepted)
    except ValueError:
        return False


def parse_at_load(options: Mapping[str, str]) -> ParsedOptions:
    """Parses the options on which a DataFrame's schema depends. It is not known yet whether the read is a stream.

    Raises OptionError for one of them that cannot be obeyed, and for an option that neither kind of read knows.
    """
    later = {name.lower() for name in IGNORED["any read"]}
    return parse_options({key: value for key, value in options.items() if key.lower() not in later}, "any read")


def table_path(options: Mapping[str, str], *, call: str) -> str:
    """Gives the one table path of `options`. Raises MissingPathError; `call` is the method that its text names."""
    if "paths" in options:
        raise MissingPathError(f"tablefeed takes one table: {call}(path), not a list of paths.")
    path = options.get("path", "")
    # Spark passes `provider` only while CREATE TABLE asks for the schema, and later reads do not get its LOCATION.
    if not path or "provider" in options:
        raise MissingPathError(
            f"No path was given. Name the table's folder: {call}(path). Tables of the catalog (toTable, "
            "readStream.table, CREATE TABLE ... USING) do not reach tablefeed with their path. For toTable, Spark "
            "makes a table and its folder before it asks tablefeed: DROP TABLE removes both.",
        )
    return path


def refuse_time_travel(options: Mapping[str, str], path: str) -> None:
    """Refuses a version or a time as an option, which only a batch read has, and one in the path, such as `path@v3`."""
    named = [name for name in ("versionAsOf", "timestampAsOf") if name.lower() in map(str.lower, options)]
    remedy = "A stream has no time travel. Set startingVersion, or use versionAsOf in a batch read."
    if not named and re.search(r"@(v[0-9]+|[0-9]{17})$", path):
        named = [path.rpartition("@")[2]]
        remedy = "A path names no version. In a batch read set versionAsOf, in a stream startingVersion."
    if named:
        raise UnsupportedOptionError(option=named[0], remedy=remedy, error_class="DELTA_UNSUPPORTED_TIME_TRAVEL_VIEWS")


def event_time_column(parsed: ParsedOptions) -> str | None:
    """Gives the column by whose times a stream's snapshot is ordered; None: by file. Raises IllegalOptionError."""
    ordered, column = parsed["withEventTimeOrder"], parsed["eventTimeColumn"]
    if ordered and column is None:
        raise IllegalOptionError(
            option="withEventTimeOrder",
            value="true",
            explain="needs the option eventTimeColumn. Set it to the column of withWatermark, which Spark does not "
            "pass to a Python source",
        )
    if column is not None and not ordered:
        raise IllegalOptionError(
            option="eventTimeColumn",
            value=column,
            explain="needs the option withEventTimeOrder=true. Otherwise the order of the files decides",
        )
    return str(column) if ordered else None


def tracking_options(parsed: ParsedOptions) -> TrackingOptions | None:
    """Gives where and how a stream tracks its table's schema; None: it does not."""
    location = parsed["schemaTrackingLocation"] or parsed["schemaLocation"]
    if location is None:
        return None
    return TrackingOptions(
        location=location,
        tracking_id=parsed["streamingSourceTrackingId"],
        allowed={option: parsed[option] for option in (RENAME, DROP, TYPE_CHANGE)},
    )


def check_tracking(parsed: ParsedOptions) -> None:
    """Refuses options that contradict schemaTrackingLocation."""
    if tracking_options(parsed) is None:
        return
    if not parsed["failOnDataLoss"]:
        raise ConflictingOptionsError(
            options=("schemaTrackingLocation", "failOnDataLoss"),
            remedy="A missing commit may have changed the schema. Leave failOnDataLoss=false out.",
        )
    if parsed["ignoreAddedColumns"]:
        raise ConflictingOptionsError(
            options=("schemaTrackingLocation", "ignoreAddedColumns"),
            remedy="The first stops at an added column to read it, the second leaves it out. Set one of them.",
        )


def schema_given() -> UnsupportedOptionError:
    """Gives the error for a read with `.schema(...)`: Spark then does not ask for the table's own schema."""
    return UnsupportedOptionError(
        option="schema",
        remedy="A table has its own schema. Leave .schema(...) out, and select or cast the columns.",
        error_class="DELTA_READ_SOURCE_SCHEMA_CONFLICT",
    )


def bounds_of(parsed: ParsedOptions) -> tuple[Bound, Bound]:
    """Gives the begin and the end of a stream or of a range of changes.

    Raises ConflictingOptionsError for a version and a timestamp of the same bound.
    """
    for option, other, error_class in (
        ("startingVersion", "startingTimestamp", "DELTA_STARTING_VERSION_AND_TIMESTAMP_BOTH_SET"),
        ("endingVersion", "endingTimestamp", "DELTA_MULTIPLE_CDC_BOUNDARY"),
    ):
        if parsed[option] is not None and parsed[other] is not None:
            raise ConflictingOptionsError(options=(option, other), remedy="Set one of them.", error_class=error_class)
    start, end = (
        Bound(
            version=parsed[f"{side}Version"],
            timestamp=parsed[f"{side}Timestamp"],
            time_zone=parsed["timeZone"],
            inclusive=parsed[f"{side}BoundInclusive"],
        )
        for side in ("starting", "ending")
    )
    return start, end


def check_txn_pair(app_id: str | None, txn_version: int | None) -> None:
    """Refuses one of txnAppId and txnVersion without the other."""
    if (app_id is None) != (txn_version is None):
        given, missing = ("txnAppId", "txnVersion") if txn_version is None else ("txnVersion", "txnAppId")
        raise IncompleteOptionsError(
            given=given, missing=missing, error_class="DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS"
        )


def arguments_of(parsed: ParsedOptions) -> dict[str, object]:
    """Gives the options of row changes under the names that they have as arguments of `apply_changes`."""
    return {argument: parsed[option] for argument, option in _ARGUMENTS.items()}


@contextmanager
def named_as_options() -> Iterator[None]:
    """Names in errors of the block the options, where they name arguments of the Python API (`sequence_by`)."""
    try:
        yield
    except TablefeedError as error:
        error.reword(lambda text: _ARGUMENT.sub(lambda found: _OPTIONS[found[0]], text))
        raise


_ARGUMENTS = {re.sub("([A-Z])", r"_\1", spec.name).lower(): spec.name for spec in ROW_CHANGES}
_BOUNDS = {
    f"{side}_{what.lower()}": f"{side}ing{what}" for side in ("start", "end") for what in ("Version", "Timestamp")
}
_OPTIONS = {**_ARGUMENTS, **_BOUNDS}
_ARGUMENT = re.compile(rf"\b({'|'.join(_OPTIONS)})\b")


def _names(direction: str) -> tuple[str, ...]:
    # When a read is analysed, it is not known whether it is a stream.
    directions = ("stream read", "read of changes") if direction == "any read" else (direction,)
    return tuple(sorted({spec.name for each in directions for spec in SPECS[each]}))


def _not_here(key: str, direction: str) -> UnknownOptionError | UnsupportedOptionError:
    """Gives the error for the name `key`, which `direction` does not have: another direction may have it."""
    having = {each: spec.name for each, specs in SPECS.items() for spec in specs if spec.name.lower() == key.lower()}
    having.pop("any read", None)
    if not having:
        return UnknownOptionError(option=key, nearest=_nearest(key, direction), known=_names(direction))
    [name] = {*having.values()}
    return UnsupportedOptionError(option=name, remedy=f"It is an option of a {' or a '.join(having)}. Leave it out.")


def _nearest(key: str, direction: str) -> str | None:
    # Names of batch and stream options alike: when a read is analysed, it is not known which of the two it is.
    side = [d for d in SPECS if ("write" in d) == ("write" in direction)]
    names = [name for d in side for name in (*(s.name for s in SPECS[d]), *IGNORED[d])]
    known = {name.lower(): name for name in (*names, *NOT_YET)}
    close = difflib.get_close_matches(key.lower(), known, n=1, cutoff=0.6)
    return known[close[0]] if close else None
