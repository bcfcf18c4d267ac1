"""The bench of estimators: peers on known cases, replays, figures and picture."""

from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.records import Trials
from tests.bench.estimators import peers
from tests.bench.estimators.bias import bias, first_finished, together
from tests.bench.estimators.cell import pooled
from tests.bench.estimators.chains import Chains, chains_of
from tests.bench.estimators.clock import compared
from tests.bench.estimators.families import FAMILIES, Family
from tests.bench.estimators.figures import Point, cost_at, growth
from tests.bench.estimators.measured import NOTHING_KNOWN, carried
from tests.bench.estimators.ours import replay
from tests.bench.estimators.rollouts import RIGHT, Rollouts
from tests.bench.estimators.students import area, features, judged, trained
from tests.bench.estimators.trees import SimulatedProblem
from tests.bench.plot import Panel, Series, svg
from tests.bench.synthetic.policy import LEVELS, Policy
from tests.settings import estimator_settings

FAR = 4.0


def _given(paths: list[list[float]]) -> tuple[Chains, Rollouts]:
    """Chains with these values, in hundredths, and wrong outcomes, of a policy that changes no state."""
    values = np.array(paths)
    states = np.rint(values * 100).astype(np.int64)
    policy = Policy(steps=values.shape[1], moves=np.eye(len(LEVELS)), right=LEVELS)
    family = Family(name="given", policy=policy, author=policy)
    count = len(paths)
    chains = Chains(
        states=states,
        wordings=np.zeros_like(states),
        values=values,
        outcomes=np.zeros(count, dtype=bool),
        questions=np.zeros(count, dtype=np.int64),
    )
    return chains, Rollouts(family, chains, 0)


def _lost_at(error: int, steps: int = 16) -> list[float]:
    return [0.8] * error + [0.0] * (steps - error)


ERRORS = range(1, 16)


def test_searches_find_an_error_behind_which_nothing_is_solved() -> None:
    chains, drawn = _given([_lost_at(error) for error in ERRORS])
    for peer, probes in ((peers.omega_prm, 5), (peers.epic_prm, 6)):
        found = peer(chains, drawn)
        assert ((found.values == 0) == (chains.values == 0)).all()
        assert ((found.rollouts > 0).sum(axis=1) <= probes).all()
    stopped = peers.first_zero(chains, drawn)
    assert [(row > 0).sum() for row in stopped.rollouts] == [error + 1 for error in ERRORS]
    assert ((stopped.values == 0) == (chains.values == 0)).all()


def test_of_chains_with_a_right_answer_the_searches_sample_the_problem_alone() -> None:
    chains, drawn = _given([_lost_at(5)] * 3)
    right = replace(chains, outcomes=np.ones(3, dtype=bool))
    for peer, rollouts in ((peers.omega_prm, 16), (peers.epic_prm, 72)):
        found = peer(right, drawn)
        assert found.rollouts.tolist() == [[rollouts, *[0] * 15]] * 3
        assert (found.values == found.values[:, :1]).all()


def test_epic_prm_takes_fewer_rollouts_where_the_problem_is_easy() -> None:
    chains, drawn = _given([[0.95] * 4, [0.3] * 4, [0.0] * 4])
    easy, hard, hopeless = peers.epic_prm(chains, drawn).rollouts[:, 1:].max(axis=1)
    assert easy == 16 < hard <= hopeless == 72


def test_a_wald_interval_stops_at_once_where_all_are_right_or_wrong() -> None:
    chains, drawn = _given([[1.0] * 4, [0.0] * 4, [0.5] * 4])
    sure, lost, open_ = peers.wald(0.2)(chains, drawn).rollouts
    assert (sure == 4).all()
    assert (lost == 4).all()
    # 1.96 sqrt(p (1 - p) / n) is below 0.2 from 24 rollouts on where p is near a half.
    assert np.median(open_) > 16


def test_fixed_is_unbiased_and_shrunk_is_closer_to_the_truth() -> None:
    family = FAMILIES["jump"](8)
    chains = chains_of(family, 600, 3)
    drawn = Rollouts(family, chains, 3)
    raw, drawn_in = peers.fixed(8)(chains, drawn), peers.shrunk(8)(chains, drawn)
    error = raw.values - chains.values
    assert abs(error.mean()) < FAR * error.std() / np.sqrt(error.size)
    assert drawn_in.rmse(chains.values) < raw.rmse(chains.values)
    assert (drawn_in.tokens == raw.tokens).all()


@pytest.mark.parametrize("name", ["jump", "flaky"])
def test_our_fixed_estimator_replayed_is_the_peers(name: str) -> None:
    family = FAMILIES[name](4)
    chains = chains_of(family, 70, 3)
    drawn = Rollouts(family, chains, 3)
    said = replay(chains, drawn, estimator_settings("fixed"), rollouts=8)
    theirs = peers.fixed(8)(chains, drawn)
    assert (said.rollouts == theirs.rollouts).all()
    assert (said.tokens == theirs.tokens).all()
    assert carried(said.unbiased) == pytest.approx(theirs.values)


def test_pooled_replayed_pays_less_and_claims_what_it_errs() -> None:
    family = FAMILIES["jump"](8)
    chains = chains_of(family, 96, 3)
    drawn = Rollouts(family, chains, 3)
    said = replay(chains, drawn, pooled(0.1), rollouts=16)
    standard = peers.fixed(8)(chains, drawn)
    assert said.by_mean.rmse(chains.values) < standard.rmse(chains.values)
    assert said.by_mean.tokens_per_step < 0.6 * standard.tokens_per_step
    assert np.mean(np.abs(said.mean - chains.values) <= 1.96 * said.sd) > 0.85


