"""Rollout trees of a few lines: each step is a line, and the id of a prefix is its steps joined by a slash."""

from collections.abc import Iterable, Sequence

from hypothesis import strategies as st

from pipeline.config.choices import BudgetUnit
from pipeline.config.grow import PickerConfig
from pipeline.pickers.base import Problem
from pipeline.pickers.registry import PICKERS
from pipeline.pickers.rounds import problem_of
from pipeline.trees.cut import WrittenStep
from pipeline.trees.tree import NO_LABEL, LabelledSteps, RolloutTree, WrittenRollout, rollout_tree


def cut(_before: str, text: str) -> tuple[WrittenStep, ...]:
    found: list[WrittenStep] = []
    end = 0
    for line in text.splitlines(keepends=True):
        end += len(line)
        found.append(WrittenStep(line.strip(), end))
    return tuple(found)


def at(*steps: str) -> str:
    return "/".join(("root", *steps))


def chain(*steps: str, outcome: bool | None = None) -> LabelledSteps:
    """A chain without labels: pickers do not read these."""
    return LabelledSteps(
        steps=steps,
        stems=[f"{step}\n" for step in steps],
        prefix_ids=[at(*steps[:number]) for number in range(len(steps) + 1)],
        labels=[NO_LABEL] * (len(steps) + 1),
        outcome=outcome,
    )


def rollouts(prefix: str, *steps: str, right: int = 0, wrong: int = 0, tokens: int = 10) -> list[WrittenRollout]:
    return [
        WrittenRollout(
            rollout_id=f"{prefix} {steps} {number:03}",
            prefix_id=prefix,
            round=0,
            text="".join(f"{step}\n" for step in steps),
            finish="stop",
            verdict="correct" if number < right else "incorrect",
            n_tokens=tokens,
        )
        for number in range(right + wrong)
    ]


def tree_of(chains: Iterable[LabelledSteps], *written: Sequence[WrittenRollout]) -> RolloutTree:
    return rollout_tree("p", chains, [each for some in written for each in some], cut)


def problem(tree: RolloutTree, *, rollouts: int = 8, threshold: float = 0.5, strength: float = 1.0) -> Problem:
    return problem_of(tree, strength=strength, threshold=threshold, rollouts=rollouts, unit=BudgetUnit.rollouts)


def node(tree: RolloutTree, *steps: str) -> int:
    (found,) = [
        number for number, each in enumerate(tree.nodes) if not each.ended and tree.steps(number) == list(steps)
    ]
    return found


def settings_for(name: str, **more: object) -> PickerConfig:
    made: PickerConfig = PICKERS.settings(name)(**more)
    return made


_STEPS = st.lists(st.sampled_from(("a 1", "b 1", "c 2", "d")), min_size=1, max_size=4)


@st.composite
def trees(draw: st.DrawFn) -> RolloutTree:
    """A few chains and rollouts of their prefixes that share many steps."""
    given = [chain(*steps, outcome=draw(st.none() | st.booleans())) for steps in draw(st.lists(_STEPS, max_size=3))]
    chains = [chain(), *given]
    ends = {each.prefix_ids[-1] for each in given if each.outcome is not None}
    prefixes = sorted({prefix for each in chains for prefix in each.prefix_ids} - ends)
    written = []
    for number in range(draw(st.integers(0, 8))):
        found = rollouts(draw(st.sampled_from(prefixes)), *draw(_STEPS), right=draw(st.integers(0, 2)), wrong=1)
        written.append([each._replace(rollout_id=f"{number} {each.rollout_id}") for each in found])
    return tree_of(chains, *written)


problems = st.builds(
    problem,
    trees(),
    rollouts=st.integers(1, 16),
    threshold=st.sampled_from((0.0, 0.3, 0.5, 0.9)),
    strength=st.floats(0.1, 100),
)
