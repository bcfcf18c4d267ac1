"""Settings of our estimators, apart from what they compute: a command line is checked before numbers are loaded."""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge
from annotated_types import Interval as Range

from pipeline.config.choices import BudgetUnit, LabelRule
from pipeline.config.fields import FREE, REFUSED, RELABEL, check
from pipeline.config.label import EstimatorConfig, SamplingConfig


@dataclass(kw_only=True, slots=True)
class FixedConfig(EstimatorConfig):
    """It has no setting of its own: the number of rollouts is `sampling.rollouts`."""

    name: Annotated[str, RELABEL] = "fixed"


@dataclass(kw_only=True, slots=True)
class StoppingConfig(EstimatorConfig):
    """Of estimators that stop at right rollouts of a prefix."""

    successes: Annotated[int, Range(ge=1, le=1000), RELABEL] = 1
    """A prefix is done at so many right rollouts."""
    batch: Annotated[int, Range(ge=1, le=1000), RELABEL] = 1
    """Rollouts of a prefix that are sampled at a time. Those still under way when enough are right are aborted; labels do not
    depend on it."""


@dataclass(kw_only=True, slots=True)
class FirstSuccessConfig(StoppingConfig):
    name: Annotated[str, RELABEL] = "first_success"

    def check_complete(self, sampling: SamplingConfig) -> None:
        if self.successes > sampling.rollouts:
            raise ValueError(
                f"estimator.successes={self.successes} cannot be reached with sampling.rollouts={sampling.rollouts}: lower "
                "the one or raise the other"
            )


@dataclass(kw_only=True, slots=True)
class BisectConfig(StoppingConfig):
    name: Annotated[str, RELABEL] = "bisect"

    def check(self) -> None:
        check(self.successes == 1, "estimator.successes", self.successes, "1 with estimator.name=bisect")
        if self.rule is not LabelRule.any:
            raise ValueError(
                f"estimator.rule={self.rule.value} needs the values of all steps, which estimator.name=bisect does not "
                "measure: use estimator.rule=any, or another estimator"
            )


@dataclass(kw_only=True, slots=True)
class PooledConfig(EstimatorConfig):
    name: Annotated[str, RELABEL] = "pooled"
    target_sd: Annotated[float, Range(gt=0, le=0.5), FREE] = 0.1
    """A chain is done when the root mean square of its posterior_sd is at most this."""
    budget: Annotated[int | None, Ge(1), FREE, REFUSED] = None
    """What a chain may cost, in budget_unit; null: as many rollouts as estimator=fixed would take."""
    run_budget: Annotated[int | None, Ge(1), FREE, REFUSED] = None
    """What all rollouts of the run may cost, in budget_unit."""
    budget_unit: Annotated[BudgetUnit, FREE] = BudgetUnit.tokens
    """What `budget` and `run_budget` count."""
