"""The posterior equals sums over all combinations of values, on small trees."""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.records import ChainShape, Trials
from pipeline.estimators.pooled.forest import forest_of
from pipeline.estimators.pooled.grid import GRID, POINTS
from pipeline.estimators.pooled.kernel import PRIOR, Kernel, TransitionModel, transition_model, unrelated
from pipeline.estimators.pooled.posterior import averaged, expected_moves, posterior, weighted_models
from pipeline.estimators.tree import ROOT, UNKNOWN, Floats, Tree, tree_of
from tests.estimators.pooled import CONSTANT, INDEPENDENT, JUMPS, chain, seen, straight

KERNELS = [PRIOR, CONSTANT, INDEPENDENT, JUMPS]
SMALL = [
    [chain("0")],
    [chain("0", outcome=False), chain("0", outcome=True), chain("0", outcome=True)],
    [chain("0", "a", outcome=None)],
    [chain("0", "a", "b", outcome=False)],
    [chain("0", "a"), chain("0", "b", outcome=False)],
    [chain("0", "a", outcome=None), chain("0", "a", "b")],
]
"""Trees of up to three nodes."""

some_trials = st.dictionaries(
    st.sampled_from("0ab"), st.integers(0, 6).flatmap(lambda n: st.builds(seen, st.integers(0, n), st.just(n)))
)


def joint(tree: Tree, have: Mapping[str, Trials], moving: TransitionModel) -> Floats:
    """P(values of all nodes, evidence), one axis of grid points per node."""
    nodes = len(tree.prefix_ids)
    mass = np.ones((POINTS,) * nodes)
    for node, (prefix, parent) in enumerate(zip(tree.prefix_ids, tree.parents.tolist(), strict=True)):
        counts = have.get(prefix, Trials()).counts
        mass = mass * along(GRID**counts.correct * (1 - GRID) ** (counts.graded - counts.correct), node, nodes)
        if parent == ROOT:
            mass = mass * along(moving.start, node, nodes)
        else:
            mass = mass * moving.step.reshape([POINTS if axis in (parent, node) else 1 for axis in range(nodes)])
    for end, right in zip(tree.ends.tolist(), tree.right.tolist(), strict=True):
        if right != UNKNOWN:
            mass = mass * along(moving.right if right else 1 - moving.right, end, nodes)
    return np.asarray(mass)


def along(values: Floats, axis: int, axes: int) -> Floats:
    return values.reshape([POINTS if each == axis else 1 for each in range(axes)])


def marginal(mass: Floats, *kept: int) -> Floats:
    return np.asarray(mass.sum(axis=tuple(axis for axis in range(mass.ndim) if axis not in kept)))


@given(st.sampled_from(SMALL), some_trials, st.sampled_from(KERNELS))
def test_posteriors_are_the_marginals_of_the_joint_distribution(
    chains: Sequence[ChainShape], have: dict[str, Trials], kernel: Kernel
) -> None:
    tree, moving = tree_of(chains), transition_model(kernel)
    forest = forest_of([tree], have)
    mass = joint(tree, have, moving)
    mass /= mass.sum()
    found = posterior(forest, moving)
    masses, moves, reproduced = expected_moves(forest, moving)
    np.testing.assert_array_equal(masses, found.mass)
    steps = np.zeros((POINTS, POINTS))
    for node, parent in enumerate(tree.parents.tolist()):
        one = marginal(mass, node)
        np.testing.assert_allclose(found.mass[forest.numbers[0][node]], one, atol=1e-12)
        covariance = 0.0
        if parent != ROOT:
            both = marginal(mass, parent, node)
            steps += both
            covariance = float(GRID @ both @ GRID - (GRID @ marginal(mass, parent)) * (GRID @ one))
        assert found.with_parent[forest.numbers[0][node]] == pytest.approx(covariance, abs=1e-12)
    np.testing.assert_allclose(moves, steps, atol=1e-11)
    assert not reproduced.any()


