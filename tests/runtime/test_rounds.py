"""A problem's rounds follow from the log; an incomplete round is decided again from the earlier rounds alone."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.ids import rollout_id
from pipeline.core.records import ChainShape, Prefix, Problem, Request, Rollout, UnitTarget, Verdict
from pipeline.estimators.base import Learner
from pipeline.estimators.registry import ESTIMATORS
from pipeline.estimators.tree import Tree, tree_of
from pipeline.runtime.rollout_log import RolloutLog
from pipeline.runtime.rounds import Arrivals, Round, Rounds
from pipeline.storage.local import LocalStorage
from pipeline.storage.unit_files import UnitFiles
from tests.settings import estimator
from tests.storage.test_unit_files import rollout as usual_rollout

PROBLEM = Problem(problem_id="a" * 20, text="?", golds=("1",))
Key = tuple[str, int]
Log = dict[Key, int]
"""(prefix id, issue index) -> round."""
NOWHERE = LocalStorage(Path("/nowhere"))
POOLED = estimator("pooled")

names = st.sampled_from(list(ESTIMATORS.ours))
plans = st.tuples(names, st.integers(1, 6), st.integers(0, 99), st.randoms(use_true_random=False))


def trees(seed: int) -> list[Tree]:
    """Two problems: one with a correct chain and a chain without an outcome that share a step, one with a wrong chain."""
    first = ChainShape(prefix_ids=(f"{seed}-r", f"{seed}-a", f"{seed}-b", f"{seed}-e"), outcome=True)
    second = ChainShape(prefix_ids=(f"{seed}-r", f"{seed}-a", f"{seed}-c"), outcome=None)
    other = ChainShape(prefix_ids=(f"{seed}-s", f"{seed}-t", f"{seed}-u"), outcome=False)
    return [tree_of([first, second]), tree_of([other])]


def rollout(key: Key, number: int) -> Rollout:
    """Whether a rollout is correct, determined by its id alone."""
    prefix_id, issue = key
    right = Random(rollout_id(prefix_id, issue)).random() < Random(prefix_id).random()
    return usual_rollout(
        issue,
        text="",
        rollout_id=rollout_id(prefix_id, issue),
        prefix_id=prefix_id,
        round=number,
        n_tokens=3,
        verdict=Verdict.CORRECT if right else Verdict.INCORRECT,
    )


def request(key: Key) -> Request:
    prefix_id, issue = key
    prefix = Prefix(prefix_id=prefix_id, step_index=0, text="", prompt_ids=())
    return Request(request_id=rollout_id(prefix_id, issue), issue_index=issue, problem=PROBLEM, prefix=prefix)


def buffer_of(log: Log, unit_target: UnitTarget, learner: Learner | None = POOLED.learner) -> RolloutLog:
    buffer = RolloutLog(UnitFiles(NOWHERE, "1" * 20), unit_target=unit_target, learner=learner)
    for key, number in log.items():
        buffer.add_rollout(rollout(key, number))
    return buffer


def unit_target_for(name: str, rollouts: int) -> UnitTarget:
    return UnitTarget(rollouts=rollouts, target_sd=0.1 if name == "pooled" else 0.0)


def rounds_of(log: Log, name: str, rollouts: int, seed: int) -> tuple[Rounds, RolloutLog]:
    buffer = buffer_of(log, unit_target_for(name, rollouts), estimator(name).learner)
    return Rounds(buffer, trees(seed), estimator(name)), buffer


def logged(buffer: RolloutLog) -> Log:
    return {(outcome.prefix_id, outcome.issue_index): outcome.round for outcome in buffer.outcomes.values()}


def carry_out(asked: Iterable[Round], buffer: RolloutLog) -> None:
    for each in asked:
        for key in each.missing:
            buffer.add_rollout(rollout(key, each.number))


def played(log: Log, name: str, rollouts: int, seed: int, random: Random) -> Log:
    """The log when no more rollouts are needed. The order in which problems advance is random."""
    rounds, buffer = rounds_of(log, name, rollouts, seed)
    asked: Sequence[Round] = rounds.next_rounds()
    while asked:
        now = random.choice(asked)
        carry_out([now], buffer)
        asked = [each for each in asked if each is not now] + rounds.next([now.tree])
    assert rounds.next_rounds() == []
    return logged(buffer)


@given(plans, st.data())
def test_a_log_that_was_cut_anywhere_grows_into_the_one_that_was_not(
    plan: tuple[str, int, int, Random], data: st.DataObject
) -> None:
    name, rollouts, seed, random = plan
    whole = played({}, name, rollouts, seed, random)
    cut: Log = {}
    for tree in trees(seed):
        own = {key: number for key, number in whole.items() if key[0] in tree.prefix_ids}
        last = data.draw(st.integers(0, max(own.values(), default=0)))
        partly = data.draw(st.sets(st.sampled_from(sorted(key for key in own if own[key] == last)))) if own else set()
        cut |= {key: number for key, number in own.items() if number < last or key in partly}
    assert played(cut, name, rollouts, seed, random) == whole


@given(plans, st.data())
def test_holes_anywhere_in_a_log_are_filled_and_nothing_is_asked_twice(
    plan: tuple[str, int, int, Random], data: st.DataObject
) -> None:
    """The part of a log that is left after damage."""
    name, rollouts, seed, random = plan
    whole = played({}, name, rollouts, seed, random)
    left = data.draw(st.sets(st.sampled_from(sorted(whole)))) if whole else set()
    rounds, _ = rounds_of({key: whole[key] for key in left}, name, rollouts, seed)
    keys = [key for each in rounds.next_rounds() for key in each.missing]
    assert len(keys) == len(set(keys))
    assert not left & set(keys)
    mended = played({key: whole[key] for key in left}, name, rollouts, seed, random)
    for prefix, issue in mended:
        assert all((prefix, before) in mended for before in range(issue))


@given(names, st.integers(1, 6))
def test_problems_do_not_wait_for_each_other(name: str, rollouts: int) -> None:
    rounds, buffer = rounds_of({}, name, rollouts, seed=1)
    first, *others = rounds.next_rounds()
    carry_out([first], buffer)
    for each in rounds.next([first.tree]):
        assert each.tree is first.tree
        assert each.number == first.number + 1
    again = Rounds(buffer, [each.tree for each in others], estimator(name))
    assert [(each.number, each.missing) for each in again.next_rounds()] == [
        (each.number, each.missing) for each in others
    ]


def test_a_decision_is_taken_without_what_came_in_of_a_round_that_was_cut() -> None:
    """A prefix with a correct rollout in a round that is still incomplete for another prefix."""
    name, rollouts = "first_success", 9
    rounds, buffer = rounds_of({}, name, rollouts, seed=3)
    (one, *_) = rounds.next_rounds()
    carry_out([one], buffer)
    (two, *_) = rounds.next([one.tree])
    assert len(two.missing) > 1
    for came_in in two.missing:
        cut, _ = rounds_of({**dict.fromkeys(one.missing, 0), came_in: 1}, name, rollouts, seed=3)
        (again,) = [each for each in cut.next_rounds() if each.tree.prefix_ids == one.tree.prefix_ids]
        assert (again.number, set(again.missing)) == (1, set(two.missing) - {came_in})


def test_what_is_asked_for_with_more_rollouts_is_a_round_of_its_own() -> None:
    whole = played({}, "fixed", 3, 1, Random(0))
    more = played(whole, "fixed", 5, 1, Random(0))
    assert whole.items() <= more.items()
    assert {prefix for prefix, _ in more} == {prefix for prefix, _ in whole}
    assert {issue for _, issue in more} == set(range(5))


def test_a_larger_budget_leaves_what_is_done_as_it_is() -> None:
    """Also if the budget cut the last round of a problem that is done."""
    pooled = estimator("pooled", target_sd=0.2)
    done = 0
    for seed, budget in product(range(12), (3, 4, 5, 7)):
        few = UnitTarget(rollouts=1, target_sd=0.2, budget=budget, budget_unit="rollouts")
        buffer = buffer_of({}, few)
        rounds = Rounds(buffer, trees(seed)[1:], pooled)
        asked: Sequence[Round] = rounds.next_rounds()
        while asked:
            carry_out(asked, buffer)
            asked = rounds.next([each.tree for each in asked])
        more = buffer_of(logged(buffer), replace(few, budget=50))
        more.settled = set(logged(buffer))
        assert bool(Rounds(more, trees(seed)[1:], pooled).next_rounds()) is bool(rounds.n_spent())
        done += not rounds.n_spent()
    assert done


def test_a_unit_without_a_budget_left_is_asked_for_nothing() -> None:
    pooled = estimator("pooled")
    for unit_budget, asked in ((0, False), (2, False), (3, True)):
        unit_target = UnitTarget(rollouts=4, target_sd=0.1, unit_budget=unit_budget, budget_unit="rollouts")
        assert bool(Rounds(buffer_of({}, unit_target), trees(1), pooled).next_rounds()) is asked


async def test_arrivals_report_of_each_problem_when_all_it_was_asked_for_is_in() -> None:
    rounds, _ = rounds_of({}, "fixed", 2, seed=1)
    arrivals, asked = Arrivals(), rounds.next_rounds()
    arrivals.expect(asked)
    for each in reversed(asked):
        *most, last = each.missing
        for key in most:
            arrivals.take(request(key))
        assert arrivals.complete() == []
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(arrivals.wait(), 0)
        arrivals.take(request(last))
        await asyncio.wait_for(arrivals.wait(), 1)
        assert arrivals.complete() == [each.tree]
