"""A run that is reported on: what of it can be read, beside its plan, where it has one."""

from dataclasses import dataclass
from pathlib import Path

from pipeline.analysis.report.gathered import Gathered, gathered, staged_input
from pipeline.analysis.report.planned import Compared, compared, differing
from pipeline.analysis.report.short import named, short_lines
from pipeline.analysis.report.sums import in_all
from pipeline.core.errors import Absent, UsageError
from pipeline.core.forecast import Forecast, decoded_forecast
from pipeline.core.schemas import SCHEMA_VERSION
from pipeline.storage.commits import FOLDER, UNIT
from pipeline.storage.editions import edition_chain
from pipeline.storage.local import LocalStorage
from pipeline.storage.run_record import recorded_identity
from pipeline.storage.starts import PLAN, REPORT
from pipeline.storage.storage import Storage
from pipeline.storage.stored_run import StoredRun, refuse_no_run, stored_run


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """`beside`: what was planned and what it came to; empty without a plan. `other`: in which settings the plan is that of
    another run. `banners`: why a plan that is there is left out, or is to be read with care."""

    run: StoredRun
    found: Gathered
    beside: tuple[Compared, ...]
    other: tuple[str, ...]
    banners: tuple[str, ...]

    @property
    def short(self) -> list[str]:
        """The lines behind the totals."""
        return short_lines(self.found, self.beside, self.other)


def read_run(storage: Storage, plan: str | None) -> Read:
    """`plan` names a file; None: that of the run directory. Raises UsageError for no run, one of another version and a
    plan that is none, StoreError for a damaged run."""
    run = readable(storage)
    forecast, banners = _of_run(storage) if plan is None else (_named(plan), ())
    found = gathered(storage, run, forecast)
    steps = in_all(found.steps).steps
    totals = found.totals + found.unfinished
    beside = compared(forecast, totals, steps=steps, starts=found.starts) if forecast else ()
    other = differing(forecast, run.identity) if forecast else ()
    if other:
        banners = (*banners, f"The plan is that of another run: {named(other)}.")
    return Read(run=run, found=found, beside=beside, other=other, banners=banners)


def link_in(storage: Storage) -> str:
    """Of the page in a run directory."""
    return (Path(storage.place) / REPORT).as_uri() if isinstance(storage, LocalStorage) else f"{storage.place}/{REPORT}"


def readable(storage: Storage) -> StoredRun:
    """The run; one whose input was rejected as a whole has no units. Raises UsageError for no run and one of another version,
    StoreError for a damaged run."""
    refuse_no_run(storage)
    identity = recorded_identity(storage)
    begun = any(name.startswith(f"{FOLDER}/{UNIT}-") for name in storage.names(FOLDER))
    if begun or identity.get("schema") != SCHEMA_VERSION or staged_input(storage, identity):
        return stored_run(storage)
    return StoredRun(identity=identity, units=(), wholes={}, editions=edition_chain(storage))


def _of_run(storage: Storage) -> tuple[Forecast | None, tuple[str, ...]]:
    """A report is made without a plan that cannot be used."""
    try:
        return decoded_forecast(storage.read(PLAN)), ()
    except Absent:
        return None, ()
    except ValueError as error:
        return None, (f"{PLAN} is left out: {error}.",)


def _named(plan: str) -> Forecast:
    try:
        return decoded_forecast(Path(plan).expanduser().read_bytes())
    except OSError as error:
        raise UsageError(f"planned={plan} cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise UsageError(f"planned={plan} is no plan: {error}; name what `plan` has written") from error
