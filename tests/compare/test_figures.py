"""Shifts, noise, flips and intervals against known true values, and against each other when the runs are exchanged."""

from collections import Counter
from dataclasses import asdict, replace
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from pipeline.analysis.agree.human import NO_ERROR, first_error
from pipeline.analysis.compare.comparison import verdict
from pipeline.analysis.compare.frames import Common, Frames, common, frames
from pipeline.analysis.compare.shift import Z, beyond_by_chance, label_flips, noise, right_of_b, rule_of_counts, shift
from pipeline.analysis.comparison import jackknife, mean, ratio, sums_of
from pipeline.config.choices import LabelRule
from pipeline.core.statistics import Interval
from pipeline.estimators.registry import estimator_for
from tests.compare.synthetic import counted, label_frame, label_row, sampled, truths
from tests.settings import estimator, estimator_settings

ANY = estimator_settings("fixed", rule=LabelRule.any)
SAMPLED = estimator_for(ANY)
N_A, N_B = 8, 5

rows = st.lists(st.tuples(st.integers(0, 4), st.integers(0, N_A), st.integers(0, N_B)), min_size=1, max_size=40)


def both_ways(drawn: list[tuple[int, int, int]]) -> tuple[Common, Common]:
    problems, a, b = (list(column) for column in zip(*drawn, strict=True))
    return counted(problems, a, b, N_A, N_B), counted(problems, b, a, N_B, N_A)


@given(rows)
def test_exchanged_runs_shift_the_other_way(drawn: list[tuple[int, int, int]]) -> None:
    there, back = (shift(found) for found in both_ways(drawn))
    assert (there.mean_a, there.mean_b, there.equal) == (back.mean_b, back.mean_a, back.equal)
    assert there.shift.value == pytest.approx(-(back.shift.value or 0), abs=1e-12)
    assert there.pearson.value == pytest.approx(back.pearson.value)
    assert there.spearman == pytest.approx(back.spearman)
    assert sum(part.prefixes for part in there.by_position) == there.prefixes == len(drawn)
    spans = [(part.first, part.last) for part in there.by_position]
    assert spans == sorted(spans)
    assert all(first <= last for first, last in spans)
    assert all(last < first for (_, last), (first, _) in pairwise(spans))
    whole = sum(part.prefixes * (part.shift.value or 0) for part in there.by_position)
    assert whole / len(drawn) == pytest.approx(there.shift.value, abs=1e-12)


@given(rows)
def test_exchanged_runs_are_as_noisy_and_flip_as_much(drawn: list[tuple[int, int, int]]) -> None:
    there, back = both_ways(drawn)
    noisy, again = (
        noise(there, estimator("fixed"), estimator("fixed")),
        noise(back, estimator("fixed"), estimator("fixed")),
    )
    assert noisy.beyond == again.beyond
    assert noisy.by_chance == pytest.approx(again.by_chance, abs=1e-12)
    assert noisy.correlation.value == pytest.approx(again.correlation.value)
    flipped, returned = (label_flips(there, SAMPLED, SAMPLED), label_flips(back, SAMPLED, SAMPLED))
    assert flipped.table == tuple(zip(*returned.table, strict=True))
    assert sum(map(sum, flipped.table)) == len(drawn)
    assert flipped.by_chance == pytest.approx(returned.by_chance, abs=1e-12)
    errors, reversed_errors = flipped.first_errors, returned.first_errors
    assert (errors.earlier, errors.appeared) == (reversed_errors.later, reversed_errors.vanished)


@given(st.integers(1, 12), st.integers(1, 12), st.data())
def test_chances_are_hypergeometric(n_a: int, n_b: int, data: st.DataObject) -> None:
    correct = data.draw(st.integers(0, n_a + n_b))
    right, mass = right_of_b(n_a, n_b, correct)
    assert mass == pytest.approx(stats.hypergeom(n_a + n_b, correct, n_b).pmf(right), abs=1e-9)
    share = correct / (n_a + n_b)
    sd = np.sqrt(share * (1 - share) * (1 / n_a + 1 / n_b))
    beyond = sum(m for k, m in zip(right, mass, strict=True) if abs(k / n_b - (correct - k) / n_a) > Z * sd + 1e-9)
    assert beyond_by_chance(n_a, n_b, correct) == pytest.approx(beyond, abs=1e-12)


