"""What an estimator is: it says what to sample next, and what the rollouts of a unit's prefixes amount to.

An implementation is a class with its settings as `Config`; one is made of those for each run. Everything in it is pure. What
the rest of the pipeline wants to know of an estimator, it asks here: nobody outside asks for a name.

What an estimator of others answers is looked at before it is believed (`ANSWERS`): a wrong length or number would be a wrong
label.
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, ClassVar, Protocol, Self

from pipeline.config.choices import BudgetUnit, ValueColumn
from pipeline.config.fields import in_common
from pipeline.config.label import EstimatorConfig
from pipeline.core.records import ChainShape, StepValue, Trials
from pipeline.estimators.labels import step_labels
from pipeline.estimators.tree import Tree

MANY = 10**9
"""More rollouts than any prefix gets."""


class Need(Enum):
    """What an estimator needs of a log that may have been sampled by another one."""

    EVERY_PREFIX = auto()
    """Every prefix has rollouts, and as many as tell of it alone."""
    FREE_COUNTS = auto()
    """How many rollouts a prefix has does not depend on their outcomes."""
    FREE_ORDER = auto()
    """Which rollouts came in does not depend on how long they are."""
    PROBES = auto()
    """A prefix with rollouts has enough of them to be taken for hopeless where none is right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What chains may cost, each and those of a run together, in `unit`; None: no limit. `target_sd`: where a chain is done."""

    target_sd: float
    chain: int | None
    run: int | None
    unit: BudgetUnit


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutRange:
    """How many rollouts a sampled prefix has, at least and at most. Where at least 0, a prefix may be left out."""

    least: int
    most: int


class Learner(Protocol):
    """How an estimator learns from a unit, and hands that on to the next one.

    A state is never changed, always made anew. It says from how many `chains` it was learnt; nobody else looks into it.
    """

    table: str
    """Name of the stored table, one of `core.schemas`."""
    version: int
    """Of what it begins with: part of a run's identity."""

    def initial(self) -> Any:
        """The state before anything was seen."""
        ...

    def learn(self, known: Any, trees: Sequence[Tree], trials: Mapping[str, Trials]) -> Any:
        """What is known with these trees added: for the values of the unit that they come from, and for later units."""
        ...

    def familiar(self, known: Any) -> Any:
        """The same state as if many chains had told of it: what later units of a large run would know."""
        ...

    def stored(self, known: Any) -> Any:
        """The state as an Arrow table, of the schema of `table`."""
        ...

    def restored(self, table: Any) -> Any:
        """The inverse of `stored`. Raises ValueError for one that another version has stored."""
        ...


class Estimator(Protocol):
    """One estimator with its settings. `next_rollouts` and `values` are an implementation's own; the rest has a default.

    `trials` maps a prefix id to what has come in for it, in the order of issue (see `trials`); a prefix without a rollout has
    no entry. `state` is what its `learner` has learnt, None where it has none.
    """

    Config: ClassVar[type[EstimatorConfig]] = EstimatorConfig
    """Its settings: a dataclass under `EstimatorConfig`. Their defaults are its default interval and rule."""
    value_column: ClassVar[ValueColumn] = ValueColumn.posterior_mean
    """The column of `labels` that is its estimate: what rules label by, and reports show."""
    needs: ClassVar[frozenset[Need]] = frozenset(Need)
    """What it needs of a log that another estimator has sampled."""
    stops_early: ClassVar[bool] = False
    """It may know enough of a prefix while rollouts of it are under way: `stopped` says so, and these are aborted."""
    one_round: ClassVar[bool] = False
    """How many rollouts a prefix gets is one decision, in which no outcome has a say, also where it is raised later."""
    follows_steps: ClassVar[bool] = False
    """Rollouts are looked through for the steps of their chains: `Trials.reached` is filled in."""
    replayable: ClassVar[bool] = False
    """What it asks for can be decided again from the log alone, so that `audit` proves it."""
    counts_are_shares: ClassVar[bool] = False
    """n_correct of n_rollouts is a share with binomial noise, or nearly: `report` of two runs tells noise from change by it."""
    learner: ClassVar[Learner | None] = None

    settings: EstimatorConfig

    def __init__(self, settings: Any) -> None:
        self.settings = settings

    @abstractmethod
    def next_rollouts(
        self, problems: Sequence[Tree], trials: Mapping[str, Trials], rollouts: int, state: Any
    ) -> list[dict[str, int]]:
        """What to sample next, one dict per problem: prefix id -> how many more; empty where nothing is owed.

        `rollouts` is `sampling.rollouts`. Asked when all rollouts asked for before are in. A problem's decisions depend on its
        own chains, their trials and the state alone, never on other problems or the order of completion.
        """
        ...

    @abstractmethod
    def values(self, chains: Sequence[ChainShape], trials: Mapping[str, Trials], state: Any) -> list[list[StepValue]]:
        """Of each of a unit's chains its K + 1 values, the bare problem first."""
        ...

    def labels(
        self, chain: ChainShape, trials: Mapping[str, Trials], values: Sequence[StepValue]
    ) -> tuple[int | None, ...]:
        """Of a chain's K steps, by the rule of the settings, before `after_error`."""
        root, *steps = values
        return step_labels(root, steps, self.settings, self.value_column)

    def stopped(self, trials: Trials) -> bool:
        """Whether no further rollout of a prefix counts, whatever becomes of it. For one that `stops_early`."""
        return False

    def planned(self, rollouts: int) -> RolloutRange:
        """How many rollouts a prefix has in a finished run."""
        return RolloutRange(least=0, most=MANY)

    def needless(self, trials: Trials) -> int | None:
        """The issue index of a prefix's first rollout that was never asked for, None where each was."""
        return None

    def lacks(self) -> Mapping[Need, str]:
        """What a log that it has sampled does not give to other estimators, each with the reason, a clause in the past."""
        why = f"rollouts were asked for by estimator.name={self.settings.name}, which does not say what others may make of them"
        return dict.fromkeys(Need, why)

    def objection(self, sampled: "Estimator") -> str | None:
        """Why labels cannot be made of rollouts that the same estimator asked for with other settings; None: they can."""
        return None

    @property
    def budget(self) -> Budget | None:
        """The budget that it keeps to; None for one that knows of none, and takes `sampling.rollouts` as it likes."""
        return None

    def with_budget(self, chain: int | None, unit: BudgetUnit) -> Self:
        """The same with another budget for each chain, and none for the run. Asked of one with a `budget`."""
        raise TypeError(f"estimator.name={self.settings.name} has no budget")

    @classmethod
    def adapted(cls, given: EstimatorConfig) -> EstimatorConfig:
        """Its settings as near as they come to those of another estimator, for `plan` to compare costs with."""
        return adapted(cls.Config, given)


