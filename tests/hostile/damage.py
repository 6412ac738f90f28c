"""Damage to the bytes of a file, and whether a reader can tell."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import hypothesis.strategies as st


class Where(StrEnum):
    """Which part of a file is damaged."""

    CUT = "its end is gone"
    PAGES = "bytes before the footer are others"
    FOOTER = "bytes of the footer are others"
    SWAPPED = "all of it is another file"


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """What happens to a file."""

    where: Where

    def is_told(self, *, guarded: bool) -> bool:
        """Whether a reader can tell, so that it must not believe; pages may be `guarded` by checksums, no footer is."""
        return self.where in (Where.CUT, Where.SWAPPED) or (guarded and self.where is Where.PAGES)

    def of(self, file: bytes, data: st.DataObject) -> bytes:
        """`file`, damaged at places that `data` draws."""
        footer = _footer_of(file)
        match self.where:
            case Where.CUT:
                return file[: data.draw(st.integers(0, len(file) - 1))]
            case Where.PAGES:
                return _changed(file, data, 0, footer)
            case Where.FOOTER:
                return _changed(file, data, min(footer, len(file) - 1), len(file))
            case Where.SWAPPED:
                return data.draw(st.binary(max_size=20))


damages = st.sampled_from([Damage(where=where) for where in Where])


def _footer_of(file: bytes) -> int:
    """Where the footer begins; at the end, where there is none."""
    return len(file) - 8 - int.from_bytes(file[-8:-4], "little") if file.endswith(b"PAR1") else len(file)


def _changed(file: bytes, data: st.DataObject, begin: int, end: int) -> bytes:
    damaged = bytearray(file)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(begin, end - 1))
        junk = data.draw(st.binary(min_size=1, max_size=4) | st.just(bytes(64)))[: end - at]
        damaged[at : at + len(junk)] = junk
    return bytes(damaged)
