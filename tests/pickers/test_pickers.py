"""Pickers pick what their documents say, each node once, and the same from the same tree."""

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, betabinom

from pipeline.config.choices import BudgetUnit
from pipeline.pickers.base import Pick, Picker, Problem, wrong_pick
from pipeline.pickers.greedy import greedy
from pipeline.pickers.located import expected
from pipeline.pickers.registry import PICKERS, picker_for
from pipeline.pickers.rounds import LEAST_PICKS, allotted, next_picks, problem_of
from pipeline.pickers.uncertain import learned_variance
from pipeline.trees.posterior import Posterior
from pipeline.trees.tree import NO_PARENT, RolloutTree
from tests.pickers.handmade import at, chain, node, problem, problems, rollouts, settings_for, tree_of, trees

NAMES = sorted(PICKERS.ours)
_HOPE = 0.25


def picks(name: str, of: Problem, **more: object) -> list[Pick]:
    return list(picker_for(settings_for(name, **more)).picks(of))


@pytest.mark.parametrize("name", NAMES)
@given(of=problems)
def test_picks_are_candidates_and_each_is_picked_once(name: str, of: Problem) -> None:
    found = picks(name, of)
    taken: set[int] = set()
    for pick in found:
        assert wrong_pick(pick, of, taken) == ""
        taken.add(pick.node)
        seen = of.tree.nodes[pick.node]
        assert seen.source is not None
        assert not seen.ended
        assert not of.measured[pick.node]
    assert picks(name, of) == found


@given(problems)
def test_what_is_no_pick_of_a_problem_is_said(of: Problem) -> None:
    assert wrong_pick("x", of) == "it must yield a Pick of a whole number and a gain, but yielded 'x'"
    assert wrong_pick(Pick(0, 1.0), of) == "it picks node 0, which is no candidate"
    for candidate in of.candidates[:1]:
        assert wrong_pick(Pick(candidate, 0.5), of) == ""
        assert wrong_pick(Pick(np.int64(candidate), np.float32(0.5)), of) == ""  # type: ignore[arg-type]
        assert "twice" in wrong_pick(Pick(candidate, 0.5), of, {candidate})
        for gain in (-1.0, math.nan, math.inf, "much"):
            assert "the gain" in wrong_pick(Pick(candidate, gain), of)  # type: ignore[arg-type]


def naive_greedy(candidates: list[int], costs: list[float], gain: Any, take: Any) -> Iterator[Pick]:
    left = set(candidates)
    while left:
        worth, best = min((-gain(each) / costs[each], each) for each in left)
        if worth >= 0:
            return
        yield Pick(best, gain(best))
        take(best)
        left.remove(best)


class Neighbours:
    """Gains that change when a neighbour is taken, up or down."""

    def __init__(self, worth: list[int], links: set[tuple[int, int]], factor: int) -> None:
        self._worth, self._links, self._factor = worth, links, factor
        self._taken: set[int] = set()

    def gain(self, of: int) -> float:
        near = sum((of, other) in self._links for other in self._taken)
        return self._worth[of] + near if self._factor > 0 else self._worth[of] * 0.5**near

    def take(self, taken: int) -> list[int]:
        self._taken.add(taken)
        return [one for one, other in self._links if other == taken]


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(1, 3)), max_size=8),
    st.sets(st.tuples(st.integers(0, 7), st.integers(0, 7))),
    st.sampled_from((1, -1)),
)
def test_greedy_picks_as_one_that_computes_all_gains_again(
    nodes: list[tuple[int, int]], links: set[tuple[int, int]], factor: int
) -> None:
    worth, costs = [each[0] for each in nodes], [float(each[1]) for each in nodes]
    links = {(one, other) for one, other in links if max(one, other) < len(nodes) and one != other}
    ours, naive = Neighbours(worth, links, factor), Neighbours(worth, links, factor)
    candidates = list(range(len(nodes)))
    assert list(greedy(candidates, costs, ours.gain, ours.take)) == list(
        naive_greedy(candidates, costs, naive.gain, naive.take)
    )


def pairs_gain(of: Problem, measured: set[int], candidate: int, m: float, same: float) -> float:
    """The formula of `pairs`, written again."""
    nodes = of.tree.nodes
    siblings = [each for each in nodes[nodes[candidate].parent].children if each != candidate]
    weights = {each: 1.0 if each in measured else _HOPE for each in siblings}
    there = sum(
        weights[one] * weights[other] * margin(of, one, other) for one, other in itertools.combinations(siblings, 2)
    )
    more = sum(weights[each] * margin(of, candidate, each) for each in siblings)

    def digits(at: int) -> str:
        return "".join(letter for letter in nodes[at].text if letter.isdigit()) or nodes[at].text

    repeats = any(each in measured and digits(each) == digits(candidate) for each in siblings)
    worth = m * (math.exp(-there / m) - math.exp(-(there + more) / m))
    return worth * (same if repeats else 1.0)


