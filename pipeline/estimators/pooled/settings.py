"""Settings of estimator=pooled."""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge
from annotated_types import Interval as Range

from pipeline.config.choices import BudgetUnit
from pipeline.config.fields import FREE, REFUSED, RELABEL
from pipeline.config.label import EstimatorConfig


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
