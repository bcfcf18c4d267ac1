"""Settings of the pickers. This module loads no library."""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Interval as Range

from pipeline.config.fields import BY_GROUP
from pipeline.config.grow import PickerConfig


@dataclass(kw_only=True, slots=True)
class PairsConfig(PickerConfig):
    """Siblings that are likely on different sides of the threshold."""

    pick: Annotated[str, BY_GROUP] = "pairs"
    per_branch: Annotated[int, Range(ge=1, le=1000)] = 4
    """Pairs of one prefix after which another one is worth little. `preference.pairs_per_branch` exports as many."""
    same_numbers: Annotated[float, Range(ge=0, le=1)] = 0.25
    """What a step is worth whose numbers are those of a measured sibling: it likely says the same in other words."""
    least_gain: Annotated[float, Range(ge=0, le=1)] = 0.05
    """The expected margin of new pairs that a prefix must be worth. A budget that finds no such prefix is not spent."""


@dataclass(kw_only=True, slots=True)
class ErrorsConfig(PickerConfig):
    """Steps after which the value is likely lost, where it was not lost before: places of first errors."""

    pick: Annotated[str, BY_GROUP] = "errors"
    least_gain: Annotated[float, Range(ge=0, le=1)] = 0.05
    """The expected number of first errors that a prefix must locate. A budget that finds no such prefix is not spent."""


@dataclass(kw_only=True, slots=True)
class UncertainConfig(PickerConfig):
    """Prefixes of which rollouts would teach the most: where the variance of the value falls the most."""

    pick: Annotated[str, BY_GROUP] = "uncertain"


@dataclass(kw_only=True, slots=True)
class OmegaPRMConfig(PickerConfig):
    """The procedure of OmegaPRM (Luo et al. 2024, arXiv 2406.06592): one binary search for a first error after the other."""

    pick: Annotated[str, BY_GROUP] = "omegaprm"
    alpha: Annotated[float, Range(gt=0, le=1)] = 0.5
    """Base of the preference for prefixes of high value."""
    beta: Annotated[float, Range(gt=0, le=1)] = 0.9
    """Base of the preference for short rollouts."""
    length: Annotated[int, Range(ge=1)] = 500
    """Tokens that count as long: L of the paper."""
    exploration: Annotated[float, Range(ge=0)] = 0.125
    """c_puct of the paper."""
