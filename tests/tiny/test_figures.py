"""The figures of the tiny policies' bench, on labellings whose figures are known: c/n of N rollouts of every prefix."""

from dataclasses import replace

import numpy as np
import pytest

from tests.bench.tiny_figures import (
    BINS,
    FIXED,
    USUAL_TARGET,
    Blocks,
    Sampled,
    at_equal_error,
    before_falls,
    biases,
    error_over_claim,
    fewer,
    jackknifed,
    lines,
)
from tests.tiny.compared import Floats, Printed, Truth, truth

REPETITIONS = 400


@pytest.fixture(scope="module")
def known() -> Truth:
    return truth()


def shares(known: Truth, rollouts: int) -> Floats:
    rng = np.random.default_rng(rollouts)
    drawn = rng.binomial(rollouts, known.value, size=(REPETITIONS, len(known.value))) / rollouts
    # The truth is off from V, with which rollouts are drawn, by its own error.
    return np.asarray(drawn + known.sd * rng.normal(size=drawn.shape))


def fixed(known: Truth) -> Blocks:
    value = shares(known, FIXED)
    return Blocks(
        value=value, graded=np.full(value.shape, FIXED), tokens=np.tile(FIXED * known.tokens, (len(value), 1))
    )


def labellings(known: Truth, rollouts: int) -> list[Printed]:
    """What `rollouts` rollouts of every prefix come to, as though our estimator had said it."""
    nothing = np.zeros(len(known.value))
    tokens = np.bincount(known.chain, rollouts * known.tokens).astype(int)
    return [
        Printed(
            unbiased=mean,
            unbiased_rollouts=np.full(len(mean), rollouts),
            mean=mean,
            sd=nothing,
            low=nothing,
            high=nothing,
            correct=nothing.astype(int),
            graded=nothing.astype(int),
            tokens=tokens,
        )
        for mean in shares(known, rollouts)
    ]


def test_more_rollouts_of_the_same_kind_save_nothing(known: Truth) -> None:
    ours, theirs = labellings(known, 16), fixed(known)
    saved = jackknifed(lambda kept: fewer(ours, theirs, known, kept), known)
    assert saved.value == pytest.approx(1, abs=0.05)
    assert saved.error < 0.05


def test_nor_do_they_between_fewer_and_more(known: Truth) -> None:
    every = np.ones(len(known.value), dtype=bool)
    curve = {0.2: labellings(known, 4), 0.1: labellings(known, 16)}
    found = Sampled(passed_on=curve, from_prior=[], fixed=fixed(known), reproduced=0.0, generated=0, seconds=0.0)
    assert at_equal_error(found, known, every) == pytest.approx(1, abs=0.05)


def test_half_the_price_saves_half(known: Truth) -> None:
    every = np.ones(len(known.value), dtype=bool)
    theirs = fixed(known)
    dear = Blocks(value=theirs.value, graded=theirs.graded, tokens=2 * theirs.tokens)
    assert fewer(labellings(known, 16), dear, known, every) == pytest.approx(2, abs=0.1)


@pytest.mark.parametrize("bias", [0.0, 0.02, -0.02])
def test_a_bias_is_reported_from_chance(known: Truth, bias: float) -> None:
    rollouts = np.full((REPETITIONS, len(known.value)), float(FIXED))
    found = list(biases(shares(known, FIXED) + bias, rollouts, known))
    assert len(found) == len(BINS) - 1
    for mean, error in found:
        assert mean == pytest.approx(bias, abs=5 * error)
        assert error < 0.01


def test_every_figure_is_printed(known: Truth) -> None:
    curve = {target: claiming(known, 1.0) for target in (0.2, USUAL_TARGET)}
    found = Sampled(
        passed_on=curve,
        from_prior=claiming(known, 1.0),
        fixed=fixed(known),
        reproduced=0.5,
        generated=1,
        seconds=1.0,
    )
    printed = "\n".join(lines("short", found, known))
    assert "K = 3 to 6" in printed
    assert "squared error over claimed variance 1.0" in printed


def claiming(known: Truth, share: float) -> list[Printed]:
    """c/n of 16 rollouts, with `share` of its variance claimed."""
    sd = np.sqrt(share * known.value * (1 - known.value) / 16)
    return [replace(found, sd=sd) for found in labellings(known, 16)]


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_an_error_is_compared_with_the_variance_that_is_claimed(known: Truth, share: float) -> None:
    found = error_over_claim(claiming(known, share), known)
    assert found.value == pytest.approx(1 / share, abs=0.05)
    assert 0.8 / share < found.low < found.value < found.high < 1.2 / share


def test_the_prefixes_before_large_falls_are_found(known: Truth) -> None:
    chain = np.array([0, 0, 0, 0, 1, 1, 2, 2, 2])
    value = np.array([0.9, 0.6, 0.7, 0.1, 0.0, 0.5, 0.5, 0.4, 0.35])
    places = before_falls(replace(known, chain=chain, value=value))
    assert np.flatnonzero(places).tolist() == [2]
