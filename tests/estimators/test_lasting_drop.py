"""The rule `lasting_drop`: a step is bad where the value fell and never came back."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config.choices import LabelRule
from pipeline.core.records import Counts, Origin, StepValue
from pipeline.estimators.fixed import measured_value, terminal_value
from pipeline.estimators.lasting_drop import FLOOR, ROUNDING, SHARE, drop_labels, independent_no_drop, with_drops
from tests.estimators.pooled import chain, seen
from tests.settings import estimator, estimator_settings, rule_labels

FIXED = estimator_settings("fixed", rule=LabelRule.lasting_drop)


def worth(value: float | None) -> StepValue:
    counts = Counts(correct=1, graded=8) if value is not None else Counts()
    return StepValue(value=value, origin=Origin.MEASURED, counts=counts)


def labelled(*known: float | None, outcome: bool | None = None) -> tuple[int | None, ...]:
    ends = [] if outcome is None else [terminal_value(outcome, 0.5)]
    root, *steps = map(worth, known)
    return rule_labels(root, [*steps, *ends], FIXED)


@pytest.mark.parametrize(
    ("known", "outcome", "labels"),
    [
        # The value falls at step 2 and stays low; at step 2 it recovers; it falls slowly.
        ((0.8, 0.9, 0.1, 0.0), False, (1, 0, 0, 0)),
        ((0.8, 0.9, 0.1, 0.7), False, (1, 1, 1, 0)),
        ((0.8, 0.6, 0.45, 0.4), False, (1, 1, 0, 0)),
        # Half of the best value is not enough; the step with the fall counts itself.
        ((0.8, 0.4), None, (0,)),
        ((0.8, 0.41), None, (1,)),
        # A right answer by luck judges the last step alone, and so does a slip at the end.
        ((0.8, 0.0), True, (0, 1)),
        ((0.8, 0.9), False, (1, 0)),
        # Chains of one step.
        ((0.8,), True, (1,)),
        ((0.8,), False, (0,)),
        # Nothing to lose: below the floor half of the floor counts.
        ((0.0, 0.04, 0.0), None, (0, 0)),
        ((0.0, 0.04, 0.06), None, (1, 1)),
        # Missing values.
        ((0.8, None, 0.7), None, (1, 1)),
        ((0.8, None, 0.1), None, (None, 0)),
        ((None, None, 0.7), None, (None, None)),
        ((0.8, 0.7, None), None, (1, None)),
        ((None, 0.8, 0.1), None, (None, 0)),
    ],
)
def test_the_best_value_from_a_step_on_is_compared_with_the_best_before_it(
    known: Sequence[float | None], outcome: bool | None, labels: Sequence[int | None]
) -> None:
    assert labelled(*known, outcome=outcome) == labels


shares = st.floats(0, 1)


@given(shares, st.lists(shares, min_size=1, max_size=8))
def test_after_the_first_bad_step_all_are_bad_and_a_higher_value_before_clears_no_step(
    root: float, known: list[float]
) -> None:
    labels = labelled(root, *known)
    assert list(labels) == sorted(labels, key=lambda label: -(label or 0))
    higher = labelled(min(1.0, root + 0.2), *known)
    assert all(
        after is not None and before is not None and after <= before
        for before, after in zip(labels, higher, strict=True)
    )


def test_a_step_with_nothing_to_lose_is_marked() -> None:
    steps = [worth(each) for each in (0.02, 0.09, 0.05, 0.4, 0.0)]
    marked = with_drops([*steps, terminal_value(False, 0.5)], [0.5] * 4)
    assert [step.nothing_to_lose for step in marked] == [None, True, True, True, False, False]
    assert [step.p_no_drop for step in marked] == [None, 0.5, 0.5, 0.5, 0.5, 0.0]


@pytest.mark.parametrize("rollouts", [2, 8])
def test_the_probability_of_independent_values_is_that_of_their_posteriors(rollouts: int) -> None:
    """Truth: the rule applied to values drawn from Jeffreys' prior, which the rollouts then follow."""
    random = np.random.default_rng(5)
    truth = random.beta(0.5, 0.5, size=(6000, 4))
    correct = random.binomial(rollouts, truth)
    good = [truth[:, at:].max(axis=1) > SHARE * np.maximum(truth[:, :at].max(axis=1), FLOOR) for at in (1, 2, 3)]
    said = np.array(
        [
            independent_no_drop([measured_value(Counts(correct=int(c), graded=rollouts), FIXED) for c in row])
            for row in correct
        ]
    )
    for step, truly in enumerate(good):
        for low, high in ((0, 0.2), (0.2, 0.5), (0.5, 0.8), (0.8, 1.01)):
            among = (low <= said[:, step]) & (said[:, step] < high)
            error = 4 * np.sqrt(0.25 / max(among.sum(), 1)) + 0.01
            assert among.sum() < 30 or said[among, step].mean() == pytest.approx(truly[among].mean(), abs=error)


@pytest.mark.parametrize("name", ["fixed", "pooled"])
@given(correct=st.lists(st.integers(0, 8), min_size=2, max_size=6), outcome=st.sampled_from([True, False, None]))
def test_a_certainty_leaves_out_labels_that_are_less_probable(
    name: str, correct: list[int], outcome: bool | None
) -> None:
    prefixes = [f"p{step}" for step in range(len(correct) + (outcome is not None))]
    trials = {prefix: seen(count, 8) for prefix, count in zip(prefixes, correct, strict=False)}
    wanted = estimator(name, rule=LabelRule.lasting_drop)
    learned = wanted.learner and wanted.learner.initial()
    ((root, *steps),) = wanted.values([chain(*prefixes[: len(correct)], outcome=outcome)], trials, learned)
    found = [step.p_no_drop for step in steps if step.p_no_drop is not None]
    assert len(found) == len(steps)
    inner = found[: len(correct) - 1]
    assert all(after <= before + ROUNDING for before, after in pairwise(inner))
    for p, label, sure in zip(found, drop_labels([root, *steps], None), drop_labels([root, *steps], 0.9), strict=True):
        assert sure == (label if (p if label else 1 - p) >= 0.9 else None)


def test_a_path_without_rollouts_says_nothing() -> None:
    values = [worth(None)] * 3
    assert independent_no_drop(values) == [None, None]
    assert drop_labels(values, None) == [None, None]


@pytest.mark.parametrize("name", ["first_success", "bisect"])
def test_estimators_that_do_not_measure_all_steps_alike_refuse_the_rule(name: str) -> None:
    with pytest.raises(ValueError, match=r"estimator\.rule=lasting_drop needs the values"):
        estimator_settings(name, rule=LabelRule.lasting_drop)
