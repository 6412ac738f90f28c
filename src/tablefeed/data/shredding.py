"""Assembles variants that are stored in several columns (Parquet, "Variant Shredding", "Variant Encoding").

Knows the two specifications and Arrow, and reads no file. Values are built from the inside out, as columns of bytes.
Only objects with fields in both `value` and `typed_value` are built row by row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Self

import pyarrow as pa
import pyarrow.compute as pc

METADATA, VALUE, TYPED = "metadata", "value", "typed_value"

NULL = b"\0"
"""The variant null. It is a value: what is missing is an Arrow null here."""

_OBJECT, _ARRAY = 2, 3  # "Encoding types"
_TRUE, _FALSE, _DECIMAL4, _BINARY, _STRING = (bytes([number << 2]) for number in (1, 2, 8, 15, 16))
_FIXED = {
    pa.int8(): 3,
    pa.int16(): 4,
    pa.int32(): 5,
    pa.int64(): 6,
    pa.float64(): 7,
    pa.date32(): 11,
    pa.timestamp("us", "UTC"): 12,
    pa.timestamp("us"): 13,
    pa.float32(): 14,
    pa.time64("us"): 17,
    pa.timestamp("ns", "UTC"): 18,
    pa.timestamp("ns"): 19,
    pa.binary(16): 20,  # a UUID
}
"""The numbers of the primitive types whose bytes are those that Arrow has in memory."""


MOST_DIGITS = 38
"""The digits of the widest decimal of a variant, decimal16."""


class MalformedVariantError(ValueError):
    """The columns are not a valid shredded variant."""


def is_in_parts(stored: pa.StructType) -> bool:
    """Whether a variant that is stored like this has to go through `assembled` before it is read."""
    values = [member for member in stored if member.name == VALUE]
    return any(member.name == TYPED for member in stored) or [member.nullable for member in values] != [False]


def assembled(array: pa.StructArray, *, missing: bytes | None = NULL) -> pa.StructArray:
    """Gives the variants of `array`, which are in parts, each as `metadata` and `value`; a null stays a null.

    `array` has neither views nor extension types. An element that is missing where the specification does not allow it
    is read as the variant null, as the specification says; such a whole variant is read as `missing`. Raises
    MalformedVariantError for what the specification forbids: a value that is stored twice, a key that the metadata
    lacks, a column of a type that no variant has.
    """
    parts = _parts(array, METADATA)
    metadata = parts.pop(METADATA, None)
    if metadata is None:
        raise MalformedVariantError("it has no metadata")
    metadata = metadata.cast(pa.binary())
    if _any(pc.and_(array.is_valid(), metadata.is_null())):
        raise MalformedVariantError("a value has no metadata")
    values = _values(parts, _Keys.of(metadata, _names_in(array.type)))
    values = pc.coalesce(values, pa.scalar(missing, pa.binary()))
    fields = [pa.field(METADATA, pa.binary()), pa.field(VALUE, pa.binary(), nullable=False)]
    return pa.StructArray.from_arrays([metadata, values], fields=fields, mask=array.is_null())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Keys:
    """The distinct `metadata`, and for each row in `codes` which of them it has.

    By metadata: `ids`, the ids of the shredded fields' keys (null: the key is missing), and `id_sizes`, in bytes.
    """

    codes: pa.Array
    metadata: pa.Array
    ids: Mapping[bytes, pa.Array]
    id_sizes: pa.Array

    @classmethod
    def of(cls, metadata: pa.Array, names: Iterable[bytes]) -> Self:
        encoded = metadata.dictionary_encode()
        ids: dict[bytes, list[int | None]] = {name: [] for name in names}
        sizes = []
        for one in encoded.dictionary.to_pylist() if ids else ():
            known = dict(zip(dictionary := _dictionary(one), range(len(dictionary)), strict=True))
            sizes.append(_size(len(dictionary)))
            for name, numbers in ids.items():
                numbers.append(known.get(name))
        return cls(
            codes=encoded.indices,
            metadata=encoded.dictionary,
            ids={name: pa.array(numbers, pa.int32()) for name, numbers in ids.items()},
            id_sizes=pa.array(sizes, pa.int8()),
        )

    def at(self, rows: pa.Array) -> _Keys:
        return _Keys(codes=self.codes.take(rows), metadata=self.metadata, ids=self.ids, id_sizes=self.id_sizes)


def _names_in(group: pa.DataType) -> set[bytes]:
    """The names of the shredded fields of objects, at every depth."""
    index = group.get_field_index(TYPED) if pa.types.is_struct(group) else -1
    typed = None if index < 0 else group.field(index).type
    if typed is not None and pa.types.is_struct(typed):
        return {member.name.encode() for member in typed}.union(*(_names_in(member.type) for member in typed))
    return set() if typed is None or not _is_list(typed) else _names_in(typed.value_type)


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _parts(group: pa.StructArray, *besides: str) -> dict[str, pa.Array]:
    names = [member.name for member in group.type]
    if len({*names}) < len(names) or not {VALUE, TYPED, *besides}.issuperset(names):
        raise MalformedVariantError(f"it has the columns {', '.join(names)}")
    return dict(zip(names, group.flatten(), strict=True))


def _values(parts: Mapping[str, pa.Array], keys: _Keys) -> pa.Array:
    """The value of each row, null where it is missing ("Value Shredding")."""
    value, typed = parts.get(VALUE), parts.get(TYPED)
    value = None if value is None else value.cast(pa.binary())
    if typed is None:
        if value is None:
            raise MalformedVariantError(f"a part of it has neither {VALUE} nor {TYPED}")
        return value
    if pa.types.is_struct(typed.type):
        return _objects(typed, value, keys)
    encoded = _arrays(typed, keys) if _is_list(typed.type) else _primitives(typed)
    if value is None:
        return encoded
    if _any(pc.and_(value.is_valid(), typed.is_valid())):
        raise MalformedVariantError(f"a value that is no object is in both {VALUE} and {TYPED}")
    return pc.coalesce(encoded, value)


def _primitives(typed: pa.Array) -> pa.Array:
    kind = typed.type
    if pa.types.is_boolean(kind):
        return pc.if_else(typed, _TRUE, _FALSE)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        text = typed.cast(pa.binary())
        length = pc.binary_length(text)
        short = pc.less(length, 64)
        short_head = _bytes(pc.add(pc.multiply(pc.if_else(short, length, 0), 4), 1), 1)
        return _joined(pc.if_else(short, short_head, _joined(_STRING, _bytes(length, 4))), text)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        data = typed.cast(pa.binary())
        return _joined(_BINARY, _bytes(pc.binary_length(data), 4), data)
    if pa.types.is_decimal(kind) and kind.precision <= MOST_DIGITS and 0 <= kind.scale <= kind.precision:
        typed = typed.cast(pa.decimal128(kind.precision, kind.scale))  # writers may use Arrow's other widths
        step = 0 if kind.precision <= 9 else 1 if kind.precision <= 18 else 2
        head = bytes([_DECIMAL4[0] + (step << 2), kind.scale])
        return _joined(head, pc.binary_slice(_memory(typed, 16), 0, 4 << step))
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        kind = pa.timestamp(kind.unit, "UTC")  # its values are UTC, whatever zone is for show
    if kind not in _FIXED:
        raise MalformedVariantError(f"it has values of type {kind}, which no variant has")
    return _joined(bytes([_FIXED[kind] << 2]), _memory(typed, kind.bit_width // 8))


def _arrays(typed: pa.Array, keys: _Keys) -> pa.Array:
    """Variant arrays of lists ("Arrays"; "Value Data for Array")."""
    if not pa.types.is_struct(typed.type.value_type):
        raise MalformedVariantError("an element is no group of its own")
    rows = pc.list_parent_indices(typed)
    elements = pc.fill_null(_values(_parts(typed.flatten()), keys.at(rows)), NULL)
    counts = pc.fill_null(pc.list_value_length(typed), 0).cast(pa.int32())
    borders = _sums(counts).cast(pa.int32())
    ends = _sums(pc.binary_length(elements))
    firsts, lasts = ends.take(borders[:-1]), ends.take(borders[1:])
    totals = pc.subtract(lasts, firsts)
    offset_sizes, is_large = _sizes(totals), pc.greater(counts, 255)
    starts = _bytes(pc.subtract(ends[:-1], firsts.take(rows)), offset_sizes.take(rows))
    array = _joined(
        _head(_ARRAY, (offset_sizes, 4), (is_large, 16)),
        _count(counts, is_large),
        pc.binary_join(pa.ListArray.from_arrays(borders, starts), b""),
        _bytes(totals, offset_sizes),
        pc.binary_join(pa.ListArray.from_arrays(borders, elements), b""),
    )
    return pc.if_else(typed.is_valid(), array, pa.scalar(None, pa.binary()))


def _objects(typed: pa.StructArray, value: pa.Array | None, keys: _Keys) -> pa.Array:
    """Variant objects of the structs in `typed`, with the other fields from `value` ("Objects")."""
    present = typed.is_valid()
    fields: dict[bytes, pa.Array] = {}
    for index, (member, group) in enumerate(zip(typed.type, typed.flatten(), strict=True)):
        name = member.name.encode()
        if not pa.types.is_struct(member.type) or name in fields:
            raise MalformedVariantError(f"its field {member.name} is no group of its own")
        if _any(pc.and_(present, typed.field(index).is_null())):
            raise MalformedVariantError(f"its field {member.name} is null: it must have null parts instead")
        fields[name] = _values(_parts(group), keys)
        if _any(pc.and_(fields[name].is_valid(), keys.ids[name].take(keys.codes).is_null())):
            raise MalformedVariantError(f"its metadata lacks the key {member.name}")
    fields = dict(sorted(fields.items()))
    objects = pc.if_else(present, _of_columns(fields, keys), pa.scalar(None, pa.binary()))
    if value is None:
        return objects
    both = pc.and_(present, value.is_valid())
    if _any(both):
        merged = _of_rows({name: field.filter(both) for name, field in fields.items()}, value.filter(both), keys, both)
        objects = pc.replace_with_mask(objects, both, pa.array(merged, pa.binary()))
    return pc.coalesce(objects, value)


def _of_columns(fields: Mapping[bytes, pa.Array], keys: _Keys) -> pa.Array:
    """One object for each row, of those `fields`, sorted by name, that are not null ("Value Data for Object")."""
    counts = totals = pa.repeat(pa.scalar(0, pa.int64()), len(keys.codes))
    starts = []
    for field in fields.values():
        starts.append(pc.if_else(field.is_valid(), totals, pa.scalar(None, pa.int64())))
        counts = pc.add(counts, field.is_valid().cast(pa.int64()))
        totals = pc.add(totals, pc.fill_null(pc.binary_length(field), 0))
    id_sizes, offset_sizes, is_large = keys.id_sizes.take(keys.codes), _sizes(totals), pc.greater(counts, 255)
    ids = [pc.if_else(f.is_valid(), keys.ids[name].take(keys.codes), None) for name, f in fields.items()]
    return _joined(
        _head(_OBJECT, (offset_sizes, 4), (id_sizes, 16), (is_large, 64)),
        _count(counts, is_large),
        *(_bytes(numbers, id_sizes) for numbers in ids),
        *(_bytes(numbers, offset_sizes) for numbers in starts),
        _bytes(totals, offset_sizes),
        *fields.values(),
        nulls="skip",
    )


def _of_rows(fields: Mapping[bytes, pa.Array], values: pa.Array, keys: _Keys, mask: pa.Array) -> Iterator[bytes]:
    """An object for each row of `mask`, of its `fields` and of the fields in its value."""
    codes = keys.codes.filter(mask)
    columns = [(name, f.to_pylist(), keys.ids[name].take(codes).to_pylist()) for name, f in fields.items()]
    for row, (value, code) in enumerate(zip(values.to_pylist(), codes.to_pylist(), strict=True)):
        names = _dictionary(keys.metadata[code].as_py())
        entries: dict[bytes, tuple[int, bytes]] = {}
        for number, part in _fields_of(value):
            if number >= len(names):
                raise MalformedVariantError(f"an object in {VALUE} has an id that its metadata lacks")
            if names[number] in entries or names[number] in fields:
                raise MalformedVariantError(f"an object has a field twice in {VALUE}, or also in {TYPED}")
            entries[names[number]] = (number, part)
        entries |= {name: (ids[row], column[row]) for name, column, ids in columns if column[row] is not None}
        yield _object([entries[name] for name in sorted(entries)], keys.id_sizes[code].as_py())


def _object(entries: list[tuple[int, bytes]], id_size: int) -> bytes:
    total = sum(len(part) for _, part in entries)
    offset_size, is_large = _size(total), len(entries) > 255
    head = _OBJECT + 4 * (offset_size - 1) + 16 * (id_size - 1) + 64 * is_large
    pieces = [bytes([head]), len(entries).to_bytes(4 if is_large else 1, "little")]
    pieces += [number.to_bytes(id_size, "little") for number, _ in entries]
    begin = 0
    for _, part in entries:
        pieces.append(begin.to_bytes(offset_size, "little"))
        begin += len(part)
    return b"".join([*pieces, total.to_bytes(offset_size, "little"), *(part for _, part in entries)])


def _fields_of(value: bytes) -> list[tuple[int, bytes]]:
    """The ids and values of an object's fields."""
    head = value[0] if value else 0
    if head & 3 != _OBJECT:
        raise MalformedVariantError(f"{VALUE} is no object, where {TYPED} has fields of one")
    offset_size, id_size, count_size = (head >> 2 & 3) + 1, (head >> 4 & 3) + 1, 4 if head & 64 else 1
    count, begin = int.from_bytes(value[1 : 1 + count_size], "little"), 1 + count_size
    offsets_at = begin + count * id_size
    data_at = offsets_at + (count + 1) * offset_size
    if data_at > len(value):
        raise MalformedVariantError(f"an object in {VALUE} is cut off")
    ids, offsets = _numbers(value[begin:offsets_at], id_size), _numbers(value[offsets_at:data_at], offset_size)
    total = offsets.pop()
    # Fields may be stored in any order, so a value ends where the next one begins that is stored behind it.
    ends = dict(pairwise([*sorted({*offsets}), total]))
    if data_at + total > len(value) or any(begin >= end for begin, end in ends.items()):
        raise MalformedVariantError(f"an object in {VALUE} is cut off")
    return [(number, value[data_at + at : data_at + ends[at]]) for number, at in zip(ids, offsets, strict=True)]


