"""A picker that measures the prefixes with the most steps first."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from pipeline.config.fields import BY_GROUP
from pipeline.config.grow import PickerConfig
from pipeline.pickers.base import Pick, Picker, Problem


@dataclass(kw_only=True, slots=True)
class DeepestConfig(PickerConfig):
    pick: Annotated[str, BY_GROUP] = "deepest"
    torn: str = ""
    """What it does wrongly, which the tests want to see refused: `root` picks the bare problem, `twice` picks a node again,
    `less` says that a pick has a gain below 0, `raises` raises."""


class Deepest(Picker):
    Config = DeepestConfig
    settings: DeepestConfig

    def picks(self, problem: Problem) -> Iterator[Pick]:
        nodes = problem.tree.nodes
        ordered = sorted(problem.candidates, key=lambda at: (-nodes[at].depth, at))
        match self.settings.torn:
            case "root":
                yield Pick(0, 1.0)
            case "twice":
                yield from [Pick(at, 1.0) for at in ordered[:1] * 2]
            case "less":
                yield from [Pick(at, -1.0) for at in ordered]
            case "raises":
                yield Pick(ordered[0], 1 / len(self.settings.torn[:0]))
        for at in ordered:
            yield Pick(at, float(nodes[at].depth))
