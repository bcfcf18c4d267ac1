"""Schemas of `judge`: which run's chains are judged, by what, and how the work is divided.

A judge is a section with several implementations, like the policy (see `core.registry`). The class here holds the settings
that all judges share.
"""

import re
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from annotated_types import Interval as Range

from pipeline.config.fields import BY_GROUP, FREE, ChosenSettings, Settings, check
from pipeline.config.label import ClusterConfig, PolicyConfig, RunConfig

JUDGE_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")
"""What the name of a judge looks like, as a whole."""


@dataclass(kw_only=True, slots=True)
class JudgeConfig(ChosenSettings):
    """The settings that all judges share; see `judges.registry`."""

    SECTION: ClassVar[str] = "judge"
    CHOSEN_BY: ClassVar[str] = "kind"
    kind: Annotated[str, BY_GROUP] = "model"
    """The kind of judge, given as judge=KIND."""
    name: str = "???"
    """Your name for this judge. A run may have several judges, each in the folder judges/NAME of the run directory."""
    votes: Annotated[int, Range(ge=1, le=64)] = 4
    """Critiques of each chain. How many of them agree says how sure the judge is."""
    show_answer: bool = False
    """Show the judge the known answer. It then knows the outcome of a chain, and is no second opinion on it."""

    def check(self) -> None:
        check(
            self.name == "???" or JUDGE_NAME.fullmatch(self.name) is not None,
            "judge.name",
            repr(self.name),
            "1 to 64 lower-case letters, digits, dots, dashes or underscores, and begin with a letter or digit",
        )


@dataclass(kw_only=True, slots=True)
class JudgeRunConfig(Settings):
    """All settings of `judge`."""

    run_dir: str = "???"
    """The run directory whose chains are judged."""
    judge: JudgeConfig = field(default_factory=JudgeConfig)
    """What judges, and how its critiques are read."""
    policy: PolicyConfig = field(default_factory=PolicyConfig)
    """The model that writes the critiques."""
    partial: Annotated[bool, FREE] = False
    """Also accept an unfinished run, and judge the chains that it has."""
    estimate: Annotated[bool, FREE] = False
    """Only say how many chains there are, and how long they would take: a sample of them is judged, and nothing is written."""
    run: RunConfig = field(default_factory=RunConfig)
    """How the chains are divided into units, retried and stored."""
    cluster: ClusterConfig = field(default_factory=ClusterConfig)
    """The Ray cluster and the workers."""
