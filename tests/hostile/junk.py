"""What may stand where something else is expected: values, lines and bytes, spelled as they are put in a file."""

from __future__ import annotations

import json

import hypothesis.strategies as st

_DEPTHS = (500, 1_000, 2_000)
"""Around what orjson goes down, and what Python's own stack does."""

SPELLINGS = (
    *(b"null", b"true", b"false", b"0", b"-0", b"-1", b"1", b"7", b"1.0", b"0.5", b"1e2", b"1E400", b"-1e400"),
    *(str(sign * 2**bits + near).encode() for bits in (31, 32, 53, 63, 64) for sign in (1, -1) for near in (-1, 0, 1)),
    *(b"9" * 400, b"9" * 5_000, b"NaN", b"Infinity", b"-Infinity", b"01", b"+1", b"0x1", b"undefined", b"", b","),
    *(b'""', b'" "', b'"0"', b'"null"', b'"\\u0000"', b'"\\ud800"', b'"\\udc00\\ud800"', b'"\\ud83d\\ude00"'),
    *(b'"\xff"', b'"\xed\xa0\x80"', b'"%"', b'"%00"', b'"%ff"', b'"%2e%2e/a.parquet"', b'"/"', b'"."', b'"a.parquet/"'),
    *(b'"//a"', b'"file:///nosuch"', b'"file://host/x"', b'"nosuch://x/y"', b'"memory://x/y"', b'"s3:x"', b'"::/"'),
    *(b'"zip://x::/y"', b'"http://["', b'"a\\u0000b"', b'"' + b"n" * 5_000 + b'"', b'"\xef\xbb\xbf"', b"'1'"),
    *(b"[]", b"[null]", b"[0]", b'[""]', b'["p","p"]', b'["id"]', b'["nosuch"]', b"{}", b'{"":null}', b'{"p":null}'),
    *(b'{"p":5}', b'{"p":{}}', b'{"a":"b","a":"c"}', b'{"provider":"parquet","options":{"x":null}}'),
    *(b"[" * depth + b"]" * depth for depth in _DEPTHS),
    *(b'{"a":' * depth + b"1" + b"}" * depth for depth in _DEPTHS),
)
"""JSON values, and what some parsers take for one."""

_json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=4,
)
JUNK_VALUES = st.sampled_from(SPELLINGS) | _json_values.map(lambda value: json.dumps(value).encode())
JUNK_LINES = st.sampled_from(
    [*SPELLINGS, b"\n", b"\r", b"\n\n", b"\x00", b"\xef\xbb\xbf", b"\xff\xfe", b"{", b"}\n{", b"[]\n"]
) | st.binary(max_size=12)


@st.composite
def spoilt(draw: st.DrawFn, line: bytes, value: bytes) -> bytes:
    """The action of `line` with one field replaced by `value`, left out, or said a second time; or all of it."""
    try:
        action = json.loads(line)
    except (ValueError, RecursionError):  # spoilt before
        return value
    kinds = [kind for kind, fields in action.items() if isinstance(fields, dict)] if isinstance(action, dict) else []
    if not kinds:
        return value
    kind = kinds[0]
    places: list[tuple[str, ...]] = [(name,) for name in action[kind]]
    places += [(name, inner) for name, fields in action[kind].items() if isinstance(fields, dict) for inner in fields]
    place = draw(st.sampled_from([(), *places, ("unknown",)]))
    way = draw(st.sampled_from(["replaced", "replaced", "replaced", "left out", "doubled"]))
    return b'{"%b":%b}' % (kind.encode(), _spelled(action[kind], place, value, way))


def _spelled(fields: object, place: tuple[str, ...], value: bytes, way: str) -> bytes:
    """`fields` as JSON, with what is at `place` changed."""
    if not place:
        return value
    if not isinstance(fields, dict):
        return json.dumps(fields).encode()
    first, rest = place[0], place[1:]
    parts = [
        (name, json.dumps(inner).encode() if name != first else _spelled(inner, rest, value, way))
        for name, inner in fields.items()
        if name != first or rest or way != "left out"
    ]
    if first not in fields:
        parts.append((first, value))
    if way == "doubled" and not rest and first in fields:
        parts.append((first, json.dumps(fields[first]).encode()))
    return b"{" + b",".join(json.dumps(name).encode() + b":" + spelling for name, spelling in parts) + b"}"
