"""Frozen records of the progress and the results of engines and runs, and the pace of a run. Pure.

They are shown to users; no later step of the pipeline reads them.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pipeline.core.hardware import Throughput
from pipeline.core.records import SummedRecord, Tally, Totals

SECONDS_PER_HOUR = 3600.0
_WORKER_ERROR = re.compile(
    r"a worker(?:.*? could not start \((?P<start>.+)\): .*| was replaced: (?P<work>.+))", re.DOTALL
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Load(SummedRecord):
    """Number of requests that an engine works on, requests that wait for it, and completions that wait for their verdict; in a
    search, chains that have not been scored yet (`scoring`)."""

    running: int = 0
    waiting: int = 0
    grading: int = 0
    scoring: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineWork(SummedRecord):
    """Counters of an engine since its start; they never decrease.

    `generated`: generated tokens, including those of unfinished and aborted completions. `steps`: the forward passes that
    generated them. `finished`: tokens of finished completions. `attended`: the number of tokens before each of these, summed.
    `prompt`: tokens of the prompts that the engine has begun. `prefilled`: those of them that it computed; the others were in
    its cache. `unfilled_seconds`: the share of request slots that were empty while no request waited, integrated over time in
    seconds.
    """

    generated: int = 0
    steps: int = 0
    finished: int = 0
    attended: int = 0
    prompt: int = 0
    prefilled: int = 0
    unfilled_seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdicts(SummedRecord):
    """Number of rollouts by result. `truncated` counts those cut by the token limit; each of them is also in another count.

    The other counts add up to all rollouts."""

    correct: int = 0
    incorrect: int = 0
    no_answer: int = 0
    ungraded: int = 0
    aborted: int = 0
    truncated: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The current state of a run. Rollouts, tokens, verdicts and seconds are those of this start.

    `rollouts_before` and `tokens_before`: what earlier starts committed. `units`: all units of the run. `prefixes`: the
    prefixes of the units begun in this start; `prefixes_decided` of them need no more rollouts. `generated`: tokens, including
    those of unfinished rollouts and of sampled solutions. `rollouts_expected`: 0 until the first units are planned.
    `rollouts_most`: what the budget allows, 0 if unknown. `workers`: number of workers that are running. `device_seconds`:
    device time that the workers have used; `starting_seconds`: the part of it before they were ready. `share_of_bound`: see
    `hardware.Throughput.share`; None if unknown. `warnings`: the last ones of this start, the oldest first. `counted`: what
    `rollouts` counts, in the plural: `score` counts chains.
    """

    stage: str
    units: int = 0
    units_done: int = 0
    prefixes: int = 0
    prefixes_decided: int = 0
    rollouts: int = 0
    rollouts_expected: int = 0
    rollouts_most: int = 0
    rollouts_before: int = 0
    tokens: int = 0
    tokens_before: int = 0
    generated: int = 0
    verdicts: Verdicts = field(default_factory=Verdicts)
    load: Load = field(default_factory=Load)
    workers: int = 0
    device_seconds: float = 0.0
    starting_seconds: float = 0.0
    share_of_bound: float | None = None
    warnings: tuple[str, ...] = ()
    counted: str = "rollouts"

    @property
    def device_hours(self) -> float:
        return self.device_seconds / SECONDS_PER_HOUR

    @property
    def working_hours(self) -> float:
        """Device hours of workers that are ready."""
        return (self.device_seconds - self.starting_seconds) / SECONDS_PER_HOUR


def new_warnings(before: Sequence[str], now: Sequence[str]) -> Sequence[str]:
    """The warnings of a status that an earlier one did not have. Both hold the last warnings of one start, up to a number."""
    known = next(
        len(before) - cut for cut in range(len(before) + 1) if tuple(now[: len(before) - cut]) == tuple(before[cut:])
    )
    return now[known:]


def failed_start(at: str, error: str, follows: str) -> str:
    """The warning that a worker could not start. `at`: its place with a preposition, or empty. `follows`: what is done."""
    return f"a worker{at} could not start ({error}): {follows}"


def replaced_worker(error: str) -> str:
    """The warning that a worker has failed at work."""
    return f"a worker was replaced: {error}"


def given_up_place(place: str, deaths: int, error: str) -> str:
    """The warning that the run goes on without a place because workers died there at work. `error`: of the last one."""
    return f"workers died at work {deaths} times in a row on {place} ({error}): the run goes on without this place"


