"""Growing in the loop: arms cost as much as each other, prefixes count as often as asked, tables say what results hold."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from pipeline.train.settings import TrainConfig
from pipeline.train.targets import step_targets
from tests.loop.equal import ChainDraw, Paid, paid, repeated_to
from tests.loop.growing import (
    ARMS,
    BASE,
    COMPARED,
    GROWN,
    GROWN_ALONE,
    GROWN_ERRORS,
    GROWN_ONCE,
    MORE_CHAINS,
    MORE_PROBLEMS,
    SEEDS,
    Growing,
    Seed,
    Sizes,
    plan,
)
from tests.loop.grown_tables import AUC, WAYS, arms_table, differences_table
from tests.loop.plan import SIZE
from tests.loop.problems import exercises
from tests.loop.repeats import counted_once, targets_of

SIZES = Sizes(problems=6, more_problems=14, solutions=3, more_solutions=12, rollouts=4, updates_chains=40)


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """As in `test_experiment`."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def _draw(number: int, chain_id: str, *prefixes: str) -> ChainDraw:
    return ChainDraw(problem="1+1", number=number, chain_id=chain_id, tokens=10, prefixes=prefixes)


def test_a_draw_pays_for_its_tokens_and_for_new_prefixes() -> None:
    draws = [_draw(0, "a", "", "x"), _draw(1, "a", "", "x"), _draw(2, "b", "", "y"), _draw(3, "without steps")]
    rollouts = {"": 100, "x": 40, "y": 50}
    every = paid(draws, rollouts, 230)
    assert every == Paid(chains=frozenset({"a", "b", "without steps"}), tokens=230)
    assert paid(draws, rollouts, 229) == paid(draws[:3], rollouts, 1_000)
    assert paid(draws, rollouts, 219) == Paid(chains=frozenset({"a"}), tokens=160)
    assert paid(draws, rollouts, 149).chains == frozenset()


def test_rows_are_repeated_equally_often_but_for_once() -> None:
    rows: list[dict[str, Any]] = [{"chain_id": str(number)} for number in range(7)]
    found = [row["chain_id"] for row in repeated_to(rows, 17, seed=0)]
    assert sorted({found.count(row["chain_id"]) for row in rows}) == [2, 3]
    assert len(found) == 17
    assert len(repeated_to(rows, 3, seed=0)) == 3
    assert repeated_to(rows, 7, seed=0) == rows


def _row(prefixes: str, values: list[float | None]) -> dict[str, Any]:
    steps = len(prefixes)
    return {
        "chain_id": prefixes,
        "steps": ["step"] * steps,
        "prefix_ids": list(prefixes),
        "value": values,
        "unbiased_value": values,
        "value_sd": [0.1] * steps,
        "label": [None if value is None else int(value > 0) for value in values],
        "n_correct": [1] * steps,
        "n_rollouts": [2] * steps,
        "origin": ["measured"] * steps,
        "outcome": None,
        "root_n_rollouts": 2,
    }


def test_a_repeated_prefix_counts_once() -> None:
    """Also where the first row that has it has no label for it."""
    rows = [_row("abc", [0.5, None, 0.2]), _row("abd", [0.5, 0.4, 0.3]), _row("ab", [0.5, 0.4])]
    assert targets_of(rows) == (7, 4)
    once = counted_once(rows)
    assert [row["value"] for row in once] == [[0.5, None, 0.2], [None, 0.4, 0.3]]
    assert targets_of(once) == (4, 4)
    config = TrainConfig(run_dir="x", model="x", out="x")
    assert [[target.value for target in step_targets(row, config)] for row in once] == [row["value"] for row in once]
    assert [target.label for target in step_targets(once[1], config)] == [None, 1, 1]


def test_the_plan_has_every_arm_and_the_compared_ones_first() -> None:
    runs = plan()
    assert len(set(runs)) == len(runs) == len(ARMS) * SEEDS
    assert {arm for arm, _ in runs[: len(COMPARED) * SEEDS]} == set(COMPARED)


@pytest.fixture(scope="module")
def seed(tmp_path_factory: pytest.TempPathFactory) -> Seed:
    folder = tmp_path_factory.mktemp("growing")
    return Seed(folder, exercises(random.Random(2), SIZE, SIZES.more_problems), seed=0, sizes=SIZES)


