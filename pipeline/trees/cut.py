"""Cuts the text of a rollout into the steps that it adds to its prefix. Pure."""

from collections.abc import Callable
from typing import NamedTuple

from pipeline.config.label import DataConfig
from pipeline.data.steps import split

_REMEMBERED = 100_000
"""Texts whose steps are kept."""
_SHORT = 400
"""Characters of a text that may be kept: rollouts of short problems repeat each other, long ones hardly do."""


class WrittenStep(NamedTuple):
    """A step of a rollout: its text without white space around it, and its end in the rollout's text, in characters."""

    text: str
    end: int


StepCut = Callable[[str, str], tuple[WrittenStep, ...]]
"""(the last step of the prefix, the rollout's text) -> the steps of the rollout."""


def step_cut(data: DataConfig) -> StepCut:
    """Cuts as the splitter of these settings cuts the whole chain. A prefix is never joined with what follows it: its last step
    has ended, as its label says."""
    known: dict[tuple[str, str], tuple[WrittenStep, ...]] = {}

    def cut(before: str, text: str) -> tuple[WrittenStep, ...]:
        if len(before) + len(text) > _SHORT:
            return _steps(before, text, data)
        found = known.get((before, text))
        if found is None:
            if len(known) >= _REMEMBERED:
                known.clear()
            found = known[before, text] = _steps(before, text, data)
        return found

    return cut


def _steps(before: str, text: str, data: DataConfig) -> tuple[WrittenStep, ...]:
    steps = []
    begin = 0
    for end in split(before + text, data.splitter, data.pattern):
        here = end - len(before)
        if here > begin and (piece := text[begin:here].strip()):
            steps.append(WrittenStep(piece, here))
            begin = here
    return tuple(steps)
