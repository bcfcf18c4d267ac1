"""`grow` promotes prefixes that rollouts wrote: within its budget, the same after any kill, and never for their outcomes."""

import os
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipeline.analysis.report import aggregates
from pipeline.analysis.report.run_data import load_run_data
from pipeline.analysis.status import run_status
from pipeline.config.choices import BudgetUnit
from pipeline.core.errors import EngineDied, RunConflict, StepvalueError, UsageError
from pipeline.core.records import Totals
from pipeline.engines.oracle import TOKENS_PER_STEP
from pipeline.engines.oracle_tree import Shape, Tree
from pipeline.pickers.settings import PairsConfig
from pipeline.python.run import Run
from pipeline.runtime.grow import planned_growth
from pipeline.runtime.harvest import read_harvest
from pipeline.storage.location import storage_at
from pipeline.storage.stored_run import stored_run
from pipeline.train.settings import TrainConfig
from pipeline.train.targets import step_targets
from tests.audit.forger import Forger, first
from tests.runtime.growing import assert_sound, audited, bare, chains, files, label, labels
from tests.runtime.grown import DyingEngine, PoisonedEngine, grow_here, labelled, settings

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run that can grow. Do not change it."""
    folder = tmp_path_factory.mktemp("finished")
    labelled(folder)
    return folder


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    shutil.copytree(finished, tmp_path / "here")
    return tmp_path / "here"


@pytest.fixture(scope="module")
def grown_to(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Path]:
    """The run, grown with this budget. Do not change it."""

    @cache
    def made(budget: int) -> Path:
        folder = tmp_path_factory.mktemp("grown") / "here"
        shutil.copytree(finished, folder)
        grow_here(folder, f"grow.budget={budget}")
        return folder

    return made


@pytest.fixture
def grown_run(grown_to: Callable[[int], Path], tmp_path: Path) -> Path:
    shutil.copytree(grown_to(60), tmp_path / "grown")
    return tmp_path / "grown"


def grown(folder: Path) -> pl.DataFrame:
    return labels(folder).filter("grown")


@pytest.mark.parametrize("pick", ["pairs", "errors", "uncertain", "omegaprm"])
def test_what_is_promoted_is_measured_and_becomes_a_chain(pick: str, run: Path) -> None:
    before = labels(run)
    found = grow_here(run, "grow.budget=100", f"grow={pick}")
    after = labels(run)
    assert 0 < found.counts.rollouts <= 100
    assert found.counts.rollouts == 4 * found.counts.promoted
    assert after.filter(~pl.col("grown")).drop("grown").equals(before)
    promoted = grown(run)
    assert promoted.height == found.counts.promoted
    assert promoted["n_rollouts"].list.last().to_list() == [4] * found.counts.promoted
    assert promoted["unbiased_value"].list.last().equals(promoted["value"].list.last())
    assert promoted["outcome"].null_count() == promoted["final_answer"].null_count() == promoted.height
    assert promoted.select("problem_id", "steps").n_unique() == promoted.height
    joined = after.select(
        text=pl.col("solution"), steps=pl.col("steps").list.len(), ends=pl.col("step_ends").list.last()
    )
    assert (joined["text"].str.len_chars() == joined["ends"]).all()
    assert_sound(run)


def test_rollouts_that_led_to_a_promotion_are_not_its_trials(grown_to: Callable[[int], Path]) -> None:
    run = grown_to(100)
    log = Run(run / "run").rollouts()
    promotions = pl.read_parquet(run / "run" / "promotions" / "*.parquet")
    ends = grown(run).select("chain_id", own=pl.col("prefix_ids").list.last())
    assert ends["own"].n_unique() == ends.height
    sources = promotions.join(ends, on="chain_id").join(log.select("rollout_id", at="prefix_id"), on="rollout_id")
    assert sources.height == promotions.height
    assert sources.filter(pl.col("at") == pl.col("own")).is_empty()
    assert log.filter(pl.col("prefix_id").is_in(ends["own"].implode()))["prefix_id"].value_counts()[
        "count"
    ].unique().to_list() == [4]


@pytest.mark.parametrize("answers", [0, 7, 30, *(pytest.param(n, marks=pytest.mark.nightly) for n in (1, 31, 64))])
def test_a_growth_that_was_killed_ends_like_one_that_was_not(
    answers: int, run: Path, grown_to: Callable[[int], Path]
) -> None:
    """An engine dies after a number of answers, so growths stop within rounds, between them and before the first."""
    with pytest.raises(EngineDied):
        grow_here(run, "grow.budget=120", "run.max_failures=1", engine=DyingEngine(run, answers))
    grow_here(run, "grow.budget=120")
    assert labels(run).equals(labels(grown_to(120)))
    assert_sound(run)


def test_a_request_of_a_promoted_prefix_that_kills_engines_is_written_off(run: Path) -> None:
    PoisonedEngine.poison.clear()
    grow_here(run, "grow.budget=40", "run.attempts=1", "run.max_failures=60", engine=PoisonedEngine(run))
    failed = Run(run / "run").rollouts().filter(pl.col("finish") == "engine_failed")
    assert failed["rollout_id"].to_list() == PoisonedEngine.poison
    assert_sound(run)


def test_label_finishes_a_growth_too(run: Path, grown_to: Callable[[int], Path]) -> None:
    with pytest.raises(EngineDied):
        grow_here(run, "grow.budget=120", "run.max_failures=1", engine=DyingEngine(run, 20))
    labelled(run)
    assert labels(run).equals(labels(grown_to(120)))


def test_a_growth_that_is_not_done_leaves_the_run_unfinished(run: Path) -> None:
    """Its units have labels, so only the growth says so."""
    storage = storage_at(str(run / "run"))
    assert stored_run(storage).unfinished == 0
    with pytest.raises(EngineDied):
        grow_here(run, "grow.budget=120", "run.max_failures=1", engine=DyingEngine(run, 20))
    stored = stored_run(storage)
    assert stored.unfinished > 0
    assert len(stored.wholes) == len(stored.units)
    assert run_status(storage, now=0.0).units_done == len(stored.units) - stored.unfinished
    report = audited(run)
    assert (len(report.findings), report.owed) == (0, stored.unfinished)
    with pytest.raises(UsageError, match="finish its growth with the same `grow`, or with `label`"):
        Run(run / "run").export("prm800k", run / "out")
    with pytest.raises(UsageError, match="has begun this growth"):
        planned_growth(settings(run, "grow.budget=120"))
    finish = r"not done. Finish it with `grow run_dir=\S+ grow=pairs grow\.budget=120 grow\.budget_unit=rollouts "
    with pytest.raises(UsageError, match=finish):
        planned_growth(settings(run, "grow.budget=200"))
    with pytest.raises(UsageError, match=finish):
        grow_here(run, "grow.budget=200")
    grow_here(run, "grow.budget=120")
    assert stored_run(storage).unfinished == 0
    assert_sound(run)


def test_an_estimate_says_what_would_be_measured_first(run: Path) -> None:
    found = planned_growth(settings(run, "grow.budget=80"))
    assert 0 < found.picks <= 20
    assert found.cost == 4 * found.picks
    assert not list((run / "run" / "commits").glob("growth-*"))
    with pytest.raises(RunConflict, match="temperature"):
        planned_growth(settings(run, "grow.budget=80", "sampling.temperature=0.5"))


def test_the_same_growth_again_does_nothing_and_a_larger_budget_goes_on(run: Path) -> None:
    first = grow_here(run, "grow.budget=60")
    stored = files(run, "labels")
    again = grow_here(run, "grow.budget=60")
    assert (again.planned, again.summary.units_done_now) == (None, 0)
    assert files(run, "labels") == stored
    with pytest.raises(UsageError, match=r"have cost \d+ rollouts, and grow\.budget=40 is for all growths together"):
        grow_here(run, "grow.budget=40")
    more = grow_here(run, "grow.budget=120", "grow=errors")
    assert first.counts.rollouts <= 60 < more.counts.rollouts <= 120
    assert set(labels(run)["chain_id"]) > set(pl.read_parquet(run / "run" / "promotions" / "*.parquet")["chain_id"])
    assert_sound(run)
    with pytest.raises(UsageError, match=r"has grown by 120 rollouts: give grow\.budget_unit=rollouts"):
        grow_here(run, "grow.budget=9999", "grow.budget_unit=tokens")


def test_a_run_with_promoted_prefixes_is_extended_and_its_input_grows(grown_run: Path) -> None:
    run = grown_run
    before = grown(run)
    labelled(run, "sampling.rollouts=6", rows=[*bare(*range(1, 7)), *chains(1, 9)])
    after = labels(run)
    assert grown(run).select("chain_id", "steps", "prefix_ids").equals(before.select("chain_id", "steps", "prefix_ids"))
    assert grown(run)["n_rollouts"].list.last().to_list() == [4] * before.height
    measured = after.filter(~pl.col("grown"))["n_rollouts"].explode().unique().to_list()
    assert set(measured) == {0, 6}
    assert_sound(run)


def test_labels_are_made_again_with_promoted_prefixes(grown_run: Path) -> None:
    run = grown_run
    before = grown(run)
    Run(run / "run").relabel(**{"estimator.threshold": 0.9, "estimator.rule": "threshold"})
    changed = ("label", "label_rule", "p_above", "root_p_above")
    assert grown(run).drop(changed).equals(before.drop(changed))
    regraded = Run(run / "run").regrade(**{"grader.relative_tolerance": 1e-9})
    # Each rollout is graded with the text before it, as in the run itself.
    assert regraded.verdicts_changed == 0
    assert grown(run)["outcome"].null_count() == before.height
    assert_sound(run)


@pytest.mark.parametrize("estimator", ["pooled", "first_success", "bisect"])
def test_runs_of_all_estimators_grow(estimator: str, tmp_path: Path) -> None:
    labelled(tmp_path, f"estimator={estimator}")
    found = grow_here(tmp_path, "grow.budget=80")
    promoted = grown(tmp_path)
    assert 0 < promoted.height == found.counts.promoted
    shares = promoted["n_correct"].list.last() / promoted["n_rollouts"].list.last()
    assert promoted["n_rollouts"].list.last().unique().to_list() == [4]
    assert promoted["unbiased_value"].list.last().equals(shares)
    assert promoted["label"].list.last().null_count() == 0
    log = Run(tmp_path / "run").rollouts()
    ends = promoted["prefix_ids"].list.last()
    assert set(log.filter(pl.col("prefix_id").is_in(ends.implode()))["prefix_id"].value_counts()["count"]) == {4}
    assert not (log["finish"] == "abort").filter(log["prefix_id"].is_in(ends.implode())).any()
    assert_sound(tmp_path)


@pytest.fixture(scope="module")
def pooled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A grown run of `pooled` whose promoted prefixes have a rollout each, so much rests on those that led to them. Do not
    change it."""
    folder = tmp_path_factory.mktemp("pooled")
    labelled(folder, "estimator=pooled", "run.unit_problems=50", rows=bare(*range(1, 101)))
    grow_here(folder, "grow.budget=800", "grow=errors", "grow.rollouts=1")
    return folder


