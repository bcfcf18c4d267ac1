"""Settings go into a record and come back; what cannot be is refused."""

import json
from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config.changes import EstimatorChange, GraderChange
from pipeline.config.choices import AfterError, BudgetUnit, EstimatorName, Fallback, GraderKind, Interval, LabelRule
from pipeline.config.label import EstimatorConfig, GraderConfig
from pipeline.config.recorded import flat, section
from pipeline.config.recorded import given as named

estimators = st.builds(
    EstimatorConfig,
    interval=st.sampled_from(Interval),
    confidence=st.floats(0.01, 0.99),
    rule=st.sampled_from(LabelRule),
    threshold=st.floats(0, 0.99),
    certainty=st.floats(0.51, 0.99),
    neutral=st.floats(0, 1),
    after_error=st.sampled_from(AfterError),
    name=st.sampled_from([EstimatorName.fixed, EstimatorName.first_success, EstimatorName.pooled]),
    successes=st.integers(1, 1000),
    batch=st.integers(1, 1000),
    target_sd=st.floats(0.01, 0.5),
    budget=st.none() | st.integers(1),
    run_budget=st.none() | st.integers(1),
    budget_unit=st.sampled_from(BudgetUnit),
)
graders = st.builds(
    GraderConfig,
    kind=st.sampled_from(GraderKind),
    fallback=st.sampled_from(Fallback),
    answer_pattern=st.sampled_from([None, "x(y)"]),
    deadline_seconds=st.floats(0.1, 600),
)


@given(estimators, graders)
def test_sections_come_back_from_a_record(estimator: EstimatorConfig, grader: GraderConfig) -> None:
    recorded = json.loads(json.dumps({**flat("estimator", asdict(estimator)), **flat("grader", asdict(grader))}))
    assert section(recorded, "estimator", EstimatorConfig) == estimator
    assert section(recorded, "grader", GraderConfig) == grader


def test_what_was_not_recorded_has_its_default_and_inner_sections_are_not_of_it() -> None:
    assert section({"grader.fallback": "none", "grader.inner.x": 1, "graders.kind": 2}, "grader", GraderConfig) == (
        GraderConfig(fallback=Fallback.none)
    )


@pytest.mark.parametrize("settings", [{"estimator.rule": "guess"}, {"estimator.confidence": 2}, {"estimator.luck": 1}])
def test_settings_that_cannot_be_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"guess|confidence|luck"):
        section(settings, "estimator", EstimatorConfig)


def test_a_change_names_what_it_sets() -> None:
    assert named("estimator", EstimatorChange()) == {}
    change = EstimatorChange(rule=LabelRule.relative, threshold=0.0)
    assert named("estimator", change) == {"estimator.rule": "relative", "estimator.threshold": 0.0}
    assert named("grader", GraderChange(answer_pattern="")) == {"grader.answer_pattern": None}


def test_a_change_out_of_range_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"estimator\.confidence=2 is out of range"):
        EstimatorChange(confidence=2)
    with pytest.raises(ValueError, match=r"grader\.processes=0 is out of range"):
        GraderChange(processes=0)


def test_a_change_can_name_every_setting_of_its_section_but_what_only_says_what_is_sampled() -> None:
    only_what_is_sampled = {"target_sd", "budget", "run_budget", "budget_unit"}
    assert set(EstimatorChange.__dataclass_fields__) == set(EstimatorConfig.__dataclass_fields__) - only_what_is_sampled
    assert set(GraderChange.__dataclass_fields__) == set(GraderConfig.__dataclass_fields__)
