"""The interface of an estimator: it decides what to sample next, and computes values and labels from a unit's rollouts.

An implementation is a class with its settings as `Config`. Each run creates one instance. Everything in it is pure. The rest
of the pipeline uses only this interface and never checks the name of an estimator.

The results of a plug-in's estimator are checked before they are used (`ANSWERS`), because a wrong length or number would give
wrong labels.
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, ClassVar, Protocol, Self

from pipeline.config.choices import BudgetUnit
from pipeline.config.fields import in_common
from pipeline.config.label import EstimatorConfig
from pipeline.core.records import ChainShape, StepValue, Trials
from pipeline.estimators.labels import step_labels
from pipeline.estimators.tree import Tree

MANY = 10**9
"""A number of rollouts that no prefix reaches."""


class Need(Enum):
    """A property that an estimator needs of a log, which another estimator may have sampled."""

    EVERY_PREFIX = auto()
    """Every prefix has rollouts, and enough of them to estimate its value from them alone."""
    FREE_COUNTS = auto()
    """The number of rollouts of a prefix does not depend on their outcomes."""
    FREE_ORDER = auto()
    """Which rollouts are in the log does not depend on their length."""
    PROBES = auto()
    """Every prefix with rollouts has enough of them to count as lost when none is correct."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What each chain and the whole run may cost, in `unit` (None: no limit), and the `target_sd` at which a chain is done."""

    target_sd: float
    chain: int | None
    run: int | None
    unit: BudgetUnit


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutRange:
    """The fewest and the most rollouts of a prefix. With `least` 0, a prefix may remain without rollouts."""

    least: int
    most: int


class Learner(Protocol):
    """Learns from a unit and passes the result, its state, on to the next unit.

    A state is immutable. Its attribute `chains` is the number of chains that it was learned from. Only the learner and its
    estimator read the rest of it.
    """

    table: str
    """Name of the stored table, one of `core.tables`."""
    version: int
    """Version of the initial state, which is part of a run's identity."""

    def initial(self) -> Any:
        """The state before the first unit."""
        ...

    def learn(self, known: Any, trees: Sequence[Tree], trials: Mapping[str, Trials]) -> Any:
        """The state with these trees added. It is used for the values of their own unit and for later units."""
        ...

    def familiar(self, known: Any) -> Any:
        """The same state as if it were learned from many chains, as later units of a large run would have it."""
        ...

    def to_table(self, known: Any) -> Any:
        """The state as an Arrow table with the schema of `table`."""
        ...

    def from_table(self, table: Any) -> Any:
        """The inverse of `to_table`. Raises ValueError for a table of another version."""
        ...


class Estimator(Protocol):
    """One estimator with its settings. An implementation defines `next_rollouts` and `values`; the rest has defaults.

    `trials` maps a prefix id to its finished rollouts in the order of issue (see `tree.trials_of`). A prefix without rollouts
    has no entry. `state` is the state of its `learner`, None where it has no learner.
    """

    Config: ClassVar[type[EstimatorConfig]] = EstimatorConfig
    """Its settings: a subclass of `EstimatorConfig`, whose defaults are its default interval and label rule."""
    needs: ClassVar[frozenset[Need]] = frozenset(Need)
    """What it needs of a log that another estimator sampled."""
    stops_early: ClassVar[bool] = False
    """Whether it may finish a prefix while rollouts of it are still running. `is_finished` decides, and these are aborted."""
    one_round: ClassVar[bool] = False
    """Whether the number of rollouts of a prefix never depends on outcomes, even when it is raised later."""
    follows_steps: ClassVar[bool] = False
    """Whether it uses `Trials.reached`, the steps of the chain that a rollout reproduces."""
    replayable: ClassVar[bool] = False
    """Whether its requests can be derived from the log alone, so that `audit` can verify them."""
    counts_are_shares: ClassVar[bool] = False
    """Whether n_correct of n_rollouts has (nearly) binomial noise, which `report` uses to compare two runs."""
    value_is_share: ClassVar[bool] = False
    """Whether `value` is n_correct of n_rollouts over 1 - miss_rate: the counts alone determine it and its noise."""
    learner: Learner | None = None

    settings: EstimatorConfig

    def __init__(self, settings: Any) -> None:
        self.settings = settings

    @abstractmethod
    def next_rollouts(
        self, problems: Sequence[Tree], trials: Mapping[str, Trials], rollouts: int, state: Any
    ) -> list[dict[str, int]]:
        """What to sample next: per problem a dict of prefix id -> number of further rollouts, empty where none is needed.

        `rollouts` is `sampling.rollouts`. It is called when all rollouts requested before are finished. The decisions for a
        problem depend only on its chains, their trials and the state, never on other problems or the order of completion.
        """
        ...

    @abstractmethod
    def values(self, chains: Sequence[ChainShape], trials: Mapping[str, Trials], state: Any) -> list[list[StepValue]]:
        """For each chain of a unit its K + 1 values, the bare problem first."""
        ...

    def labels(
        self, chain: ChainShape, trials: Mapping[str, Trials], values: Sequence[StepValue]
    ) -> tuple[int | None, ...]:
        """The labels of a chain's K steps by the label rule of the settings, before `after_error` is applied."""
        root, *steps = values
        return step_labels(root, steps, self.settings)

    def is_finished(self, trials: Trials) -> bool:
        """Whether no further rollout of a prefix counts, whatever its outcome. Used if `stops_early`."""
        return False

    def rollout_range(self, rollouts: int) -> RolloutRange:
        """The range of the number of rollouts of a prefix in a finished run."""
        return RolloutRange(least=0, most=MANY)

    def most_rollouts(self, problem: Tree, rollouts: int) -> int:
        """The most rollouts of a problem in a finished run; MANY or more: no limit. `rollouts` is `sampling.rollouts`."""
        return self.rollout_range(rollouts).most * int((~problem.closed).sum())

    def surplus_rollout(self, trials: Trials) -> int | None:
        """The issue index of a prefix's first rollout that the estimator did not request. None where it requested all."""
        return None

    def lacks(self) -> Mapping[Need, str]:
        """The needs of other estimators that its log does not meet, each with the reason as a clause in the past tense."""
        why = (
            f"rollouts were requested by estimator.name={self.settings.name}, which does not declare what other estimators "
            "may do with them"
        )
        return dict.fromkeys(Need, why)

    def objection(self, sampled: "Estimator") -> str | None:
        """Why rollouts that the same estimator requested with other settings cannot be used. None: they can."""
        return None

    @property
    def budget(self) -> Budget | None:
        """Its budget. None for an estimator without one, which uses only `sampling.rollouts`."""
        return None

    def with_budget(self, chain: int | None, unit: BudgetUnit) -> Self:
        """The same with another budget per chain and none for the run. Raises TypeError if it has no `budget`."""
        raise TypeError(f"estimator.name={self.settings.name} has no budget")

    @classmethod
    def adapt(cls, given: EstimatorConfig) -> EstimatorConfig:
        """Its settings as close as possible to those of another estimator. `plan` compares costs with them."""
        return adapt(cls.Config, given)


