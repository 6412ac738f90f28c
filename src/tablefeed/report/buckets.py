"""Spans of time of one length, of which a plot has few enough to be seen, whatever the time between first and last."""

from __future__ import annotations

from dataclasses import dataclass

from tablefeed.wording.words import moment

MOST = 60

_SECOND, _MINUTE, _HOUR, _DAY = 1_000, 60_000, 3_600_000, 86_400_000
_LENGTHS_MS = tuple(
    count * unit
    for unit, counts in (
        (_SECOND, (1, 5, 15)),
        (_MINUTE, (1, 5, 15)),
        (_HOUR, (1, 3, 6)),
        (_DAY, (1, 7, 30, 90, 365)),
    )
    for count in counts
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Buckets:
    """`count` spans of `length_ms` from `start_ms` on, at most `MOST`."""

    start_ms: int
    length_ms: int
    count: int

    def label(self, index: int) -> str:
        """Names the beginning of a bucket, as exactly as its length asks for."""
        characters = 10 if self.length_ms >= _DAY else 16 if self.length_ms >= _MINUTE else 19
        text = moment(self.start_ms + index * self.length_ms)
        return text if text.endswith(" ms") else text[:characters]


def buckets(first_ms: int, last_ms: int) -> Buckets:
    """Gives the shortest spans that cover the time from `first_ms` to `last_ms`."""
    lengths = iter(_LENGTHS_MS)
    length = next(lengths)
    while last_ms // length - first_ms // length >= MOST:
        length = next(lengths, length * 2)
    begin = first_ms // length
    return Buckets(start_ms=begin * length, length_ms=length, count=last_ms // length - begin + 1)