def test_where_nothing_has_changed_noise_explains_it() -> None:
    truth, problems = truths(1500, 4, seed=1)
    found = sampled(truth, truth, problems, 8, 8, seed=2)
    noisy, flipped, moved = (
        noise(found, estimator("fixed"), estimator("fixed")),
        label_flips(found, SAMPLED, SAMPLED),
        shift(found),
    )
    assert not noisy.excess.has_value
    assert not moved.shift.has_value
    assert noisy.correlation.value == pytest.approx(1, abs=0.02)
    assert (moved.pearson.value or 0) < 0.9
    assert flipped.by_chance is not None
    assert flipped.flipped.low is not None
    assert flipped.flipped.high is not None
    assert flipped.flipped.low < flipped.by_chance < flipped.flipped.high
    assert "a shift is not certain" in verdict(moved, noisy, flipped)
    assert "no more than sampling noise explains" in verdict(moved, noisy, flipped)


def test_intervals_end_where_no_shift_can_be() -> None:
    few = counted([0, 1], [0, 8], [8, 8], 8, 8)
    moved, noisy = shift(few), noise(few, estimator("fixed"), estimator("fixed"))
    assert (moved.shift.value, moved.shift.low, moved.shift.high) == (0.5, -1, 1)
    assert [part.shift.low for part in moved.by_position] == [None, None]
    assert noisy.excess.high == 1


def test_a_shift_is_found_as_large_as_it_is() -> None:
    truth, problems = truths(1000, 4, seed=3)
    other = np.clip(truth - 0.08, 0, 1)
    found = sampled(truth, other, problems, 8, 4, seed=4)
    moved = shift(found)
    assert moved.shift.low is not None
    assert moved.shift.high is not None
    assert moved.shift.low < (other - truth).mean() < moved.shift.high < 0
    shown = verdict(moved, noise(found, estimator("fixed"), estimator("fixed")), label_flips(found, SAMPLED, SAMPLED))
    assert shown.startswith("Values of b are lower than those of a by 0.07")


def test_movements_both_ways_are_reported_though_they_cancel_out() -> None:
    truth, problems = truths(500, 4, seed=5)
    other = np.random.default_rng(6).permutation(truth)
    found = sampled(truth, other, problems, 8, 8, seed=7)
    moved, noisy = shift(found), noise(found, estimator("fixed"), estimator("fixed"))
    assert not moved.shift.has_value
    assert noisy.excess.has_value
    assert noisy.correlation.value == pytest.approx(np.corrcoef(truth, other)[0, 1], abs=0.05)
    assert "differ by more than 1.96 sd of sampling noise" in verdict(
        moved, noisy, label_flips(found, SAMPLED, SAMPLED)
    )


def test_estimators_that_stop_at_right_rollouts_have_no_noise_reported() -> None:
    found = counted([0, 1], [1, 2], [3, 4], 8, 8)
    for estimators in (("fixed", "first_success"), ("bisect", "pooled")):
        noisy = noise(found, *map(estimator, estimators))
        assert (noisy.tested, noisy.beyond, noisy.excess.value, noisy.correlation.value) == (0, None, None, None)


@pytest.mark.parametrize("rule", [LabelRule.any, LabelRule.threshold, LabelRule.posterior])
def test_flips_by_chance_are_those_of_two_samples(rule: LabelRule) -> None:
    config = estimator_settings("fixed", rule=rule, threshold=0.3, certainty=0.8)
    truth, problems = truths(1500, 2, seed=8)
    found = sampled(truth, truth, problems, 8, 6, seed=9)
    by_chance = label_flips(found, estimator_for(config), estimator_for(config)).by_chance
    label = rule_of_counts(estimator_for(config))
    pairs = [(label(a, 8), label(b, 6)) for a, b in found.prefixes.select("correct_a", "correct_b").iter_rows()]
    decided = [a != b for a, b in pairs if None not in (a, b)]
    assert by_chance == pytest.approx(np.mean(decided), abs=0.02)


