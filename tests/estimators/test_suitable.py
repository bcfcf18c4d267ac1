"""A log is suitable for exactly the estimators whose needs it meets."""

import pytest

from pipeline.config.choices import LabelRule
from pipeline.estimators.base import objection
from pipeline.estimators.registry import estimator_for
from tests.settings import estimator_settings

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