def test_a_posterior_knows_what_had_led_to_a_promotion(pooled: Path) -> None:
    """Prefixes are promoted because rollouts through them are wrong. Their values are 0.038 too high; without these, 0.069."""
    world = Tree(0, Shape(spread=1.0, branching=5), TOKENS_PER_STEP)
    errors = []
    for problem_id, steps, values in grown(pooled).select("problem_id", "steps", "value").iter_rows():
        path = world.path_of(problem_id, steps)
        assert path is not None
        errors.append(values[-1] - world.value(problem_id, path))
    assert abs(sum(errors) / len(errors)) < 0.05
    assert_sound(pooled)


def test_what_promoted_chains_imply_is_no_target(pooled: Path) -> None:
    implied = sum(origins.count("implied") for origins in grown(pooled)["origin"].to_list())
    assert implied
    exported = Run(pooled / "run").export("scan", pooled / "out", target="soft")
    assert exported.files["train.jsonl"].places.implied == implied
    assert f"{implied} steps of chains that `grow` promoted without a target" in str(exported)
    rows = {row["chain_id"]: row for row in labels(pooled).iter_rows(named=True)}
    config = TrainConfig(run_dir=str(pooled / "run"), model="unused", out="unused")
    for row in rows.values():
        for target, origin in zip(step_targets(row, config), row["origin"], strict=True):
            assert (target.value is None) == (row["grown"] and origin == "implied")


