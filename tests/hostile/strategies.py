"""Logs that are valid, as hypothesis draws them: whoever wants another spoils one."""

from __future__ import annotations

from collections.abc import Sequence

import hypothesis.strategies as st

from hostile.logs import FILES, FIRST, METADATA, OTHERS

Lines = list[bytes]
versions: st.SearchStrategy[Lines] = st.tuples(
    st.sampled_from([[], [], *([text] for text in METADATA)]),
    st.lists(st.sampled_from(FILES) | st.sampled_from(OTHERS), max_size=6),
).map(lambda parts: [*parts[0], *parts[1]] if any(text.strip() for text in parts[1]) else [*parts[0], b"{}"])
logs: st.SearchStrategy[list[Lines]] = st.tuples(
    st.sampled_from(METADATA), st.lists(versions, min_size=1, max_size=4)
).map(lambda parts: [[*FIRST, parts[0], *(text for text in parts[1][0] if b"metaData" not in text)], *parts[1][1:]])
endings = st.sampled_from([b"\n", b"\n", b"\r\n"])


def joined(log: Sequence[Lines], ending: bytes) -> list[bytes]:
    return [ending.join([*lines, b""]) for lines in log]