def repeats(warning: str, message: str) -> bool:
    """Whether a warning is of `failed_start` or `replaced_worker`, and `message`, with which the run ended, names its error."""
    found = _WORKER_ERROR.fullmatch(warning)
    return found is not None and (found["start"] or found["work"]) in message


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The content of a run directory, and what this start added to it.

    `tally`: of the whole run; `added`: what this start has added to the log. `damaged`: names of damaged files that this start
    set aside. `labels`: the origin of the current labels, if `relabel` or `regrade` made editions. `overspent`: by how much the
    run exceeded its limit. `throughput`: None if the engines of this start generated nothing or do not report their hardware.
    `first_new`: id of the first unit that was not whole before this start, where others were; else empty.
    """

    run_dir: str
    tally: Tally
    units: int
    units_done_now: int
    added: Tally
    seconds_starting: float
    seconds_working: float
    damaged: tuple[str, ...] = ()
    labels: str = ""
    overspent: str = ""
    throughput: Throughput | None = None
    first_new: str = ""

    @property
    def totals(self) -> Totals:
        """The counts of a run of `label`."""
        return self.tally.totals

    @property
    def now(self) -> Totals:
        """What this start of `label` has added to the log."""
        return self.added.totals


@dataclass(frozen=True, slots=True, kw_only=True)
class RelabelResult:
    """The result of `relabel` or `regrade`. `number` of the new edition; None if the current labels already matched.
    `verdict_changes`: rollouts by what their verdict was and became, and whether the grader found another answer or judged the
    same one otherwise. `notes`: lines about labels by consensus, what was left out and what was learned, and about judges that
    were read again."""

    run_dir: str
    number: int | None = None
    chains: int = 0
    labels: int = 0
    labels_changed: int = 0
    rollouts: int = 0
    verdict_changes: Counter[str] = field(default_factory=Counter)
    notes: tuple[str, ...] = ()

    @property
    def verdicts_changed(self) -> int:
        return self.verdict_changes.total()


RECENT_SECONDS = 60.0
"""Time window of `Pace.recent`: long enough to average over the beginning and the end of units."""

LEAST_SECONDS = 1.0
"""Least time of labelling from which a pace is computed."""


class SpeedSample(NamedTuple):
    """The progress and the load of a start after `seconds` of wall time."""

    seconds: float
    units_done: int
    prefixes_decided: int
    rollouts: int
    tokens: int
    running: int
    waiting: int
    grading: int
    workers: int
    device_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Tokens per second in the last minute (`recent`) and since the first rollouts (`overall`), and the seconds left at the
    overall pace. None: not known yet."""

    recent: float | None = None
    overall: float | None = None
    seconds_left: float | None = None


def pace(course: Sequence[SpeedSample], status: Status) -> Pace:
    """The pace at the end of `course`, which is ordered by time and ends with `status`. Where rounds add rollouts, what is left
    follows from the prefixes that are not decided, but it is no more than the budget allows."""
    first = max((at for at, reached in enumerate(course) if not reached.rollouts), default=0)
    labelling = course[first:]
    if not labelling or labelling[-1].seconds - labelling[0].seconds < LEAST_SECONDS:
        return Pace()
    begin, last = labelling[0], labelling[-1]
    before = [each for each in labelling[:-1] if each.seconds <= last.seconds - RECENT_SECONDS]
    done = last.rollouts - begin.rollouts
    decided = last.prefixes_decided - begin.prefixes_decided
    open_shares = [
        max(0, whole - at) / made
        for whole, at, made in (
            (status.rollouts_expected, last.rollouts, done),
            (status.prefixes, last.prefixes_decided, decided),
        )
        if made > 0
    ]
    left = None
    if done > 0 and status.rollouts_expected:
        most = status.rollouts_most or float("inf")
        left = min(max(open_shares), max(0, most - last.rollouts) / done) * (last.seconds - begin.seconds)
    return Pace(
        recent=_rate(before[-1] if before else begin, last),
        overall=_rate(begin, last),
        seconds_left=left,
    )


def _rate(begin: SpeedSample, end: SpeedSample) -> float:
    return max(0, end.tokens - begin.tokens) / (end.seconds - begin.seconds)


MOST = 600
"""Largest number of samples of a start."""
EVERY_SECONDS = 1.0
"""Shortest time between two samples. It doubles each time that there are too many samples."""


class ProgressHistory:
    """The progress of a start over time in at most `MOST` `samples`. The last sample is always the latest. When there would be
    more, every other sample is removed."""

    def __init__(self) -> None:
        self._samples: list[SpeedSample] = []
        self._every = EVERY_SECONDS

    @property
    def samples(self) -> tuple[SpeedSample, ...]:
        return tuple(self._samples)

    def take(self, status: Status, seconds: float) -> None:
        """Record the status after `seconds`, which never decrease."""
        sample = _sample(status, seconds)
        if len(self._samples) > 1 and self._samples[-1].seconds - self._samples[-2].seconds < self._every:
            self._samples[-1] = sample
        else:
            self._samples.append(sample)
        if len(self._samples) > MOST:
            self._every *= 2
            self._samples = [*self._samples[:-1:2], sample]


def _sample(status: Status, seconds: float) -> SpeedSample:
    return SpeedSample(
        seconds=round(seconds, 3),
        units_done=status.units_done,
        prefixes_decided=status.prefixes_decided,
        rollouts=status.rollouts,
        tokens=status.tokens,
        running=status.load.running,
        waiting=status.load.waiting,
        grading=status.load.grading,
        workers=status.workers,
        device_seconds=round(status.device_seconds, 3),
    )
