"""Rounds and allotments stay within budgets, and the best picks come first."""

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from pipeline.config.choices import BudgetUnit
from pipeline.pickers.base import Pick, Picker, Problem
from pipeline.pickers.registry import PICKERS, picker_for
from pipeline.pickers.rounds import LEAST_PICKS, allotted, next_picks, problem_of
from pipeline.trees.tree import RolloutTree
from tests.pickers.handmade import at, chain, node, rollouts, settings_for, tree_of, trees


@given(
    trees(),
    st.sampled_from(sorted(PICKERS.ours)),
    st.integers(1, 8),
    st.sampled_from(list(BudgetUnit)),
    st.floats(0, 500),
)
def test_a_round_takes_half_of_what_is_left_or_a_few_nodes(
    tree: RolloutTree, name: str, count: int, unit: BudgetUnit, left: float
) -> None:
    def found() -> tuple[Problem, list[Pick]]:
        problem = problem_of(tree, strength=1.0, threshold=0.5, rollouts=count, unit=unit)
        return problem, next_picks(picker_for(settings_for(name)), problem, left)

    problem, picks = found()
    assert found()[1] == picks
    cost = sum(problem.costs[pick.node] for pick in picks)
    assert cost <= left
    assert len(picks) <= LEAST_PICKS or cost <= left / 2
    best = next(picker_for(settings_for(name)).picks(problem), None)
    assert bool(picks) is (best is not None and problem.costs[best.node] <= left)


def test_nodes_that_are_closed_are_no_candidates() -> None:
    tree = tree_of([chain()], rollouts(at(), "a", "b", "c", right=1, wrong=1))
    closed = {node(tree, "a")}
    problem = problem_of(tree, strength=1.0, threshold=0.5, rollouts=8, unit=BudgetUnit.tokens, closed=closed)
    assert problem.candidates == [node(tree, "a", "b")]
    assert problem.costs[node(tree, "a", "b")] == 8 * tree.nodes[node(tree, "a", "b")].mean_tokens


picked = st.lists(st.tuples(st.floats(0, 10), st.floats(0.1, 50)), max_size=6)


@given(st.lists(picked, max_size=6), st.integers(0, 300), st.booleans())
def test_allotments_are_within_the_budget(
    picks: list[list[tuple[float, float]]], budget: int, comparable: bool
) -> None:
    found = allotted(picks, budget, comparable=comparable)
    assert len(found) == len(picks)
    assert all(each >= 0 for each in found)
    assert sum(found) <= budget
    takers = [number for number, of_problem in enumerate(picks) if of_problem]
    assert all(not each for number, each in enumerate(found) if number not in takers)
    if takers:
        # Nothing is lost but what rounding takes.
        assert sum(found) > budget - len(takers) - 1e-6
    if not comparable:
        # An allotment is a whole number, so it may be less than it should be by almost one.
        times = [
            (found[number] / cost, (found[number] + 1) / cost) for number in takers[1:] for _, cost in picks[number][:1]
        ]
        assert all(least < most + 1 + 1e-6 for least, _ in times for _, most in times)


@given(st.lists(st.integers(1, 20), min_size=1, max_size=6, unique=True), st.data())
def test_the_best_gains_per_cost_are_paid_first(gains: list[int], data: st.DataObject) -> None:
    paid = data.draw(st.integers(0, len(gains)))
    found = allotted([[(float(gain), 10.0)] for gain in gains], 10 * paid, comparable=True)
    best = sorted(gains, reverse=True)[:paid]
    assert found == [10 if gain in best else 0 for gain in gains]


def test_a_rest_is_shared() -> None:
    picks = [[(1.0, 4.0)], [(9.0, 4.0)], []]
    assert allotted(picks, 20, comparable=True) == [12, 8, 0]
    assert allotted(picks, 7, comparable=True) == [3, 4, 0]
    assert allotted(picks, 7, comparable=False) == [7, 0, 0]
    assert allotted(picks, 24, comparable=False) == [12, 12, 0]
    assert allotted([[], []], 7, comparable=True) == [0, 0]


class Counting(Picker):
    """Picks all candidates, and says how many of its picks were taken."""

    taken = 0

    def picks(self, problem: Problem) -> Iterator[Pick]:
        for each in problem.candidates:
            self.taken += 1
            yield Pick(each, 1.0)


def test_no_more_picks_are_taken_than_can_be_paid() -> None:
    steps = [str(number) for number in range(40)]
    tree = tree_of([chain()], rollouts(at(), *steps, right=1, wrong=1))
    picker = Counting(settings_for("pairs"))
    problem = problem_of(tree, strength=1.0, threshold=0.5, rollouts=2, unit=BudgetUnit.rollouts)
    assert len(next_picks(picker, problem, 40)) == 10
    assert picker.taken == 11
