"""The methods that have no closed form choose rightly as often as simulators that share no code with them (`naive`), on the
same problems with the same scores, and sample as many steps."""

import random
from dataclasses import dataclass

import numpy as np
import pytest

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
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Machine minus simulator, in standard errors over problems: of the share of right choices and of sampled steps."""

    right: float
    steps: float


def difference(name: str) -> Difference:
    method, settings, simulator = METHODS[name]
    rows = []
    for number in range(PROBLEMS):
        ours, theirs = by_machine(method, settings, number), by_simulator(simulator, number)
        rows.append([ours[0] - theirs[0], ours[1] - theirs[1]])
    table = np.array(rows, dtype=np.float64)
    errors = np.maximum(table.std(axis=0, ddof=1) / np.sqrt(len(table)), 1e-9)
    right, steps = table.mean(axis=0) / errors
    return Difference(right=float(right), steps=float(steps))


def by_machine(method: str, settings: dict[str, object], number: int) -> tuple[bool, int]:
    search = search_of(method, **settings)
    world = TreeWorld(KIND, problem_of(number), newest_only=search.newest_only)
    found = found_by(search, world)
    return world.right(found.chosen), world.steps


def by_simulator(simulator: Simulator, number: int) -> tuple[bool, int]:
    world = TreeWorld(KIND, problem_of(number))
    path, steps = simulator(Policy(world, random.Random(f"simulator of problem {number}")))
    return KIND.tree.value(world.problem.problem_id, path) >= 1.0, steps


@pytest.mark.parametrize("name", METHODS)
def test_a_machine_and_its_simulator_agree(name: str) -> None:
    found = difference(name)
    assert abs(found.right) <= 2
    assert abs(found.steps) <= 2
