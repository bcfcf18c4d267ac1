"""The oracle scorer: its truth is the oracle policy's, its AUC is the chosen one. So is the miscalibration of the lab's."""

import asyncio
from typing import Any

import numpy as np
import pytest

from pipeline.config.oracle_world import World
from pipeline.core.ids import content_id
from pipeline.core.records import ChainText, Problem
from pipeline.core.statistics import separation
from pipeline.engines.base import Surroundings
from pipeline.engines.oracle import value_of
from pipeline.engines.oracle_tree import USUAL, Shape, Tree
from pipeline.scorers.base import ScoringEngine, StepScores, wrong_scores
from pipeline.scorers.oracle import Oracle
from pipeline.scorers.settings import OracleScorerConfig, OracleScores
from tests.judges.scripted import chain
from tests.oracles.lab import LabScorer, LabScorerConfig, LabScores

pytestmark = pytest.mark.slow

PREFIXES = 6000


def chains(count: int) -> list[ChainText]:
    return [chain(number, *["s"] * 4) for number in range(count)]


def started(
    *, newest_only: bool = False, seed: int = 0, world: World = World.flat, auc: float = 1.0, **own: Any
) -> ScoringEngine:
    """The oracle, or where it is turned, that of the lab."""
    oracle = OracleScores(seed=seed, world=world, auc=auc)
    lab = LabScorer(LabScorerConfig(oracle=oracle, lab=LabScores(**own)))
    scorer = lab if own else Oracle(OracleScorerConfig(oracle=oracle))
    return scorer.engine(Surroundings(), newest_only=newest_only)


def scores(*, newest_only: bool = False, count: int = PREFIXES // 4, **settings: Any) -> tuple[np.ndarray, np.ndarray]:
    """The scores and the true values of many prefixes, in the same order."""
    engine = started(newest_only=newest_only, **settings)
    asked = chains(count)
    found = asyncio.run(engine.score(asked))
    assert not wrong_scores(found, asked)
    values = [
        value_of(settings.get("seed", 0), USUAL.spread, each.problem_id, prefix)
        for each in asked
        for prefix in each.prefix_ids
    ]
    return np.array([score for each in found for score in each.scores], float), np.array(values)


@pytest.mark.parametrize("wanted", [0.6, 0.75, 0.9, 0.98])
@pytest.mark.parametrize("slope", [1.0, 3.0])
def test_the_auc_is_the_chosen_one(wanted: float, slope: float) -> None:
    got, values = scores(auc=wanted, slope=slope, shift=0.7)
    # Steps of one chain share a problem, so this is a bit more than independent prefixes would give.
    assert separation(got[values > 0.5], got[values <= 0.5]) == pytest.approx(wanted, abs=0.02)


def test_without_noise_and_miscalibration_scores_are_the_true_values() -> None:
    got, values = scores()
    inside = (values > 0.001) & (values < 0.999)
    assert got[inside] == pytest.approx(values[inside], abs=1e-12)


def test_equal_prefixes_have_equal_scores_and_another_seed_has_others() -> None:
    assert (scores(auc=0.7)[0] == scores(auc=0.7)[0]).all()
    assert not (scores(auc=0.7)[0] == scores(auc=0.7, seed=1)[0]).any()


def test_the_newest_step_alone_has_the_score_that_it_has_in_the_chain() -> None:
    whole, newest = scores(auc=0.8)[0].reshape(-1, 4), scores(auc=0.8, newest_only=True)[0].reshape(-1, 4)
    assert (whole[:, -1] == newest[:, -1]).all()
    assert np.isnan(newest[:, :-1]).all()


def scored(engine: ScoringEngine, asked: list[ChainText]) -> list[StepScores]:
    found = asyncio.run(engine.score(asked))
    assert not wrong_scores(found, asked)
    return [*found]


def tree_chains(count: int, shape: Shape = USUAL) -> tuple[list[ChainText], list[list[float]]]:
    """Chains that the policy draws, one for each problem, and the values of their steps."""
    tree = Tree(shape=shape)
    asked, values = [], []
    for number in range(count):
        name = content_id("problem", str(number))
        problem = Problem(problem_id=name, text="p", golds=("7",))
        paths = list(tree.drawn(name, (), "a chain"))
        steps = tuple(tree.step(problem, path).strip() for path in paths)
        ids = tuple(content_id(name, *steps[: at + 1]) for at in range(len(steps)))
        asked.append(ChainText(chain_id=ids[-1], problem_id=name, problem="p", steps=steps, prefix_ids=ids))
        values.append([tree.value(name, path) for path in paths])
    return asked, values


@pytest.mark.parametrize(
    "own",
    [
        {"branching": 5},
        *(pytest.param(own, marks=pytest.mark.nightly) for own in ({}, {"early": 0.3, "spread": 0.8})),
    ],
)
def test_in_the_tree_the_auc_over_inner_prefixes_is_the_chosen_one(own: dict[str, Any]) -> None:
    asked, values = tree_chains(2000, Shape(**own))
    good = np.array([value for each in values for value in each[:-1]]) > 0.5
    for wanted in (0.6, 0.8, 0.9):
        found = scored(started(world=World.tree, auc=wanted, **own), asked)
        inner = np.array([score for each in found for score in each.scores[:-1]], float)
        # Steps of one chain share a problem, so this and what the noise was chosen for each are 2,000 draws or a few more.
        assert separation(inner[good], inner[~good]) == pytest.approx(wanted, abs=0.03)


def test_in_the_tree_scores_without_noise_are_the_values_of_the_nodes() -> None:
    asked, values = tree_chains(300)
    for each, known in zip(scored(started(world=World.tree), asked), values, strict=True):
        assert each.scores == pytest.approx(np.clip(known, 0.001, 0.999), abs=1e-12)
    for each, known in zip(scored(started(world=World.tree, newest_only=True), asked), values, strict=True):
        assert each.scores[-1] == pytest.approx(np.clip(known[-1], 0.001, 0.999), abs=1e-12)
        assert set(each.scores[:-1]) == {None}


def test_chains_that_are_not_of_the_tree_have_the_values_of_the_flat_world() -> None:
    asked = chains(50)
    assert scored(started(world=World.tree), asked) == scored(started(), asked)


def test_tokens_are_bytes_and_what_an_earlier_chain_began_with_is_not_computed_again() -> None:
    texts = ("first é", "second", "third")
    asked = [
        ChainText(
            chain_id=f"{problem}{length}",
            problem_id=problem,
            problem="problem",
            steps=texts[:length],
            prefix_ids=tuple(content_id(problem, *texts[: at + 1]) for at in range(length)),
        )
        for problem, length in (("a", 1), ("a", 2), ("a", 3), ("a", 2), ("b", 3), ("b", 1))
    ]
    sizes = [7, 8, 6, 5]  # of the problem and of the steps
    newest, whole = scored(started(newest_only=True), asked), scored(started(), asked)
    assert [each.n_tokens for each in newest] == [15, 21, 26, 21, 26, 15] == [each.n_tokens for each in whole]
    assert [each.n_computed for each in newest] == [15, 6, 5, 0, sum(sizes), 0]
    assert [each.n_computed for each in whole] == [each.n_tokens for each in whole]
