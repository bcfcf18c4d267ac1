"""Settings are recorded and restored unchanged; invalid ones are refused."""

import json
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config.choices import (
    AfterError,
    BudgetUnit,
    Fallback,
    Interval,
    LabelRule,
    Sandbox,
    TimeoutIs,
    UnreadableIs,
)
from pipeline.config.fields import describe_settings
from pipeline.config.label import EstimatorConfig, GraderConfig
from pipeline.config.recorded_settings import chosen_settings, flatten_settings, settings_section
from pipeline.config.recorded_settings import given_settings as named
from pipeline.estimators.registry import ESTIMATORS
from pipeline.estimators.settings import BisectConfig, FirstSuccessConfig, FixedConfig, PooledConfig
from pipeline.graders.registry import GRADERS
from pipeline.graders.settings import CodeConfig, MathConfig
from tests.settings import EstimatorChange, GraderChange

SHARED = {
    "interval": st.sampled_from(Interval),
    "confidence": st.floats(0.01, 0.99),
    "threshold": st.floats(0, 0.99),
    "certainty": st.none() | st.floats(0.51, 0.99),
    "neutral": st.floats(0, 1),
    "after_error": st.sampled_from(AfterError),
}
RULED: dict[str, Any] = {
    **SHARED,
    "rule": st.sampled_from(
        [rule for rule in LabelRule if rule not in (LabelRule.first_error, LabelRule.lasting_drop)]
    ),
}
STOPS: dict[str, Any] = {"batch": st.integers(1, 1000)}
BUDGETS: dict[str, Any] = {
    "target_sd": st.floats(0.01, 0.5),
    "budget": st.none() | st.integers(1),
    "run_budget": st.none() | st.integers(1),
    "budget_unit": st.sampled_from(BudgetUnit),
}
estimators = (
    st.builds(FixedConfig, **RULED)
    | st.builds(FirstSuccessConfig, **RULED, **STOPS, successes=st.integers(1, 1000))
    | st.builds(BisectConfig, **SHARED, **STOPS)
    | st.builds(PooledConfig, **RULED, **BUDGETS)
)
graders = st.builds(
    MathConfig,
    fallback=st.sampled_from(Fallback),
    answer_pattern=st.sampled_from([None, "x(y)"]),
    deadline_seconds=st.floats(0.1, 600),
    timeout_is=st.sampled_from(TimeoutIs),
    unreadable_is=st.sampled_from(UnreadableIs),
) | st.builds(CodeConfig, cpu_seconds=st.floats(0.1, 600), sandbox=st.sampled_from(Sandbox))


@given(estimators, graders)
def test_sections_come_back_from_a_record(estimator: EstimatorConfig, grader: GraderConfig) -> None:
    recorded = json.loads(
        json.dumps({**flatten_settings("estimator", asdict(estimator)), **flatten_settings("grader", asdict(grader))})
    )
    assert chosen_settings(recorded, EstimatorConfig, ESTIMATORS) == estimator
    assert chosen_settings(recorded, GraderConfig, GRADERS) == grader


def test_what_was_not_recorded_has_its_default_and_inner_sections_are_not_of_it() -> None:
    recorded = {"grader.fallback": "none", "grader.inner.x": 1, "graders.kind": 2}
    assert settings_section(recorded, "grader", MathConfig) == MathConfig(fallback=Fallback.none)


def test_a_record_may_name_what_others_of_ours_have_and_nothing_else() -> None:
    assert (
        chosen_settings({"estimator.name": "fixed", "estimator.batch": 1}, EstimatorConfig, ESTIMATORS) == FixedConfig()
    )
    with pytest.raises(ValueError, match=r"estimator\.luck is not a setting of this version"):
        chosen_settings({"estimator.name": "fixed", "estimator.luck": 1}, EstimatorConfig, ESTIMATORS)


@pytest.mark.parametrize("settings", [{"estimator.rule": "guess"}, {"estimator.confidence": 2}, {"estimator.luck": 1}])
def test_settings_that_cannot_be_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"guess|confidence|luck"):
        settings_section(settings, "estimator", EstimatorConfig)


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
    only_what_is_sampled = {"goal", "target_sd", "budget", "run_budget", "budget_unit"}
    for name in ("fixed", "first_success", "pooled", "bisect"):
        every = {each.name for each in describe_settings(ESTIMATORS.load(name).Config)}
        assert every - only_what_is_sampled <= {each.name for each in describe_settings(EstimatorChange)}
    assert not only_what_is_sampled & {each.name for each in describe_settings(EstimatorChange)}
    for name in ("math", "code"):
        assert {each.name for each in describe_settings(GRADERS.load(name).Config)} <= {
            each.name for each in describe_settings(GraderChange)
        }
