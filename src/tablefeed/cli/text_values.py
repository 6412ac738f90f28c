"""Values of JSON lines and CSV as Arrow arrays of a column's type, in the forms that `cat` writes.

A value of another form is refused. Nothing is rounded to infinity, cut off or left out.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from datetime import UTC
from decimal import Decimal, InvalidOperation
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from tablefeed.model import spark_texts

if TYPE_CHECKING:
    import pyarrow as pa

_LEAST_INFINITE = {32: 2**128 - 2**103, 64: 2**1024 - 2**970}
"""The least number that floats of so many bits round to infinity."""
_MOST_DIGITS = 20
"""The most digits of a whole number: no type of a table holds one with more."""
_FAR = r"^[+-][0-9]{4,7}-"
"""How a date or time begins that is outside of the years 0 to 9999."""


class UnfitValueError(ValueError):
    """A JSON value, or a field of CSV, that its column does not hold. The text names the column."""


def unfit(name: str, kind: pa.DataType, value: Any) -> UnfitValueError:  # Any: JSON
    """Gives the error for a `value` that the column `name` of the type `kind` does not hold."""
    import pyarrow as pa

    shown = str(value) if isinstance(value, Decimal) else f"{json.dumps(value, default=str):.100}"
    needs = "; bytes are base64" if pa.types.is_binary(kind) else ""
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        needs = "; a time needs its zone here, as in 2026-01-31 12:00:00Z"
    return UnfitValueError(f"{name!r} is {kind}, which does not hold {shown}{needs}")


def read_json(text: str) -> Any:  # Any: JSON
    """Gives the value of a JSON text. Numbers with a point or an exponent are Decimals.

    Raises ValueError for a text that is not JSON, and for a key that an object has twice.
    """
    try:
        return _DECODER.decode(text)
    except InvalidOperation as error:
        raise ValueError("a number has a too large exponent") from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the key {next(name for name in names if names.count(name) > 1)!r} is there twice")
    return found


_DECODER = json.JSONDecoder(parse_float=Decimal, object_pairs_hook=_object)


def guessed_type(values: list[Any], name: str) -> pa.DataType:  # Any: JSON
    """Gives the type of the new column `name` that has these JSON values."""
    import pyarrow as pa

    try:
        return pa.array(_with_floats(values)).type
    except (pa.ArrowException, OverflowError) as error:
        raise ValueError(f"no type of a column holds all values of {name!r}: {error}") from error


def _with_floats(value: Any) -> Any:  # Any: JSON
    match value:
        case Decimal():
            return float(value)
        case list():
            return [_with_floats(each) for each in value]
        case dict():
            return {name: _with_floats(each) for name, each in value.items()}
        case _:
            return value


def array_of(values: list[Any], kind: pa.DataType, name: str) -> Any:  # Any: JSON, and pyarrow has no types
    """Gives JSON values as an array of `kind`. `name` is that of the column or member in errors.

    Raises UnfitValueError for a value of another kind, and what pyarrow raises for others that do not fit.
    """
    import pyarrow as pa

    is_a = pa.types
    forms: tuple[tuple[Callable[[pa.DataType], bool], set[type], Callable[..., Any]], ...] = (
        (is_a.is_boolean, {bool}, _plain),
        (is_a.is_string, {str}, _plain),
        (is_a.is_integer, {int, Decimal}, _integers),
        (is_a.is_floating, {int, Decimal, float, str}, _floats),
        (is_a.is_decimal, {int, Decimal, str}, _decimals),
        (is_a.is_temporal, {str}, _texts),
        (is_a.is_binary, {str}, _texts),
        (is_a.is_list, {list}, _lists),
        (is_a.is_map, {dict, list}, _maps),
        (is_a.is_struct, {dict}, _structs),
        (lambda _: True, set(), _plain),  # only nulls
    )
    accepted, read = next((types, read) for fits, types, read in forms if fits(kind))
    for value in values if {*map(type, values)} - {*accepted, type(None)} else ():
        if value is not None and type(value) not in accepted:
            raise unfit(name, kind, value)
    return read(values, kind, name)


def _plain(values: list[Any], kind: pa.DataType, _name: str) -> Any:
    import pyarrow as pa

    return pa.array(values, kind)


def _integers(values: list[Any], kind: pa.DataType, name: str) -> Any:
    import pyarrow as pa

    def whole(number: Decimal) -> int:
        if number.adjusted() >= _MOST_DIGITS or number != number.to_integral_value():
            raise unfit(name, kind, number)
        return int(number)

    return pa.array([whole(each) if isinstance(each, Decimal) else each for each in values], kind)


def _floats(values: list[Any], kind: pa.DataType, name: str) -> Any:
    import pyarrow as pa

    least_infinite = _LEAST_INFINITE[kind.bit_width]

    def read(value: Any) -> float:
        if isinstance(value, float) or value in ("NaN", "Infinity", "-Infinity"):
            return float(value)
        if isinstance(value, str) or not -least_infinite < value < least_infinite:
            raise unfit(name, kind, value)
        return float(value)

    return pa.array([None if each is None else read(each) for each in values], kind)


def _decimals(values: list[Any], kind: pa.DataType, name: str) -> Any:
    import pyarrow as pa

    def exact(value: Any) -> Decimal:
        try:
            number = spark_texts.read_decimal(value) if isinstance(value, str) else Decimal(value)
            return spark_texts.exact_decimal(number, kind.precision, kind.scale)
        except ValueError:
            raise unfit(name, kind, value) from None

    return pa.array([None if each is None else exact(each) for each in values], kind)


def _texts(values: list[Any], kind: pa.DataType, name: str) -> Any:
    import pyarrow as pa

    return from_texts(pa.array(values, pa.string()), kind, name)


def _lists(values: list[Any], kind: pa.DataType, name: str) -> Any:
    import pyarrow as pa

    members = [each for value in values if value is not None for each in value]
    return pa.ListArray.from_arrays(_offsets(values), array_of(members, kind.value_type, name), type=kind)


def _maps(values: list[Any], kind: pa.DataType, name: str) -> Any:
    """The keys of an object are texts. Keys that cannot be texts come as pairs of key and value."""
    import pyarrow as pa

    is_a, key_kind = pa.types, kind.key_type
    is_word = is_a.is_boolean(key_kind) or is_a.is_integer(key_kind) or is_a.is_floating(key_kind)
    entries: list[tuple[Any, Any]] = []
    for value in values:
        if isinstance(value, dict):
            entries.extend((read_json(key) if is_word else key, each) for key, each in value.items())
        elif value is not None:
            if not all(isinstance(each, list) and len(each) == 2 for each in value):
                raise unfit(name, kind, value)
            entries.extend((key, each) for key, each in value)
    keys = array_of([key for key, _ in entries], key_kind, f"{name}.key")
    items = array_of([item for _, item in entries], kind.item_type, f"{name}.value")
    return pa.MapArray.from_arrays(_offsets(values), keys, items, type=kind)


def _offsets(values: list[Any]) -> Any:
    import pyarrow as pa

    starts = [0, *accumulate(0 if value is None else len(value) for value in values)]
    shown = [None if value is None else start for value, start in zip(values, starts, strict=False)]
    return pa.array([*shown, starts[-1]], pa.int32())


def _structs(values: list[Any], kind: pa.DataType, name: str) -> Any:
    import pyarrow as pa

    members = {member.name for member in kind}
    for value in values:
        if value is not None and not value.keys() <= members:
            raise UnfitValueError(f"{name!r} has no member {next(each for each in value if each not in members)!r}")
    arrays = [
        array_of(
            [None if value is None else value.get(member.name) for value in values],
            member.type,
            f"{name}.{member.name}",
        )
        for member in kind
    ]
    return pa.StructArray.from_arrays(arrays, fields=list(kind), mask=pa.array([value is None for value in values]))


def from_texts(texts: Any, kind: pa.DataType, name: str) -> Any:  # Any: pyarrow has no types
    """Gives an array of texts as one of `kind`. Nested values are JSON, bytes are base64. Raises as `array_of`."""
    import pyarrow as pa
    from pyarrow import compute as pc

    is_a = pa.types
    if is_a.is_nested(kind):
        return array_of([None if text is None else read_json(text) for text in texts.to_pylist()], kind, name)
    if is_a.is_null(kind):
        return pa.array(texts.to_pylist(), kind)
    if is_a.is_decimal(kind):
        return _decimals(texts.to_pylist(), kind, name)
    if is_a.is_binary(kind):
        values = [None if text is None else base64.b64decode(text, validate=True) for text in texts.to_pylist()]
        return pa.array(values, kind)
    if is_a.is_temporal(kind) and pc.any(pc.match_substring_regex(texts, _FAR)).as_py():
        return pa.array([_moment(text, kind) for text in texts.to_pylist()], kind)
    found = texts.cast(kind)
    if is_a.is_integer(kind):
        odd = pc.match_substring(texts, "x", ignore_case=True)  # 0x10
    elif is_a.is_floating(kind):
        odd = pc.and_(pc.invert(pc.is_finite(found)), pc.match_substring_regex(texts, "[0-9]"))  # 1e400, nan(1)
    else:
        return found
    for text in texts.filter(odd).to_pylist():
        raise unfit(name, kind, text)
    return found


def _moment(text: str | None, kind: pa.DataType) -> int | None:
    """A date in days, or a time in microseconds, since 1970."""
    import pyarrow as pa

    if text is None:
        return None
    if not text.startswith(("+", "-")):
        near: int = pa.scalar(text).cast(kind).value
        return near
    if kind == pa.date32():
        if len(text.rpartition("-")[2]) > 2:  # a time, which would be left out
            raise ValueError
        return spark_texts.read_date(text)
    local_us, zone = spark_texts.read_moment(text)
    if zone is not (None if kind.tz is None else UTC):
        raise ValueError
    return local_us
