"""The synthetic policy: exact values, families with their documented properties, and an engine that matches the tables."""

import asyncio
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.ids import rollout_id
from pipeline.core.records import Completion, Prefix, Request, Verdict
from pipeline.graders.shared import grade
from tests.bench.estimators.chains import chains_of
from tests.bench.estimators.families import FAMILIES, STEPS, Family
from tests.bench.estimators.rollouts import RIGHT, UNGRADED, Rollouts, verdicts
from tests.bench.synthetic.draw import alias
from tests.bench.synthetic.engine import SyntheticEngine
from tests.bench.synthetic.language import QUESTIONS, WORDINGS, problem_of, state_of, step_text, step_tokens
from tests.bench.synthetic.policy import LEVELS, Policy, exact_values

ON_POLICY = ("jump", "smooth", "fatal", "length", "flaky")
# Of a normal variable. The seed is fixed, so the test either always passes or always fails.
FAR = 4.0


def _policy(seed: int, steps: int, states: int) -> Policy:
    random = np.random.default_rng(seed)
    moves = random.random((states, states))
    return Policy(steps=steps, moves=moves / moves.sum(axis=1, keepdims=True), right=random.random(states))


@given(st.integers(0, 1000), st.integers(1, 4), st.integers(1, 4))
def test_values_are_those_of_all_ways_to_the_end(seed: int, steps: int, states: int) -> None:
    policy = _policy(seed, steps, states)
    values = exact_values(policy)
    assert values.shape == (steps, states)
    for written, start in product(range(steps), range(states)):
        right = 0.0
        for way in product(range(states), repeat=steps - 1 - written):
            path = (start, *way)
            chance = np.prod([policy.moves[a, b] for a, b in pairwise(path)])
            right += float(chance) * policy.right[path[-1]]
        assert values[written, start] == pytest.approx(right)


@given(st.lists(st.lists(st.floats(0, 1), min_size=3, max_size=3).filter(any), min_size=1, max_size=4))
def test_an_alias_table_holds_its_distribution(rows: list[list[float]]) -> None:
    chances = np.array(rows) / np.sum(rows, axis=1, keepdims=True)
    table = alias(chances)
    for row, keep, other in zip(chances, table.keep, table.other, strict=True):
        held = keep.copy()
        np.add.at(held, other, 1 - keep)
        assert held / len(row) == pytest.approx(row)


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("name", FAMILIES)
def test_a_state_is_worth_its_level_at_every_step(name: str, steps: int) -> None:
    family = FAMILIES[name](steps)
    assert np.abs(family.policy.moves.sum(axis=1) - 1).max() < 1e-9
    assert np.abs(exact_values(family.policy) - LEVELS).max() < 1e-9
    assert (family.author is family.policy) == (name in ON_POLICY)


@pytest.mark.parametrize("name", ["jump", "smooth"])
def test_the_policys_own_chains_spend_the_martingales_budget(name: str) -> None:
    """E of the sum of (V_(k+1) - V_k)^2 is V_0 (1 - V_0), the outcome included."""
    chains = chains_of(FAMILIES[name](16), 4000, 0)
    path = np.concatenate([chains.values, chains.outcomes[:, None]], axis=1)
    over = (np.diff(path, axis=1) ** 2).sum(axis=1) - path[:, 0] * (1 - path[:, 0])
    assert abs(over.mean()) < FAR * over.std() / np.sqrt(len(over))


def test_independent_values_say_nothing_about_each_other() -> None:
    chains = chains_of(FAMILIES["independent"](8), 4000, 0)
    neighbours = np.corrcoef(chains.values[:, :-1].ravel(), chains.values[:, 1:].ravel())[0, 1]
    assert abs(neighbours) < 0.03
    assert chains.values.std() == pytest.approx(1 / np.sqrt(12), rel=0.03)


def test_an_off_policy_author_loses_value() -> None:
    chains = chains_of(FAMILIES["off_policy"](16), 2000, 0)
    assert chains.values[:, -1].mean() < chains.values[:, 0].mean() - 0.05
    assert chains.outcomes.mean() < chains.values[:, 0].mean() - 0.05