@given(st.sampled_from(SMALL), some_trials, st.sampled_from(KERNELS))
def test_the_average_over_models_is_that_of_their_joint_distributions(
    chains: Sequence[ChainShape], have: dict[str, Trials], kernel: Kernel
) -> None:
    """With even odds, the joint distributions of both models just add up."""
    tree, moving = tree_of(chains), transition_model(kernel)
    forest = forest_of([tree], have)
    mass = joint(tree, have, moving) + joint(tree, have, unrelated(moving))
    mass /= mass.sum()
    found, _ = averaged(forest, weighted_models(forest, moving, len(chains)))
    for node, parent in enumerate(tree.parents.tolist()):
        one, at = marginal(mass, node), forest.numbers[0][node]
        np.testing.assert_allclose(found.mass[at], one, atol=2e-4)
        if parent != ROOT:
            covariance = GRID @ marginal(mass, parent, node) @ GRID - (GRID @ marginal(mass, parent)) * (GRID @ one)
            assert found.with_parent[at] == pytest.approx(covariance, abs=2e-4)


@pytest.mark.parametrize("shape", ["even", "all right", "all wrong", "against each other"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_two_thousand_rollouts_of_every_prefix_do_not_underflow(shape: str, kernel: Kernel) -> None:
    right = {"even": 1000, "all right": 2000, "all wrong": 0, "against each other": 2000}[shape]
    long = straight("p", 500, outcome=shape == "all wrong")
    have = {prefix: seen(right, 2000) for prefix in long.prefix_ids[:-1]}
    if shape == "against each other":
        have |= {prefix: seen(0, 2000) for prefix in long.prefix_ids[1:-1:2]}
    found = posterior(forest_of([tree_of([long])], have), transition_model(kernel))
    np.testing.assert_allclose(found.mass.sum(axis=1), 1)
    assert np.isfinite(found.with_parent).all()
    means = found.mass @ GRID
    truth = np.array([have[prefix].counts.correct / 2000 for prefix in long.prefix_ids[:-1]])
    np.testing.assert_allclose(means, truth, atol=0.02)


@pytest.mark.parametrize("branches", [2, 3000])
def test_thousands_of_branches_that_contradict_each_other_do_not_underflow(branches: int) -> None:
    chains = [chain("0", f"a{branch}", outcome=None) for branch in range(branches)]
    have = {f"a{branch}": seen(5 * (branch % 2), 5) for branch in range(branches)} | {"0": seen(10, 20)}
    moving = transition_model(JUMPS)
    found = posterior(forest_of([tree_of(chains)], have), moving)
    shown = np.log(moving.step @ (1 - GRID) ** 5) + np.log(moving.step @ GRID**5)
    with np.errstate(divide="ignore"):
        logs = np.log(moving.start) + 10 * (np.log(GRID) + np.log(1 - GRID)) + branches / 2 * shown
    mass = np.exp(logs - logs.max())
    np.testing.assert_allclose(found.mass[0], mass / mass.sum(), atol=1e-9)
    np.testing.assert_allclose(found.mass.sum(axis=1), 1)


def test_thousands_of_chains_of_one_step() -> None:
    chains = [chain("0", outcome=branch % 2 == 0) for branch in range(3000)]
    found = posterior(forest_of([tree_of(chains)], {}), transition_model(JUMPS))
    assert found.mass[0] @ GRID == pytest.approx(0.5, abs=0.02)


@given(st.permutations(range(len(SMALL))), some_trials, st.integers(1, len(SMALL)))
def test_order_and_company_of_problems_change_nothing(order: list[int], have: dict[str, Trials], taken: int) -> None:
    trees = [tree_of(SMALL[place]) for place in order[:taken]]
    moving = transition_model(JUMPS)
    forest = forest_of(trees, have)
    together = posterior(forest, moving)
    for tree, numbers in zip(trees, forest.numbers, strict=True):
        alone = posterior(forest_of([tree], have), moving)
        np.testing.assert_allclose(together.mass[numbers], alone.mass, atol=1e-14, rtol=1e-12)
        np.testing.assert_allclose(together.with_parent[numbers], alone.with_parent, atol=1e-14)