def margin(of: Problem, one: int, other: int) -> float:
    """The expected difference of two values where they lie on different sides of the threshold, else 0."""
    (above, high, low), (above_2, high_2, low_2) = (sides(of.posteriors[each], of.boundary) for each in (one, other))
    return high * (1 - above_2) - above * low_2 + high_2 * (1 - above) - above_2 * low


def sides(posterior: Posterior, threshold: float) -> tuple[float, float, float]:
    """P(V > t), E[V; V > t] and E[V; V <= t]. V times a Beta density is one with a + 1, times the mean."""
    a, b = posterior
    if not (a and b):
        above = float(a > 0)
        return above, above, 0.0
    high = a / (a + b) * float(beta.sf(threshold, a + 1, b))
    return float(beta.sf(threshold, a, b)), high, a / (a + b) - high


@given(of=problems, m=st.integers(1, 6), same=st.sampled_from((0.0, 0.25, 1.0)))
def test_pairs_are_worth_what_the_formula_says_and_picks_change_their_siblings(
    of: Problem, m: int, same: float
) -> None:
    measured = {each for each, known in enumerate(of.measured) if known}
    left = set(of.candidates)
    for pick in picks("pairs", of, per_branch=m, same_numbers=same, least_gain=0):
        gains = {each: pairs_gain(of, measured, each, m, same) for each in left}
        assert pick.gain == pytest.approx(gains[pick.node], abs=1e-12)
        assert gains[pick.node] >= max(gains.values()) - 1e-12
        left.remove(pick.node)
        measured.add(pick.node)
    assert all(pairs_gain(of, measured, each, m, same) < 1e-12 for each in left)


def test_pairs_prefer_an_uncertain_step_beside_a_good_one_to_steps_that_are_surely_bad() -> None:
    tree = tree_of(
        [chain("A", "good 1"), chain("B", "bad 2")],
        rollouts(at("A", "good 1"), "x", right=8),
        rollouts(at("A"), "open 3", "y", right=1, wrong=1),
        rollouts(at("B", "bad 2"), "x", wrong=8),
        rollouts(at("B"), "lost 4", "y", wrong=9),
        rollouts(at("B"), "lost 5", "y", wrong=9),
    )
    found = picks("pairs", problem(tree))
    places = [pick.node for pick in found]
    assert places[0] == node(tree, "A", "open 3")
    gains = {pick.node: pick.gain for pick in found}
    assert gains[node(tree, "A", "open 3")] > 20 * gains.get(node(tree, "B", "lost 4"), 0.0)


def test_pairs_want_fewer_steps_that_say_what_a_measured_one_says() -> None:
    tree = tree_of(
        [chain("so 1")],
        rollouts(at("so 1"), "x", right=8),
        rollouts(at(), "hence 1", "y", right=1, wrong=1),
        rollouts(at(), "so 2", "y", right=1, wrong=1),
    )
    same, other = node(tree, "hence 1"), node(tree, "so 2")
    assert picks("pairs", problem(tree))[0].node == other
    (first, *_) = picks("pairs", problem(tree), same_numbers=1)
    assert first.node == min(same, other)


def errors_rate(of: Problem, measured: set[int], candidate: int) -> float:
    """The gain per cost of `errors`, written again: the best of all sets of neighbours that are not measured."""
    found, nodes, costs = expected(of), of.tree.nodes, of.costs
    good = found.good[candidate]
    edges = [(child, found.located[child], good) for child in nodes[candidate].children]
    if nodes[candidate].parent != NO_PARENT:
        edges.append((nodes[candidate].parent, found.located[candidate], 1 - good))
    known = sum(located for other, located, _ in edges if other in measured)
    more = [(located, side * costs[other]) for other, located, side in edges if other in set(of.candidates) - measured]
    return max(
        (known + sum(each[0] for each in some)) / (costs[candidate] + sum(each[1] for each in some))
        for size in range(len(more) + 1)
        for some in itertools.combinations(more, size)
    )


@given(of=problems)
def test_errors_are_worth_what_they_locate_with_their_neighbours(of: Problem) -> None:
    measured = {each for each, known in enumerate(of.measured) if known}
    left = set(of.candidates)
    for pick in picks("errors", of, least_gain=0):
        rates = {each: errors_rate(of, measured, each) for each in left}
        assert pick.gain / of.costs[pick.node] == pytest.approx(rates[pick.node], rel=1e-9, abs=1e-15)
        assert rates[pick.node] >= max(rates.values()) * (1 - 1e-9) - 1e-15
        left.remove(pick.node)
        measured.add(pick.node)


def test_errors_look_where_a_good_prefix_is_followed_by_losses() -> None:
    tree = tree_of(
        [chain()],
        rollouts(at(), "fine", "well", "done", right=6),
        rollouts(at(), "fine", "lost", "over", wrong=6),
        rollouts(at(), "never", "no", "over", wrong=6),
    )
    (first, *_) = picks("errors", problem(tree, threshold=0.1), least_gain=0)
    assert first.node in (node(tree, "fine"), node(tree, "fine", "lost"), node(tree, "never"))
    again = [chain(), chain("fine")]
    more = tree_of(
        again,
        rollouts(at(), "fine", "well", "done", right=6),
        rollouts(at(), "fine", "lost", "over", wrong=6),
        rollouts(at("fine"), "well", "done", right=4),
        rollouts(at("fine"), "lost", "over", wrong=4),
    )
    found = picks("errors", problem(more, threshold=0.1))
    assert [each.node for each in found] == [node(more, "fine", "lost")]
    assert 0.5 < found[0].gain < 1


