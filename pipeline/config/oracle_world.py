"""Settings of the worlds in which the oracle policy writes and the oracle scorer scores. This module loads no library."""

from dataclasses import dataclass
from enum import Enum

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
    world: World = World.flat
    """What the chains and their values are. Prefixes that are not of the tree have values as in the flat world."""
