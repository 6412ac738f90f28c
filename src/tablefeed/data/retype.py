"""Which Arrow type can be read as which other without losing a value, and how.

The rules are those of a Parquet reader that knows what it wants: the widenings of PROTOCOL.md, "Type Widening", the
several physical forms of one logical type (units and zones of timestamps, dictionary, large and view layouts, names
inside lists and maps), and integers into any type that holds them. `cast` is Arrow's safe one, which checks values.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Self

import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.data.shredding import NULL, MalformedVariantError, assembled, is_in_parts

Conversion = Callable[[pa.Array], pa.Array]

Leaf = Callable[[pa.DataType, pa.DataType], Conversion]
"""How arrays of one type that is not nested become arrays of another. Raises LossyConversionError where they cannot."""


class Rereading(ABC):
    """A leaf that changes values of some types even where the wanted type is the same."""

    @abstractmethod
    def __call__(self, found: pa.DataType, wanted: pa.DataType) -> Conversion:
        """As `Leaf` says."""

    @abstractmethod
    def rereads(self, kind: pa.DataType) -> bool:
        """Whether it may change values of `kind`, which is not nested."""

    def rereads_within(self, kind: pa.DataType) -> bool:
        """Whether it may change values of `kind`, or of a type inside it."""
        inner = inner_fields(kind)
        return any(self.rereads_within(field.type) for field in inner) if inner else self.rereads(kind)


class LossyConversionError(ValueError):
    """A type or a value that the wanted type cannot hold. `column` is the path to it, from the top."""

    def __init__(self, found: pa.DataType, wanted: pa.DataType, *, reason: str | None = None) -> None:
        self.found, self.wanted, self.reason = found, wanted, reason
        self.column: tuple[str, ...] = ()
        super().__init__(found, wanted, reason)

    def inside(self, name: str) -> Self:
        """Returns itself, as seen from the column or member `name` that holds it."""
        self.column = (name, *self.column)
        return self

    def __str__(self) -> str:
        """Names the column, if it is known, the two types and the reason."""
        because = f" ({self.reason})" if self.reason else ""
        what = f"column {'.'.join(self.column)} is {self.found} and" if self.column else f"{self.found}"
        return f"{what} cannot be taken as {self.wanted} without loss{because}"


FIELD_ID = b"PARQUET:field_id"
"""The key under which pyarrow keeps Parquet's field id in an Arrow field's metadata."""


class StoredFields:
    """Looks up the columns of a file, or the members of one struct, by the names or ids of a stored schema."""

    def __init__(self, fields: Iterable[pa.Field]) -> None:
        self._by_name: dict[str, list[str]] = {}
        self._by_folded_name: dict[str, list[str]] = {}
        self._by_id: dict[bytes, list[str]] = {}
        for field in fields:
            self._by_name.setdefault(field.name, []).append(field.name)
            self._by_folded_name.setdefault(field.name.lower(), []).append(field.name)
            field_id = _field_id(field)
            if field_id is not None:
                self._by_id.setdefault(field_id, []).append(field.name)

    def find(self, stored: pa.Field) -> str | None:
        """Gives the name of the field that `stored` means: by its field id where it has one, else by its name.

        By name: the exact match, else the only match without case, else None. LossyConversionError for several matches.
        """
        field_id = _field_id(stored)
        if field_id is None:
            return self._named(stored.name)
        matches = self._by_id.get(field_id, [])
        if len(matches) > 1:
            raise _several(stored.name, "id", matches)
        # Arrow finds a column only by name: another column of the same name but another id must not be read instead.
        return self._named(matches[0]) if matches else None

    def _named(self, name: str) -> str | None:
        matches = self._by_name.get(name) or self._by_folded_name.get(name.lower(), [])
        if len(matches) > 1:
            raise _several(name, "name", matches)
        return matches[0] if matches else None


def _several(name: str, by: str, matches: list[str]) -> LossyConversionError:
    error = LossyConversionError(pa.null(), pa.null(), reason=f"{len(matches)} columns of that {by}: {matches}")
    return error.inside(name)


def has_field_ids(fields: Iterable[pa.Field]) -> bool:
    """Whether any of `fields`, at any depth, has a field id."""
    return any(_field_id(field) is not None or has_field_ids(inner_fields(field.type)) for field in fields)


class BadVariantError(LossyConversionError):
    """A variant whose columns are not a valid shredded variant; `reason` says why."""


def lossless(found: pa.DataType, wanted: pa.DataType) -> Conversion:
    """The leaf for reading: keeps values, and changes only their form or widens their type."""
    if not _holds(found, wanted):
        raise LossyConversionError(found, wanted)
    return lambda array: safe_cast(array, wanted)


def conversion(
    found: pa.DataType, wanted: pa.DataType, stored: pa.DataType | None = None, leaf: Leaf = lossless
) -> Conversion | None:
    """Gives the conversion from `found` to `wanted`; None: none is needed. LossyConversionError where none exists.

    `stored` is `wanted` with the names of struct members, or with the field ids, that `found` uses; None: the same.
    `leaf` converts types that are not nested, at every depth. The parts of a null variant become empty, not null.
    """
    stored = wanted if stored is None else stored
    is_plain = not has_field_ids(inner_fields(stored)) and not has_variants(wanted)
    rereads = isinstance(leaf, Rereading) and leaf.rereads_within(found)
    if found == wanted and stored == wanted and is_plain and not rereads:
        return None
    if leaf is not lossless and (plain := without_views(found)) != found:
        # First change the layout, then the values: a cast below a null must `take` values, which Arrow cannot do for
        # views. Members have their field ids only in the second step, because in the first they are found by name.
        first = conversion(found, plain) or _as_it_is
        return _then(first, conversion(without_views(found, has_ids=True), wanted, stored, leaf))
    if pa.types.is_dictionary(found):
        return _then(_decoded, conversion(without_views(found.value_type), wanted, stored, leaf))
    if isinstance(found, pa.BaseExtensionType):
        return _then(lambda array: array.storage, conversion(found.storage_type, wanted, stored, leaf))
    if pa.types.is_struct(wanted) and pa.types.is_struct(found):
        return _struct(found, wanted, stored, leaf)
    if pa.types.is_map(wanted) and pa.types.is_map(found):
        return _map(found, wanted, stored, leaf)
    if pa.types.is_list(wanted) and _is_any_list(found):
        return _list(found, wanted, stored, leaf)
    return leaf(found, wanted)


def in_form(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Gives `values` as `kind`, which has their types and names; a member that is NOT NULL there may be null.

    Arrow's cast loses elements of list views. For a null in such a member it raises an error that names no column; the
    write refuses this null by name (required.py).
    """
    convert = conversion(values.type, kind)
    return values if convert is None else convert(values)


