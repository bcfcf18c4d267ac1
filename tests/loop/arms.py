"""The arms of the experiment: which labels of which chains, and how a student is trained on them. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from pipeline.train.settings import Loss, TrainTarget
from tests.loop.plan import ROLLOUTS, TRAINING
from tests.loop.truth import right_so_far
from tests.tiny.arithmetic import Exercise

SEEDS = 5
"""Each has problems, chains and rollouts of its own to learn from."""
PROBLEMS = 800
"""To learn from, of a seed."""
DRAWS = 6
FEWER = 3
"""Seeds of the arms that are compared with the recipe: the same seeds, so that differences have less noise than accuracies."""
OTHER_TRAININGS = (101, 102)
"""Training seeds of the recipe on the chains of the first seed, besides the one that all seeds have."""
POOLED = ("estimator=pooled",)
FIXED = ("estimator=fixed",)
FIRST_SUCCESS = ("estimator=first_success",)

FORMER_TRAINING = {"epochs": 8, "batch": 32, "learning_rate": 1e-3}
"""What the loop trained with before this experiment."""

Row = dict[str, Any]


class Values(Enum):
    """Where the value of a step comes from."""

    estimator = "estimator"
    truth = "truth"
    """Arithmetic: 1 while all steps so far are right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """`estimator`: what selects it on the command line of `label`. `rollouts`: as `sampling.rollouts`. `share`: of a seed's
    problems that are labelled; above 1, also problems of the next seeds. `training`: settings of `train` that differ from the
    loop's. `seeds`: how many it has."""

    name: str
    values: Values = Values.estimator
    estimator: tuple[str, ...] = POOLED
    rollouts: int = 3
    share: float = 1.0
    draws: int = DRAWS
    training: Mapping[str, Any] = field(default_factory=dict)
    seeds: int = FEWER

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of `train`."""
        return {**TRAINING, **self.training}


RECIPE = Arm(name="recipe: pooled, soft", rollouts=ROLLOUTS, seeds=SEEDS)
"""What `make loop` does."""
TRUE_STEPS = Arm(name="true step labels", rollouts=ROLLOUTS, values=Values.truth)
_LONGER = {"patience": 3}
ARMS = (
    RECIPE,
    TRUE_STEPS,
    Arm(name="rate 1e-3, batch 32, 8 epochs", rollouts=ROLLOUTS, training=FORMER_TRAINING),
    Arm(name="at 210k tokens: fixed N=1", estimator=FIXED, rollouts=1, training=_LONGER),
    Arm(name="at 210k tokens: pooled", rollouts=ROLLOUTS, share=0.5, training={**_LONGER, "epochs": 8}),
    Arm(name="twice the problems", rollouts=ROLLOUTS, share=2.0),
    Arm(name="hard labels", rollouts=ROLLOUTS, training={"loss": Loss.hard}),
    Arm(name="counts", rollouts=ROLLOUTS, training={"loss": Loss.beta_binomial}),
    Arm(
        name="at 210k tokens: fixed N=8",
        estimator=FIXED,
        rollouts=8,
        share=0.235,
        training={**_LONGER, "epochs": 17},
    ),
    Arm(
        name="at 210k tokens: first_success",
        estimator=FIRST_SUCCESS,
        rollouts=8,
        share=0.27,
        training={**_LONGER, "epochs": 15},
    ),
    Arm(name="fixed N=8, all problems", estimator=FIXED, rollouts=8),
    Arm(name="ORM", rollouts=ROLLOUTS, training={"target": TrainTarget.outcome, "loss": Loss.hard}),
)
"""Arms at equal tokens have as many updates, and stop by held-out problems: fewer chains are seen more often."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """An arm with a seed. `training_seed` differs from it where only the training is repeated."""

    arm: Arm
    seed: int
    training_seed: int


def plan() -> list[Run]:
    """All runs, in an order in which an interrupted experiment says most."""
    runs = [Run(arm=arm, seed=seed, training_seed=seed) for arm in ARMS[:2] for seed in range(arm.seeds)]
    runs += [Run(arm=RECIPE, seed=0, training_seed=seed) for seed in OTHER_TRAININGS]
    return [*runs, *(Run(arm=arm, seed=seed, training_seed=seed) for arm in ARMS[2:] for seed in range(arm.seeds))]


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
