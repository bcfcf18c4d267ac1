"""Schemas of `grow`: which run grows, by how much, and how the prefixes are picked that it measures.

A picker is a section with several implementations, like the policy (see `core.registry`). The class here holds the settings
that all pickers share.
"""

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from annotated_types import Interval as Range

from pipeline.config.choices import BudgetUnit
from pipeline.config.fields import BY_GROUP, FREE, ChosenSettings, refuse_equal
from pipeline.config.label import LabelConfig


@dataclass(kw_only=True, slots=True)
class PickerConfig(ChosenSettings):
    """The settings that all pickers share; see `pickers.registry`."""

    SECTION: ClassVar[str] = "grow"
    CHOSEN_BY: ClassVar[str] = "pick"
    pick: Annotated[str, BY_GROUP] = "pairs"
    """What the prefixes are picked for, given as grow.pick=NAME or grow=NAME."""
    budget: Annotated[int | None, Range(ge=1)] = None
    """What all growths of the run may cost together, in `budget_unit`. Required."""
    budget_unit: BudgetUnit = BudgetUnit.tokens
    """The unit of the budget: generated tokens, or rollouts."""
    rollouts: Annotated[int, Range(ge=1, le=10_000)] = 8
    """Rollouts that are issued at each prefix that is picked."""


@dataclass(kw_only=True, slots=True)
class GrowConfig(LabelConfig):
    """All settings of `grow`: those of the run in `run_dir`, as `label` was given them, and those of the growth."""

    grow: PickerConfig = field(default_factory=PickerConfig)
    """What is measured, and what that may cost."""
    estimate: Annotated[bool, FREE] = False
    """Only say what the run's rollouts wrote and what would be measured; sample and write nothing."""

    def __post_init__(self) -> None:
        LabelConfig.__post_init__(self)
        refuse_equal("grow.rollouts", self.grow.rollouts, "rollouts", self.sampling.temperature)
