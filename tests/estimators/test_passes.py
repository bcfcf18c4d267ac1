"""Rollouts that reproduce steps: each counts once, as a trial of the right prefix."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta

from pipeline.core.records import ChainShape, Trials
from pipeline.estimators.pooled.forest import forest_of, passes_of
from pipeline.estimators.pooled.grid import GRID, POINTS, mean_of, variance_of
from pipeline.estimators.pooled.kernel import PRIOR, Kernel, TransitionModel, transition_model
from pipeline.estimators.pooled.posterior import expected_moves, posterior
from pipeline.estimators.pooled.reproduction import _TRUST, ANGLES, KINDS, Branching, Habits, factor, learned_counts
from pipeline.estimators.tree import Floats, tree_of
from tests.estimators.pooled import JUMPS, chain, seen, straight, trials

OFFSETS = np.array([-1, 0, 1]) / 3 / (POINTS - 1)


def rollouts(*drawn: tuple[bool | None, str | None]) -> Trials:
    known = trials([outcome for outcome, _ in drawn])
    return replace(known, reached=tuple(reached for _, reached in drawn))


def step_likelihood(taken: int, left: int, correct: int) -> Floats:
    """By a sum over probabilities of the step and places within intervals, (POINTS, POINTS)."""
    edges = np.sin(np.linspace(0, np.pi / 2, ANGLES + 1)) ** 2
    p = np.sin((np.arange(ANGLES) + 0.5) * np.pi / 2 / ANGLES) ** 2
    likely, common = np.zeros((POINTS, POINTS)), np.zeros((POINTS, POINTS))
    for probability, share in zip(p, np.diff(beta(0.15, 0.85).cdf(edges)), strict=True):
        for offset in OFFSETS:
            before = np.clip(GRID + offset, 0, 1)[:, None]
            u = (before - probability * GRID) / (1 - probability)
            possible = (u > -1e-9) & (u < 1 + 1e-9)
            u = np.clip(u, 0, 1)
            outcomes = probability**taken * (1 - probability) ** left * u**correct * (1 - u) ** (left - correct)
            likely += np.where(possible, share * outcomes, 0)
            common += np.where(possible, share, 0)
    return np.asarray((likely / common) ** _TRUST)


some_rollouts = st.lists(st.tuples(st.sampled_from([True, False, None]), st.integers(0, 2)), max_size=6)


@given(st.lists(some_rollouts, min_size=3, max_size=3), st.sampled_from([PRIOR, JUMPS]), st.booleans())
def test_posteriors_are_those_of_a_sum_over_values_and_probabilities_of_steps(
    drawn: list[list[tuple[bool | None, int]]], kernel: Kernel, ended: bool
) -> None:
    line = straight("p", 3, outcome=ended)
    have = {
        f"p{node}": rollouts(*((outcome, f"p{last}" if last > node else None) for outcome, last in each))
        for node, each in enumerate(drawn)
    }
    moving, forest = transition_model(kernel), forest_of([tree_of([line])], have)
    steps = np.zeros((2, 3), dtype=np.int64)
    own = np.zeros((3, 2), dtype=np.int64)
    for node, each in enumerate(drawn):
        for outcome, last in each:
            if outcome is not None:
                for passed in range(node, last):
                    steps[passed, 0] += 1
                own[max(node, last)] += (outcome, 1)
    mass = moving.start[:, None, None] * moving.step[:, :, None] * moving.step
    mass = mass * (moving.right if ended else 1 - moving.right)
    recorded = any(last > node for node, each in enumerate(drawn) for _, last in each)
    for node, (correct, graded) in enumerate(own.tolist()):
        shape = [POINTS if axis == node else 1 for axis in range(3)]
        if node < 2 and recorded and (steps[node, 0] or graded):
            around = [POINTS if axis in (node, node + 1) else 1 for axis in range(3)]
            mass = mass * step_likelihood(steps[node, 0], graded, correct).reshape(around)
        else:
            mass = mass * (GRID**correct * (1 - GRID) ** (graded - correct)).reshape(shape)
    mass /= mass.sum()
    found = posterior(forest, moving)
    masses, moves, reproduced = expected_moves(forest, moving)
    np.testing.assert_array_equal(masses, found.mass)
    for node in range(3):
        others = tuple(axis for axis in range(3) if axis != node)
        np.testing.assert_allclose(found.mass[node], mass.sum(axis=others), atol=1e-8)
    pairs = mass.sum(axis=2), mass.sum(axis=0)
    np.testing.assert_allclose(moves, sum(pairs), atol=1e-8)
    assert reproduced.sum() == pytest.approx(len(forest.taken.nodes))
    for node, pair in enumerate(pairs, start=1):
        covariance = GRID @ pair @ GRID - (GRID @ pair.sum(axis=1)) * (pair.sum(axis=0) @ GRID)
        assert found.with_parent[node] == pytest.approx(covariance, abs=1e-8)


@pytest.mark.parametrize(("taken", "left", "correct"), [(1, 0, 0), (3, 5, 2), (1, 15, 15), (20, 20, 3), (60, 4, 0)])
@pytest.mark.parametrize("behind", [0.0, 0.125, 0.5, 0.75])
def test_few_probabilities_and_places_are_enough(taken: int, left: int, correct: int, behind: float) -> None:
    p = (np.arange(1_000) + 0.5) / 1_000
    places = np.clip(GRID[:, None] + (np.arange(-20, 21) / 41) / (POINTS - 1), 0, 1)[:, :, None]
    u = (places - p * behind) / (1 - p)
    common = np.where((u >= 0) & (u <= 1), beta(0.15, 0.85).pdf(p), 0)
    u = np.clip(u, 0, 1)
    outcomes = p**taken * (1 - p) ** left * u**correct * (1 - u) ** (left - correct)
    exact = (common * outcomes).sum(axis=(1, 2)) / common.sum(axis=(1, 2))
    known = factor(Branching(taken=taken, left=left, correct=correct), Habits(np.zeros((KINDS, ANGLES))))
    found = known[:, round(behind * (POINTS - 1))] ** (1 / _TRUST)
    assert np.abs(found / found.sum() - exact / exact.sum()).sum() / 2 < 0.08


def test_how_often_steps_are_reproduced_is_learned_by_the_change_of_the_value() -> None:
    """Steps that keep the value at 0.5 are reproduced nearly always, those at which it falls to 0 nearly never."""
    keeps, falls = Branching(taken=19, left=1, correct=0), Branching(taken=1, left=19, correct=10)
    half = POINTS // 2
    pairs = np.zeros((40, POINTS, POINTS))
    pairs[:20, half, half] = 1.0
    pairs[20:, half, 0] = 1.0
    counts = learned_counts([keeps] * 20 + [falls] * 20, pairs, Habits(np.zeros((KINDS, ANGLES))))
    assert counts.sum() == pytest.approx(40)
    kept, fell = counts[1], counts[-1]
    assert kept.sum() == pytest.approx(20)
    assert fell.sum() == pytest.approx(20)
    p = np.sin((np.arange(ANGLES) + 0.5) * np.pi / 2 / ANGLES) ** 2
    assert kept @ p / kept.sum() > 0.85
    assert fell @ p / fell.sum() < 0.15
    taken = Branching(taken=3, left=1, correct=0)
    before, after = (factor(taken, Habits(known)) for known in (np.zeros((KINDS, ANGLES)), counts))
    assert after[half, half] / after[half, 0] > 2 * before[half, half] / before[half, 0]


def test_the_only_next_step_counts_although_no_rollout_took_it() -> None:
    own, steps = counted(
        [straight("p", 3)], {"p0": rollouts((True, None), (False, None)), "p1": rollouts((True, "p2"))}
    )
    assert own == {"p0": (0, 0), "p1": (0, 0), "p2": (1, 1)}
    assert steps["p1"] == Branching(taken=0, left=2, correct=1)


def test_thousands_of_passes_leave_posteriors_finite() -> None:
    line = straight("p", 4, outcome=None)
    have = {
        "p0": rollouts(*[(True, "p3")] * 3000, *[(False, None)] * 1000),
        "p1": rollouts(*[(False, "p2")] * 2000, *[(True, None)] * 10),
    }
    found = posterior(forest_of([tree_of([line])], have), transition_model(JUMPS))
    np.testing.assert_allclose(found.mass.sum(axis=1), 1)
    assert np.isfinite(found.with_parent).all()


def counted(
    chains: list[ChainShape], have: dict[str, Trials]
) -> tuple[dict[str, tuple[int, int]], dict[str, Branching]]:
    tree = tree_of(chains)
    found = passes_of(tree.prefix_ids, tree.parents, have)
    assert found is not None
    names = tree.prefix_ids
    return {names[node]: own for node, own in found.own.items()}, {
        names[node]: each for node, each in found.steps.items()
    }


def test_a_rollout_counts_where_it_left_the_chain_and_for_every_step_on_the_way() -> None:
    have = {"p0": rollouts((True, "p2"), (False, "p1"), (True, None)), "p1": rollouts((False, None), (True, "p2"))}
    own, steps = counted([straight("p", 3)], have)
    assert own == {"p0": (0, 0), "p1": (0, 0), "p2": (2, 2)}
    assert steps == {"p1": Branching(taken=2, left=1, correct=1), "p2": Branching(taken=2, left=2, correct=0)}


def test_of_two_steps_the_one_counts_that_more_took_and_ungraded_rollouts_do_not() -> None:
    forked = [chain("p", "a"), chain("p", "b")]
    have = {"p": rollouts((True, "a"), (False, "b"), (True, "b"), (None, "a"), (None, "a")), "a": seen(1, 1)}
    own, steps = counted(forked, have)
    assert own == {"p": (0, 0), "a": (1, 1), "b": (1, 2)}
    assert steps == {"b": Branching(taken=2, left=1, correct=1)}


def test_a_prefix_that_no_chain_leads_to_is_not_reached() -> None:
    own, steps = counted([straight("p", 3)], {"p1": rollouts((True, "p0"), (True, "elsewhere"), (False, "p1"))})
    assert (own, steps) == ({"p1": (0, 0)}, {"p2": Branching(taken=0, left=3, correct=2)})


def test_nothing_changes_for_a_problem_none_of_whose_steps_was_reproduced() -> None:
    line, moving = straight("p", 6), transition_model(JUMPS)
    have = {f"p{node}": seen(node % 3, 4) for node in range(6)}
    other = straight("q", 3)
    passing = have | {"q0": rollouts((True, "q1"), (False, None))}
    alone = forest_of([tree_of([line])], have)
    assert not len(alone.taken.nodes)
    together = forest_of([tree_of([line]), tree_of([other])], passing)
    np.testing.assert_array_equal(alone.correct, [have[f"p{node}"].counts.correct for node in range(6)])
    np.testing.assert_array_equal(alone.tried, alone.graded)
    np.testing.assert_allclose(
        posterior(together, moving).mass[together.numbers[0]], posterior(alone, moving).mass, atol=1e-14
    )


STEPS, CHAINS, EACH = 6, 1500, 4


def drawn_values(rng: np.random.Generator, moving: TransitionModel) -> Floats:
    values = np.empty((CHAINS, STEPS), dtype=np.int64)
    values[:, 0] = rng.choice(POINTS, CHAINS, p=moving.start)
    ahead = np.cumsum(moving.step, axis=1)
    for step in range(1, STEPS):
        values[:, step] = np.minimum((ahead[values[:, step - 1]] < rng.random((CHAINS, 1))).sum(axis=1), POINTS - 1)
    return np.asarray(GRID[values])


@pytest.mark.parametrize(
    ("spread", "naive_at_most"), [((0.15, 0.85), 0.95), ((1.0, 1.0), 0.92)], ids=["measured", "even"]
)
def test_values_are_calibrated_and_would_not_be_if_outcomes_counted_twice(
    spread: tuple[float, float], naive_at_most: float
) -> None:
    rng, moving, prior = np.random.default_rng(3), transition_model(JUMPS), beta(*spread)
    values = drawn_values(rng, moving)
    before, behind = values[:, :-1], values[:, 1:]
    with np.errstate(divide="ignore", invalid="ignore"):
        most = np.fmin(np.fmin(before / behind, (1 - before) / (1 - behind)), 1)
        taken = prior.ppf(rng.random(most.shape) * prior.cdf(most))
        elsewhere = np.where(taken < 1, np.clip((before - taken * behind) / (1 - taken), 0, 1), before)
    once: dict[str, Trials] = {}
    twice: dict[str, Trials] = {}
    for name in range(CHAINS):
        drawn: list[list[tuple[bool, str | None]]] = [[] for _ in range(STEPS)]
        passing: list[list[bool]] = [[] for _ in range(STEPS)]
        goes, outcome = rng.random((STEPS, EACH, STEPS)), rng.random((STEPS, EACH))
        for start in range(STEPS):
            for each in range(EACH):
                at = start
                while at < STEPS - 1 and goes[start, each, at] < taken[name, at]:
                    at += 1
                right = bool(outcome[start, each] < (elsewhere[name, at] if at < STEPS - 1 else values[name, at]))
                drawn[start].append((right, f"{name} {at}" if at > start else None))
                for passed in range(start, at + 1):
                    passing[passed].append(right)
        once |= {f"{name} {step}": rollouts(*each) for step, each in enumerate(drawn)}
        twice |= {f"{name} {step}": seen(sum(each), len(each)) for step, each in enumerate(passing)}
    trees = [tree_of([straight(f"{name} ", STEPS, outcome=None)]) for name in range(CHAINS)]

    def covered(have: dict[str, Trials]) -> float:
        forest = forest_of(trees, have)
        mass = posterior(forest, moving).mass[np.stack(forest.numbers)]
        return float((np.abs(mean_of(mass) - values) <= 1.96 * np.sqrt(variance_of(mass))).mean())

    # The exponent `_TRUST` makes the posterior a little wider than this exact model needs.
    assert 0.94 <= covered(once) <= 0.975
    assert covered(twice) < naive_at_most
