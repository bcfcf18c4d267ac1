"""Values of the pooled estimator: `value` is unbiased, by enumeration of all outcomes; the rest is calibrated."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config.choices import BudgetUnit, Interval, LabelRule
from pipeline.config.label import EstimatorConfig
from pipeline.core.records import ChainShape, Origin, StepValue, Trials
from pipeline.estimators.intervals import clopper_pearson
from pipeline.estimators.pooled import allocation as pooled_choice
from pipeline.estimators.pooled.estimator import values
from pipeline.estimators.pooled.forest import forest_of
from pipeline.estimators.pooled.grid import (
    EDGES,
    GRID,
    POINTS,
    mass_above,
    mean_of,
    quantiles_of,
    share_above,
    variance_of,
)
from pipeline.estimators.pooled.kernel import PRIOR, Kernel, transition_model
from pipeline.estimators.pooled.posterior import LARGE_FALL, path_probabilities, posterior_with_falls
from pipeline.estimators.registry import estimator_for
from pipeline.estimators.settings import FixedConfig, PooledConfig
from pipeline.estimators.tree import Floats, Tree, tree_of, trees_of
from tests.estimators.pooled import (
    CONSTANT,
    JUMPS,
    POOLED,
    SMOOTH,
    Engine,
    Outcome,
    chain,
    played,
    sampled,
    seen,
    straight,
    trials,
)

pytestmark = pytest.mark.slow

ONE = [straight("p", 3, outcome=False, prices=(3, 2, 1, 0))]
FORKED = [chain("p0", "p1"), chain("p0", "p2", outcome=False)]
TRUTHS = [
    dict(zip(("p0", "p1", "p2"), each, strict=True))
    for each in [(0.5, 0.5, 0.5), (0.9, 0.3, 0.6), (0.05, 0.5, 0.97), (0.2, 0.0, 1.0)]
]

Graded = Callable[[int], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """One possible course of sampling: its probability, its trials, and the value of each prefix by id."""

    have: dict[str, Trials]
    values: dict[str, float | None]

    def probability(self, truth: Mapping[str, float]) -> float:
        counts = {prefix: each.counts for prefix, each in self.have.items()}
        return prod(truth[p] ** c.correct * (1 - truth[p]) ** (c.graded - c.correct) for p, c in counts.items())


def leaves(chains: Sequence[ChainShape], config: EstimatorConfig, kernel: Kernel, graded: Graded) -> list[Leaf]:
    """All possible courses. A correct rollout has 10 tokens, an incorrect one 30, so a budget in tokens depends on outcomes."""
    tree = tree_of(chains)
    found: list[Leaf] = []
    going: list[dict[str, Trials]] = [{}]
    while going:
        # One tree per way: they have nothing in common, but one call is enough for all of them.
        named = [
            (renamed(tree, place), {f"{place} {p}": t for p, t in have.items()}) for place, have in enumerate(going)
        ]
        asked = estimator_for(config).next_rollouts(
            [each for each, _ in named], {p: t for _, have in named for p, t in have.items()}, 4, kernel
        )
        further = []
        for have, more in zip(going, asked, strict=True):
            if more:
                further += grown(have, {prefix.split(" ", 1)[1]: count for prefix, count in more.items()}, graded)
            else:
                found.append(Leaf(have=have, values=said(chains, have, config, kernel)))
        going = further
    return found


def renamed(tree: Tree, place: int) -> Tree:
    return replace(tree, prefix_ids=tuple(f"{place} {prefix}" for prefix in tree.prefix_ids))


def recorded(outcomes: Mapping[tuple[str, int], Outcome]) -> Engine:
    return lambda prefix, index: (outcomes.get((prefix, index)), 10 if outcomes.get((prefix, index)) else 30)


def grown(have: dict[str, Trials], more: dict[str, int], graded: Graded) -> list[dict[str, Trials]]:
    places = [(p, len(have[p].outcomes) + n if p in have else n) for p, count in more.items() for n in range(count)]
    free = [place for place in places if graded(place[1])]
    ways = []
    for drawn in product((True, False), repeat=len(free)):
        outcomes: dict[tuple[str, int], Outcome] = dict(zip(free, drawn, strict=True))
        ways.append(sampled(have, [more], recorded(outcomes)))
    return ways


def said(
    chains: Sequence[ChainShape], have: dict[str, Trials], config: EstimatorConfig, kernel: Kernel
) -> dict[str, float | None]:
    steps = values(chains, have, config, kernel)
    return {
        prefix: step.unbiased_value
        for c, along in zip(chains, steps, strict=True)
        for prefix, step in zip(c.prefix_ids, along, strict=True)
    }


def moments(
    found: list[Leaf], truth: Mapping[str, float], estimate: Callable[[Leaf], float | None]
) -> tuple[float, float] | None:
    """Mean and variance of an estimate, given that there is one."""
    shown = [(leaf.probability(truth), estimate(leaf)) for leaf in found]
    kept = [(weight, each) for weight, each in shown if each is not None and weight]
    total = sum(weight for weight, _ in kept)
    if not total:
        return None
    mean = sum(weight * each for weight, each in kept) / total
    return mean, sum(weight * (each - mean) ** 2 for weight, each in kept) / total


def value_of(prefix: str) -> Callable[[Leaf], float | None]:
    return lambda leaf: leaf.values.get(prefix)


def share_of(prefix: str) -> Callable[[Leaf], float | None]:
    def share(leaf: Leaf) -> float | None:
        counts = leaf.have[prefix].counts if prefix in leaf.have else None
        return counts.correct / counts.graded if counts and counts.graded else None

    return share


def always(index: int) -> bool:
    return True


def every_second(index: int) -> bool:
    return index % 2 == 1


@pytest.mark.parametrize(
    ("chains", "unit", "budget", "graded", "first", "kernel"),
    [
        (ONE, BudgetUnit.rollouts, 7, always, 4, PRIOR),
        (ONE, BudgetUnit.rollouts, 7, always, 1, PRIOR),
        (ONE, BudgetUnit.rollouts, 7, always, 2, JUMPS),
        (ONE, BudgetUnit.rollouts, 10, every_second, 4, PRIOR),
        (ONE, BudgetUnit.rollouts, 10, every_second, 1, JUMPS),
        (ONE, BudgetUnit.tokens, 90, always, 4, JUMPS),
        (ONE, BudgetUnit.tokens, 90, always, 1, PRIOR),
        (ONE, BudgetUnit.tokens, 150, every_second, 2, PRIOR),
        (FORKED, BudgetUnit.rollouts, 4, always, 4, PRIOR),
        (FORKED, BudgetUnit.rollouts, 4, always, 1, JUMPS),
        (FORKED, BudgetUnit.tokens, 60, always, 2, PRIOR),
    ],
)
def test_the_value_of_every_prefix_is_unbiased(
    chains: list[ChainShape],
    unit: BudgetUnit,
    budget: int,
    graded: Graded,
    first: int,
    kernel: Kernel,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """This also holds with smaller rounds than in the pipeline, and so more decisions."""
    monkeypatch.setattr(pooled_choice, "_FIRST", first)
    found = leaves(chains, replace(POOLED, budget=budget, budget_unit=unit, target_sd=0.05), kernel, graded)
    shown = 0
    for truth in TRUTHS:
        assert sum(leaf.probability(truth) for leaf in found) == pytest.approx(1, abs=1e-12)
        for prefix, v in truth.items():
            mean_and_variance = moments(found, truth, value_of(prefix))
            if mean_and_variance:
                assert mean_and_variance[0] == pytest.approx(v, abs=1e-12)
                shown += 1
    assert shown >= 2 * len(TRUTHS)


def test_the_share_of_all_rollouts_is_biased_and_varies_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """The price of an unbiased value. It is lower where a first round is larger, and so is the bias of the share."""
    config = replace(POOLED, budget=8, budget_unit=BudgetUnit.rollouts, target_sd=0.05)
    worst, price = {}, {}
    for first in (1, 4):
        monkeypatch.setattr(pooled_choice, "_FIRST", first)
        found = leaves(ONE, config, PRIOR, always)
        shares = {(p, place): moments(found, truth, share_of(p)) for place, truth in enumerate(TRUTHS) for p in truth}
        worst[first] = max(abs(shown[0] - TRUTHS[place][p]) for (p, place), shown in shares.items() if shown)
        of_value, of_share = (moments(found, TRUTHS[0], each("p2")) for each in (value_of, share_of))
        assert of_value
        assert of_share
        price[first] = of_value[1] / of_share[1]
    assert min(worst.values()) > 0.05
    assert price[1] > price[4] > 1


def test_the_value_is_of_the_first_round_with_a_grade() -> None:
    have = {"p0": trials([None], [None, True, False], [True, True]), "p1": trials([None, None]), "p3": trials([False])}
    shape = straight("p", 4)
    steps = values([shape], have, replace(POOLED, interval=Interval.clopper_pearson), PRIOR)[0]
    first, second, third, fourth, last = steps
    assert (first.unbiased_value, first.unbiased_rollouts, first.counts.graded) == (0.5, 2, 4)
    assert first.origin is Origin.MEASURED
    assert (first.low, first.high) == clopper_pearson(1, 2, 0.95)
    for implied in (second, third):
        assert (implied.unbiased_value, implied.unbiased_rollouts, implied.low) == (None, 0, None)
        assert implied.origin is Origin.IMPLIED
        assert implied.value is not None
    assert (fourth.unbiased_value, last.value, last.origin) == (0.0, 1.0, Origin.TERMINAL)
    implied = values([shape], have, POOLED, PRIOR)[0][1]
    assert implied.low is not None
    assert implied.value is not None
    assert implied.high is not None
    assert implied.low < implied.value < implied.high


def test_advantages_are_differences_and_their_sd_knows_that_neighbours_are_alike() -> None:
    have = {f"p{step}": seen(4, 8) for step in range(3)}
    steps = values([straight("p", 3, outcome=False)], have, POOLED, CONSTANT)[0]
    assert steps[0].advantage is None
    means = [step.value for step in steps]
    assert [step.advantage for step in steps[1:]] == pytest.approx(np.diff(np.array(means, dtype=float)).tolist())
    for before, step in pairwise(steps[:3]):
        assert before.value_sd
        assert step.value_sd
        assert step.advantage_sd is not None
        assert step.advantage_sd < 0.5 * np.hypot(before.value_sd, step.value_sd)
    assert steps[-1].advantage_sd == steps[-2].value_sd


def test_values_come_in_the_order_of_chains_and_equal_prefixes_have_equal_ones() -> None:
    chains = [chain("0", "a", "b"), chain("1", "c", outcome=None), chain("0", "a", "d", outcome=False), chain("1")]
    have = {"0": seen(3, 4), "b": seen(5, 5), "c": seen(0, 3)}
    said = values(chains, have, POOLED, JUMPS)
    assert [len(steps) for steps in said] == [4, 2, 4, 2]
    assert [step.value for step in said[0][:2]] == [step.value for step in said[2][:2]]
    assert [tree.prefix_ids[0] for tree in trees_of(chains)] == ["0", "1"]
    assert values([], have, POOLED, JUMPS) == []
    known_well = replace(JUMPS, chains=10**6)
    alone, said = (values(each, have, POOLED, known_well) for each in (chains[1:2] + chains[3:], chains))
    assert [step.value for step in alone[0]] == pytest.approx([step.value for step in said[1]])


masses = st.lists(st.floats(0, 1).map(lambda x: x**4), min_size=POINTS, max_size=POINTS).filter(
    lambda each: sum(each) > 0.01
)


@given(masses, st.sampled_from([0.5, 0.8, 0.95, 0.99]))
def test_an_interval_holds_its_confidence_and_the_ends_where_they_matter(
    weights: list[float], confidence: float
) -> None:
    mass = np.array(weights) / sum(weights)
    low, high = (float(bound) for bound in quantiles_of(mass, confidence))
    held = float(mass @ (np.maximum(np.minimum(high, EDGES[1:]) - np.maximum(low, EDGES[:-1]), 0) / np.diff(EDGES)))
    tail = (1 - confidence) / 2
    at_ends = mass[0] >= tail and mass[-1] >= tail
    assert held == pytest.approx(1 if at_ends else confidence, abs=1e-9)
    assert (low == 0) == (mass[0] >= tail)
    assert (high == 1) == (mass[-1] >= tail)


@given(masses)
def test_moments_and_mass_above_a_threshold(weights: list[float]) -> None:
    mass = np.array(weights) / sum(weights)
    inner = np.append(0, np.append(np.diff(EDGES)[1:-1] ** 2 / 12, 0))
    assert mean_of(mass) == pytest.approx(mass @ GRID)
    assert variance_of(mass) == pytest.approx(mass @ ((GRID - mass @ GRID) ** 2 + inner))
    assert mass_above(mass, 0.0) == pytest.approx(1 - mass[0])
    assert mass_above(mass, 0.5) == pytest.approx(mass[13:].sum() + mass[12] / 2)
    above = [float(mass_above(mass, threshold)) for threshold in np.linspace(0, 0.999, 50)]
    assert above == sorted(above, reverse=True)


def drawn(kernel: Kernel, chains: int, steps: int, random: np.random.Generator) -> tuple[list[ChainShape], Floats]:
    """Chains drawn from the kernel, with their values, which are uniform within the interval of a grid point."""
    moving = transition_model(kernel)
    at = np.empty((chains, steps), dtype=np.int64)
    at[:, 0] = random.choice(POINTS, size=chains, p=moving.start)
    for step in range(1, steps):
        at[:, step] = [random.choice(POINTS, p=moving.step[before]) for before in at[:, step - 1]]
    truth = random.uniform(EDGES[at], EDGES[at + 1])
    truth[at == 0], truth[at == POINTS - 1] = 0.0, 1.0
    right = random.random(chains) < moving.right[at[:, -1]]
    return [straight(f"{name} ", steps, bool(outcome)) for name, outcome in enumerate(right)], truth


KERNELS = [pytest.param(JUMPS, id="jumps"), pytest.param(SMOOTH, id="smooth", marks=pytest.mark.nightly)]


@pytest.mark.parametrize("kernel", KERNELS)
def test_intervals_and_sds_are_calibrated_over_chains_such_as_the_kernel_knows(kernel: Kernel) -> None:
    """A point more or less than 95 % may be chance, with 500 chains whose eight values are not independent. Before likely falls
    intervals are wider, so that a little more than 95 % of all values may be within theirs."""
    random = np.random.default_rng(1)
    chains, truth = drawn(kernel, 500, 8, random)
    of = {prefix: v for c, row in zip(chains, truth, strict=True) for prefix, v in zip(c.prefix_ids, row, strict=False)}
    have = played(trees_of(chains), lambda prefix, _: (bool(random.random() < of[prefix]), 1), POOLED, kernel)
    said = [step for steps in values(chains, have, POOLED, kernel) for step in steps[:-1]]
    low, high, mean, sd = (np.array(each, dtype=float).reshape(truth.shape) for each in columns(said))
    within = ((low <= truth) & (truth <= high)).mean()
    near = (np.abs(truth - mean) <= 1.96 * sd).mean()
    error = np.sqrt(np.mean((mean - truth) ** 2))
    assert 0.938 <= within <= 0.98
    assert near == pytest.approx(0.95, abs=0.012)
    assert error == pytest.approx(np.sqrt(np.mean(sd**2)), rel=0.07)
    assert np.sqrt(np.mean(sd**2)) < 1.1 * POOLED.wanted_sd


@pytest.mark.parametrize("kernel", KERNELS)
def test_probabilities_of_falls_are_calibrated_and_intervals_hold_the_value_before_the_largest(kernel: Kernel) -> None:
    """Intervals of 95 % everywhere would hold 88 % of the values before the largest fall of the chains with jumps. Of
    the smooth ones, only some 30 have a large fall."""
    random = np.random.default_rng(2)
    chains, truth = drawn(kernel, 500, 8, random)
    of = {prefix: v for c, row in zip(chains, truth, strict=True) for prefix, v in zip(c.prefix_ids, row, strict=False)}
    trees = trees_of(chains)
    have = played(trees, lambda prefix, _: (bool(random.random() < of[prefix]), 1), POOLED, kernel)
    forest = forest_of(trees, have)
    _, falls_of = posterior_with_falls(forest, transition_model(kernel))
    said = np.array([falls_of[numbers[tree.paths[0]]] for tree, numbers in zip(trees, forest.numbers, strict=True)])
    after = np.column_stack([truth[:, 1:], [float(bool(chain.outcome)) for chain in chains]])
    fell = np.round(truth * (POINTS - 1)) - np.round(after * (POINTS - 1)) >= LARGE_FALL * (POINTS - 1)
    assert said.mean() == pytest.approx(fell.mean(), abs=0.015)
    for low, high in ((0.02, 0.2), (0.2, 0.6), (0.6, 1.01)):
        among = (low <= said) & (said < high)
        assert said[among].mean() == pytest.approx(fell[among].mean(), abs=0.1)
    labelled = [step for steps in values(chains, have, POOLED, kernel) for step in steps[:-1]]
    bounds = np.array([[step.low, step.high] for step in labelled], dtype=float).reshape(*truth.shape, 2)
    falls = -np.diff(truth, axis=1)
    chosen = np.flatnonzero(falls.max(axis=1) >= LARGE_FALL)
    at = falls[chosen].argmax(axis=1)
    value = truth[chosen, at]
    assert ((bounds[chosen, at, 0] <= value) & (value <= bounds[chosen, at, 1])).mean() >= (
        0.92 if kernel is JUMPS else 0.7
    )


def columns(said: Sequence[StepValue]) -> list[list[float | None]]:
    return [list(each) for each in zip(*((s.low, s.high, s.value, s.value_sd) for s in said), strict=True)]


@pytest.mark.parametrize("outcome", [True, False, None])
def test_probabilities_of_a_path_are_those_of_a_sum_over_all_values(outcome: bool | None) -> None:
    """The values of 3 prefixes, and of another chain that shares the first one."""
    chains = [chain("p0", "p1", "p2", outcome=outcome), chain("p0", "q1", outcome=False)]
    have = {"p0": seen(1, 2), "p1": seen(1, 3), "p2": seen(0, 2), "q1": seen(0, 1)}
    moving, forest = transition_model(JUMPS), forest_of([tree_of(chains)], have)
    below = {
        name: GRID**c * (1 - GRID) ** (n - c)
        for name, (c, n) in zip(have, ((1, 2), (1, 3), (0, 2), (0, 1)), strict=True)
    }
    other = moving.step @ (below["q1"] * (1 - moving.right))
    end = {True: moving.right, False: 1 - moving.right, None: np.ones(POINTS)}[outcome]
    mass = (moving.start * below["p0"] * other)[:, None, None] * moving.step[:, :, None] * moving.step
    mass = mass * below["p1"][:, None] * below["p2"] * end
    mass /= mass.sum()
    low = 1 - share_above(0.1)
    exact = [
        float(np.einsum("abc,a,b,c->", mass, low, low, low)),
        float(np.einsum("abc,b,c->", mass, low, low)),
        float(np.einsum("abc,c->", mass, low)),
    ]
    (found, dropped), _ = path_probabilities(forest, moving, 0.1)
    assert found == pytest.approx([0.0] * 3 if outcome else exact, abs=1e-9)
    assert found == sorted(found)
    first, second, third = np.meshgrid(GRID, GRID, GRID, indexing="ij")
    fell = [
        np.maximum(second, third) <= 0.5 * np.maximum(first, 0.1) + 1e-9,
        third <= 0.5 * np.maximum(np.maximum(first, second), 0.1) + 1e-9,
    ]
    assert dropped == pytest.approx([float(mass[each].sum()) for each in fell], abs=1e-9)


def test_the_rule_first_error_marks_where_the_value_was_lost_and_nothing_of_hopeless_problems() -> None:
    config = PooledConfig(interval=Interval.posterior, rule=LabelRule.first_error, threshold=0.1)
    lost = straight("l", 6, outcome=False)
    hopeless, lucky = straight("h", 4, outcome=False), straight("r", 4, outcome=True)
    have = {f"l{step}": seen(6 if step < 3 else 0, 8) for step in range(6)}
    have |= {f"{name}{step}": seen(0, 8) for name in "hr" for step in range(4)}
    estimator = estimator_for(config)
    chains = [lost, hopeless, lucky]
    labels = [
        estimator.labels(chain, have, steps)
        for chain, steps in zip(chains, values(chains, have, config, PRIOR), strict=True)
    ]
    assert labels == [(1, 1, 0, None, None, None), (None,) * 4, (1,) * 4]
    with pytest.raises(ValueError, match="take estimator=pooled"):
        FixedConfig(rule=LabelRule.first_error)
