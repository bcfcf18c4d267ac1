"""A run directory -> how the run stands: at work, finished, or ended otherwise, and what is done.

Nothing in it is touched, and no lock is taken: `label` may be at work. Whether a run is at work is told from what is committed
and from what its starts said.

What is committed is read as quickly as that can be: the last record of most units says it all. Records are checked against
their checksums, the files that they name are not: that is what `audit` is for.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial

from pipeline.core.errors import Absent, StoreError, UsageError
from pipeline.core.forecast import Forecast, decoded_forecast
from pipeline.core.pace import Pace, pace
from pipeline.core.records import Totals
from pipeline.core.schemas import SCHEMA_VERSION
from pipeline.core.words import printable
from pipeline.storage.commits import INPUT, UNIT, Chain, Commit, chain, chain_lengths, record
from pipeline.storage.commits import State as CommitState
from pipeline.storage.reading import each
from pipeline.storage.run_record import STAGED_INPUT, recorded_identity
from pipeline.storage.standing import logged_totals, standing
from pipeline.storage.starts import FAILED, INTERRUPTED, LIMITED, PLAN, Start, process_with, read_starts, same_machine
from pipeline.storage.storage import Storage
from pipeline.storage.stored_run import refuse_no_run
from pipeline.storage.units import units_of

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What all `starts` of a run took: `money` is None where none of them had a price, and leaves out `unpriced` ones."""

    starts: int
    unpriced: int
    device_hours: float
    money: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStatus:
    """`units` is None while nobody knows how many there are. `totals` are those of the input and of `units_done` whole units,
    `unfinished` counts rollouts and tokens that are committed of other units. `unreadable` names damaged records,
    `damaged_starts` files of starts, whose costs are not in `spent`.

    `pace` is that of the start that `condition` speaks of. `plan_fault`: why `plan.json` cannot be read."""

    run_dir: str
    condition: Condition
    units: int | None
    units_done: int
    totals: Totals
    unfinished: Totals
    unreadable: tuple[str, ...]
    damaged_starts: tuple[str, ...]
    pace: Pace
    spent: Spent
    planned: Forecast | None
    plan_fault: str


def run_status(storage: Storage, now: float) -> RunStatus:
    """`now`: seconds since 1970. Raises UsageError for a directory that is no run of this version, StoreError for one that
    cannot be read."""
    refuse_no_run(storage)
    identity = recorded_identity(storage)
    if identity.get("schema") != SCHEMA_VERSION:
        raise UsageError(
            f"{storage.place} was written with schema {identity.get('schema')}, this is {SCHEMA_VERSION}: use the version of "
            "stepvalue that wrote it"
        )
    # First what starts say: what they commit meanwhile is then seen.
    told = read_starts(storage)
    starts = told.told
    found = committed(storage, str(identity.get(STAGED_INPUT)))
    units = (
        (starts[-1].status.units if starts else None) or (found.staged and unit_count(storage, found.staged)) or None
    )
    condition = condition_of(
        [seen(start, now) for start in starts], finished=units is not None and found.wholes >= units
    )
    start = condition.seen and condition.seen.start
    planned, fault = _planned(storage)
    return RunStatus(
        run_dir=storage.place,
        condition=condition,
        units=units,
        units_done=found.wholes,
        totals=(found.staged.totals if found.staged else Totals()) + found.totals,
        unfinished=found.unfinished,
        unreadable=found.unreadable,
        damaged_starts=told.damaged,
        pace=pace(start.samples, start.status.rollouts_expected) if start else Pace(),
        spent=_spent(starts),
        planned=planned,
        plan_fault=fault,
    )


def seen(start: Start, now: float) -> Seen:
    """A start as it is seen from this process."""
    here = same_machine(start.process)
    process = process_with(start.pid) == start.process if here else None
    # Clocks of two machines differ.
    return Seen(start=start, silent_seconds=max(0.0, now - start.at), process=process)


def _spent(starts: Sequence[Start]) -> Spent:
    costs = [start.status.device_hours * start.price for start in starts if start.price is not None]
    return Spent(
        starts=len(starts),
        unpriced=len(starts) - len(costs),
        device_hours=sum(start.status.device_hours for start in starts),
        money=sum(costs) if costs else None,
    )


def _planned(storage: Storage) -> tuple[Forecast | None, str]:
    try:
        return decoded_forecast(storage.read(PLAN)), ""
    except Absent:
        return None, ""
    except ValueError as error:
        return None, str(error)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """`staged` is the record of the input, None where it is not staged. `totals` are those of `wholes` whole units,
    `unfinished` rollouts and tokens of the others, whose verdicts no record says. `unreadable` names records."""

    staged: Commit | None = None
    wholes: int = 0
    totals: Totals = field(default_factory=Totals)
    unfinished: Totals = field(default_factory=Totals)
    unreadable: tuple[str, ...] = ()

    def __add__(self, other: "Committed") -> "Committed":
        return Committed(
            staged=self.staged or other.staged,
            wholes=self.wholes + other.wholes,
            totals=self.totals + other.totals,
            unfinished=self.unfinished + other.unfinished,
            unreadable=(*self.unreadable, *other.unreadable),
        )


def committed(storage: Storage, staged_id: str) -> Committed:
    """Raises StoreError where the directory cannot be read."""
    found = chain(storage, INPUT, staged_id)
    staged = Committed(staged=standing(found).whole, unreadable=found.unreadable)
    return sum(each(storage, partial(_unit, storage), chain_lengths(storage, UNIT).items()), staged)


def unit_count(storage: Storage, staged: Commit) -> int | None:
    """How many units the staged input has; None where a file of it is damaged."""
    try:
        return sum(1 for _ in units_of(storage, staged))
    except StoreError:
        return None


def _unit(storage: Storage, named: tuple[str, int]) -> Committed:
    unit_id, length = named
    last = record(storage, UNIT, unit_id, length - 1)
    if last is not None and last.state is CommitState.WHOLE:
        return Committed(wholes=1, totals=last.totals)
    return _of_chain(chain(storage, UNIT, unit_id, length))


def _of_chain(found: Chain) -> Committed:
    whole = standing(found).whole
    logged = logged_totals(found)
    totals = whole.totals if whole else Totals()
    return Committed(
        wholes=1 if whole else 0,
        totals=totals,
        unfinished=Totals(rollouts=logged.rollouts - totals.rollouts, tokens=logged.tokens - totals.tokens),
        unreadable=found.unreadable,
    )
