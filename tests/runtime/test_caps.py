"""The limit on the total cost of a problem."""

from hypothesis import given
from hypothesis import strategies as st

from pipeline.config.choices import BudgetUnit
from pipeline.core.records import ChainShape, Counts, Trials
from pipeline.estimators.tree import tree_of
from pipeline.runtime.problem_budget import Cap, estimated_costs, total_cost, within

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
