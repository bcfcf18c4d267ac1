from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config.choices import BudgetUnit, Goal
from pipeline.core.records import ChainShape, Trials
from pipeline.estimators.pooled import allocation as pooled_choice
from pipeline.estimators.pooled.allocation import _Moments, _reach
from pipeline.estimators.pooled.forest import forest_of
from pipeline.estimators.pooled.grid import mean_of, variance_of
from pipeline.estimators.pooled.kernel import PRIOR, Kernel, correlation, transition_model
from pipeline.estimators.pooled.posterior import posterior
from pipeline.estimators.registry import estimator_for
from pipeline.estimators.settings import PooledConfig
from pipeline.estimators.tree import tree_of
from tests.estimators.pooled import (
    CONSTANT,
    INDEPENDENT,
    JUMPS,
    POOLED,
    Engine,
    chain,
    played,
    policy,
    seen,
    straight,
    trials,
)

KERNELS = [PRIOR, CONSTANT, INDEPENDENT, JUMPS]

ENGINES: dict[str, Engine] = {
    "right": lambda prefix, index: (True, 9),
    "wrong": lambda prefix, index: (False, 9),
    "by turns": lambda prefix, index: (index % 2 == 0, 9),
    "ungraded": lambda prefix, index: (None, 9),
    "half ungraded": lambda prefix, index: (None if index % 2 else True, 9),
    "nothing": lambda prefix, index: (None, 0),
}
UNITS = {
    "one step": [[straight("p", 1)]],
    "straight": [[straight("p", 5, prices=(5, 4, 3, 2, 1, 0)), straight("q", 3, outcome=None)][:1], [straight("q", 3)]],
    "branching": [[chain("0", "a", "b"), chain("0", "a", "c", outcome=False), chain("0", "d", outcome=None)]],
}


def on_budget(budget: int | None, unit: BudgetUnit = BudgetUnit.rollouts, target_sd: float = 0.1) -> PooledConfig:
    return replace(POOLED, budget=budget, budget_unit=unit, target_sd=target_sd)


@pytest.mark.parametrize("kernel", [PRIOR, INDEPENDENT, JUMPS])
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("unit", UNITS)
def test_it_ends_within_budgets_whatever_comes_in(unit: str, engine: str, kernel: Kernel) -> None:
    trees = [tree_of(chains, closed={"p2", "d"}) for chains in UNITS[unit]]
    for budget, target in ((1, 0.01), (7, 0.01), (None, 0.01), (None, 0.1)):
        have = played(trees, ENGINES[engine], on_budget(budget, target_sd=target), kernel, rollouts=4)
        assert "p2" not in have
        assert "d" not in have
        for tree in trees:
            issued = [len(have[prefix].outcomes) if prefix in have else 0 for prefix in tree.prefix_ids]
            assert sum(issued) <= (budget * len(tree.chains) if budget else 4 * int((~tree.closed).sum()))
            if target == 0.01 and engine != "nothing" and len(tree.chains) == 1 and "graded" not in engine:
                assert sum(issued) == (budget or 4 * int((~tree.closed).sum()))


@pytest.mark.parametrize("engine", ["right", "ungraded", "nothing"])
@pytest.mark.parametrize("budget", [1, 50, 333])
def test_a_budget_in_tokens_is_exceeded_by_a_rollout_at_most(budget: int, engine: str) -> None:
    """The length of each rollout is three times its price."""
    length = {f"p{step}": 3 * (5 - step) for step in range(5)}
    have = played(
        [tree_of([straight("p", 5, prices=(5, 4, 3, 2, 1, 0))])],
        lambda prefix, index: (ENGINES[engine](prefix, index)[0], 0 if engine == "nothing" else length[prefix]),
        on_budget(budget, BudgetUnit.tokens, target_sd=0.01),
        JUMPS,
    )
    spent = sum(each.counts.tokens for each in have.values())
    assert spent < budget + 15
    assert sum(len(each.outcomes) for each in have.values()) < budget + 5


def test_all_prefixes_closed_and_no_problem_at_all() -> None:
    shut = tree_of([straight("p", 3)], closed={"p0", "p1", "p2"})
    for config in (POOLED, on_budget(5), on_budget(5, BudgetUnit.tokens)):
        assert estimator_for(config).next_rollouts([shut], {}, 8, PRIOR) == [{}]
        assert estimator_for(config).next_rollouts([], {}, 8, PRIOR) == []


