"""Schema of the settings that all verifiers share; see `verifiers.registry`."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from annotated_types import Ge
from annotated_types import Interval as Range

from pipeline.config.fields import BY_GROUP, ChosenSettings

VERIFIER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
"""What the name of a verifier looks like, as a whole. It names a folder."""


def check_distinct(names: Sequence[str]) -> None:
    """Raise ValueError where a verifier is named twice."""
    if len(set(names)) < len(names):
        raise ValueError(f"checks=[{','.join(names)}]: a verifier is named twice")


@dataclass(kw_only=True, slots=True)
class VerifierConfig(ChosenSettings):
    """The settings of one verifier. Each has a subclass with its own ones."""

    SECTION: ClassVar[str] = "verifier"
    CHOSEN_BY: ClassVar[str] = "kind"
    kind: Annotated[str, BY_GROUP] = "arithmetic"
    """The verifier, given as verifier=NAME."""
    most_characters: Annotated[int, Range(ge=1, le=1_000_000)] = 20_000
    """A longer step is unknown."""
    deadline_seconds: Annotated[float, Range(gt=0, le=3600)] = 2.0
    """A step on which `check` waits longer is unknown."""
    memory_mib: Annotated[int, Ge(256)] = 1024
    """Memory limit in MiB of each process in which `check` asks it. A step that needs more is unknown."""
