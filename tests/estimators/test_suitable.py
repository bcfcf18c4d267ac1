"""A log can serve the estimators whose rollouts are all in it, and no others."""

import pytest

from pipeline.config.choices import EstimatorName, LabelRule
from pipeline.config.label import EstimatorConfig
from pipeline.estimators.suitable import objection

SERVED = {
    EstimatorName.fixed: set(EstimatorName),
    EstimatorName.first_success: {EstimatorName.first_success, EstimatorName.pooled, EstimatorName.bisect},
    EstimatorName.pooled: {EstimatorName.pooled},
    EstimatorName.bisect: {EstimatorName.bisect, EstimatorName.pooled},
}


@pytest.mark.parametrize("sampled", EstimatorName)
@pytest.mark.parametrize("wanted", EstimatorName)
def test_who_can_use_whose_log(sampled: EstimatorName, wanted: EstimatorName) -> None:
    why = objection(EstimatorConfig(name=sampled), EstimatorConfig(name=wanted))
    assert (why is None) == (wanted in SERVED[sampled])
    assert why is None or sampled.value in why


@pytest.mark.parametrize(
    ("successes", "batch", "served"),
    [(3, 4, True), (2, 2, True), (1, 1, True), (3, 3, True), (3, 8, True), (4, 4, False)],
)
def test_a_log_that_stopped_early_serves_rules_that_stop_earlier(successes: int, batch: int, served: bool) -> None:
    name = EstimatorName.first_success
    sampled = EstimatorConfig(name=name, successes=3, batch=4)
    assert (objection(sampled, EstimatorConfig(name=name, successes=successes, batch=batch)) is None) is served


@pytest.mark.parametrize("name", [EstimatorName.first_success, EstimatorName.bisect])
def test_a_log_with_rollouts_behind_the_stop_does_not_serve_an_estimator_that_counts_all(name: EstimatorName) -> None:
    why = objection(EstimatorConfig(name=name, batch=2), EstimatorConfig(name=EstimatorName.pooled))
    assert why is not None
    assert "estimator.batch" in why


def test_the_label_rule_does_not_matter() -> None:
    for rule in (LabelRule.any, LabelRule.posterior, LabelRule.three_class):
        sampled, wanted = (
            EstimatorConfig(name=EstimatorName.pooled),
            EstimatorConfig(name=EstimatorName.pooled, rule=rule),
        )
        assert objection(sampled, wanted) is None