def test_arms_cost_as_much_as_the_grown_run(seed: Seed) -> None:
    grown, base = seed.part(GROWN), seed.part(BASE)
    assert base.tokens < grown.tokens
    assert sum(row.get("grown", False) for row in grown.rows) == len(grown.rows) - len(base.rows) > 0
    for arm in (MORE_CHAINS, MORE_PROBLEMS):
        part = seed.part(arm)
        assert 0.9 * grown.tokens < part.tokens <= grown.tokens
        assert not any(row.get("grown") for row in part.rows)
        # The same chains with the same rollouts, and more.
        own = {row["chain_id"]: row["n_correct"] for row in part.rows}
        assert {row["chain_id"]: row["n_correct"] for row in base.rows}.items() <= own.items()
    assert len({row["problem"] for row in seed.part(MORE_CHAINS).rows}) <= SIZES.problems
    assert len({row["problem"] for row in seed.part(MORE_PROBLEMS).rows}) > SIZES.problems
    assert seed.part(GROWN_ERRORS).tokens > base.tokens


def test_paying_for_a_whole_run_counts_what_it_has(seed: Seed) -> None:
    base = seed.base
    found = paid(base.draws, base.rollout_tokens, 10**9)
    assert found.tokens == base.tokens
    assert found.chains >= {row["chain_id"] for row in base.rows}


def test_each_prefix_of_a_grown_run_counts_once(seed: Seed) -> None:
    targets, prefixes = targets_of(seed.part(GROWN).rows)
    fewer, same_prefixes = targets_of(seed.part(GROWN_ALONE).rows)
    assert targets > fewer > prefixes == same_prefixes
    assert targets_of(seed.part(GROWN_ONCE).rows) == (prefixes, prefixes)


class _NoStudents:
    """In place of `Students`: what it is shown is kept."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    def trained(self, rows: Any, settings: Any, seed: int, folder: Path) -> dict[str, Any]:
        self.seen.append(len(rows))
        TrainConfig(run_dir="x", model="x", out="x", **settings).check()
        return {"chains": len(rows)}


def test_an_arm_is_run_once_and_shown_as_many_chains(tmp_path: Path) -> None:
    students: Any = _NoStudents()
    problems = exercises(random.Random(3), SIZE, SIZES.more_problems)
    growing = Growing(tmp_path, students, lambda seed: problems, SIZES, lambda line: None)
    for arm in (BASE, GROWN, BASE):
        growing.run(arm, 0)
    assert students.seen == [SIZES.updates_chains] * 2
    base, grown = growing.results()
    assert (base["arm"], base["grown"], base["seed"]) == (BASE, 0, 0)
    assert base["chains"] + grown["grown"] == grown["chains"]


def _result(arm: str, seed: int, best: float) -> dict[str, Any]:
    names = [f"{way} 16" for way in WAYS]
    return {
        **{"arm": arm, "seed": seed, "tokens": 1_000, "chains": 10, "grown": 2, "targets": 30, "prefixes": 20},
        "means": dict.fromkeys(names, best),
        "by_problem": {name: [best + 0.1, best - 0.1] for name in names},
        AUC: best + 0.3,
    }


def test_tables_have_means_and_paired_differences() -> None:
    results = [
        _result("a", 0, 0.3),
        _result("a", 1, 0.5),
        _result("b", 0, 0.4),
        _result("b", 1, 0.61),
        _result("c", 0, 0.2),
    ]
    votes = {f"{name} 16": [0.2, 0.4] for name in ("majority", "bound")} | {"random": [0.1, 0.1]}
    arms = list(arms_table(results, votes, ["a", "c", "not run"]))
    assert "2 problems; random 0.100, majority 0.300" in arms[0]
    assert arms[2].startswith("| a | 2 | 1,000 | 10 | 2 | 30 | 20 | 0.400 +- 0.100 |")
    assert arms[3].startswith("| c | 1 | 1,000 | 10 | 2 | 30 | 20 | 0.200 |")
    assert len(arms) == 4
    gains = list(differences_table(results, "a", ["a", "b", "c"]))
    assert gains[2].startswith("| b | 2 | +0.105 (+0.041 to +0.169) (+0.105 to +0.105) |")
    assert gains[3].startswith("| c | 1 | -0.100 (-0.100 to -0.100) |")
    assert len(gains) == 4
