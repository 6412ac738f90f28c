"""What a write may do to its table's schema, and by which rules its values become the table's: as users say it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import tzinfo
from enum import StrEnum

from tablefeed.data.assignment import Assignment, Policy
from tablefeed.delta.file_layout import CODECS, Codec, named_codec
from tablefeed.delta.properties import checked_properties
from tablefeed.errors import IllegalOptionError
from tablefeed.feed.evolution import SchemaMode
from tablefeed.log.transaction import WriteKind


class Scope(StrEnum):
    """What an overwrite takes the place of, in Spark's words for `partitionOverwriteMode`."""

    TABLE = "static"
    PARTITIONS = "dynamic"
    """Those that rows are written to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteRules:
    """How rows may change and fit their table; `properties` are those of a table that the write makes.

    `replace_where` is the predicate of the rows that an overwrite takes the place of, None: `scope` says it.
    """

    schema: SchemaMode = SchemaMode.FIXED
    assignment: Assignment = field(default_factory=Assignment)
    properties: Mapping[str, str] = field(default_factory=dict)
    scope: Scope = Scope.TABLE
    replace_where: str | None = None
    codec: Codec | None = None
    """None: the table's."""
    most_rows_of_a_file: int | None = None


def schema_mode(kind: WriteKind, *, merge: bool, overwrite: bool) -> SchemaMode:
    """Gives what mergeSchema and overwriteSchema ask of a write; the second asks nothing of an append."""
    if overwrite and kind is WriteKind.OVERWRITE:
        return SchemaMode.OVERWRITE
    return SchemaMode.MERGE if merge else SchemaMode.FIXED


def write_rules(
    schema: SchemaMode,
    *,
    policy: Policy,
    zone: tzinfo | None,
    scope: Scope,
    replace_where: str | None,
    properties: Mapping[str, str] | None = None,
    codec: Codec | None = None,
    most_rows: int | None = None,
) -> WriteRules:
    """Gives the rules that a writer's options mean. Raises IllegalOptionError for `properties` that no table has.

    As with Delta-Spark's writer, a table that is there keeps its own whatever they are.
    """
    return WriteRules(
        schema=schema,
        assignment=Assignment(policy=policy, zone=zone),
        properties=checked_properties(properties or {}),
        scope=scope,
        replace_where=replace_where,
        codec=codec,
        most_rows_of_a_file=most_rows,
    )


def read_scope(option: str, value: object) -> Scope:
    """Gives the scope that `option` names, in any case. Raises IllegalOptionError."""
    if isinstance(value, str) and value.lower() in list(Scope):
        return Scope(value.lower())
    raise IllegalOptionError(option=option, value=str(value), explain="must be 'static' or 'dynamic'")


def policy(value: object, option: str) -> Policy:
    """Gives the policy that `option` names, in any case. Raises IllegalOptionError."""
    if isinstance(value, str) and value.lower() in list(Policy):
        return Policy(value.lower())
    explain = "must be 'ansi' or 'strict'"
    if isinstance(value, str) and value.lower() == "legacy":
        explain += ": 'legacy', which wraps numbers and makes null of what cannot be read, is not supported"
    raise IllegalOptionError(option=option, value=str(value), explain=explain)


def codec(value: str, option: str) -> Codec:
    """Gives the codec that `option` names, in any case. Raises IllegalOptionError."""
    found = named_codec(value)
    if found is None:
        raise IllegalOptionError(option=option, value=value, explain=f"must be {CODECS}")
    return found
