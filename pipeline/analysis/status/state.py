"""Whether a run is at work, finished, or ended otherwise: from what is committed and what its starts said."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from pipeline.core.words import printable
from pipeline.storage.starts import FAILED, INTERRUPTED, LIMITED, Start

SILENT_SECONDS = 60.0
"""Six signs of life that did not come: then a start on another machine is taken for dead."""
_GO_ON = "start `label` again to go on"


class State(StrEnum):
    RUNNING = "running"
    FINISHED = "finished"
    INTERRUPTED = "interrupted"
    FAILED = "failed"
    LIMITED = "stopped at its limit"
    DEAD = "dead"
    UNFINISHED = "unfinished"
    """Something is owed, and no start says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A start; how long ago it gave a sign of life; whether its process is there, None where that cannot be seen from here."""

    start: Start
    silent_seconds: float
    process: bool | None

    @property
    def at_work(self) -> bool:
        if self.start.ended:
            return False
        return self.silent_seconds <= SILENT_SECONDS if self.process is None else self.process


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """`why` is for people; `seen` is the start it speaks of, None where no start has told of itself."""

    state: State
    why: str
    seen: Seen | None


def condition_of(starts: Sequence[Seen], *, finished: bool) -> Condition:
    """`starts` in the order of time; `finished`: every unit is whole."""
    last = next((seen for seen in reversed(starts) if seen.at_work), starts[-1] if starts else None)
    if last and last.at_work:
        state, why = State.RUNNING, f"last sign of life {span(last.silent_seconds)} ago"
    elif finished:
        state, why = State.FINISHED, "all units are whole"
    elif last is None:
        state, why = State.UNFINISHED, f"no start says why; {_GO_ON}"
    elif not last.start.ended:
        state, why = State.DEAD, f"{_silence(last)}; {_GO_ON}"
    elif last.start.ended == INTERRUPTED:
        state, why = State.INTERRUPTED, f"{span(last.silent_seconds)} ago; {_GO_ON}"
    elif last.start.ended in (FAILED, LIMITED):
        state, why = State(last.start.ended), printable(last.start.message)
    else:
        state, why = State.UNFINISHED, f"units are owed again since the last start; {_GO_ON}"
    return Condition(state=state, why=why, seen=last)


def span(seconds: float) -> str:
    """A length of time in one unit, roughly."""
    for length, name in ((86_400.0, "days"), (3600.0, "h"), (60.0, "min")):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {name}"
    return f"{max(0.0, seconds):.0f} s"


def _silence(last: Seen) -> str:
    if last.process is None:
        return f"silent for {span(last.silent_seconds)}: dead, or cut off"
    return f"its process is gone; last sign of life {span(last.silent_seconds)} ago"