def test_given_chains_grow_from_their_own_prefixes(tmp_path: Path) -> None:
    label(tmp_path, [*chains(*range(1, 7)), *chains(*range(1, 7), last=2)], "sampling.store_tokens=true")
    found = grow_here(tmp_path, "grow.budget=60")
    assert found.counts.promoted
    known = labels(tmp_path).filter(~pl.col("grown"))
    prefixes = {*known["root_prefix_id"], *known["prefix_ids"].explode()}
    for steps, ids in grown(tmp_path).select("steps", "prefix_ids").iter_rows():
        assert len(steps) == len(ids)
        assert set(ids[:-1]) & prefixes or len(ids) == 1
    # The flat world counts other tokens than it writes.
    faults = [finding.fault for finding in audited(tmp_path).findings]
    assert all("tokens, but" in fault or "more faults of this kind" in fault for fault in faults)


def test_runs_that_cannot_grow_are_refused(tmp_path: Path, run: Path) -> None:
    label(tmp_path / "no-tokens", bare(1, 2), "policy.oracle.world=tree")
    with pytest.raises(UsageError, match="does not have the tokens of its rollouts"):
        grow_here(tmp_path / "no-tokens", "grow.budget=100")
    labelled(tmp_path / "one-step", "data.splitter=whole")
    with pytest.raises(UsageError, match=r"data\.splitter=whole finds no end of a step"):
        grow_here(tmp_path / "one-step", "grow.budget=100")
    with pytest.raises(UsageError, match=r"grow\.budget=3 rollouts is less than one prefix costs, which has 4"):
        grow_here(run, "grow.budget=3")
    with pytest.raises(UsageError, match=r"grow\.budget: 9 tokens pay for no prefix: .*the cheapest costs about \d+"):
        grow_here(run, "grow.budget=9", "grow.budget_unit=tokens")
    assert not list((run / "run" / "commits").glob("growth-*"))
    with pytest.raises(
        UsageError, match=r"grow=pairs finds nothing worth a measurement among \d+ prefixes .*least_gain"
    ):
        grow_here(run, "grow.budget=100", "grow.least_gain=1")
    assert not list((run / "run" / "commits").glob("growth-*"))
    with pytest.raises(UsageError, match=r"grow\.budget is not set"):
        grow_here(run)
    (tmp_path / "empty" / "run").mkdir(parents=True)
    with pytest.raises(UsageError, match="does not contain a run"):
        planned_growth(settings(tmp_path / "empty", "grow.budget=100"))
    with pytest.raises(RunConflict, match="temperature"):
        grow_here(run, "grow.budget=100", "sampling.temperature=0.5")


