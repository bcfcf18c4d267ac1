"""What the records of a run directory come to, read as quickly as that can be: the last record of most units says it all.

Records are checked against their checksums, the files that they name are not: that is what `audit` is for.
"""

from dataclasses import dataclass, field
from functools import partial

from pipeline.core.errors import StoreError
from pipeline.core.records import Totals
from pipeline.storage.commits import INPUT, UNIT, Chain, Commit, State, chain, chain_lengths, record
from pipeline.storage.reading import each
from pipeline.storage.standing import logged_totals, standing
from pipeline.storage.storage import Storage
from pipeline.storage.units import units_of


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
    if last is not None and last.state is State.WHOLE:
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
