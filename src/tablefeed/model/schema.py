"""A table's schema in the logs' own words (PROTOCOL.md, "Schema Serialization Format").

Both dialects use Spark's schema types. Other modules convert them to Arrow and JSON. The functions here are the only
walks through a type. A recursion elsewhere also carries what these do not: the types of Arrow, JSON or SQL that a type
becomes, or the rule for two types of different shape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import UnionType
from typing import NamedTuple

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
    metadata: Mapping[str, object] = field(default_factory=dict)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickles as a call: plans have whole schemas, and the pickling of slots is several times slower."""
        return Field, (self.name, self.type, self.nullable, self.metadata)


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


def type_name(kind: DataType) -> str:
    """Gives the name of a type, without its parts."""
    match kind:
        case Primitive(name=name):
            return name
        case Decimal(precision=precision, scale=scale):
            return f"decimal({precision},{scale})"
        case _:
            return type(kind).__name__.lower()


Nested = Array | Map | Struct
"""The types whose values have parts."""

ELEMENT, KEY, VALUE = "element", "key", "value"
"""The names of elements, keys and values in paths, in Arrow, in Parquet and in errors ("Field Path")."""

Path = tuple[str, ...]
"""The way to a type from the top: the names of fields, and `ELEMENT`, `KEY` and `VALUE`."""


class Part(NamedTuple):
    """A type in another type. `field` is None for an element, a key, a value, and for the outermost type itself."""

    path: Path
    type: DataType
    field: Field | None


def walk(kind: DataType, *, into: type | UnionType = Nested) -> Iterator[Part]:
    """Gives `kind` and what is in it at every depth, each before its own parts; only types of `into` are entered."""
    return _walk(Part((), kind, None), into)


def _walk(part: Part, into: type | UnionType) -> Iterator[Part]:
    yield part
    if isinstance(part.type, into):
        for inner in _parts(part):
            yield from _walk(inner, into)


def _parts(part: Part) -> list[Part]:
    match part.type:
        case Struct(fields):
            return [Part((*part.path, member.name), member.type, member) for member in fields]
        case Array(element):
            return [Part((*part.path, ELEMENT), element, None)]
        case Map(key, value):
            return [Part((*part.path, KEY), key, None), Part((*part.path, VALUE), value, None)]
        case _:
            return []


def fields_at(kind: DataType, *, into: type | UnionType = Nested) -> Iterator[tuple[Path, Field]]:
    """Gives the fields at every depth with their paths, each before its own members; only `into` is entered."""
    return ((part.path, part.field) for part in walk(kind, into=into) if part.field is not None)


def fields_of(kind: DataType) -> Iterator[Field]:
    """Gives the fields at every depth, each before its own members."""
    return (member for _, member in fields_at(kind))


def leaves(schema: Struct) -> Iterator[tuple[Path, DataType]]:
    """Gives the columns without members, at every depth of structs. Lists and maps are leaves as a whole."""
    return ((part.path, part.type) for part in walk(schema, into=Struct) if not isinstance(part.type, Struct))


def fields_along(schema: Struct, path: Sequence[str], *, is_named: Callable[[Field, str], bool]) -> list[Field]:
    """Gives the fields on `path` from the top, down to the first that `schema` does not have."""
    found: list[Field] = []
    for name in path:
        kind = found[-1].type if found else schema
        member = next((f for f in kind if is_named(f, name)), None) if isinstance(kind, Struct) else None
        if member is None:
            break
        found.append(member)
    return found


def paired(
    one: DataType, other: DataType, *, into: type | UnionType = Nested, fold: Callable[[str], str] = str
) -> Iterator[tuple[Part, Part]]:
    """Gives what `one` and `other` have in the same place, down to where they are not of the same nested type.

    Fields match where their names are equal after `fold`; a field that has no match is left out.
    """
    return _paired(Part((), one, None), Part((), other, None), into, fold)


def _paired(one: Part, other: Part, into: type | UnionType, fold: Callable[[str], str]) -> Iterator[tuple[Part, Part]]:
    if not (type(one.type) is type(other.type) and isinstance(one.type, into)):
        yield one, other
        return
    matches = {fold(part.path[-1]): part for part in _parts(other)}
    for part in _parts(one):
        if (match := matches.get(fold(part.path[-1]))) is not None:
            yield from _paired(part, match, into, fold)


Change = Callable[[Path, Field], Field]
"""What becomes of the field at a path."""


def rebuilt(schema: Struct, change: Change, above: Path = (), *, has_nulls: bool = False) -> Struct:
    """Gives `schema` with each field, at every depth, as `change` gives it; a field is changed before its members.

    With `has_nulls` all elements, and all values of maps, become nullable.
    """
    changed = (((*above, member.name), change((*above, member.name), member)) for member in schema)
    parts = ((member, _rebuilt(member.type, change, path, has_nulls=has_nulls)) for path, member in changed)
    return Struct(tuple(replace(member, type=kind) for member, kind in parts))


def _rebuilt(kind: DataType, change: Change, path: Path, *, has_nulls: bool) -> DataType:
    match kind:
        case Struct():
            return rebuilt(kind, change, path, has_nulls=has_nulls)
        case Array(element):
            inner = _rebuilt(element, change, (*path, ELEMENT), has_nulls=has_nulls)
            return Array(inner, has_nulls or kind.contains_null)
        case Map(key, value):
            new_key = _rebuilt(key, change, (*path, KEY), has_nulls=has_nulls)
            new_value = _rebuilt(value, change, (*path, VALUE), has_nulls=has_nulls)
            return Map(new_key, new_value, has_nulls or kind.value_contains_null)
        case _:
            return kind


def pruned(schema: Struct, leaf: Callable[[Path, DataType], DataType | None], above: Path = ()) -> Struct:
    """Gives `schema` with its `leaves` in the types that `leaf` gives, without those for which it gives None.

    A struct that is left without members is left out.
    """
    taken: list[Field] = []
    for member in schema:
        path = (*above, member.name)
        kind = pruned(member.type, leaf, path) if isinstance(member.type, Struct) else leaf(path, member.type)
        if kind is not None and kind != Struct(()):
            taken.append(replace(member, type=kind))
    return Struct(tuple(taken))


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
    return rebuilt(schema, lambda _, member: replace(member, nullable=True), has_nulls=True)


def plain(schema: Struct) -> Struct:
    """Gives the names and types of `schema` alone: everything nullable, without column metadata."""
    return rebuilt(schema, lambda _, member: Field(member.name, member.type, nullable=True), has_nulls=True)


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