@pytest.mark.parametrize(
    ("column", "value", "fault"),
    [
        ("token_ids", [1, 2], "do not belong to the chain"),
        ("prefix_id", "0" * 20, "which rollout"),
        ("rollouts", 7, "is missing"),
        ("passed", ["nobody"], "nobody has not passed through"),
    ],
)
def test_forged_promotions_are_found(column: str, value: Any, fault: str, grown_run: Path) -> None:
    Forger(grown_run / "run").change("unit", "promotions", first(**{column: value}))
    assert any(fault in finding.fault or "labels exist for" in finding.fault for finding in audited(grown_run).findings)


def test_a_calibration_does_not_see_promoted_prefixes(tmp_path: Path) -> None:
    labelled(tmp_path, rows=bare(*range(1, 21)))
    run = Run(tmp_path / "run")
    run.score(tmp_path / "scores.parquet", scorer="oracle")
    settings = {"least_prefixes": 40, "group_prefixes": 40, "folds": 2}
    before = run.calibrate(tmp_path / "scores.parquet", tmp_path / "before.json", **settings)
    grow_here(tmp_path, "grow.budget=200")
    run.score(tmp_path / "more.parquet", scorer="oracle")
    after = run.calibrate(tmp_path / "more.parquet", tmp_path / "after.json", **settings)
    assert grown(tmp_path).height == 50
    assert after.counts.prefixes == before.counts.prefixes