@lru_cache(maxsize=256)  # rows of one kind have the same metadata
def _dictionary(metadata: bytes) -> tuple[bytes, ...]:
    """The keys that metadata has, by id ("Metadata encoding")."""
    size = (metadata[0] >> 6) + 1 if metadata else 0
    count = int.from_bytes(metadata[1 : 1 + size], "little")
    offsets_at, text_at = 1 + size, 1 + size * (count + 2)
    if metadata[:2] == b"\1\0":
        return ()  # the specification's own examples leave out the last offset
    if not metadata or metadata[0] & 15 != 1 or text_at > len(metadata):
        raise MalformedVariantError("its metadata is damaged, or of a version that is not known")
    offsets = _numbers(metadata[offsets_at:text_at], size)
    if any(begin > end for begin, end in pairwise(offsets)) or text_at + offsets[-1] > len(metadata):
        raise MalformedVariantError("its metadata is damaged")
    return tuple(metadata[text_at + begin : text_at + end] for begin, end in pairwise(offsets))


def _numbers(data: bytes, size: int) -> list[int]:
    return [int.from_bytes(data[at : at + size], "little") for at in range(0, len(data), size)]


def _size(number: int) -> int:
    return max(1, (number.bit_length() + 7) // 8)


def _sizes(numbers: pa.Array) -> pa.Array:
    """As `_size`, of each."""
    sizes = pa.repeat(pa.scalar(1, pa.int8()), len(numbers))
    for most in (0xFF, 0xFFFF, 0xFFFFFF):
        sizes = pc.add(sizes, pc.greater(numbers, most).cast(pa.int8()))
    return sizes


def _memory(array: pa.Array, width: int) -> pa.Array:
    return array.view(pa.binary(width)).cast(pa.binary())


def _bytes(numbers: pa.Array, sizes: pa.Array | int) -> pa.Array:
    """Each number in as many bytes as `sizes` has for it, little-endian; null where the number is null."""
    whole = _memory(numbers.cast(pa.int32()), 4)
    if isinstance(sizes, int):
        return pc.binary_slice(whole, 0, sizes)
    most = pc.max(sizes).as_py() or 1
    slices = [pc.binary_slice(whole, 0, size) for size in range(1, most + 1)]
    return slices[0] if most == 1 else pc.choose(pc.subtract(sizes, 1).cast(pa.int64()), *slices)


def _count(counts: pa.Array, is_large: pa.Array) -> pa.Array:
    return _bytes(counts, pc.if_else(is_large, 4, 1))


def _head(basic_type: int, *parts: tuple[pa.Array, int]) -> pa.Array:
    """The first byte of objects or arrays: sizes minus 1, and flags, each multiplied by the number beside it."""
    head = pa.scalar(basic_type, pa.int32())
    for column, place in parts:
        count = column.cast(pa.int32())
        head = pc.add(head, pc.multiply(count if pa.types.is_boolean(column.type) else pc.subtract(count, 1), place))
    return _bytes(head, 1)


def _joined(*pieces: pa.Array | bytes, nulls: str = "emit_null") -> pa.Array:
    """The pieces of each row one after the other; null where one is null, unless `nulls` is "skip"."""
    return pc.binary_join_element_wise(*pieces, b"", null_handling=nulls)


def _sums(numbers: pa.Array) -> pa.Array:
    """0, and the sum of all numbers up to each."""
    return pc.cumulative_sum(pa.concat_arrays([pa.array([0], pa.int64()), numbers.cast(pa.int64())]))


def _any(mask: pa.Array) -> bool:
    return bool(pc.any(mask).as_py())
