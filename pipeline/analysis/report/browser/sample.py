"""Which chains a page holds, and how much of their texts: as many, and as much, as its bytes allow. Pure."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import nsmallest

from pipeline.core.ids import content_id

TEXT_BYTES = 18_000_000
"""Of all texts and numbers of chains, before they are compressed to a half or a third."""
LIMITS = (4_000, 2_000, 1_000, 500, 250)
"""Characters of a text; the first at which all chains fit is taken. If none is, there are fewer chains."""
_STEP_BYTES = 40
"""Of a step's numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """What a chain would take: its problem and its steps, each in characters and bytes."""

    chain_id: str
    characters: tuple[int, ...]
    in_bytes: tuple[int, ...]

    def cut(self, limit: int) -> float:
        """Bytes with each text cut at `limit` characters."""
        texts = zip(self.characters, self.in_bytes, strict=True)
        return sum(size * min(1, limit / max(1, length)) + _STEP_BYTES for length, size in texts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The places of the chains that are shown, ascending, and the characters of a text."""

    places: tuple[int, ...]
    characters: int

    def within(self, start: int, end: int) -> Sequence[int]:
        """The places from `start` on and before `end`."""
        return self.places[bisect_left(self.places, start) : bisect_left(self.places, end)]


def sample(sizes: Iterable[Size], most: int) -> Sample:
    """At most `most` of the chains: those whose hashes are the smallest, so that it is the same ones every time."""
    wanted = nsmallest(most, enumerate(sizes), key=_by_hash)
    for limit in LIMITS:
        if sum(size.cut(limit) for _, size in wanted) <= TEXT_BYTES:
            return Sample(places=tuple(sorted(place for place, _ in wanted)), characters=limit)
    return Sample(places=tuple(sorted(_fitting(wanted, LIMITS[-1]))), characters=LIMITS[-1])


def _by_hash(entry: tuple[int, Size]) -> tuple[str, int]:
    place, size = entry
    return content_id("shown", size.chain_id), place


def _fitting(wanted: Iterable[tuple[int, Size]], limit: int) -> Iterator[int]:
    room = float(TEXT_BYTES)
    for place, size in wanted:
        room -= size.cut(limit)
        if room < 0:
            return
        yield place
