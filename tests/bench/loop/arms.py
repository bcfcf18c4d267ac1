"""The arms of the experiment: which labels of which chains, and how a student is trained on them. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from pipeline.train.settings import Loss, TrainTarget
from tests.bench.loop.plan import TRAINING
from tests.bench.loop.problems import right_so_far
from tests.tiny.arithmetic import Exercise

SEEDS = 5
"""Each has problems, chains and rollouts of its own to learn from."""
PROBLEMS = 800
"""Of a seed. An arm with more also has those of the next seeds."""
DRAWS = 6
FEWER = 3
"""Seeds of most arms: the same seeds, so that differences have less noise than accuracies."""
POOLED = ("estimator=pooled",)
FIXED = ("estimator=fixed",)
FIRST_SUCCESS = ("estimator=first_success",)

Row = dict[str, Any]


class Values(Enum):
    """Where the value of a step comes from."""

    estimator = "estimator"
    truth = "truth"
    """Arithmetic: 1 while all steps so far are right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """`estimator`: what selects it on the command line of `label`. `rollouts`: as `sampling.rollouts`. `problems` are labelled,
    with `DRAWS` draws each. `training`: settings of `train` that differ from the loop's. `seeds`: how many it has."""

    name: str
    values: Values = Values.estimator
    estimator: tuple[str, ...] = POOLED
    rollouts: int = 3
    problems: int = PROBLEMS
    training: Mapping[str, Any] = field(default_factory=dict)
    seeds: int = FEWER

    @property
    def settings(self) -> dict[str, Any]:
        return {**TRAINING, **self.training}


RECIPE = Arm(name="N=1, 3,200 problems: make loop", estimator=FIXED, rollouts=1, problems=3_200, seeds=SEEDS)
"""Two seeds have at least three quarters of their problems in common, but train in other orders from other weights."""
POOLED_LABELS = Arm(name="pooled, 800 problems", seeds=SEEDS)
"""Losses and ceilings are compared on these chains."""
_UNTIL_WORSE = {"patience": 3}
ARMS = (
    RECIPE,
    POOLED_LABELS,
    Arm(name="N=1, 1,600 problems", estimator=FIXED, rollouts=1, problems=1_600, seeds=SEEDS),
    Arm(name="N=1, 1,600 problems, true step labels", estimator=FIXED, rollouts=1, problems=1_600, values=Values.truth),
    Arm(name="pooled, true step labels", values=Values.truth),
    Arm(name="pooled, 1,600 problems", problems=1_600),
    Arm(name="pooled, hard labels", training={"loss": Loss.hard}),
    Arm(name="N=1, 800 problems", estimator=FIXED, rollouts=1, training=_UNTIL_WORSE),
    Arm(name="pooled, 400 problems", problems=400, training={**_UNTIL_WORSE, "epochs": 8}),
    Arm(
        name="fixed N=8, 188 problems",
        estimator=FIXED,
        rollouts=8,
        problems=188,
        training={**_UNTIL_WORSE, "epochs": 17},
    ),
    Arm(
        name="first_success, 216 problems",
        estimator=FIRST_SUCCESS,
        rollouts=8,
        problems=216,
        training={**_UNTIL_WORSE, "epochs": 15},
    ),
    Arm(name="ORM of the pooled chains", training={"target": TrainTarget.outcome, "loss": Loss.hard}),
    Arm(name="fixed N=8, 800 problems", estimator=FIXED, rollouts=8),
)
"""Those with `_UNTIL_WORSE` cost about 200,000 tokens each and have as many updates, so fewer chains are seen more often; they
stop by held-out problems."""


def plan() -> list[tuple[Arm, int]]:
    """All arms with their seeds, in an order in which an interrupted experiment says most."""
    return [(arm, seed) for arm in ARMS for seed in range(arm.seeds)]


def true_rows(rows: Sequence[Row], exercises: Mapping[str, Exercise]) -> list[Row]:
    """Rows of `labels` with arithmetic in place of rollouts."""
    return [row | _true_columns(right_so_far(row["steps"], exercises[row["problem"]])) for row in rows]


def _true_columns(right: Sequence[bool]) -> Row:
    values = [float(flag) for flag in right]
    return {
        "value": values,
        "unbiased_value": values,
        "value_sd": [0.0] * len(right),
        "n_correct": [int(flag) for flag in right],
        "n_rollouts": [1] * len(right),
        "label": [int(flag) for flag in right],
        "origin": ["measured"] * len(right),
        "root_n_rollouts": 1,
    }
