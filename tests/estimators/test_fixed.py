"""The fixed estimator: unbiased, without a value where nothing was graded, with a Beta posterior."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, binom

from pipeline.config.choices import Interval
from pipeline.core.records import Counts, Origin, Trials
from pipeline.estimators.fixed import measured_value, posterior_value, rollouts_owed, terminal_value
from pipeline.estimators.intervals import clopper_pearson, jeffreys
from pipeline.examples.estimator import HalvesConfig
from tests import strategies as our
from tests.settings import estimator_settings

CONFIG = estimator_settings("fixed")


@given(st.integers(1, 40), st.floats(0, 1).filter(lambda p: p == 0 or p > 1e-300))
def test_the_value_is_unbiased(n: int, p: float) -> None:
    """Over all outcomes c of n rollouts, each with its binomial probability, the mean value is p itself."""
    mean = 0.0
    for c in range(n + 1):
        value = measured_value(Counts(correct=c, graded=n), CONFIG).unbiased_value
        assert value is not None
        mean += float(binom.pmf(c, n, p)) * value
    assert mean == pytest.approx(p, abs=1e-9)


@given(st.integers(1, 40), st.floats(0.9, 1), st.sampled_from([0.02, 0.05, 0.3]))
def test_with_a_stated_miss_rate_values_are_those_of_right_answers(n: int, p: float, missed: float) -> None:
    """Over all outcomes of n rollouts, of whose right answers a share is graded as not correct."""
    config, mean, held = estimator_settings("fixed", miss_rate=missed), 0.0, 0.0
    for c in range(n + 1):
        found = measured_value(Counts(correct=c, graded=n), config)
        assert found.unbiased_value is not None
        assert found.low is not None
        assert found.high is not None
        assert found.value == min(1.0, found.unbiased_value)
        chance = float(binom.pmf(c, n, p * (1 - missed)))
        mean += chance * found.unbiased_value
        held += chance * (found.low <= p <= found.high)
    assert mean == pytest.approx(p, abs=1e-9)
    assert held >= 0.95


@given(our.counts, st.sampled_from([0.02, 0.05, 0.3]))
def test_the_posterior_with_a_miss_rate_is_that_of_right_answers(counts: tuple[int, int], missed: float) -> None:
    correct, graded = counts
    found = posterior_value(Counts(correct=correct, graded=graded), estimator_settings("fixed", miss_rate=missed))
    edges = (1 - missed) * np.linspace(0, 1, 20_001)
    mass = np.diff(beta.cdf(edges, correct + 0.5, graded - correct + 0.5))
    middles, mass = (edges[1:] + edges[:-1]) / 2 / (1 - missed), mass / mass.sum()
    assert found.value == pytest.approx(mass @ middles, abs=1e-4)
    assert found.value_sd == pytest.approx(np.sqrt(mass @ (middles - mass @ middles) ** 2), abs=1e-3)
    assert found.p_above == pytest.approx(mass[middles > CONFIG.threshold].sum(), abs=1e-6)


def test_an_estimator_that_does_not_know_the_miss_rate_refuses_it() -> None:
    with pytest.raises(ValueError, match="miss_rate is not known to estimator"):
        HalvesConfig(miss_rate=0.05)


@given(our.counts, st.integers(0, 20), st.integers(0, 20))
def test_only_graded_rollouts_count(counts: tuple[int, int], ungraded: int, truncated: int) -> None:
    correct, graded = counts
    bare = measured_value(Counts(correct=correct, graded=graded), CONFIG)
    given_counts = Counts(correct=correct, graded=graded, ungraded=ungraded, truncated=truncated, tokens=7)
    found = measured_value(given_counts, CONFIG)
    assert found.counts == given_counts
    assert (found.value, found.low, found.high) == (bare.value, bare.low, bare.high)
    assert found.value == found.unbiased_value == correct / graded
    assert found.origin is Origin.MEASURED


@given(our.counts)
def test_the_posterior_is_jeffreys_beta(counts: tuple[int, int]) -> None:
    correct, graded = counts
    posterior = beta(correct + 0.5, graded - correct + 0.5)
    found = posterior_value(Counts(correct=correct, graded=graded), CONFIG)
    assert found.value == pytest.approx(posterior.mean())
    assert (found.unbiased_value, found.unbiased_rollouts) == (None, 0)
    share = measured_value(Counts(correct=correct, graded=graded), CONFIG)
    assert (share.value_sd, share.p_above) == (found.value_sd, found.p_above)
    assert found.value_sd == pytest.approx(posterior.std())
    assert found.p_above == pytest.approx(posterior.sf(CONFIG.threshold), abs=1e-12)


@given(our.counts, st.sampled_from([0.8, 0.95]))
def test_the_interval_is_the_one_that_was_asked_for(counts: tuple[int, int], confidence: float) -> None:
    correct, graded = counts
    for name, rule in ((Interval.clopper_pearson, clopper_pearson), (Interval.jeffreys, jeffreys)):
        found = measured_value(
            Counts(correct=correct, graded=graded), estimator_settings("fixed", interval=name, confidence=confidence)
        )
        assert (found.low, found.high) == rule(correct, graded, confidence)
        assert found.unbiased_rollouts == graded


@pytest.mark.parametrize("interval", Interval)
def test_where_nothing_was_graded_there_is_no_value(interval: Interval) -> None:
    counts = Counts(ungraded=8, truncated=3, tokens=80)
    found = measured_value(counts, estimator_settings("fixed", interval=interval))
    assert (found.value, found.low, found.high, found.unbiased_value) == (None,) * 4
    assert (found.value_sd, found.p_above, found.unbiased_rollouts) == (None, None, 0)
    assert found.origin is Origin.UNMEASURED
    assert found.counts == counts


@pytest.mark.parametrize("outcome", [True, False])
def test_a_whole_chain_is_worth_its_own_outcome(outcome: bool) -> None:
    found = terminal_value(outcome, 0.5)
    assert {found.value, found.low, found.high, found.unbiased_value, found.p_above} == {float(outcome)}
    assert found.value_sd == 0
    assert found.origin is Origin.TERMINAL
    assert found.counts == Counts()


@given(st.integers(0, 100), st.integers(1, 100))
def test_what_is_owed_fills_up_to_the_number_asked_for_and_never_beyond(issued: int, rollouts: int) -> None:
    more = rollouts_owed(Trials(outcomes=(None,) * issued), rollouts)
    assert more >= 0
    assert issued + more == max(issued, rollouts)
