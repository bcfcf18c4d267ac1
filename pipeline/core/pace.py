"""How fast a run goes, from what it had come to at several times."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

RECENT_SECONDS = 60.0
"""What `recent` looks back to: long enough that units which begin and end do not show."""

LEAST_SECONDS = 1.0
"""Before, a pace says nothing."""


class Reached(Protocol):
    """What a start had come to after so many seconds."""

    @property
    def seconds(self) -> float: ...

    @property
    def rollouts(self) -> int: ...

    @property
    def tokens(self) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Tokens per second lately and since the first rollouts were asked for, and the seconds that are left at the second of
    these paces; None: not known yet."""

    recent: float | None = None
    overall: float | None = None
    seconds_left: float | None = None


def pace(course: Sequence[Reached], rollouts_expected: int) -> Pace:
    """The pace at the end of a course, which is in the order of time; 0 expected rollouts: nobody knows how many."""
    first = max((at for at, reached in enumerate(course) if not reached.rollouts), default=0)
    labelling = course[first:]
    if not labelling or labelling[-1].seconds - labelling[0].seconds < LEAST_SECONDS:
        return Pace()
    begin, last = labelling[0], labelling[-1]
    before = [each for each in labelling[:-1] if each.seconds <= last.seconds - RECENT_SECONDS]
    done = last.rollouts - begin.rollouts
    left = max(0, rollouts_expected - last.rollouts) * (last.seconds - begin.seconds) / done if done > 0 else None
    return Pace(
        recent=_rate(before[-1] if before else begin, last),
        overall=_rate(begin, last),
        seconds_left=left if rollouts_expected else None,
    )


def _rate(begin: Reached, end: Reached) -> float:
    return max(0, end.tokens - begin.tokens) / (end.seconds - begin.seconds)
