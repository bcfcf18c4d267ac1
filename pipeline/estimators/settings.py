"""Settings of the built-in estimators. They import no numerical code, so that a command line is checked quickly."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from annotated_types import Ge
from annotated_types import Interval as Range

from pipeline.config.choices import BudgetUnit, Goal, LabelRule
from pipeline.config.fields import FREE, REFUSED, RELABEL, check
from pipeline.config.label import EstimatorConfig, SamplingConfig


@dataclass(kw_only=True, slots=True)
class FixedConfig(EstimatorConfig):
    """No settings of its own. The number of rollouts per prefix is `sampling.rollouts`."""

    OPTION: ClassVar[Mapping[str, object]] = {**EstimatorConfig.OPTION, "rule": "lasting_drop"}
    RULES: ClassVar[frozenset[LabelRule]] = frozenset({LabelRule.lasting_drop})
    MISSES: ClassVar[bool] = True
    name: Annotated[str, RELABEL] = "fixed"


@dataclass(kw_only=True, slots=True)
class StoppingConfig(EstimatorConfig):
    """Settings of estimators that stop sampling a prefix after enough correct rollouts."""

    MISSES: ClassVar[bool] = True
    successes: Annotated[int, Range(ge=1, le=1000), RELABEL] = 1
    """Number of correct rollouts after which a prefix is done."""
    batch: Annotated[int, Range(ge=1, le=1000), RELABEL] = 1
    """Rollouts of a prefix that are sampled at once. Those that still run when enough are correct are aborted. Labels do not
    depend on it."""


@dataclass(kw_only=True, slots=True)
class FirstSuccessConfig(StoppingConfig):
    name: Annotated[str, RELABEL] = "first_success"

    def check_complete(self, sampling: SamplingConfig) -> None:
        EstimatorConfig.check_complete(self, sampling)
        if self.successes > sampling.rollouts:
            raise ValueError(
                f"estimator.successes={self.successes} cannot be reached with sampling.rollouts={sampling.rollouts}: lower "
                "estimator.successes or raise sampling.rollouts"
            )


@dataclass(kw_only=True, slots=True)
class BisectConfig(StoppingConfig):
    name: Annotated[str, RELABEL] = "bisect"

    def check(self) -> None:
        check(self.successes == 1, "estimator.successes", self.successes, "1 with estimator.name=bisect")
        if self.rule is not LabelRule.any:
            raise ValueError(
                f"estimator.rule={self.rule.value} needs the values of all steps, which estimator.name=bisect does not "
                "measure: set estimator.rule=any, or choose another estimator"
            )


TARGET_SD = {Goal.train: 0.1, Goal.locate: 0.07}
"""The default of `estimator.target_sd`. 0.15 takes 2.4 times fewer tokens; students learn as much from its values, but its
labels find fewer errors where values are known exactly (tests/bench/RESULTS.md)."""


@dataclass(kw_only=True, slots=True)
class PooledConfig(EstimatorConfig):
    OPTION: ClassVar[Mapping[str, object]] = {"interval": "posterior", "rule": "lasting_drop", "threshold": 0.1}
    RULES: ClassVar[frozenset[LabelRule]] = frozenset({LabelRule.first_error, LabelRule.lasting_drop})
    MISSES: ClassVar[bool] = True
    name: Annotated[str, RELABEL] = "pooled"
    goal: Annotated[Goal, FREE] = Goal.train
    """train: rollouts go where they tell most about the values. locate: where they tell most about values and their changes, to
    find the step with the error; it costs about twice as much."""
    target_sd: Annotated[float | None, Range(gt=0, le=0.5), FREE] = None
    """Wanted standard deviation of the values. Sampling of a chain stops when one more rollout would reduce the variance by
    less than it would at this standard deviation. null: 0.1, and 0.07 with goal=locate."""
    budget: Annotated[int | None, Ge(1), FREE, REFUSED] = None
    """What one chain may cost, in budget_unit. null: as many rollouts as estimator=fixed would sample."""
    run_budget: Annotated[int | None, Ge(1), FREE, REFUSED] = None
    """What all rollouts of the run may cost, in budget_unit. null: no limit."""
    budget_unit: Annotated[BudgetUnit, FREE] = BudgetUnit.tokens
    """The unit of `budget` and `run_budget`."""

    def check_complete(self, sampling: SamplingConfig) -> None:
        EstimatorConfig.check_complete(self, sampling)
        if sampling.temperature == 0:
            raise ValueError(
                "estimator.name=pooled samples some prefixes several times, and with sampling.temperature=0 these are equal "
                "rollouts: leave sampling.temperature out, or set estimator=fixed"
            )

    @property
    def wanted_sd(self) -> float:
        """`target_sd`, or its default for the goal."""
        return TARGET_SD[self.goal] if self.target_sd is None else self.target_sd
