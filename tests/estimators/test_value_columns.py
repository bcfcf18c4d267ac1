"""What the columns of values have to do with each other under every estimator."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.config.choices import LabelRule
from pipeline.core.records import ChainShape, ChainValues, Origin, StepValue
from pipeline.estimators.base import ANSWERS
from pipeline.estimators.intervals import beta_moments
from pipeline.estimators.labelling import chain_values
from pipeline.estimators.labels import rule_name
from pipeline.estimators.registry import ESTIMATORS, estimator_for
from pipeline.estimators.tree import counts_of
from tests.estimators.pooled import trials
from tests.settings import estimator_settings

NAMES = tuple(ESTIMATORS.ours)
WITH_RULES = tuple(name for name in NAMES if name != "bisect")
RULED_BY = {LabelRule.consensus: (), LabelRule.first_error: ("pooled",), LabelRule.lasting_drop: ("fixed", "pooled")}
"""The estimators with these rules; the others are for all."""
THRESHOLDS = (np.arange(50) + 0.5) / 50
"""The midpoints of an even partition of 0 to 1."""
ROUNDING = 0.02
"""The sums over THRESHOLDS stand for integrals, and the values of `pooled` for intervals."""
PREFIXES = ("root", "a", "b", "c")
ended = st.sampled_from([True, False])
logs = st.lists(st.lists(st.booleans(), max_size=6).map(tuple), min_size=4, max_size=4)


def labelled(name: str, log: list[tuple[bool, ...]], outcome: bool | None, **own: Any) -> ChainValues:
    """A chain of four steps, of which `log` has the outcomes of rollouts of the first prefixes, in one round each."""
    have = {prefix: trials(outcomes) for prefix, outcomes in zip(PREFIXES, log, strict=False) if outcomes}
    chain = ChainShape(prefix_ids=(*PREFIXES, "end"), outcome=outcome)
    estimator = estimator_for(estimator_settings(name, **own))
    state = None if estimator.learner is None else estimator.learner.initial()
    (found,) = chain_values([chain], have, estimator, state)
    assert not ANSWERS["values"]([[found.root, *found.steps]], [chain])
    return found


def posterior_mean(name: str, step: StepValue) -> float:
    """The mean of the posterior that `value_sd` and `p_above` belong to."""
    if name == "fixed" and step.origin is Origin.MEASURED:
        return beta_moments(step.counts.correct, step.counts.graded)[0]
    assert step.value is not None
    return step.value


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=10)
@given(log=logs, outcome=ended)
def test_p_above_has_the_mean_and_the_sd_of_the_value(name: str, log: list[tuple[bool, ...]], outcome: bool) -> None:
    """Mean and variance of a number between 0 and 1 are integrals of P(V > t): of 1 and of 2t."""
    by_threshold = [labelled(name, log, outcome, threshold=float(threshold)) for threshold in THRESHOLDS]
    for at in range(len(PREFIXES)):
        steps = [(found.root, *found.steps)[at] for found in by_threshold]
        if steps[0].value is None:
            assert {(step.value_sd, step.p_above, step.unbiased_value) for step in steps} == {(None, None, None)}
            continue
        above = np.array([step.p_above for step in steps], dtype=float)
        mean = posterior_mean(name, steps[0])
        assert (np.diff(above) <= 1e-12).all()
        assert above.mean() == pytest.approx(mean, abs=ROUNDING)
        variance = (2 * THRESHOLDS * above).mean() - above.mean() ** 2
        assert steps[0].value_sd == pytest.approx(np.sqrt(max(variance, 0.0)), abs=ROUNDING)
        assert len({(step.value, step.value_sd, step.low, step.high, step.unbiased_value) for step in steps}) == 1


@given(log=logs, outcome=st.sampled_from([True, False, None]))
def test_the_value_of_fixed_is_its_unbiased_value(log: list[tuple[bool, ...]], outcome: bool | None) -> None:
    found = labelled("fixed", log, outcome)
    for step in (found.root, *found.steps):
        assert step.value == step.unbiased_value
        if step.origin is Origin.MEASURED:
            assert step.value == step.counts.correct / step.counts.graded
            assert step.unbiased_rollouts == step.counts.graded


@pytest.mark.parametrize("name", NAMES)
@given(log=logs, outcome=st.sampled_from([True, False, None]))
def test_p_outcome_is_what_the_value_before_the_last_step_says_of_the_outcome(
    name: str, log: list[tuple[bool, ...]], outcome: bool | None
) -> None:
    found = labelled(name, log, outcome)
    before = found.steps[-2].value
    graded = any(step.counts.graded for step in (found.root, *found.steps))
    if outcome is None or before is None or not graded:
        assert found.p_outcome is None
    elif name != "pooled":
        assert found.p_outcome == (before if outcome else 1 - before)
    else:
        # The outcome is evidence for a value that makes it likely.
        assert found.p_outcome is not None
        assert 0 < found.p_outcome <= (before if outcome else 1 - before) + 0.05


@pytest.mark.parametrize("name", NAMES)
@given(before=logs, own=st.lists(st.booleans(), min_size=1, max_size=9))
def test_all_rollouts_of_a_promoted_prefix_count(name: str, before: list[tuple[bool, ...]], own: list[bool]) -> None:
    counts = counts_of(own)
    rolled = zip(("root", "a", "b", "end"), (*before[:3], tuple(own)), strict=True)
    have = {prefix: trials(outcomes) for prefix, outcomes in rolled if outcomes}
    chain = ChainShape(prefix_ids=("root", "a", "b", "end"), outcome=None, grown=True)
    estimator = estimator_for(estimator_settings(name))
    (found,) = chain_values([chain], have, estimator, estimator.learner and estimator.learner.initial())
    last = found.steps[-1]
    assert (last.unbiased_value, last.unbiased_rollouts) == (counts.correct / len(own), len(own))
    assert last.counts == counts
    if name in {"first_success", "bisect"}:
        assert last.value == beta_moments(counts.correct, len(own))[0]
        assert found.labels[-1] == int(counts.correct > 0)


def test_p_outcome_of_pooled_does_not_rest_on_the_outcome() -> None:
    log = [(True, True, False), (True,), (True, False), (False, True, True)]
    right, wrong = (labelled("pooled", log, outcome).p_outcome for outcome in (True, False))
    assert right is not None
    assert wrong is not None
    assert right + wrong == pytest.approx(1, abs=0.02)


def test_of_a_chain_of_one_step_the_bare_problem_is_before_the_last_step() -> None:
    have = {"root": trials((True,) * 3 + (False,))}
    chain = ChainShape(prefix_ids=("root", "end"), outcome=False)
    (found,) = chain_values([chain], have, estimator_for(estimator_settings("fixed")), None)
    assert found.p_outcome == 0.25


@pytest.mark.parametrize(
    ("rule", "name"),
    [(rule, name) for rule in LabelRule for name in WITH_RULES if name in RULED_BY.get(rule, WITH_RULES)],
)
@given(log=logs, outcome=st.sampled_from([True, False, None]))
def test_a_step_has_a_label_only_with_a_rollout_in_its_chain(
    rule: LabelRule, name: str, log: list[tuple[bool, ...]], outcome: bool | None
) -> None:
    found = labelled(name, log, outcome, rule=rule)
    ends = [False] * (len(found.steps) - 1) + [outcome is not None]
    for step, label, end in zip(found.steps, found.labels, ends, strict=True):
        if not any(log) and not end:
            assert label is None, rule_name(estimator_settings(name, rule=rule))
            assert (step.value is None) is (name != "pooled")


def test_one_rollout_in_a_chain_is_enough_for_labels_of_pooled() -> None:
    own: dict[str, Any] = {"rule": LabelRule.threshold, "threshold": 0.1}
    nothing: tuple[bool, ...] = ()
    assert labelled("pooled", [nothing] * 4, None, **own).labels == (None,) * 4
    seen = labelled("pooled", [nothing, nothing, (True,), nothing], None, **own)
    assert None not in seen.labels
    ended = labelled("pooled", [nothing] * 4, outcome=True, **own)
    assert [label is None for label in ended.labels] == [True, True, True, False]