def test_the_first_chains_of_a_run_get_a_rollout_of_every_prefix() -> None:
    trees = [tree_of([straight("p", 12)]), tree_of([chain("0", "a"), chain("0", "b")], closed={"b"})]
    first = [dict.fromkeys(trees[0].prefix_ids, 1), {"0": 1, "a": 1}]
    assert estimator_for(POOLED).next_rollouts(trees, {}, 8, PRIOR) == first
    assert estimator_for(POOLED).next_rollouts(trees, {}, 8, JUMPS) != first
    assert estimator_for(on_budget(5)).next_rollouts(trees, {}, 8, PRIOR) != first


outcomes = st.lists(st.sampled_from([True, False, None]), max_size=6)


@st.composite
def states(draw: st.DrawFn) -> tuple[list[list[ChainShape]], dict[str, Trials]]:
    """Problems with chains that share beginnings, and some rollouts."""
    problems = []
    for name in range(draw(st.integers(1, 4))):
        chains = []
        for _ in range(draw(st.integers(1, 3))):
            cut = draw(st.integers(0, 3))
            branch = draw(st.sampled_from("xy"))
            steps = [f"{name} {'' if step <= cut else branch} {step}" for step in range(draw(st.integers(1, 6)))]
            chains.append(chain(*steps, outcome=draw(st.sampled_from([True, False, None]))))
        problems.append(chains)
    prefixes = sorted({prefix for chains in problems for each in chains for prefix in each.prefix_ids})
    have: dict[str, Trials] = {}
    for prefix in prefixes:
        drawn = draw(outcomes)
        if drawn:
            have[prefix] = trials(drawn, tokens=5 * len(drawn))
    return problems, have


configs = st.builds(
    on_budget, st.sampled_from([None, 3, 40]), st.sampled_from(list(BudgetUnit)), st.sampled_from([0.02, 0.1, 0.3])
)


@given(states(), configs, st.sampled_from(KERNELS))
def test_decisions_depend_on_no_other_problem(
    state: tuple[list[list[ChainShape]], dict[str, Trials]], config: PooledConfig, kernel: Kernel
) -> None:
    problems, have = state
    trees = [tree_of(chains) for chains in problems]
    alone = [estimator_for(config).next_rollouts([tree], have, 8, kernel)[0] for tree in trees]
    assert estimator_for(config).next_rollouts(trees, have, 8, kernel) == alone
    assert estimator_for(config).next_rollouts(trees[::-1], have, 8, kernel) == alone[::-1]