def adapted(schema: type[EstimatorConfig], given: EstimatorConfig, **own: Any) -> EstimatorConfig:
    """Settings of one type with the values of another's, as far as both have them, and its own name."""
    return schema(**in_common(given, schema) | {schema.CHOSEN_BY: schema.usual()} | own)


def objection(sampled: Estimator, wanted: Estimator) -> str | None:
    """Why labels with `wanted` cannot be made of rollouts that `sampled` asked for; None where they can. The settings of the
    label rule do not matter."""
    if sampled.settings.name == wanted.settings.name:
        return wanted.objection(sampled)
    lacking = sampled.lacks()
    return next((lacking[need] for need in Need if need in wanted.needs and need in lacking), None)


LABELS = (0, 1, 2, None)
_SHARES = ("value", "low", "high", "posterior_mean", "above")
"""Fields of a `StepValue` that are probabilities, or None."""
_SPREADS = ("posterior_sd", "advantage_sd")


def wrong_rollouts(found: Any, problems: Sequence[Tree], *_rest: object, **_named: object) -> str:
    """What is wrong with an answer of `next_rollouts`; empty: nothing."""
    if not isinstance(found, list) or len(found) != len(problems):
        return f"it has to give a list of {len(problems)} dicts, one for each problem, and gave {found!r:.200}"
    for tree, owed in zip(problems, found, strict=True):
        if not isinstance(owed, Mapping):
            return f"it has to give a dict for each problem, and gave {owed!r:.200}"
        prefixes = set(tree.prefix_ids)
        for prefix, count in owed.items():
            if prefix not in prefixes:
                return f"it asks for rollouts of {prefix!r:.60}, which is no prefix of that problem"
            if isinstance(count, bool) or not isinstance(count, int) or count < 0:
                return f"it asks for {count!r:.60} rollouts of prefix {prefix}"
    return ""


def wrong_values(found: Any, chains: Sequence[ChainShape], *_rest: object, **_named: object) -> str:
    """What is wrong with an answer of `values`; empty: nothing."""
    if not isinstance(found, list) or len(found) != len(chains):
        return f"it has to give a list for each of {len(chains)} chains, and gave {found!r:.200}"
    for chain, values in zip(chains, found, strict=True):
        wanted = len(chain.prefix_ids)
        if not isinstance(values, Sequence) or len(values) != wanted:
            return f"it has to give {wanted} values of a chain of {wanted - 1} steps, and gave {values!r:.200}"
        for value in values:
            if not isinstance(value, StepValue):
                return f"it has to give values as StepValue, and gave {value!r:.200}"
            if wrong := _wrong_numbers(value):
                return wrong
    return ""


def wrong_labels(found: Any, chain: ChainShape, *_rest: object, **_named: object) -> str:
    """What is wrong with an answer of `labels`; empty: nothing."""
    steps = len(chain.prefix_ids) - 1
    if not isinstance(found, Sequence) or len(found) != steps or any(label not in LABELS for label in found):
        return f"it has to give {steps} labels that are 0, 1, 2 or None, and gave {found!r:.200}"
    return ""


def _wrong_numbers(value: StepValue) -> str:
    for name in _SHARES:
        share = getattr(value, name)
        if share is not None and not 0 <= share <= 1:
            return f"{name} has to be a probability or None, and is {share!r:.60}"
    for name in _SPREADS:
        spread = getattr(value, name)
        if spread is not None and not (spread >= 0 and math.isfinite(spread)):
            return f"{name} has to be a number of at least 0 or None, and is {spread!r:.60}"
    return ""


ANSWERS: Mapping[str, Callable[..., str]] = {
    "next_rollouts": wrong_rollouts,
    "values": wrong_values,
    "labels": wrong_labels,
}