def test_flips_by_chance_are_not_reported_where_counts_do_not_decide() -> None:
    found = counted([0, 1], [1, 2], [3, 4], 8, 8)
    for config in (
        estimator_settings("fixed", rule=LabelRule.relative),
        estimator_settings("pooled", rule=LabelRule.any),
    ):
        assert label_flips(found, SAMPLED, estimator_for(config)).by_chance is None


labels_of_a_chain = st.lists(st.tuples(*[st.sampled_from([1, 0, 2, None]) | st.just(1)] * 2), min_size=1, max_size=5)


@given(st.lists(labels_of_a_chain, min_size=1, max_size=6))
def test_first_errors_are_those_of_the_labels(chains: list[list[tuple[int | None, int | None]]]) -> None:
    steps = [
        (f"{at}", 0, place, f"{at}:{place}", a, b, False)
        for at, chain in enumerate(chains)
        for place, (a, b) in enumerate(chain)
    ]
    schema = {"chain_id": pl.String, "problem": pl.Int64, "position": pl.Int32, "prefix_id": pl.String,
              "label_a": pl.Int8, "label_b": pl.Int8, "terminal": pl.Boolean}  # fmt: skip
    empty = counted([], [], [], 8, 8)
    found = label_flips(
        replace(empty, steps=pl.DataFrame(steps, schema=schema, orient="row")), SAMPLED, SAMPLED
    ).first_errors
    shown = Counter(became(*map(error_of, zip(*chain, strict=True))) for chain in chains)
    assert asdict(found) == {"chains": len(chains), **{name: shown[name] for name in CASES}}


CASES = ("none", "same", "earlier", "later", "appeared", "vanished", "uncertain")


def error_of(labels: tuple[int | None, ...]) -> int | None:
    return first_error([None if label is None else label != 0 for label in labels])


def became(a: int | None, b: int | None) -> str:
    if a is None or b is None:
        return "uncertain"
    if a == b:
        return "none" if a == NO_ERROR else "same"
    if NO_ERROR in (a, b):
        return "appeared" if a == NO_ERROR else "vanished"
    return "earlier" if b < a else "later"


def test_nothing_in_common_has_no_figures() -> None:
    nothing = counted([], [], [], 8, 8)
    moved, noisy, flipped = (
        shift(nothing),
        noise(nothing, estimator("fixed"), estimator("fixed")),
        label_flips(nothing, SAMPLED, SAMPLED),
    )
    assert (moved.shift.value, noisy.beyond, flipped.flipped.value) == (None, None, None)
    assert "no shift can be measured" in verdict(moved, noisy, flipped)


numbers = st.floats(-1, 1).map(lambda number: round(number, 6))


@given(st.lists(st.tuples(st.integers(0, 5), numbers), min_size=1, max_size=40))
def test_a_mean_is_the_mean_and_lies_in_its_interval(rows: list[tuple[int, float]]) -> None:
    problems = np.array([problem for problem, _ in rows])
    column = np.array([number for _, number in rows])
    found = mean(problems, column)
    assert found.value == pytest.approx(column.mean())
    if len(set(problems.tolist())) == 1:
        assert found.low is None
    else:
        assert found.low is not None
        assert found.high is not None
        assert found.low - 1e-12 <= column.mean() <= found.high + 1e-12


@given(hnp.arrays(np.float64, st.integers(2, 30), elements=numbers))
def test_with_a_prefix_per_problem_it_is_students_interval(column: np.ndarray) -> None:
    from scipy import stats

    found = mean(np.arange(len(column)), column)
    reach = stats.t.ppf(0.975, len(column) - 1) * column.std(ddof=1) / np.sqrt(len(column))
    assert found.high == pytest.approx(column.mean() + reach, abs=1e-9)
    assert found.low == pytest.approx(column.mean() - reach, abs=1e-9)


