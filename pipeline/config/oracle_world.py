"""Settings of the worlds in which the oracle policy writes and the oracle scorer scores. This module loads no library."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from enum import Enum
from typing import Annotated

from annotated_types import Interval as Range

from pipeline.config.fields import Settings


class World(Enum):
    """Which chains there are, and what their values are."""

    flat = "flat"
    """Each prefix has a value of its own, whatever the prefixes before it have. Every completion ends after two lines."""
    tree = "tree"
    """Completions write the next steps of a finite random tree; the value of a prefix is the mean of those after it."""


@dataclass(kw_only=True, slots=True)
class WorldSettings(Settings):
    """What the oracle's policy and its scorer have in common."""

    seed: int = 0
    """Seed of the success probabilities and of every draw."""
    spread: Annotated[float, Range(ge=0, le=1)] = 0.35
    """Largest difference between the value of a prefix and the value of its problem. With world=tree: the largest difference
    that a step makes, except the last one, which states the answer."""
    world: World = World.flat
    """What the chains and their values are. Prefixes that are not of the tree have values as in the flat world."""
    depth: Annotated[int, Range(ge=1, le=64)] = 6
    """With world=tree: steps of the longest chain."""
    branching: Annotated[int, Range(ge=2, le=26)] = 3
    """With world=tree: steps that may follow a prefix."""
    mean: Annotated[float, Range(ge=0.05, le=0.95)] = 0.5
    """With world=tree: the mean of the values of bare problems. They spread over all of 0 to 1, like u ** (1 / mean - 1) with u
    uniform."""
    early: Annotated[float, Range(ge=0, le=1)] = 0.0
    """With world=tree: probability that the step after a prefix is the last one although the tree is deeper. 0: all chains have
    `depth` steps."""


def differing_worlds(ours: WorldSettings, theirs: WorldSettings) -> Iterator[tuple[str, World | float, World | float]]:
    """The settings in which two worlds differ, as name and both values. Those that matter in a tree alone are compared if both
    are trees."""
    in_trees = ours.world is theirs.world is World.tree
    for name in [each.name for each in fields(WorldSettings)] if in_trees else ("seed", "spread", "world"):
        values = getattr(ours, name), getattr(theirs, name)
        if values[0] != values[1]:
            yield name, *values
