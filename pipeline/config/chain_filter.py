"""Which chains are trained on: the settings of `export` and `train` that leave out chains by two numbers of `labels`.

`p_outcome` is the probability of a chain's own outcome, given all rollouts but not that outcome. A small one is a right answer
by luck, or a slip at the end: the last step contradicts the steps before it. `root_value` is the value of the bare problem,
which says how hard it is for the policy. Where it is near 0 or 1, nearly all rollouts have the same outcome whatever the steps
are. SCAN filters by it (arXiv:2509.16548).

A chain stays if the number is unknown, because nothing is known against it. Without a graded rollout in the chain, both are.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Protocol

from annotated_types import Interval as Range

from pipeline.core.errors import InputError

Bound = Annotated[float | None, Range(ge=0, le=1)]
"""The type of these settings. None leaves out nothing."""
ROUNDING = 1e-9
"""Tolerance for numbers equal to a bound: 1 - 0.9 < 0.1 in floating point."""


class ChainBounds(Protocol):
    """The settings, as `ExportConfig` and `TrainConfig` have them."""

    @property
    def min_p_outcome(self) -> float | None: ...

    @property
    def min_root_value(self) -> float | None: ...

    @property
    def max_root_value(self) -> float | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundReason:
    """Why a chain is left out. `setting`: the setting with its value. `kind`: a word for counting. `detail`: a sentence."""

    setting: str
    kind: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Limit:
    name: str
    column: str
    bound: float
    is_minimum: bool

    @property
    def setting(self) -> str:
        return f"{self.name}={self.bound:g}"

    @property
    def kind(self) -> str:
        return f"{'low' if self.is_minimum else 'high'}_{self.column}"

    @property
    def remedy(self) -> str:
        return f"{'lower' if self.is_minimum else 'raise'} {self.name}"

    def excludes(self, number: float) -> bool:
        return number < self.bound - ROUNDING if self.is_minimum else number > self.bound + ROUNDING


P_OUTCOME, ROOT_VALUE = "p_outcome", "root_value"
COLUMNS = (P_OUTCOME, ROOT_VALUE)
"""The columns of `labels` that bounds are about."""
_UNKNOWN = {
    P_OUTCOME: "its own answer was not graded, or no rollout of the chain",
    ROOT_VALUE: "its bare problem has no value, or the chain no graded rollout",
}
"""Why a chain can lack the number."""
_GRADED = ("n_rollouts", "root_n_rollouts")


class ChainFilter:
    """Judges chains one by one, and notes which columns have a value in any of them."""

    def __init__(self, bounds: ChainBounds) -> None:
        given = (
            ("min_p_outcome", P_OUTCOME, bounds.min_p_outcome, True),
            ("min_root_value", ROOT_VALUE, bounds.min_root_value, True),
            ("max_root_value", ROOT_VALUE, bounds.max_root_value, False),
        )
        self._limits = [
            _Limit(name=name, column=column, bound=bound, is_minimum=is_minimum)
            for name, column, bound, is_minimum in given
            if bound is not None
        ]
        self._known: set[str] = set()
        self._chains = 0

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of `labels` that the bounds need, and those that say whether a chain has a graded rollout."""
        needed = dict.fromkeys(limit.column for limit in self._limits)
        return (*needed, *_GRADED) if needed else ()

    def reason(self, p_outcome: float | None, root_value: float | None, *, graded: bool = True) -> BoundReason | None:
        """Why a chain with these numbers is left out; None if it stays. `graded`: whether any of its prefixes has a graded
        rollout. Without one, the value of the bare problem says only what is usual in the run, and what the outcome is."""
        numbers = {P_OUTCOME: p_outcome, ROOT_VALUE: root_value if graded else None}
        self._chains += 1
        self._known.update(column for column, number in numbers.items() if number is not None)
        for limit in self._limits:
            number = numbers[limit.column]
            if number is not None and limit.excludes(number):
                side = "below" if limit.is_minimum else "above"
                return BoundReason(
                    setting=limit.setting,
                    kind=limit.kind,
                    detail=f"{limit.column} {number:.3g} is {side} {limit.setting}",
                )
        return None

    def check_known(self, run_dir: str) -> None:
        """Raise InputError for a bound on a number that no chain of the run has: it leaves out none."""
        for limit in self._limits:
            if self._chains and limit.column not in self._known:
                raise InputError(
                    f"{run_dir}: {limit.setting} has no effect, because no chain of the run has a {limit.column} "
                    f"({_UNKNOWN[limit.column]}): leave {limit.name} out"
                )

    def remedy(self, kinds: Iterable[str]) -> str:
        """The settings to change if chains left out for these reasons are missed; empty if none is about a bound."""
        missed = set(kinds)
        return " or ".join(limit.remedy for limit in self._limits if limit.kind in missed)


def check_bounds(bounds: ChainBounds) -> None:
    """Raise ValueError for bounds that no chain can meet."""
    low, high = bounds.min_root_value, bounds.max_root_value
    if low is not None and high is not None and low > high:
        raise ValueError(f"min_root_value={low:g} is above max_root_value={high:g}: no chain meets both; exchange them")