def adapt(schema: type[EstimatorConfig], given: EstimatorConfig, **own: Any) -> EstimatorConfig:
    """Settings of type `schema` with the values of `given` for the fields that both have, and with its own name. The rule is
    its default where it does not have that of `given`."""
    shared = in_common(given, schema) | {schema.CHOSEN_BY: schema.usual()} | own
    try:
        return schema(**shared)
    except ValueError:
        return schema(**shared | {"rule": schema().rule})


def objection(sampled: Estimator, wanted: Estimator) -> str | None:
    """Why labels with `wanted` cannot be made from rollouts that `sampled` requested. None where they can. The settings of the
    label rule do not matter."""
    if sampled.settings.name == wanted.settings.name:
        return wanted.objection(sampled)
    lacking = sampled.lacks()
    return next((lacking[need] for need in Need if need in wanted.needs and need in lacking), None)


LABELS = (0, 1, 2, None)
_SHARES = ("value", "low", "high", "p_above", "p_lost")
"""Fields of a `StepValue` that are probabilities or None."""
_SPREADS = ("value_sd", "advantage_sd", "unbiased_value")
"""Numbers of at least 0 or None. An unbiased value exceeds 1 where more rollouts than expected escape the miss rate."""


def wrong_rollouts(found: Any, problems: Sequence[Tree], *_rest: object, **_named: object) -> str:
    """What is wrong with a result of `next_rollouts`. Empty: nothing."""
    if not isinstance(found, list) or len(found) != len(problems):
        return f"it must return a list of {len(problems)} dicts, one per problem, but returned {found!r:.200}"
    for tree, owed in zip(problems, found, strict=True):
        if not isinstance(owed, Mapping):
            return f"it must return a dict for each problem, but returned {owed!r:.200}"
        prefixes = set(tree.prefix_ids)
        for prefix, count in owed.items():
            if prefix not in prefixes:
                return f"it requests rollouts of {prefix!r:.60}, which is not a prefix of that problem"
            if isinstance(count, bool) or not isinstance(count, int) or count < 0:
                return f"it requests {count!r:.60} rollouts of prefix {prefix}"
    return ""


def wrong_values(found: Any, chains: Sequence[ChainShape], *_rest: object, **_named: object) -> str:
    """What is wrong with a result of `values`. Empty: nothing."""
    if not isinstance(found, list) or len(found) != len(chains):
        return f"it must return a list for each of {len(chains)} chains, but returned {found!r:.200}"
    for chain, values in zip(chains, found, strict=True):
        wanted = len(chain.prefix_ids)
        if not isinstance(values, Sequence) or len(values) != wanted:
            return f"it must return {wanted} values for a chain of {wanted - 1} steps, but returned {values!r:.200}"
        for value in values:
            if not isinstance(value, StepValue):
                return f"it must return values as StepValue, but returned {value!r:.200}"
            if wrong := _wrong_numbers(value):
                return wrong
    return ""


def wrong_labels(found: Any, chain: ChainShape, *_rest: object, **_named: object) -> str:
    """What is wrong with a result of `labels`. Empty: nothing."""
    steps = len(chain.prefix_ids) - 1
    if not isinstance(found, Sequence) or len(found) != steps or any(label not in LABELS for label in found):
        return f"it must return {steps} labels that are 0, 1, 2 or None, but returned {found!r:.200}"
    return ""


def _wrong_numbers(value: StepValue) -> str:
    for name in _SHARES:
        share = getattr(value, name)
        if share is not None and not 0 <= share <= 1:
            return f"{name} must be a probability or None, but is {share!r:.60}"
    for name in _SPREADS:
        spread = getattr(value, name)
        if spread is not None and not (spread >= 0 and math.isfinite(spread)):
            return f"{name} must be a number of at least 0 or None, but is {spread!r:.60}"
    return ""


ANSWERS: Mapping[str, Callable[..., str]] = {
    "next_rollouts": wrong_rollouts,
    "values": wrong_values,
    "labels": wrong_labels,
}