def test_errors_are_not_looked_for_after_a_prefix_that_is_lost_already() -> None:
    """The fall from "up" to "down" is as sure in both trees. In one of them the bare problem is hopeless."""

    def gain(right: int, wrong: int) -> float:
        tree = tree_of(
            [chain("up")],
            rollouts(at(), "other", "end", right=right, wrong=wrong),
            rollouts(at("up"), "well", "end", right=8),
            rollouts(at("up"), "down", "end", wrong=6),
        )
        found = {each.node: each.gain for each in picks("errors", problem(tree), least_gain=0)}
        return found[node(tree, "up", "down")]

    assert gain(30, 0) > 10 * gain(0, 30) > 0


def test_errors_find_steps_after_which_no_rollout_is_correct_with_the_threshold_0() -> None:
    tree = tree_of([chain()], rollouts(at(), "well", "done", right=4), rollouts(at(), "lost", "over", wrong=20))
    (first, *_) = picks("errors", problem(tree, threshold=0.0))
    assert first.node == node(tree, "lost")


@given(st.floats(0.2, 50), st.floats(0.2, 50), st.integers(1, 30))
def test_what_rollouts_teach_is_the_expected_fall_of_the_variance(a: float, b: float, n: int) -> None:
    def variance(a: float, b: float) -> float:
        return a * b / ((a + b) ** 2 * (a + b + 1))

    after = sum(float(betabinom.pmf(k, n, a, b)) * variance(a + k, b + n - k) for k in range(n + 1))
    assert learned_variance(Posterior(a, b), n) == pytest.approx(variance(a, b) - after, rel=1e-6, abs=1e-12)


@given(of=problems)
def test_uncertain_picks_all_candidates_by_what_they_teach(of: Problem) -> None:
    found = picks("uncertain", of)
    assert sorted(pick.node for pick in found) == of.candidates
    rates = [pick.gain / of.costs[pick.node] for pick in found]
    assert rates == sorted(rates, reverse=True)
    assert all(pick.gain == learned_variance(of.posteriors[pick.node], of.rollouts) for pick in found)


STEPS = tuple(f"s{number}" for number in range(1, 9))


@pytest.mark.parametrize("error", range(1, 9))
def test_omegaprm_searches_a_wrong_rollout_for_its_first_error(error: int) -> None:
    """The root has right and wrong rollouts. All prefixes before the error have right ones, those from it on have none."""
    first = [rollouts(at(), *STEPS, wrong=1), rollouts(at(), "other", "way", right=1)]
    chains, low, high, asked = [chain()], 0, 8, []
    while found := picks("omegaprm", problem(tree_of(chains, *first))):
        (pick,) = found
        tree = tree_of(chains, *first)
        steps = tree.steps(pick.node)
        assert len(steps) == (low + high) // 2
        asked.append(len(steps))
        right = 2 if len(steps) < error else 0
        low, high = (len(steps), high) if right else (low, len(steps))
        chains.append(chain(*steps))
        first.append(rollouts(at(*steps), f"after {len(steps)}", right=right, wrong=2 - right))
    assert (low, high) == (error - 1, error)
    assert len(asked) == 3


def test_omegaprm_prefers_states_of_high_value_and_short_rollouts() -> None:
    tree = tree_of(
        [chain("A"), chain("B")],
        rollouts(at("A"), "a", "b", "c", right=0, wrong=1),
        rollouts(at("A"), "right", right=1),
        rollouts(at("B"), "d", "e", "f", right=0, wrong=1),
        rollouts(at("B"), "right", right=7),
    )
    assert picks("omegaprm", problem(tree))[0].node == node(tree, "B", "d")
    longer = tree_of(
        [chain("A"), chain("B")],
        rollouts(at("A"), "a", "b", "c", wrong=1),
        rollouts(at("A"), "right", right=1),
        rollouts(at("B"), "d", "e", "f", wrong=1, tokens=5_000),
        rollouts(at("B"), "right", right=1, tokens=5_000),
    )
    assert picks("omegaprm", problem(longer))[0].node == node(longer, "A", "a")


def test_omegaprm_has_nothing_to_search_where_all_rollouts_are_right_or_wrong() -> None:
    for right, wrong in ((3, 0), (0, 3)):
        assert picks("omegaprm", problem(tree_of([chain()], rollouts(at(), "a", "b", right=right, wrong=wrong)))) == []


@pytest.mark.parametrize("pick", ["pairs", "errors"])
@given(of=problems, least=st.floats(0, 0.5))
def test_a_prefix_that_is_worth_too_little_is_not_picked(pick: str, of: Problem, least: float) -> None:
    found = picks(pick, of, least_gain=least)
    assert all(each.gain > least for each in found)
    assert len(found) <= len(picks(pick, of, least_gain=0))


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