def inner_fields(kind: pa.DataType) -> list[pa.Field]:
    """The members of a struct, or `element`, or `key` and `value`. A key counts as nullable: Arrow has no null one."""
    if not pa.types.is_nested(kind):
        return []
    if pa.types.is_struct(kind):
        return list(kind)
    if pa.types.is_map(kind):
        key = kind.key_field.with_name("key").with_nullable(True)  # noqa: FBT003  # Arrow's words
        return [key, kind.item_field.with_name("value")]
    return [kind.value_field.with_name("element")] if _is_any_list(kind) else []


def without_views(kind: pa.DataType, *, has_ids: bool = False) -> pa.DataType:
    """The type with the same values that is, at every depth, no view, dictionary or extension.

    Its members have field ids only with `has_ids`.
    """
    is_a = pa.types
    if is_a.is_string_view(kind) or is_a.is_binary_view(kind):
        return pa.string() if is_a.is_string_view(kind) else pa.binary()
    if is_a.is_dictionary(kind):
        return without_views(kind.value_type, has_ids=has_ids)
    if isinstance(kind, pa.BaseExtensionType):
        return without_views(kind.storage_type, has_ids=has_ids)
    inner = [field.with_type(without_views(field.type, has_ids=has_ids)) for field in inner_fields(kind)]
    if not has_ids:
        inner = [field.remove_metadata() for field in inner]
    if is_a.is_struct(kind):
        return pa.struct(inner)
    if is_a.is_map(kind):
        return pa.map_(inner[0].type, inner[1])
    return pa.list_(inner[0]) if inner else kind


def _as_it_is(array: pa.Array) -> pa.Array:
    return array


def _decoded(array: pa.DictionaryArray) -> pa.Array:
    """The values of a dictionary array, converted so that they are not views."""
    values = array.type.value_type
    plain = conversion(values, without_views(values))
    if plain is not None:
        array = pa.DictionaryArray.from_arrays(array.indices, plain(array.dictionary))
    return array.dictionary_decode()


def _then(first: Conversion, second: Conversion | None) -> Conversion:
    return first if second is None else lambda array: second(first(array))


def _holds(found: pa.DataType, wanted: pa.DataType) -> bool:
    is_a = pa.types
    if is_a.is_null(found):
        return True
    if is_a.is_integer(wanted):
        return bool(is_a.is_integer(found))
    if is_a.is_floating(wanted):
        return bool(is_a.is_integer(found) or (is_a.is_floating(found) and found.bit_width <= wanted.bit_width))
    if is_a.is_decimal(wanted):
        return bool(is_a.is_integer(found) or is_a.is_decimal(found))
    if is_a.is_timestamp(wanted):
        return _holds_timestamp(found, wanted)
    if is_a.is_date(wanted):
        return bool(is_a.is_date(found))
    if is_a.is_string(wanted) or is_a.is_binary(wanted):
        return is_text(found) or (is_bytes(found) and (is_a.is_binary(wanted) or not is_a.is_fixed_size_binary(found)))
    return bool(found == wanted)


