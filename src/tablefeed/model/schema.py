"""A table's schema in the logs' own words (PROTOCOL.md, "Schema Serialization Format").

Both dialects use Spark's schema types. Other modules convert them to Arrow and JSON.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

PRIMITIVES = frozenset(
    {
        "string",
        "long",
        "integer",
        "short",
        "byte",
        "float",
        "double",
        "boolean",
        "binary",
        "date",
        "timestamp",
        "timestamp_ntz",
        "void",
        "variant",
    }
)
"""The primitive types without parameters. Decimals have parameters and their own class."""


@dataclass(frozen=True, slots=True)
class Primitive:
    """A primitive type by its name in the log."""

    name: str

    def __post_init__(self) -> None:
        if self.name not in PRIMITIVES:
            raise ValueError(f"{self.name!r} is not a primitive type")


@dataclass(frozen=True, slots=True)
class Decimal:
    """decimal(precision, scale), 1 <= precision <= 38, 0 <= scale <= precision."""

    precision: int
    scale: int

    def __post_init__(self) -> None:
        if not (1 <= self.precision <= 38 and 0 <= self.scale <= self.precision):
            raise ValueError(f"decimal({self.precision},{self.scale}) is out of range")


@dataclass(frozen=True, slots=True)
class Array:
    """A list of `element`."""

    element: DataType
    contains_null: bool


@dataclass(frozen=True, slots=True)
class Map:
    """A map; keys are never null."""

    key: DataType
    value: DataType
    value_contains_null: bool


@dataclass(frozen=True, slots=True)
class Field:
    """A named column or struct member, with the metadata its log keeps beside it."""

    name: str
    type: DataType
    nullable: bool
    metadata: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class Struct:
    """Fields in order. A table's schema is a struct."""

    fields: tuple[Field, ...]

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)

    @property
    def names(self) -> tuple[str, ...]:
        """The field names in order."""
        return tuple(f.name for f in self.fields)


DataType = Primitive | Decimal | Array | Map | Struct


def fields_of(kind: DataType) -> Iterator[Field]:
    """Gives the fields at every depth, each before its own members."""
    match kind:
        case Struct():
            for member in kind:
                yield member
                yield from fields_of(member.type)
        case Array(element=element):
            yield from fields_of(element)
        case Map(key=key, value=value):
            yield from fields_of(key)
            yield from fields_of(value)


def widens(older: DataType, newer: DataType) -> bool:
    """Says whether `older` can be widened to `newer` ("Type Widening"). A decimal type can be widened to itself.

    The rule is Delta-Spark's `isTypeChangeSupported`. Its writes apply all of these changes by default.
    """
    match older, newer:
        case Decimal(), Decimal():
            return newer.scale >= older.scale and newer.precision - newer.scale >= older.precision - older.scale
        case Primitive(name), Decimal(precision, scale) if name in _DIGITS:
            return precision - scale >= _DIGITS[name]
        case Primitive(name), Primitive(wider):
            return wider in _WIDER.get(name, ())
        case _:
            return False


_WIDER = {
    "byte": ("short", "integer", "long", "double"),
    "short": ("integer", "long", "double"),
    "integer": ("long", "double"),
    "float": ("double",),
    "date": ("timestamp_ntz",),
}
_DIGITS = {"byte": 10, "short": 10, "integer": 10, "long": 20}
"""Digits before the point that a decimal needs to be wider."""


def all_nullable(schema: Struct) -> Struct:
    """Gives `schema` with every field and element nullable, at every depth; keys of maps never are."""
    return Struct(tuple(replace(member, type=_nullable(member.type), nullable=True) for member in schema))


def _nullable(kind: DataType) -> DataType:
    match kind:
        case Struct():
            return all_nullable(kind)
        case Array(element):
            return Array(_nullable(element), contains_null=True)
        case Map(key, value):
            return Map(_nullable(key), _nullable(value), value_contains_null=True)
        case _:
            return kind


def describe(kind: DataType) -> str:
    """Gives a type in Spark's short form."""
    match kind:
        case Primitive(name):
            return name
        case Array(element):
            return f"array<{describe(element)}>"
        case Map(key, value):
            return f"map<{describe(key)},{describe(value)}>"
        case Struct():
            return f"struct<{','.join(f'{f.name}:{describe(f.type)}' for f in kind)}>"
        case _:
            return f"decimal({kind.precision},{kind.scale})"