def test_the_checker_reports_right_renderings_from_wrong_ones() -> None:
    assert verdicts().tolist() == [[[0] * 4, [1] * 4]] * len(QUESTIONS)


@given(st.integers(0, 100), st.integers(0, 100), st.integers(0, WORDINGS - 1), st.integers(0, WORDINGS - 1))
def test_a_state_is_read_off_the_text(start: int, state: int, wording: int, other: int) -> None:
    problem = problem_of(7, start, 0)
    assert state_of(problem, "") == start
    text = step_text(99, other) + step_text(state, wording)
    assert state_of(problem, text) == state
    assert step_tokens(len(LEVELS))[state, wording] == len(step_text(state, wording))


def _sampled(family: Family, prefix: str, index: int, start: int, count: int) -> list[Completion]:
    engine = SyntheticEngine(family.policy, seed=3, repeats_wrong=family.repeats_wrong)
    problem = problem_of(1, start, 1)
    place = Prefix(prefix_id=f"{index:020x}", step_index=index, text=prefix, prompt_ids=())
    requests = [
        Request(request_id=rollout_id(place.prefix_id, issue), issue_index=issue, problem=problem, prefix=place)
        for issue in range(count)
    ]

    async def all_of() -> list[Completion]:
        return [completion async for batch in engine.generate(requests, keep_tokens=True) for completion in batch]

    completions = asyncio.run(all_of())
    assert engine.work.generated == sum(completion.n_tokens for completion in completions)
    assert engine.load.running == engine.load.waiting == 0
    return completions


@pytest.mark.parametrize("name", ["jump", "smooth", "length"])
def test_engine_and_tables_are_one_policy(name: str) -> None:
    """From every prefix, texts have the success rate (by the real checker) and the length of the tables."""
    steps, count, start = 4, 300, 40
    family = FAMILIES[name](steps)
    chains = chains_of(family, 200, 5)
    text = "".join(step_text(int(chains.states[0, step]), int(chains.wordings[0, step])) for step in range(1, steps))
    ends = [0, *np.cumsum([len(line) for line in text.splitlines(keepends=True)])]
    for index in range(steps):
        state = int(chains.states[0, index]) if index else start
        completions = _sampled(family, text[: ends[index]], index, start, count)
        right = [grade(QUESTIONS[1].gold, completion.text).verdict is Verdict.CORRECT for completion in completions]
        value = exact_values(family.policy)[index, state]
        assert abs(np.mean(right) - value) <= FAR * np.sqrt(value * (1 - value) / count)
        assert all(completion.n_tokens == len(completion.token_ids) for completion in completions)


def test_tables_and_engine_agree_on_tokens() -> None:
    """For complete solutions to one problem, in which incorrect steps are written twice."""
    family = FAMILIES["length"](4)
    chains = chains_of(family, 60, 5)
    alike = replace(chains, states=np.full_like(chains.states, 40), questions=np.full_like(chains.questions, 1))
    theirs = Rollouts(family, alike, 5).first(32).tokens[:, 0].ravel()
    ours = np.array([completion.n_tokens for completion in _sampled(family, "", 0, 40, 400)])
    spread = np.sqrt(ours.var() / len(ours) + theirs.var() / len(theirs))
    assert abs(ours.mean() - theirs.mean()) < FAR * spread


def test_half_of_the_flaky_graders_answers_are_ungraded_whatever_they_are() -> None:
    family = FAMILIES["flaky"](8)
    chains = chains_of(family, 500, 2)
    outcomes = Rollouts(family, chains, 2).first(32).outcomes
    graded = outcomes != UNGRADED
    assert graded.mean() == pytest.approx(0.5, abs=0.01)
    error = np.where(graded, (outcomes == RIGHT) - chains.values[:, :, None], 0.0)
    assert abs(error.mean()) < FAR * error.std() / np.sqrt(error.size)


def test_more_rollouts_do_not_change_the_first() -> None:
    family = FAMILIES["jump"](4)
    drawn = Rollouts(family, chains_of(family, 20, 2), 2)
    few = drawn.first(1).outcomes.copy()
    many = drawn.first(few.shape[2] + 1).outcomes
    assert many.shape[2] > few.shape[2]
    assert (many[:, :, : few.shape[2]] == few).all()