def _holds_timestamp(found: pa.DataType, wanted: pa.DataType) -> bool:
    # An instant is not read as a wall-clock time. The reverse is allowed: INT96 arrives without a zone and means UTC.
    if pa.types.is_timestamp(found):
        return wanted.tz is not None or found.tz is None
    return bool(pa.types.is_date(found) and wanted.tz is None)


def is_text(kind: pa.DataType) -> bool:
    """Whether that is one of Arrow's forms of text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_bytes(kind: pa.DataType) -> bool:
    """Whether that is one of Arrow's forms of bytes."""
    is_a = pa.types
    checks = (is_a.is_binary, is_a.is_large_binary, is_a.is_binary_view, is_a.is_fixed_size_binary)
    return any(check(kind) for check in checks)


def _is_any_list(kind: pa.DataType) -> bool:
    is_a = pa.types
    checks = (is_a.is_list, is_a.is_large_list, is_a.is_fixed_size_list, is_a.is_list_view, is_a.is_large_list_view)
    return any(check(kind) for check in checks)


def member_conversion(found: pa.DataType, wanted: pa.Field, stored: pa.DataType, leaf: Leaf) -> Conversion | None:
    """As `conversion`, for the values of a column or member: errors name it."""
    try:
        convert = conversion(found, wanted.type, stored, leaf)
    except LossyConversionError as error:
        raise error.inside(wanted.name) from error
    if convert is None:
        return None

    def convert_member(array: pa.Array) -> pa.Array:
        try:
            return convert(array)
        except LossyConversionError as error:
            raise error.inside(wanted.name) from error

    return convert_member


def _field_id(field: pa.Field) -> bytes | None:
    return (field.metadata or {}).get(FIELD_ID)


def is_variant(kind: pa.StructType) -> bool:
    """Whether a struct is a variant. PySpark marks one, to distinguish it from a struct with the same members."""
    return any((member.metadata or {}).get(b"variant") == b"true" for member in kind)


def has_variants(kind: pa.DataType) -> bool:
    """Whether the type is a variant, or has one at any depth."""
    if pa.types.is_struct(kind) and is_variant(kind):
        return True
    return any(has_variants(field.type) for field in inner_fields(kind))


def nulls(count: int, kind: pa.DataType) -> pa.Array:
    """Gives `count` nulls. The parts of a null variant are empty, as Parquet requires them."""
    if not (pa.types.is_struct(kind) and has_variants(kind)):
        return pa.nulls(count, kind)
    of_variants = is_variant(kind)
    members = [pa.repeat(pa.scalar(b"", f.type), count) if of_variants else nulls(count, f.type) for f in kind]
    return pa.StructArray.from_arrays(members, fields=list(kind), mask=pa.repeat(pa.scalar(value=True), count))


def _struct(found: pa.StructType, wanted: pa.StructType, stored: pa.StructType, leaf: Leaf) -> Conversion:
    indexes = {member.name: index for index, member in enumerate(found)}
    of_variants = is_variant(wanted)
    if of_variants:
        if is_in_parts(found):
            return _variant(found, wanted, leaf)
        stored = wanted  # its members have the same names everywhere, in any order
    there = StoredFields(found)
    plan: list[tuple[int | None, Conversion | None, pa.Field]] = []
    for i in range(wanted.num_fields):
        field, stored_field = wanted.field(i), stored.field(i)
        name = there.find(stored_field)
        index = None if name is None else indexes[name]
        convert = None if index is None else member_conversion(found.field(index).type, field, stored_field.type, leaf)
        plan.append((index, convert, field))

    hides_members = leaf is not lossless or has_variants(wanted)

    def convert_struct(array: pa.StructArray) -> pa.StructArray:
        members = []
        # Members of a null struct have no meaning: a cast must not fail on the values that they happen to hold.
        present = array.flatten() if array.null_count and hides_members else None
        for index, convert, field in plan:
            if index is None:
                member = nulls(len(array), field.type)
            else:
                member = array.field(index) if present is None else present[index]
            member = member if convert is None else convert(member)
            if array.null_count and of_variants:  # the parts of a variant are required in Parquet
                member = pc.if_else(array.is_valid(), member, pa.scalar(b"", member.type))
            members.append(member)
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(members, fields=list(wanted), mask=mask)

    return convert_struct


