"""A run directory -> how the run stands. Nothing in it is touched, and no lock is taken: `label` may be at work."""

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.analysis.status.committed import committed, unit_count
from pipeline.analysis.status.state import Condition, Seen, condition_of
from pipeline.core.errors import Absent, UsageError
from pipeline.core.forecast import Forecast, decoded_forecast
from pipeline.core.pace import Pace, pace
from pipeline.core.records import Totals
from pipeline.core.schemas import SCHEMA_VERSION
from pipeline.storage.run_record import STAGED_INPUT, recorded_identity
from pipeline.storage.starts import PLAN, Start, process_with, read_starts, same_machine
from pipeline.storage.storage import Storage
from pipeline.storage.stored_run import refuse_no_run


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
