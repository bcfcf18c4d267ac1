"""Budgets: the most that is spent, the report of chains that are not done, and the effect of a larger budget."""

from collections import Counter
from pathlib import Path

import pytest

from pipeline.config.label import LabelConfig
from pipeline.core.progress import Summary
from tests.runtime.adaptive import labels, log, proved, settings, sums, table
from tests.runtime.in_process import label_in_process

pytestmark = pytest.mark.slow

ROWS = sums(4, chains=1)
POOLED = "estimator=pooled"
ROLLOUTS = "estimator.budget_unit=rollouts"
A_ROLLOUT = 80
"""More tokens than one takes here."""


def config(folder: Path, *overrides: str) -> LabelConfig:
    return settings(folder, ROWS, POOLED, *overrides)


def labelled(folder: Path, *overrides: str) -> Summary:
    summary = label_in_process(config(folder, *overrides))
    assert labels(folder).height == summary.totals.chains == len(ROWS)
    proved(folder)
    return summary


def spent(folder: Path, column: str) -> dict[str, int]:
    """The cost of each problem, and so of each chain: n_tokens of its rollouts, or 1 per rollout."""
    cost: Counter[str] = Counter()
    rollouts = table(folder, "rollouts")
    for problem, tokens in rollouts.select("problem_id", "n_tokens").rows():
        cost[problem] += tokens if column == "tokens" else 1
    return cost


def test_a_chain_costs_at_most_its_budget_of_rollouts(tmp_path: Path) -> None:
    summary = labelled(tmp_path, "estimator.budget=7", ROLLOUTS)
    assert set(spent(tmp_path, "rollouts").values()) == {7}
    assert summary.totals.spent == len(ROWS)
    assert label_in_process(config(tmp_path, "estimator.budget=7", ROLLOUTS)).units_done_now == 0


def test_a_chain_costs_at_most_its_budget_of_tokens_and_a_rollout(tmp_path: Path) -> None:
    labelled(tmp_path, "estimator.budget=400")
    costs = spent(tmp_path, "tokens").values()
    assert 400 <= max(costs) < 400 + A_ROLLOUT
    assert min(costs) > 400 - A_ROLLOUT


@pytest.mark.parametrize("chains", [2, 4])
@pytest.mark.parametrize(("budget", "most"), [("budget=6", 6), ("run_budget=49", 49 // 12), ("budget=null", 0)])
def test_chains_that_share_prefixes_cost_no_more_together(tmp_path: Path, chains: int, budget: str, most: int) -> None:
    rows = sums(12 // chains, chains)
    asked = (POOLED, ROLLOUTS, f"estimator.{budget}", "estimator.target_sd=0.02")
    totals = label_in_process(settings(tmp_path, rows, *asked)).totals
    assert totals.rollouts == (12 * most if most else 4 * totals.prefixes)
    proved(tmp_path)


def test_a_chain_that_may_cost_less_than_a_rollout_has_one(tmp_path: Path) -> None:
    assert labelled(tmp_path, "estimator.budget=1").totals.rollouts == len(ROWS)


def test_more_budget_adds_to_chains_that_are_uncertain_and_to_no_others(tmp_path: Path) -> None:
    target = "estimator.target_sd=0.15"
    few = labelled(tmp_path, "estimator.budget=9", ROLLOUTS, target)
    before, cost = log(tmp_path), spent(tmp_path, "rollouts")
    assert 0 < few.totals.spent < len(ROWS)
    done = {problem for problem, rollouts in cost.items() if rollouts < 9}
    assert done
    more = labelled(tmp_path, "estimator.budget=40", ROLLOUTS, target)
    assert more.totals.spent <= few.totals.spent
    assert before.items() <= log(tmp_path).items()
    after = spent(tmp_path, "rollouts")
    assert sum(after[problem] > cost[problem] for problem in cost) == few.totals.spent
    assert all(after[problem] == cost[problem] for problem in done)
    assert max(after.values()) <= 40
    assert label_in_process(config(tmp_path, "estimator.budget=40", ROLLOUTS, target)).units_done_now == 0
    assert label_in_process(config(tmp_path, "estimator.budget=30", ROLLOUTS, target)).units_done_now == 0


def test_a_smaller_target_adds_to_what_is_there(tmp_path: Path) -> None:
    roomy = ("estimator.budget=60", ROLLOUTS)
    labelled(tmp_path, *roomy, "estimator.target_sd=0.25")
    before = log(tmp_path)
    finer = labelled(tmp_path, *roomy, "estimator.target_sd=0.15")
    assert finer.now.rollouts > 0
    assert before.items() <= log(tmp_path).items()
    coarser = label_in_process(config(tmp_path, *roomy, "estimator.target_sd=0.3"))
    assert coarser.units_done_now == 0


@pytest.mark.parametrize("units", [1, pytest.param(100, marks=pytest.mark.nightly)])
def test_a_run_costs_at_most_its_budget_and_goes_on_with_more(tmp_path: Path, units: int) -> None:
    grain = f"run.unit_problems={units}"
    target = "estimator.target_sd=0.15"
    spent_so_far = 0
    for budget in (30, 31, 45, 1000):
        asked = (f"estimator.run_budget={budget}", ROLLOUTS, target, grain)
        before = log(tmp_path) if spent_so_far else {}
        summary = labelled(tmp_path, *asked)
        assert before.items() <= log(tmp_path).items()
        spent_so_far = len(log(tmp_path))
        assert spent_so_far <= budget
        while label_in_process(config(tmp_path, *asked)).units_done_now:
            assert len(log(tmp_path)) <= budget
            proved(tmp_path)
        assert summary.totals.spent > 0 or budget > 30
    assert label_in_process(config(tmp_path, *asked)).totals.spent == 0


def test_a_run_s_tokens_are_within_a_rollout_for_each_chain(tmp_path: Path) -> None:
    asked = ("estimator.run_budget=1200", "estimator.target_sd=0.05", "run.unit_problems=2")
    labelled(tmp_path, *asked)
    tokens = sum(spent(tmp_path, "tokens").values())
    assert 1200 - A_ROLLOUT * len(ROWS) < tokens < 1200 + A_ROLLOUT * len(ROWS)
    for _ in range(3):
        label_in_process(config(tmp_path, *asked))
    assert sum(spent(tmp_path, "tokens").values()) < 1200 + A_ROLLOUT * len(ROWS)
    assert label_in_process(config(tmp_path, *asked)).units_done_now == 0


def test_a_budget_that_is_less_than_a_rollout_for_each_chain_buys_none(tmp_path: Path) -> None:
    summary = labelled(tmp_path, f"estimator.run_budget={len(ROWS) - 1}", ROLLOUTS)
    assert (summary.totals.rollouts, summary.totals.spent) == (0, len(ROWS))
    assert set(labels(tmp_path)["origin"].explode()) <= {"implied", "terminal"}
