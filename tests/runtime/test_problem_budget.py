"""The limit on the total cost of a problem, the shares of a run's budget that its units get, and when a unit has reached its
target."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config.choices import BudgetUnit
from pipeline.config.label import DataConfig, LabelConfig, SamplingConfig
from pipeline.core.records import ChainShape, Counts, Totals, Trials, UnitTarget
from pipeline.estimators.tree import tree_of
from pipeline.runtime.problem_budget import (
    Cap,
    UnitSpending,
    estimated_costs,
    level_budget,
    meets_target,
    total_cost,
    unit_target_of,
    unit_targets,
    within,
)
from pipeline.storage.commits import UNIT, Commit, CommitState
from tests.settings import deciding, estimator_settings


def config(run_budget: int | None, unit: BudgetUnit = BudgetUnit.rollouts, target_sd: float = 0.1) -> LabelConfig:
    return LabelConfig(
        data=DataConfig(path="x"),
        sampling=SamplingConfig(rollouts=4),
        estimator=estimator_settings("pooled", run_budget=run_budget, budget_unit=unit, target_sd=target_sd),
    )


def whole(unit_target: UnitTarget, rollouts: int = 10, spent: int = 1) -> Commit:
    totals = Totals(rollouts=rollouts, tokens=20 * rollouts, spent=spent, chains=5)
    return Commit(
        kind=UNIT, sequence_id="1" * 20, number=0, state=CommitState.WHOLE, unit_target=unit_target, tally=totals.tally
    )


@given(st.integers(0, 500), st.lists(st.integers(0, 60), min_size=1, max_size=8))
def test_chains_up_to_their_level_cost_what_there_is_and_no_more(total: int, costs: list[int]) -> None:
    height = level_budget(total, costs)
    assert sum(max(0, height - cost) for cost in costs) <= max(0, total - sum(costs))
    assert height == 0 or sum(max(0, height + 1 - cost) for cost in costs) > total - sum(costs)


states = st.tuples(st.integers(1, 9), st.integers(0, 60), st.sampled_from(["new", "whole", "vague"]), st.integers(0, 9))


@given(st.integers(1, 400), st.lists(states, min_size=1, max_size=6), st.sampled_from(BudgetUnit))
def test_units_together_get_at_most_what_the_run_has_left(
    run_budget: int, found: list[tuple[int, int, str, int]], unit: BudgetUnit
) -> None:
    units = {}
    for number, (chains, rollouts, state, spent) in enumerate(found):
        unit_target = UnitTarget(rollouts=4, target_sd=0.1 if state == "whole" else 0.3)
        record = whole(unit_target, rollouts, min(spent, chains))
        units[str(number)] = UnitSpending(chains=chains, logged=record.totals, whole=None if state == "new" else record)
    asked = unit_targets(*deciding(config(run_budget, unit)), units)
    used = {
        key: each.logged.tokens if unit is BudgetUnit.tokens else each.logged.rollouts for key, each in units.items()
    }
    budgets = {key: unit_target.unit_budget for key, unit_target in asked.items()}
    more = sum(max(0, (budgets[key] or 0) - used[key]) for key in units)
    begun = sum(used[key] for key, each in units.items() if each.whole is None)
    assert more <= max(0, run_budget - sum(used.values()) + begun)
    assert all(budget is not None for budget in budgets.values())


def test_new_units_come_before_what_is_uncertain_in_others() -> None:
    unit_target = unit_target_of(*deciding(config(100)))
    units = {
        "a": UnitSpending(chains=5, logged=Totals(rollouts=40), whole=whole(unit_target, rollouts=40, spent=5)),
        "b": UnitSpending(chains=5, logged=Totals(rollouts=7), whole=None),
    }
    asked = unit_targets(*deciding(config(100)), units)
    assert (asked["a"].unit_budget, asked["b"].unit_budget) == (40, 60)


def test_a_rest_that_is_less_than_a_rollout_for_each_chain_is_not_given() -> None:
    unit_target = unit_target_of(*deciding(config(100, BudgetUnit.tokens)))
    units = {
        "a": UnitSpending(chains=5, logged=Totals(rollouts=4, tokens=80), whole=whole(unit_target, rollouts=4, spent=5))
    }
    assert unit_targets(*deciding(config(179, BudgetUnit.tokens)), units)["a"].unit_budget == 80
    assert unit_targets(*deciding(config(180, BudgetUnit.tokens)), units)["a"].unit_budget == 180


def test_only_the_pooled_estimator_has_a_budget() -> None:
    plain = LabelConfig(data=DataConfig(path="x"))
    assert unit_targets(*deciding(plain), {"a": UnitSpending(chains=1, logged=Totals(), whole=None)}) == {
        "a": UnitTarget(rollouts=8)
    }
    for budget in ({"budget": 5}, {"run_budget": 5}):
        with pytest.raises(TypeError, match="budget"):
            estimator_settings("fixed", **budget)


def test_rollouts_per_prefix_are_reached_by_as_many_or_more() -> None:
    assert meets_target(whole(UnitTarget(rollouts=4)), UnitTarget(rollouts=3))
    assert meets_target(whole(UnitTarget(rollouts=4)), UnitTarget(rollouts=4))
    assert not meets_target(whole(UnitTarget(rollouts=4)), UnitTarget(rollouts=5))


TREE = tree_of(
    [
        ChainShape(prefix_ids=("r", "a", "b", "x"), outcome=True, prices=(40.0, 30.0, 20.0, 10.0)),
        ChainShape(prefix_ids=("r", "a", "c", "y"), outcome=False, prices=(40.0, 30.0, 20.0, 10.0)),
    ]
)
counted = st.dictionaries(st.sampled_from(TREE.prefix_ids), st.integers(0, 9))


def trials(issued: dict[str, int], tokens: int = 5) -> dict[str, Trials]:
    return {
        prefix: Trials(outcomes=(True,) * count, counts=Counts(correct=count, graded=count, tokens=tokens * count))
        for prefix, count in issued.items()
    }


@given(counted)
def test_chains_bear_all_that_their_problem_costs(issued: dict[str, int]) -> None:
    for unit, each in ((BudgetUnit.rollouts, 1), (BudgetUnit.tokens, 5)):
        assert sum(estimated_costs(TREE, trials(issued), unit)) == each * sum(issued.values())


@given(counted, counted, st.integers(0, 60))
def test_no_more_rollouts_than_the_cap_allows_and_no_fewer(
    issued: dict[str, int], more: dict[str, int], most: int
) -> None:
    allowed = within(TREE, trials(issued), more, Cap(most=most, unit=BudgetUnit.rollouts))
    left = max(0, most - sum(issued.values()))
    assert sum(allowed.values()) == min(left, sum(more.values()))
    assert all(0 < count <= more[prefix] for prefix, count in allowed.items())


def test_tokens_are_reported_by_those_there_are_and_before_by_prices() -> None:
    more = {"r": 9}
    for tokens, allowed in ((0, {}), (1, {"r": 1}), (30, {"r": 2}), (61, {"r": 3})):
        assert within(TREE, {}, more, Cap(most=tokens, unit=BudgetUnit.tokens)) == allowed
    cap = Cap(most=21, unit=BudgetUnit.tokens)
    assert within(TREE, trials({"a": 2}), more, cap) == {"r": 3}
    assert within(TREE, trials({"a": 2}, tokens=0), more, cap) == {"r": 9}


def test_a_chain_above_the_level_keeps_what_it_has_cost() -> None:
    assert total_cost([3.0, 9.0], 5.0) == 14.0
