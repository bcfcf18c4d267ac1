"""Small rollout trees of made-up chains and rollouts, for tests."""

from collections.abc import Sequence
from typing import Any

from pipeline.config.choices import Splitter
from pipeline.config.label import DataConfig
from pipeline.trees.cut import StepCut, step_cut
from pipeline.trees.tree import FairRounds, LabelledSteps, RolloutTree, StepLabel, WrittenRollout, rollout_tree

PROBLEM = "What is it?"


def line_cut() -> StepCut:
    """A step is a line."""
    return step_cut(DataConfig(path="rows.jsonl", splitter=Splitter.newline))


def chain(
    *steps: str,
    outcome: bool | None = True,
    ids: Sequence[str] | None = None,
    labels: Sequence[StepLabel] | None = None,
) -> LabelledSteps:
    """A chain of one line for each step. By default its prefixes have the ids "", "a", "a|b" and so on."""
    stems = [*(f"{step}\n" for step in steps[:-1]), *steps[-1:]]
    own = ["|".join(steps[:number]) for number in range(len(steps) + 1)]
    return LabelledSteps(
        steps=steps,
        stems=stems,
        prefix_ids=own if ids is None else ids,
        labels=[StepLabel()] * (len(steps) + 1) if labels is None else labels,
        outcome=outcome,
    )


def rollout(prefix_id: str, text: str, verdict: str = "correct", number: int = 0, **own: Any) -> WrittenRollout:
    """A rollout of a prefix. Its id holds all that distinguishes it."""
    given: dict[str, Any] = {"round": 0, "finish": "stop", "n_tokens": 10} | own
    return WrittenRollout(rollout_id=f"{prefix_id}/{number}", prefix_id=prefix_id, text=text, verdict=verdict, **given)


def grown(
    chains: Sequence[LabelledSteps], rollouts: Sequence[WrittenRollout] = (), fair: FairRounds = None
) -> RolloutTree:
    return rollout_tree(PROBLEM, chains, rollouts, line_cut(), fair)


def at(tree: RolloutTree, *steps: str, ended: bool = False) -> int:
    """The place of the node of these steps."""
    found = [
        place for place, node in enumerate(tree.nodes) if node.ended is ended and tuple(tree.steps(place)) == steps
    ]
    assert len(found) == 1, (steps, ended, len(found))
    return found[0]
