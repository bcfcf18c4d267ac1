"""The methods that have no closed form choose rightly as often as simulators that share no code with them (`naive`), on the
same problems with the same scores, and sample as many steps."""

import random

import numpy as np
import pytest

from pipeline.searches.settings import RegenerateFrom
from tests.searches import naive
from tests.searches.naive import Policy, Simulator
from tests.searches.worlds import TreeWorld, WorldKind, found_by, problem_of, search_of

pytestmark = pytest.mark.slow
KIND = WorldKind(seed=31, depth=5, branching=3, mean=0.3, auc=0.9)
PROBLEMS = 200
METHODS: dict[str, tuple[str, dict[str, object], Simulator]] = {
    "beam": ("beam", {"n": 8, "width": 4}, lambda policy: naive.beam(policy, 8, 4)),
    "beam looks ahead": (
        "beam",
        {"n": 6, "width": 3, "lookahead": 1},
        lambda policy: naive.beam(policy, 6, 3, lookahead=1),
    ),
    "dvts": ("dvts", {"n": 8, "width": 4}, lambda policy: naive.dvts(policy, 8, 4)),
    "particle": ("particle", {"n": 8}, lambda policy: naive.particle(policy, 8, 0.5)),
    "sharp particle": (
        "particle",
        {"n": 8, "temperature": 0.5, "resample_below": 1.0},
        lambda policy: naive.particle(policy, 8, 1.0, 0.5),
    ),
    "mcts": (
        "mcts",
        {"n": 3, "width": 3, "parallel": 1, "exploration": 1.0},
        lambda policy: naive.mcts(policy, 3, 3, 1.0),
    ),
    "mcts in waves with rollouts": (
        "mcts",
        {"n": 6, "width": 2, "parallel": 3, "exploration": 0.5, "rollout": True},
        lambda policy: naive.mcts(policy, 6, 2, 0.5, 3, rollout=True),
    ),
    "regenerate": ("regenerate", {"n": 6, "chains": 2}, lambda policy: naive.regenerate(policy, 6, 2)),
    "regenerate from the weakest": (
        "regenerate",
        {"n": 2, "chains": 1, "start": RegenerateFrom.weakest},
        lambda policy: naive.regenerate(policy, 2, 1, largest_drop=False),
    ),
}


@pytest.mark.parametrize("name", METHODS)
def test_a_machine_and_its_simulator_agree(name: str) -> None:
    method, settings, simulator = METHODS[name]
    search = search_of(method, **settings)
    rows = []
    for number in range(PROBLEMS):
        ours = TreeWorld(KIND, problem_of(number), newest_only=search.newest_only)
        chose_right = ours.right(found_by(search, ours).chosen)
        theirs = TreeWorld(KIND, problem_of(number))
        path, steps = simulator(Policy(theirs, random.Random(f"simulator of problem {number}")))
        is_right = KIND.tree.value(theirs.problem.problem_id, path) >= 1.0
        rows.append([chose_right - is_right, ours.steps - steps])
    table = np.array(rows, dtype=np.float64)
    errors = np.maximum(table.std(axis=0, ddof=1) / np.sqrt(PROBLEMS), 1e-9)
    right, sampled = table.mean(axis=0) / errors
    assert abs(right) <= 2
    assert abs(sampled) <= 2
