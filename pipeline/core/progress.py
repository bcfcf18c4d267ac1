"""What engines and runs are doing, and what they have come to: told, and never read back; and how fast a run goes. Frozen."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Protocol

from pipeline.core.hardware import Throughput
from pipeline.core.records import Totals

SECONDS_PER_HOUR = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Requests an engine works on, requests that wait for it, and completions that wait for their verdict."""

    running: int = 0
    waiting: int = 0
    grading: int = 0

    def __add__(self, other: "Load") -> "Load":
        return Load(
            running=self.running + other.running,
            waiting=self.waiting + other.waiting,
            grading=self.grading + other.grading,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineWork:
    """What an engine has done since its start; all of it only ever grows.

    `generated` counts tokens, those of unfinished and of aborted completions too, and `steps` the forward passes that made
    them. `finished` counts the tokens of finished completions, `attended` sums how many stood before each. `prompt` counts the
    tokens of the prompts it has begun with, `prefilled` those of them that it computed; the rest it had in its cache.
    `unfilled_seconds`: places for requests that stood empty while nothing waited for one, in seconds times the share of all
    places.
    """

    generated: int = 0
    steps: int = 0
    finished: int = 0
    attended: int = 0
    prompt: int = 0
    prefilled: int = 0
    unfilled_seconds: float = 0.0

    def __add__(self, other: "EngineWork") -> "EngineWork":
        return EngineWork(**{part.name: getattr(self, part.name) + getattr(other, part.name) for part in fields(self)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdicts:
    """What rollouts came to: they add up to all of them. `truncated` are those cut by the token limit, a part of the others."""

    correct: int = 0
    incorrect: int = 0
    no_answer: int = 0
    ungraded: int = 0
    aborted: int = 0
    truncated: int = 0

    def __add__(self, other: "Verdicts") -> "Verdicts":
        return Verdicts(**{part.name: getattr(self, part.name) + getattr(other, part.name) for part in fields(self)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """What a run is doing now; rollouts, tokens, verdicts and seconds are those of this start.

    `rollouts_before` and `tokens_before` are what earlier starts had committed. `units` are all of the run, `prefixes` those of
    the units begun in this start, of which `prefixes_decided` are asked for no more. `generated` counts the tokens of
    unfinished rollouts and of sampled solutions too. `rollouts_expected` is 0 until the first units have been planned.
    `workers` are at work; what they take of devices has come to `device_seconds`. `share_of_bound`: see
    `hardware.Throughput.share`; None where it is not known.
    """

    stage: str
    units: int = 0
    units_done: int = 0
    prefixes: int = 0
    prefixes_decided: int = 0
    rollouts: int = 0
    rollouts_expected: int = 0
    rollouts_before: int = 0
    tokens: int = 0
    tokens_before: int = 0
    generated: int = 0
    verdicts: Verdicts = field(default_factory=Verdicts)
    load: Load = field(default_factory=Load)
    workers: int = 0
    device_seconds: float = 0.0
    share_of_bound: float | None = None

    @property
    def device_hours(self) -> float:
        return self.device_seconds / SECONDS_PER_HOUR


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What a run directory holds, and what this start of the run added to it.

    `damaged` names files that it set aside. `labels` says whose the current labels are, where editions were made of them.
    `overspent` says by what it went beyond its budget.
    `throughput` is None where this start's engines made nothing, or nothing that could be compared.
    """

    run_dir: str
    totals: Totals
    units: int
    units_done_now: int
    rollouts_now: int
    tokens_now: int
    seconds_starting: float
    seconds_labelling: float
    damaged: tuple[str, ...] = ()
    labels: str = ""
    overspent: str = ""
    throughput: Throughput | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Edited:
    """What was made of a finished run's labels. `number` is None where they were what was asked for already."""

    run_dir: str
    number: int | None = None
    chains: int = 0
    labels: int = 0
    labels_changed: int = 0
    rollouts: int = 0
    verdicts_changed: int = 0


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
