"""How large the loop is. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.tiny.arithmetic import Size
from tests.tiny.policy import LONG, SHORT, TinyPolicy

SEED = 11
"""Decides the problems alone: what is sampled and learned for them differs from loop to loop."""
SIZE = Size(operators=range(2, 4), max_value=20, max_term=12)
"""Small numbers: few enough sums that a model learns from some thousand chains which are right. On all that the policy was
trained on, models that were shown 11,658 chains chose no better than chance. Few operators: with three to five, most right
answers came by luck after wrong steps, and a perfect checker of steps chose right among 16 for 0.32 of the problems."""
TEST_PROBLEMS = 200
SOLUTIONS = 6
"""Chains that are sampled for a problem to train on. Equal ones are one."""
ROLLOUTS = 1
"""Of every prefix. A student learns more from one rollout of each prefix of many chains than from several of few: see
`python -m tests.bench loop`."""
CANDIDATES = 16
FRESH_ROLLOUTS = 4
"""Of every prefix of the candidates, to calibrate the PRM with."""
TRAINING: Mapping[str, Any] = {"separator": "\\n", "epochs": 4, "learning_rate": 3e-4}
"""Settings of `train`. The separator is what stands between the steps that the policy was trained on."""
CHAINS_ALONE = ("estimator=pooled", "estimator.run_budget=1")
"""A budget that is spent before the first rollout is the cheapest `label` there is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """The policy of a loop, what it is asked, and for how many problems a student sees its chains. `other_problems`: as many
    are labelled in a second lap, with the first lap's PRM as a witness, and a third one follows; 0: there is neither."""

    policy: TinyPolicy
    size: Size
    train_problems: int
    other_problems: int = 0


SHORT_LOOP = Loop(policy=SHORT, size=SIZE, train_problems=3_200, other_problems=800)
LONG_LOOP = Loop(policy=LONG, size=LONG.size, train_problems=400)
"""Chains have about four times as many tokens, and as many more prefixes, as those of the short loop."""
LOOPS = {loop.policy.name: loop for loop in (SHORT_LOOP, LONG_LOOP)}
