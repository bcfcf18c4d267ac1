"""Schema of the settings that all verifiers share; see `verifiers.registry`."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from annotated_types import Interval as Range

from pipeline.config.fields import BY_GROUP, ChosenSettings


@dataclass(kw_only=True, slots=True)
class VerifierConfig(ChosenSettings):
    """The settings of one verifier. Each has a subclass with its own ones."""

    SECTION: ClassVar[str] = "verifier"
    CHOSEN_BY: ClassVar[str] = "kind"
    kind: Annotated[str, BY_GROUP] = "arithmetic"
    most_characters: Annotated[int, Range(ge=1, le=1_000_000)] = 20_000
    """A longer step is unknown."""
