"""Correlated votes: the likelihood is that of Polya's urn, and confusions are distributions."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.consensus.confusion import Confusion, Support
from pipeline.consensus.votes import exposure, log_likelihood, patterns_of, tables
from pipeline.core.statistics import Floats

ROW = np.array([0.45, 0.1, 0.03, 0.02, 0.15, 0.1, 0.15])
FREE = np.array([0.8, 0.15, 0.03, 0.02])

concentrations = st.floats(0.05, 50)


def urn(named: tuple[int, ...], base: Floats, concentration: float) -> float:
    """The probability of votes in this order, vote by vote."""
    found = 1.0
    for number, place in enumerate(named):
        found *= (concentration * base[place] + named[:number].count(place)) / (concentration + number)
    return found


@given(concentrations, st.integers(1, 3))
def test_the_likelihood_is_that_of_the_urn(concentration: float, steps: int) -> None:
    table = Confusion(ROW, FREE).table(steps)
    for named in product(range(steps + 1), repeat=3):
        counts = np.bincount(named, minlength=steps + 1).astype(float)[None]
        found = log_likelihood(patterns_of(counts), table, concentration)[0]
        expected = [np.log(urn(named, table[true], concentration)) for true in range(steps + 1)]
        assert found == pytest.approx(expected)


@given(st.lists(st.integers(0, 5), min_size=4, max_size=4).filter(any), concentrations)
def test_whole_votes_and_votes_that_are_nearly_whole_agree(counts: list[int], concentration: float) -> None:
    """Votes that are not whole go another way."""
    table = Confusion(ROW, FREE).table(3)
    whole = patterns_of(np.array([counts], dtype=float))
    nearly = patterns_of(np.array([counts], dtype=float) * (1 + 1e-9))
    weights = np.full((1, 4), 0.25)
    assert log_likelihood(nearly, table, concentration) == pytest.approx(log_likelihood(whole, table, concentration))
    assert tables(nearly, table, concentration, weights) == pytest.approx(tables(whole, table, concentration, weights))
    assert exposure(nearly, concentration, weights) == pytest.approx(exposure(whole, concentration, weights))


def test_votes_that_repeat_each_other_count_as_one() -> None:
    table = Confusion(ROW, FREE).table(4)
    four, one = (patterns_of(np.array([[0, count, 0, 0, 0.0]])) for count in (4.0, 1.0))
    together = log_likelihood(four, table, 1e-4)
    assert together - together[0, 1] == pytest.approx(
        log_likelihood(one, table, 1e-4) - log_likelihood(one, table, 1e-4)[0, 1], abs=1e-2
    )
    apart = log_likelihood(four, table, 1e6)
    assert (apart - apart[0, 1])[0, 2] == pytest.approx(4 * np.log(table[2, 1] / table[1, 1]), rel=1e-3)


@given(st.integers(1, 200), st.booleans(), st.booleans())
def test_a_confusion_is_a_distribution_for_each_true_place(steps: int, last: bool, none: bool) -> None:
    table = Confusion(ROW, FREE, Support(last=last or steps == 1, none=none)).table(steps)
    assert table.min() >= 0
    assert table.sum(axis=1) == pytest.approx(np.ones(steps + 1))
    assert none or not table[:, -1].any()


@given(st.integers(1, 12))
def test_counts_of_ways_are_those_that_were_named_and_phantoms(steps: int) -> None:
    """At its own probabilities a confusion stays as it is, in chains of any length: without phantoms it would not."""
    confusion = Confusion(ROW, FREE)
    error, free = confusion.counts(steps, confusion.table(steps))
    assert error / error.sum() == pytest.approx(ROW)
    assert free / free.sum() == pytest.approx(FREE)