def test_intervals_hold_the_truth_where_prefixes_of_a_problem_are_alike() -> None:
    rng = np.random.default_rng(1)
    held = 0
    trials, n_problems, per_problem = 400, 40, 8
    problems = np.repeat(np.arange(n_problems), per_problem)
    for _ in range(trials):
        column = np.repeat(rng.normal(size=n_problems), per_problem) + 0.3 * rng.normal(size=len(problems))
        found = mean(problems, column)
        held += not found.has_value
    # 95 %, give or take three standard deviations. If prefixes were treated as independent, it would be half of that.
    assert 0.917 < held / trials < 0.983


def test_what_is_not_defined_has_no_figure() -> None:
    assert jackknife(np.zeros((0, 2)), ratio) == Interval()
    assert jackknife(np.array([[1.0, 0.0], [2.0, 0.0]]), ratio) == Interval()
    assert jackknife(np.array([[1.0, 2.0]]), ratio) == Interval(value=0.5)
    # Without the first problem there is nothing left: no interval.
    assert jackknife(np.array([[1.0, 2.0], [0.0, 0.0]]), ratio) == Interval(value=0.5)


def test_problems_without_rows_are_none() -> None:
    assert sums_of(np.array([0, 3, 3]), [np.array([1.0, 2.0, 3.0])]).tolist() == [[1.0], [5.0]]


Chains = list[tuple[int, list[str]]]

words = st.lists(st.sampled_from("xyz"), min_size=1, max_size=4)
chains = st.lists(st.tuples(st.integers(0, 2), words), min_size=1, max_size=8, unique_by=str)


def made(chains: Chains, tokens: str = "") -> Frames:
    """Frames of chains whose prefix ids are made from problem and words; `tokens` makes them different."""
    rows = []
    for problem, steps in chains:
        ids = [f"{tokens}{problem}:{''.join(steps[:end])}" for end in range(1, len(steps) + 1)]
        ids[-1] += "."
        rows.append(label_row(f"{tokens}{problem}{steps}", f"p{problem}", ids, steps=steps))
    found = frames([label_frame(rows)])
    assert found is not None
    return found


@given(chains, chains)
def test_counts_are_those_of_sets(first: Chains, second: Chains) -> None:
    found = common(made(first), made(second))
    a, b = ({(problem, *steps) for problem, steps in side} for side in (first, second))
    overlap = found.overlap
    assert (overlap.chains, overlap.chains_only_a, overlap.chains_only_b) == (len(a & b), len(a - b), len(b - a))
    prefixes = [{(problem, *steps[:end]) for problem, *steps in side for end in range(len(steps))} for side in (a, b)]
    both = prefixes[0] & prefixes[1]
    assert overlap.prefixes == len(both) == len(found.prefixes)
    assert overlap.prefixes_only_a == len(prefixes[0] - both)
    assert overlap.prefixes_only_b == len(prefixes[1] - both)
    assert found.prefixes["prefix_id"].n_unique() == len(both)
    assert len(found.steps) == sum(len(chain) - 1 for chain in a & b)
    assert overlap.by_words == 0


@given(chains)
def test_chains_that_a_policy_sampled_are_found_by_their_words(given_chains: Chains) -> None:
    plain, by_tokens = made(given_chains), made(given_chains, "tokens ")
    both = common(plain, plain)
    for a, b in ((plain, by_tokens), (by_tokens, plain)):
        found = common(a, b)
        assert found.overlap.by_words == found.overlap.chains == len(given_chains)
        assert (found.overlap.prefixes_only_a, found.overlap.prefixes_only_b) == (0, 0)
        assert len(found.prefixes) == len(both.prefixes)
        assert len(found.steps) == len(both.steps)
        assert set(found.prefixes["prefix_id"]) <= {*a.prefixes["prefix_id"]}


def test_ends_of_chains_and_what_is_unmeasured_are_no_prefixes() -> None:
    row = label_row("c", "p", ["1", "2", "3"], origin=["implied", "unmeasured", "terminal"])
    found = frames([label_frame([row])])
    assert found is not None
    assert found.prefixes["prefix_id"].to_list() == ["root of p", "1"]
    assert found.steps["terminal"].to_list() == [False, False, True]


def test_no_labels_are_no_frames() -> None:
    assert frames([label_frame([label_row("c", "p", ["1"])]).clear()]) is None