def test_the_order_of_completion_changes_nothing() -> None:
    found = compared(pooled(0.12), rollouts=8, count=12)
    assert found.differ == 0
    assert found.overtaken > 20


def test_bias_is_found_where_there_is_some() -> None:
    family = FAMILIES["length"](4)
    chains = chains_of(family, 4000, 3)
    block = Rollouts(family, chains, 3).first(16)
    first = (block.outcomes[:, :, 0] == RIGHT).astype(float)
    honest = bias("the first rollout", first, chains, block.outcomes)
    assert max(map(abs, honest.mean)) < 1e-6
    parts = [bias("finished", first_finished(block.outcomes, block.tokens), chains, block.outcomes)] * 2
    (finished,) = together([[part] for part in parts])
    assert finished.mean == pytest.approx(parts[0].mean)
    assert finished.mean[5] > 0.2
    assert finished.error[5] < parts[0].error[5] < 0.01


def test_what_is_not_sampled_takes_over_the_value_before_it() -> None:
    nan = float("nan")
    assert carried(np.array([[nan, 0.2, nan, 0.7], [0.1, nan, nan, nan]])).tolist() == [
        [NOTHING_KNOWN, 0.2, 0.2, 0.7],
        [0.1, 0.1, 0.1, 0.1],
    ]


def _point(tokens: float, rmse: float) -> Point:
    return Point(
        family="jump",
        steps=8,
        method="pooled",
        setting="",
        tokens_per_step=tokens,
        rollouts_per_chain=tokens / 10,
        rmse=rmse,
        valued=1.0,
    )


@given(st.floats(0.3, 3), st.floats(0.06, 0.19))
def test_costs_lie_on_the_line_between_two_points(slope: float, rmse: float) -> None:
    curve = [_point(100 * (error / 0.1) ** -slope, error) for error in (0.05, 0.2, 0.1)]
    wanted = 100 * (rmse / 0.1) ** -slope
    assert cost_at(curve, rmse) == pytest.approx(wanted)
    assert cost_at(curve, rmse, "rollouts_per_chain") == pytest.approx(wanted / 10)


def test_no_cost_is_reported_outside_of_a_curve() -> None:
    curve = [_point(100, 0.2), _point(200, 0.1)]
    assert cost_at(curve, 0.21) is None
    assert cost_at(curve, 0.09) is None


def test_growth_is_the_exponent() -> None:
    assert growth([8, 16, 64], [8**0.3, 16**0.3, 64**0.3]) == pytest.approx(0.3)


POINTS = st.lists(st.tuples(st.floats(1, 1e6), st.floats(1e-3, 1)), min_size=1, max_size=5)


@given(st.lists(st.lists(POINTS, min_size=1, max_size=3), min_size=1, max_size=3))
def test_every_point_lies_in_its_frame(rows: list[list[list[tuple[float, float]]]]) -> None:
    panels = [
        [
            Panel(title="V & <K>", series=(Series(name=f"m{place} <&>", points=tuple(points), joined=True),))
            for place, points in enumerate(row)
        ]
        for row in rows
    ]
    root = ElementTree.fromstring(svg(panels, title="a < b", across="x", up="y & z"))
    space = "{http://www.w3.org/2000/svg}"
    frames = [frame for frame in root.iter(f"{space}rect") if frame.get("class") == "frame"]
    assert len(frames) == sum(map(len, rows))
    inside = 0
    for circle in root.iter(f"{space}circle"):
        x, y = float(circle.attrib["cx"]), float(circle.attrib["cy"])
        inside += any(_within(frame.attrib, x, y) for frame in frames)
    assert inside == sum(len(points) for row in rows for points in row)


def _within(frame: dict[str, str], x: float, y: float) -> bool:
    left, top, width, height = (float(frame[name]) for name in ("x", "y", "width", "height"))
    return left <= x <= left + width and top <= y <= top + height


@pytest.mark.nightly
def test_students_learn_from_values_and_not_from_noise() -> None:
    family = FAMILIES["jump"](8)
    test = chains_of(family, 300, 1)
    seen = features(test.values, np.random.default_rng(0))
    labelled = chains_of(family, 100, 2)
    inputs = features(labelled.values, np.random.default_rng(3)).reshape(-1, seen.shape[-1])
    random = np.random.default_rng(4).random(inputs.shape[0])
    by_values, by_noise = (
        judged(trained(inputs, targets, 0), seen, test.values) for targets in (labelled.values.ravel(), random)
    )
    assert by_values[1] > 0.95 > 0.75 > by_noise[1]
    assert by_values[2] < by_noise[2]


def test_the_area_under_the_curve_is_the_share_of_pairs_in_order() -> None:
    scores, good = np.array([0.1, 0.4, 0.35, 0.8]), np.array([False, False, True, True])
    assert area(scores, good) == pytest.approx(3 / 4)


def test_rollouts_of_a_simulated_tree_are_trials_of_its_values() -> None:
    random = np.random.default_rng(3)
    problem = SimulatedProblem("p", wordings=1, routine=0.6, random=random)
    for prefix, path in problem.paths.items():
        trials = problem.sample(prefix, Trials(), 400, random)
        value = problem.value(prefix)
        assert trials.counts.correct / 400 == pytest.approx(value, abs=FAR * (value * (1 - value) / 400) ** 0.5)
        further = [problem.paths[reached] for reached in trials.reached if reached is not None]
        assert all(later[: len(path)] == path and len(later) > len(path) for later in further)
    root = problem.chains[0].prefix_ids[0]
    assert {chain.prefix_ids[0] for chain in problem.chains} == {root}
    assert problem.paths[root] == ()