@pytest.mark.parametrize("last_digits", [-1e-14, 0.0, 1e-14])
def test_what_company_does_to_the_last_digits_decides_nothing(
    last_digits: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    alike = _Moments(
        variance=np.array([0.04 * (1 + last_digits), 0.04]), noise=np.array([0.2, 0.2]), slope=np.array([0.0, 0.5])
    )
    monkeypatch.setattr(pooled_choice, "_moments", lambda found, parents: alike)
    assert estimator_for(on_budget(1)).next_rollouts([tree_of([straight("p", 2)])], {}, 8, JUMPS) == [{"p0": 1}]


@given(states(), st.sampled_from(KERNELS), st.integers(1, 60), st.integers(0, 40), st.sampled_from(list(BudgetUnit)))
def test_more_budget_or_a_smaller_target_asks_for_no_less(
    state: tuple[list[list[ChainShape]], dict[str, Trials]], kernel: Kernel, budget: int, more: int, unit: BudgetUnit
) -> None:
    """This holds for one decision about chains that share no prefix. The next decision depends on other rollouts."""
    problems, have = state
    trees = [tree_of(chains[:1]) for chains in problems]
    less = estimator_for(on_budget(budget, unit, target_sd=0.1)).next_rollouts(trees, have, 8, kernel)
    for config in (on_budget(budget + more, unit, target_sd=0.1), on_budget(budget, unit, target_sd=0.04)):
        for few, many in zip(less, estimator_for(config).next_rollouts(trees, have, 8, kernel), strict=True):
            assert all(many[prefix] >= count for prefix, count in few.items())


@given(
    st.lists(
        st.integers(0, 6).flatmap(lambda n: st.builds(seen, st.integers(0, n), st.just(n))), min_size=1, max_size=6
    ),
    st.sampled_from([True, False, None]),
    st.sampled_from([CONSTANT, JUMPS]),
    st.sampled_from([0.05, 0.1, 0.2]),
    st.sampled_from(Goal),
    st.lists(st.integers(1, 9), min_size=7, max_size=7),
)
def test_each_rollout_is_the_best_next_one_under_the_normal_approximation(
    have: list[Trials], outcome: bool | None, kernel: Kernel, target_sd: float, goal: Goal, prices: list[int]
) -> None:
    """With goal=locate the variances of the changes count half, those of the values the other half."""
    shape = straight("p", len(have), outcome, prices[: len(have) + (outcome is not None)])
    tree, known = tree_of([shape]), {f"p{step}": each for step, each in enumerate(have)}
    config = replace(on_budget(1000, target_sd=target_sd), goal=goal)
    asked = estimator_for(config).next_rollouts([tree], known, 8, kernel)[0]
    assert asked == one_by_one(tree.prices.tolist(), known, shape, kernel, target_sd, goal)


def one_by_one(
    prices: Sequence[float], known: dict[str, Trials], shape: ChainShape, kernel: Kernel, target_sd: float, goal: Goal
) -> dict[str, int]:
    forest = forest_of([tree_of([shape])], known)
    found = posterior(forest, transition_model(kernel))
    mean, variance = mean_of(found.mass), variance_of(found.mass)
    steps = len(mean)
    covariance = np.diag(variance)
    for first in range(steps):
        for second in range(first + 1, steps):
            slope = found.with_parent[second] / variance[second - 1]
            covariance[first, second] = covariance[second, first] = covariance[first, second - 1] * slope
    noise = np.maximum(mean * (1 - mean) - variance, 1e-9)
    reach = np.mean([sum(correlation(kernel) ** (2 * abs(k - j)) for j in range(steps)) for k in range(steps)])
    change = np.diff(np.eye(steps), axis=0)
    weight = np.eye(steps) if goal is Goal.train else (np.eye(steps) + change.T @ change) / 2
    asked: dict[str, int] = {}
    for _ in range(max(4, int(np.ceil(sum(len(each.outcomes) for each in known.values()) / 2)))):
        after = [
            np.linalg.inv(np.linalg.inv(covariance + 1e-13 * np.eye(steps)) + np.outer(unit, unit) / noise[place])
            for place, unit in enumerate(np.eye(steps))
        ]
        removed = [np.trace(weight @ (covariance - each)) / price for each, price in zip(after, prices, strict=True)]
        best = int(np.argmax(removed))
        if removed[best] <= reach * target_sd**4 * 4 / np.mean(prices):
            break
        asked[f"p{best}"] = asked.get(f"p{best}", 0) + 1
        covariance = after[best]
    return dict(sorted(asked.items()))


@pytest.mark.parametrize(
    ("steps", "alike"), [(1, 0.9), (2, 0.5), (7, 0.97), (500, 0.999), (6, 0.0), (6, -0.3), (5, 1.0)]
)
def test_how_many_steps_a_rollout_reports_about(steps: int, alike: float) -> None:
    r = max(alike, 0.0)
    exact = sum(r ** (2 * abs(k - j)) for k in range(steps) for j in range(steps)) / steps
    assert _reach(np.array([3, steps, 500]), alike)[1] == pytest.approx(exact)


def test_rollouts_are_spread_evenly_where_steps_say_nothing_of_each_other() -> None:
    assert correlation(INDEPENDENT) < 0.01 < 0.9 < correlation(CONSTANT)
    tree = tree_of([straight("p", 8, prices=tuple(range(9, 0, -1)))])
    have = played([tree], policy(dict.fromkeys(tree.prefix_ids, 0.5)), on_budget(43, target_sd=0.01), INDEPENDENT)
    assert sorted(len(each.outcomes) for each in have.values()) == [5] * 5 + [6] * 3


def test_a_chain_whose_values_are_alike_needs_no_more_rollouts_when_it_is_longer() -> None:
    def asked(steps: int) -> int:
        trees = [tree_of([straight(f"{name} ", steps)]) for name in range(20)]
        values = {prefix: 0.5 for tree in trees for prefix in tree.prefix_ids}
        have = played(trees, policy(values), on_budget(1000), CONSTANT)
        return sum(len(each.outcomes) for each in have.values())

    assert asked(32) < 1.2 * asked(4)