def _variant(found: pa.StructType, wanted: pa.StructType, leaf: Leaf) -> Conversion:
    """The conversion of a variant in parts, whose columns have types of their own."""
    # Files may leave out a variant null. In rows to write the same may be meant as no variant, so it stays a null.
    missing = NULL if leaf is lossless or isinstance(leaf, Rereading) else None
    prepare = conversion(found, without_views(found), leaf=leaf) or _as_it_is

    def convert_variant(array: pa.StructArray) -> pa.StructArray:
        try:
            whole = assembled(prepare(array), missing=missing)
        except MalformedVariantError as error:
            raise BadVariantError(found, wanted, reason=str(error)) from error
        return _struct(whole.type, wanted, wanted, lossless)(whole)

    return convert_variant


def _list(found: pa.DataType, wanted: pa.ListType, stored: pa.ListType, leaf: Leaf) -> Conversion:
    convert = member_conversion(found.value_type, wanted.value_field, stored.value_type, leaf)

    def convert_list(array: pa.Array) -> pa.ListArray:
        plain = _plain_list(array)
        plain = plain if leaf is lossless else _only_its_own(plain)
        values = plain.values if convert is None else convert(plain.values)
        return _rebuilt(plain, wanted, values)

    return convert_list


def _plain_list(array: pa.Array) -> pa.ListArray:
    is_a, as_list = pa.types, pa.list_(array.type.value_field)
    if is_a.is_list(array.type):
        return array
    if not (is_a.is_list_view(array.type) or is_a.is_large_list_view(array.type)):
        return safe_cast(array, as_list)
    # Not by Arrow's cast: for list views some versions (26) give one offset too few.
    lengths = pc.fill_null(pc.list_value_length(array), 0).cast(pa.int64())
    ends = pc.cumulative_sum(pa.concat_arrays([pa.array([0], pa.int64()), lengths])).cast(pa.int32())
    return pa.ListArray.from_arrays(ends, array.flatten(), type=as_list, mask=array.is_null())


def _map(found: pa.MapType, wanted: pa.MapType, stored: pa.MapType, leaf: Leaf) -> Conversion:
    convert_key = member_conversion(found.key_type, wanted.key_field, stored.key_type, leaf)
    convert_item = member_conversion(found.item_type, wanted.item_field, stored.item_type, leaf)
    entry_fields = [wanted.key_field, wanted.item_field]

    def convert_map(array: pa.MapArray) -> pa.MapArray:
        array = array if leaf is lossless else _only_its_own(array)
        keys = array.keys if convert_key is None else convert_key(array.keys)
        if keys.null_count:
            raise LossyConversionError(found, wanted, reason="a key would become null")
        if convert_key is not None and leaf is not lossless and _has_a_key_twice(array, keys):
            raise LossyConversionError(found, wanted, reason="two keys of one map would become equal")
        items = array.items if convert_item is None else convert_item(array.items)
        return _rebuilt(array, wanted, pa.StructArray.from_arrays([keys, items], fields=entry_fields))

    return convert_map


def _has_a_key_twice(array: pa.MapArray, keys: pa.Array) -> bool:
    by_row = _rebuilt(array, pa.list_(keys.type), keys)
    if pa.types.is_nested(keys.type):
        return any(len(set(map(repr, row or []))) < len(row or []) for row in by_row.to_pylist())
    table = pa.table({"row": pc.list_parent_indices(by_row), "key": keys})
    return bool(table.group_by(["row", "key"]).aggregate([]).num_rows < len(keys))


def _only_its_own(array: pa.Array) -> pa.Array:
    """The lists or maps without unused values before, between and after them: a cast must not fail on those."""
    ends = array.offsets
    if not array.null_count and len(array) and ends[0].as_py() == 0 and ends[-1].as_py() == len(array.values):
        return array
    return array.take(pa.array(range(len(array)), pa.int64()))


def safe_cast(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Arrow's safe cast, also of a slice in a large layout.

    Arrow refuses such a slice if it ends behind the first 2 GiB of its array; a copy begins anew.
    """
    is_a = pa.types
    try:
        return array.cast(wanted)
    except pa.ArrowInvalid:
        if not any(check(array.type) for check in (is_a.is_large_string, is_a.is_large_binary, is_a.is_large_list)):
            raise
        return pa.concat_arrays([array]).cast(wanted)


def _rebuilt(array: pa.Array, wanted: pa.DataType, values: pa.Array) -> pa.Array:
    # A list has validity, offsets and values. The first two are kept as they are, so a slice needs no copy.
    validity_and_offsets = array.buffers()[:2]
    return pa.Array.from_buffers(
        wanted, len(array), validity_and_offsets, array.null_count, array.offset, children=[values]
    )
