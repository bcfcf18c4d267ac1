"""Posteriors of nodes: what they may be, and what they are learned from."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.trees.posterior import (
    USUAL_STRENGTH,
    MeasuredStep,
    Posterior,
    learned_strength,
    posteriors,
    probabilities_better,
    strength_after,
)
from pipeline.trees.tree import WrittenRollout
from tests.trees.growing import at, chain, grown, rollout
from tests.trees.test_tree import CHAINS, logs

strengths = st.floats(0.1, 100.0)


@given(logs(), strengths)
def test_the_mean_of_what_is_not_known_is_between_0_and_1(log: list[WrittenRollout], strength: float) -> None:
    tree = grown(CHAINS, log)
    for node, found in zip(tree.nodes, posteriors(tree, strength), strict=True):
        if node.ended and node.outcome is not None:
            assert found.mean == node.outcome
        else:
            assert 0 < found.mean < 1
            assert found.a + found.b >= node.graded
        assert 0 <= found.above(0.5) <= 1


@given(st.integers(0, 8), st.integers(0, 8), strengths)
def test_more_correct_rollouts_make_a_node_better(correct: int, wrong: int, strength: float) -> None:
    def mean(more: int) -> float:
        said = ["correct"] * (correct + more) + ["incorrect"] * (wrong + 1 - more)
        log = [rollout("a", f"x\n{number}", verdict, number) for number, verdict in enumerate(said)]
        log += [rollout("a", "b\nz", "incorrect", 100), rollout("a", "b\nz", "correct", 101)]
        tree = grown([chain("a", "b", "end")], log)
        return posteriors(tree, strength)[at(tree, "a", "x")].mean

    assert mean(1) > mean(0)


def test_rollouts_through_a_node_are_not_counted_twice() -> None:
    """All rollouts of a node's parent go through the node, so its prior follows from the prior of the parent alone."""
    log = [rollout("a", "b\nc", number=number) for number in range(6)]
    tree = grown([chain("a", "b", "end")], log)
    found = posteriors(tree, 2.0)
    root, first, second = (found[at(tree, *steps)] for steps in ((), ("a",), ("a", "b")))
    assert root == Posterior(0.5, 0.5)
    assert first == Posterior(0.25 + 6, 0.25)
    assert second == pytest.approx((1 / 7 + 6, 1 / 7))


@given(st.floats(0.3, 20.0), st.floats(0.3, 20.0), st.floats(0.1, 50.0))
def test_the_prior_after_a_step_has_the_variance_of_the_parent_and_of_the_step(
    a: float, b: float, strength: float
) -> None:
    """Beta(s V, s (1 - V)) has the second moment V (s V + 1) / (s + 1); its expectation over V of Beta(a, b) is exact."""
    mean = a / (a + b)
    of_square = mean * (a + 1) / (a + b + 1)
    second = (strength * of_square + mean) / (strength + 1)
    prior = strength_after(a + b, strength)
    assert mean * (prior * mean + 1) / (prior + 1) == pytest.approx(second, rel=1e-9)


def test_what_comes_late_in_a_wrong_rollout_is_lost_rather_surely() -> None:
    log = [rollout("a", "b\nc\nd\ne\nf", "incorrect")]
    tree = grown([chain("a", "z", "end")], log)
    found = posteriors(tree, 1.0)
    means = [found[at(tree, "a", *steps)].mean for steps in ("b", "bc", "bcd", "bcde")]
    assert means == sorted(means, reverse=True)
    assert means[-1] < means[0] / 3


nodes = st.builds(Posterior, st.floats(0.05, 60.0), st.floats(0.05, 60.0)) | st.sampled_from(
    [Posterior(1.0, 0.0), Posterior(0.0, 1.0)]
)


@given(st.lists(nodes, min_size=1, max_size=6))
def test_one_of_two_nodes_is_better_with_probabilities_that_add_up(found: list[Posterior]) -> None:
    better = probabilities_better(found)
    assert np.allclose(better + better.T, 1.0)
    assert (better >= -1e-12).all()
    assert np.allclose(np.diag(better), 0.5)


@given(nodes, st.floats(0.0, 1.0))
def test_the_probability_to_be_above_a_threshold_falls_with_it(node: Posterior, threshold: float) -> None:
    assert 0.0 <= node.above(threshold) <= 1.0
    assert node.above(threshold) >= node.above(min(1.0, threshold + 0.1)) - 1e-12


def test_probabilities_are_those_of_samples() -> None:
    random = np.random.default_rng(3)
    found = [Posterior(2.0, 3.0), Posterior(7.0, 4.0), Posterior(0.5, 0.5), Posterior(3.0, 1.5), Posterior(0.0, 1.0)]
    draws = [random.beta(node.a, node.b, 200_000) if node.a else np.zeros(200_000) for node in found]
    better = probabilities_better(found)
    for one, row in enumerate(draws):
        for other, column in enumerate(draws):
            if one != other:
                assert better[one, other] == pytest.approx(float((row > column).mean()), abs=0.05)


def test_values_that_hardly_differ_count_as_equal() -> None:
    better = probabilities_better([Posterior(1.0, 0.0), Posterior(1e4, 1.0), Posterior(30.0, 10.0)])
    assert better[0, 1] == pytest.approx(0.5, abs=0.01)
    assert better[0, 2] == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("strength", [0.5, 2.0, 10.0])
def test_the_strength_of_simulated_steps_is_found(strength: float) -> None:
    random = np.random.default_rng(17)
    before = random.uniform(0.05, 0.95, 4_000)
    values = random.beta(strength * before, strength * (1 - before))
    counted = random.binomial(4_000, before), random.binomial(16, values)
    found = learned_strength(
        MeasuredStep(int(above), 4_000, int(correct), 16) for above, correct in zip(*counted, strict=True)
    )
    assert strength / 1.3 < found < strength * 1.3


def test_few_measured_steps_have_the_usual_strength() -> None:
    some = [MeasuredStep(4, 8, 0, 8)] * 29
    assert learned_strength([]) == learned_strength(some) == USUAL_STRENGTH
    assert learned_strength([*some, MeasuredStep(4, 8, 0, 0), MeasuredStep(0, 0, 4, 8)]) == USUAL_STRENGTH
    assert learned_strength([*some, MeasuredStep(4, 8, 8, 8)]) < USUAL_STRENGTH
