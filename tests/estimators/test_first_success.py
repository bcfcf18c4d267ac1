"""Sampling until enough rollouts are correct: labels as with all N rollouts, unbiased values, by enumeration of outcomes."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config.choices import Interval
from pipeline.core.records import Counts, Origin, Trials
from pipeline.estimators import fixed
from pipeline.estimators.first_success import measured_value, rollouts_owed
from pipeline.estimators.intervals import jeffreys
from pipeline.estimators.settings import FirstSuccessConfig
from pipeline.estimators.tree import counts_of
from tests.settings import estimator_settings, rule_labels

Outcomes = tuple[bool | None, ...]

NAME = "first_success"
configs = st.builds(FirstSuccessConfig, successes=st.integers(1, 3), batch=st.integers(1, 4))
ROLLOUTS = st.integers(1, 7)


def trials(outcomes: Sequence[bool | None]) -> Trials:
    return Trials(
        outcomes=tuple(outcomes),
        rounds=(len(outcomes),),
        reached=(None,) * len(outcomes),
        counts=replace(counts_of(outcomes), tokens=10 * len(outcomes), truncated=outcomes.count(None)),
    )


def sampled(fate: Outcomes, config: FirstSuccessConfig) -> Outcomes:
    """The rollouts that are issued batch by batch, when all outcomes are given in advance."""
    issued = 0
    while more := rollouts_owed(trials(fate[:issued]), len(fate), config):
        issued += more
    return fate[:issued]


def with_aborted(issued: Outcomes, config: FirstSuccessConfig, kept: Sequence[bool]) -> Outcomes:
    """The same trials with some of the rollouts after the stopping point aborted."""
    stop = next((at for at in range(len(issued)) if issued[: at + 1].count(True) >= config.successes), len(issued))
    return issued[: stop + 1] + tuple(
        outcome if keep else None for outcome, keep in zip(issued[stop + 1 :], kept, strict=False)
    )


def fates(pattern: Sequence[bool]) -> Iterator[Outcomes]:
    """All outcomes of rollouts for a given pattern of graded ones."""
    return product(*((True, False) if graded else (None,) for graded in pattern))


def probability(fate: Outcomes, p: Fraction) -> Fraction:
    return p ** fate.count(True) * (1 - p) ** fate.count(False)


@given(st.lists(st.booleans(), min_size=1, max_size=7).filter(any), configs, st.fractions(0, 1, max_denominator=100))
def test_values_are_unbiased_and_intervals_cover_whichever_rollouts_are_not_graded(
    pattern: list[bool], config: FirstSuccessConfig, p: Fraction
) -> None:
    mean = covered = 0.0
    for fate in fates(pattern):
        found = measured_value(trials(sampled(fate, config)), config)
        assert found.unbiased_value is not None
        assert found.low is not None
        assert found.high is not None
        chance = float(probability(fate, p))
        mean += chance * found.unbiased_value
        covered += chance * (found.low <= p <= found.high)
    assert mean == pytest.approx(float(p), abs=1e-12)
    assert covered >= config.confidence - 1e-12


@given(st.integers(1, 5), configs)
def test_labels_of_any_are_those_of_all_n_rollouts(rollouts: int, config: FirstSuccessConfig) -> None:
    """For each outcome separately, so in distribution; also with half or all of the rollouts ungraded."""
    for fate in product((True, False, None), repeat=rollouts):
        all_of_them = fixed.measured_value(counts_of(fate), config)
        first = measured_value(trials(sampled(fate, config)), config)
        root = fixed.unmeasured_value(Counts())
        assert rule_labels(root, [first], config) == rule_labels(root, [all_of_them], estimator_settings("fixed"))


@given(st.lists(st.sampled_from((True, False, None)), max_size=30), configs)
def test_a_log_of_all_n_is_cut_where_sampling_would_have_stopped(
    fate: list[bool | None], config: FirstSuccessConfig
) -> None:
    cut = sampled(tuple(fate), config)
    found = measured_value(trials(fate), config)
    of_cut = measured_value(trials(cut), config)
    assert replace(found, counts=of_cut.counts) == of_cut
    assert found.counts == replace(of_cut.counts, tokens=10 * len(fate), truncated=fate.count(None))
    assert of_cut.counts.graded == of_cut.unbiased_rollouts


@given(
    st.lists(st.sampled_from((True, False, None)), min_size=1, max_size=12),
    configs,
    st.lists(st.booleans(), min_size=12, max_size=12),
)
def test_neither_the_batch_nor_what_is_aborted_behind_the_stop_changes_an_estimate(
    fate: list[bool | None], config: FirstSuccessConfig, kept: list[bool]
) -> None:
    one_by_one = measured_value(trials(sampled(tuple(fate), replace(config, batch=1))), config)
    batched = sampled(tuple(fate), config)
    for issued in (batched, with_aborted(batched, config, kept)):
        found = measured_value(trials(issued), config)
        spent = {"tokens": found.counts.tokens, "truncated": found.counts.truncated}
        assert found == replace(one_by_one, counts=replace(one_by_one.counts, **spent))
        assert rollouts_owed(trials(issued), len(fate), config) == 0


@given(st.lists(st.sampled_from((True, False, None)), min_size=1, max_size=30), configs, st.data())
def test_a_run_that_was_cut_anywhere_issues_the_same(
    fate: list[bool | None], config: FirstSuccessConfig, data: st.DataObject
) -> None:
    whole = sampled(tuple(fate), config)
    issued = data.draw(st.integers(0, len(whole)))
    while more := rollouts_owed(trials(fate[:issued]), len(fate), config):
        issued += more
    stop = measured_value(trials(whole), config).counts
    assert len(whole) >= issued >= stop.graded + stop.ungraded


@pytest.mark.parametrize(
    ("outcomes", "batch", "successes", "more"),
    [
        ((), 1, 1, 1),
        ((), 3, 1, 3),
        ((), 100, 1, 8),
        ((False,), 1, 1, 1),
        ((None,), 1, 1, 1),
        ((False, True), 1, 1, 0),
        ((False, True), 2, 2, 2),
        ((False, False, False, True, False, True), 3, 2, 0),
        ((False,) * 6, 3, 1, 2),
        ((True, False), 3, 1, 0),
        ((False, False), 3, 1, 1),
        ((False,) * 8, 1, 1, 0),
        ((None,) * 8, 1, 1, 0),
        ((False,) * 9, 2, 1, 0),
    ],
)
def test_what_the_next_round_needs_of_eight(outcomes: Outcomes, batch: int, successes: int, more: int) -> None:
    assert rollouts_owed(trials(outcomes), 8, estimator_settings(NAME, batch=batch, successes=successes)) == more


@given(ROLLOUTS, st.fractions(Fraction(1, 20), 1, max_denominator=20))
def test_a_label_costs_as_many_rollouts_as_a_cut_geometric_law_says(rollouts: int, p: Fraction) -> None:
    """E[n] = (1 - (1 - V)^N) / V: 2.9 rollouts at V = 0.3 instead of 8."""
    config = estimator_settings(NAME)
    mean = sum(probability(fate, p) * len(sampled(fate, config)) for fate in fates([True] * rollouts))
    assert mean == (1 - (1 - p) ** rollouts) / p


@pytest.mark.parametrize(
    ("outcomes", "value", "interval"),
    [
        ((True,), 1.0, (0.025, 1.0)),
        ((False,), 0.0, (0.0, 0.975)),
        ((False, None, True), 0.0, (1 - 0.975**0.5, 0.975)),
        ((False,) * 8, 0.0, (0.0, 1 - 0.025 ** (1 / 8))),
    ],
)
def test_values_by_hand(outcomes: Outcomes, value: float, interval: tuple[float, float]) -> None:
    found = measured_value(trials(outcomes), estimator_settings(NAME))
    assert found.unbiased_value == value
    assert (found.low, found.high) == pytest.approx(interval)
    assert found.unbiased_rollouts == len(outcomes) - outcomes.count(None)
    assert found.origin is Origin.MEASURED


@given(st.lists(st.sampled_from((True, False)), min_size=1, max_size=20), configs)
def test_the_posterior_does_not_know_why_sampling_stopped(fate: list[bool | None], config: FirstSuccessConfig) -> None:
    issued = sampled(tuple(fate), config)
    counted = sampled(tuple(fate), replace(config, batch=1))
    found, alone = measured_value(trials(issued), config), fixed.posterior_value(counts_of(counted), config)
    assert (found.value, found.value_sd, found.p_above) == (alone.value, alone.value_sd, alone.p_above)


@pytest.mark.parametrize("interval", [Interval.jeffreys, Interval.posterior])
def test_other_intervals_are_jeffreys(interval: Interval) -> None:
    found = measured_value(trials((False, True)), estimator_settings(NAME, interval=interval, confidence=0.9))
    assert (found.low, found.high) == jeffreys(1, 2, 0.9)


@pytest.mark.parametrize("outcomes", [(), (None,), (None,) * 8])
def test_without_a_graded_rollout_there_is_no_value(outcomes: Outcomes) -> None:
    assert measured_value(trials(outcomes), estimator_settings(NAME)) == fixed.unmeasured_value(trials(outcomes).counts)
