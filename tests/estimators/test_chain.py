"""From trials to a chain's values and labels: the estimator, the end of the chain, advantages, and whom a log serves."""

from itertools import pairwise
from typing import Any

import pytest

from pipeline.config.choices import AfterError, LabelRule
from pipeline.config.label import EstimatorConfig
from pipeline.core.records import ChainShape, ChainValues, Origin, StepValue, Trials
from pipeline.estimators import bisect, first_success, fixed
from pipeline.estimators.base import objection
from pipeline.estimators.labelling import chain_values
from pipeline.estimators.pooled.kernel import PRIOR
from pipeline.estimators.registry import estimator_for
from pipeline.estimators.tree import NONE, counts_of
from tests.settings import estimator_settings

LOG: dict[str, tuple[bool | None, ...]] = {
    "root": (False, True, True, False),
    "a": (True, False, False, True),
    "b": (None, False, False, False),
    "c": (False, False, True, False),
    "d": (None, None, None, None),
}
TRIALS = {prefix: Trials(outcomes=outcomes, counts=counts_of(outcomes)) for prefix, outcomes in LOG.items()}


def labelled(config: EstimatorConfig, outcome: bool | None) -> ChainValues:
    (chain,) = chain_values([ChainShape(prefix_ids=tuple(LOG), outcome=outcome)], TRIALS, estimator_for(config), PRIOR)
    return chain


def alone(prefix: str, config: Any) -> StepValue:
    if config.name == "fixed":
        return fixed.measured_value(TRIALS[prefix].counts, config)
    return first_success.measured_value(TRIALS[prefix], config)


@pytest.mark.parametrize("name", ["fixed", "first_success"])
@pytest.mark.parametrize("outcome", [True, False, None])
def test_each_prefix_has_the_value_of_its_own_rollouts_and_the_end_its_outcome(name: str, outcome: bool | None) -> None:
    config = estimator_settings(name)
    found = labelled(config, outcome)
    for prefix, value in zip(("root", "a", "b", "c"), (found.root, *found.steps), strict=False):
        own = alone(prefix, config)
        assert (value.value, value.low, value.p_above) == (own.value, own.low, own.p_above)
    assert found.steps[-1].origin is (Origin.UNMEASURED if outcome is None else Origin.TERMINAL)
    assert found.labels == (1, 0, 1, None if outcome is None else int(outcome))


@pytest.mark.parametrize("name", ["fixed", "first_success"])
def test_a_step_advances_by_the_difference_of_values(name: str) -> None:
    found = labelled(estimator_settings(name), outcome=True)
    assert found.root.advantage is None
    for before, after in pairwise((found.root, *found.steps)):
        assert before.value is not None
        assert after.value is not None
        assert after.advantage == after.value - before.value


def test_a_search_labels_by_what_it_found() -> None:
    config = estimator_settings("bisect")
    shape = ChainShape(prefix_ids=tuple(LOG), outcome=False)
    found = labelled(config, outcome=False)
    assert found.labels == bisect.labels(shape, TRIALS) == (1, 0, 0, 0)
    assert [value.unbiased_value for value in (found.root, *found.steps)] == [0.0, 1.0, 0.0, 0.0, 0.0]
    assert labelled(config, outcome=True).labels == (1, 1, 1, 1)


@pytest.mark.parametrize("name", ["fixed", "first_success", "bisect"])
def test_labels_may_end_at_the_first_error(name: str) -> None:
    config = estimator_settings(name, after_error=AfterError.uncertain)
    assert labelled(config, outcome=False).labels == (1, 0, None, None)


def test_a_rule_sees_the_values_of_the_estimator() -> None:
    """The first rollout of step a was correct, and 2 of 4 in total."""
    rule = LabelRule.threshold
    assert labelled(estimator_settings("fixed", rule=rule), outcome=None).labels[0] == 0
    early = estimator_settings("first_success", rule=rule)
    assert labelled(early, outcome=None).labels[0] == 1


@pytest.mark.parametrize("name", ["fixed", "first_success", "bisect"])
def test_of_a_chain_without_a_rollout_nothing_is_known(name: str) -> None:
    (found,) = chain_values(
        [ChainShape(prefix_ids=("root", "a"), outcome=None)], {}, estimator_for(estimator_settings(name)), PRIOR
    )
    assert found.root == found.steps[0] == fixed.unmeasured_value(NONE.counts)
    assert found.labels == (None,)


SERVED = {
    "fixed": {"fixed", "first_success", "pooled", "bisect"},
    "first_success": {"first_success", "pooled", "bisect"},
    "pooled": {"pooled"},
    "bisect": {"bisect", "pooled"},
}


@pytest.mark.parametrize("sampled", SERVED)
@pytest.mark.parametrize("wanted", SERVED)
def test_who_can_use_whose_log(sampled: str, wanted: str) -> None:
    why = objection(estimator_for(estimator_settings(sampled)), estimator_for(estimator_settings(wanted)))
    assert (why is None) == (wanted in SERVED[sampled])
    assert why is None or sampled in why


@pytest.mark.parametrize(
    ("successes", "batch", "served"),
    [(3, 4, True), (2, 2, True), (1, 1, True), (3, 3, True), (3, 8, True), (4, 4, False)],
)
def test_a_log_that_stopped_early_serves_rules_that_stop_earlier(successes: int, batch: int, served: bool) -> None:
    name = "first_success"
    sampled = estimator_settings(name, successes=3, batch=4)
    assert (
        objection(estimator_for(sampled), estimator_for(estimator_settings(name, successes=successes, batch=batch)))
        is None
    ) is served


@pytest.mark.parametrize("name", ["first_success", "bisect"])
def test_a_log_with_rollouts_behind_the_stop_does_not_serve_an_estimator_that_counts_all(name: str) -> None:
    why = objection(estimator_for(estimator_settings(name, batch=2)), estimator_for(estimator_settings("pooled")))
    assert why is not None
    assert "estimator.batch" in why


def test_the_label_rule_does_not_matter() -> None:
    for rule in (LabelRule.any, LabelRule.posterior, LabelRule.three_class):
        sampled, wanted = estimator_settings("pooled"), estimator_settings("pooled", rule=rule)
        assert objection(estimator_for(sampled), estimator_for(wanted)) is None