def test_the_tree_of_a_problem_says_what_was_promoted(grown_to: Callable[[int], Path]) -> None:
    run = grown_to(100)
    found = grown(run)
    problem_id = found["problem_id"][0]
    promoted = {
        (tuple(steps)) for problem, steps in found.select("problem_id", "steps").iter_rows() if problem == problem_id
    }
    (tree,) = Run(run / "run").tree(problem_id).trees
    assert {tuple(tree.steps(at)) for at, node in enumerate(tree.nodes) if node.grown} == promoted
    for node in tree.nodes:
        # Promotions take nodes by what passed through them, so it is a fair trial of none.
        assert node.fair_passed.graded == 0
        if node.grown:
            assert node.fair_issued.graded == 4
    nodes = Run(run / "run").tree(problem_id).nodes
    assert nodes["grown"].sum() == len(promoted)


def test_a_report_counts_a_promoted_prefix_once(run: Path) -> None:
    def read() -> tuple[aggregates.Step, Totals, list[str]]:
        found = load_run_data(stored_run(storage_at(str(run / "run"))), None)
        return aggregates.in_all(found.steps), found.totals, str(Run(run / "run")).splitlines()

    before, totals_before, _ = read()
    promoted = grow_here(run, "grow.budget=100").counts.promoted
    after, totals, lines = read()
    assert (totals.chains - totals_before.chains, totals.promoted) == (promoted, promoted)
    assert (after.steps - before.steps, after.ends - before.ends) == (promoted, 0)
    assert after.labelled + after.uncertain == before.labelled + before.uncertain + promoted
    assert any(f"({promoted} of them promoted by grow)" in line for line in lines)
    assert any(line.startswith(f"steps     {after.labelled + after.uncertain:,} = ") for line in lines)


class Deadly(PairsConfig):
    """Settings that end the process which receives them."""

    def __reduce__(self) -> tuple[object, ...]:
        return os._exit, (9,)


def test_several_processes_read_the_same_as_one_and_the_death_of_one_is_reported(tmp_path: Path) -> None:
    labelled(tmp_path, "run.unit_problems=1")
    storage = storage_at(str(tmp_path / "run"))
    stored, picking = stored_run(storage), PairsConfig(budget=100, budget_unit=BudgetUnit.rollouts)
    alone, together = (read_harvest(stored, picking, processes) for processes in (1, 3))
    assert len(stored.units) > 3
    assert alone.counts.candidates > 0
    assert together == alone
    assert [each.unit_id for each in alone.problems] == [unit.unit_id for unit in stored.units]
    with pytest.raises(StepvalueError, match="killed, probably for want of memory: 2 of them"):
        read_harvest(stored, Deadly(budget=100), 2)
