"""Each label rule at, above and below its boundary, and where it does not decide."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.choices import LabelRule
from pipeline.config import EstimatorConfig
from pipeline.estimate.fixed import measured, terminal
from pipeline.estimate.labels import rule_name, step_labels
from pipeline.records import Counts, StepValue
from tests import strategies as our


def worth(correct: int, graded: int = 8) -> StepValue:
    return measured(Counts(correct=correct, graded=graded), EstimatorConfig())


UNMEASURED = worth(0, 0)


@pytest.mark.parametrize(
    ("rule", "threshold", "root", "step", "label"),
    [
        (LabelRule.any, 0.5, worth(0), worth(1), 1),
        (LabelRule.any, 0.5, worth(8), worth(0), 0),
        (LabelRule.any, 0.99, UNMEASURED, worth(1), 1),
        (LabelRule.any, 0.5, worth(4), UNMEASURED, None),
        (LabelRule.threshold, 0.5, worth(0), worth(4), 0),
        (LabelRule.threshold, 0.5, worth(0), worth(5), 1),
        (LabelRule.threshold, 0.5, worth(8), worth(3), 0),
        (LabelRule.threshold, 0.0, worth(0), worth(0), 0),
        (LabelRule.threshold, 0.0, UNMEASURED, worth(1), 1),
        (LabelRule.threshold, 0.5, worth(8), UNMEASURED, None),
        (LabelRule.relative, 0.5, worth(4), worth(2), 0),
        (LabelRule.relative, 0.5, worth(4), worth(3), 1),
        (LabelRule.relative, 0.5, worth(8), worth(4), 0),
        (LabelRule.relative, 0.0, worth(1), worth(0), 0),
        (LabelRule.relative, 0.5, worth(0), worth(8), None),
        (LabelRule.relative, 0.5, UNMEASURED, worth(8), None),
        (LabelRule.relative, 0.5, worth(8), UNMEASURED, None),
    ],
)
def test_rules_at_their_boundaries(
    rule: LabelRule, threshold: float, root: StepValue, step: StepValue, label: int | None
) -> None:
    assert step_labels(root, [step], EstimatorConfig(rule=rule, threshold=threshold)) == (label,)


@pytest.mark.parametrize("rule", LabelRule)
def test_the_end_of_a_chain_is_labelled_by_its_outcome(rule: LabelRule) -> None:
    labels = step_labels(worth(4), [terminal(True), terminal(False)], EstimatorConfig(rule=rule))
    assert labels == (1, 0)


configs = st.builds(EstimatorConfig, rule=st.sampled_from(LabelRule), threshold=st.floats(0, 0.99))
values = our.counts.map(lambda counts: worth(*counts)) | st.just(UNMEASURED)


@given(values, st.lists(values, max_size=6), configs)
def test_one_label_per_step_and_none_only_where_it_must_be(
    root: StepValue, steps: list[StepValue], config: EstimatorConfig
) -> None:
    labels = step_labels(root, steps, config)
    assert len(labels) == len(steps)
    rootless = config.rule is LabelRule.relative and not root.value
    assert [label is None for label in labels] == [rootless or step.value is None for step in steps]


@given(values, st.lists(values.filter(lambda step: step.value is not None), max_size=6), configs)
def test_a_better_step_never_has_a_worse_label(
    root: StepValue, steps: list[StepValue], config: EstimatorConfig
) -> None:
    ordered = sorted(steps, key=lambda step: step.value or 0.0)
    labels = [label for label in step_labels(root, ordered, config) if label is not None]
    assert labels == sorted(labels)


@pytest.mark.parametrize(
    ("rule", "threshold", "name"),
    [
        (LabelRule.any, 0.3, "any"),
        (LabelRule.threshold, 0.5, "threshold>0.5"),
        (LabelRule.threshold, 0.0, "threshold>0"),
        (LabelRule.relative, 0.25, "relative>0.25"),
    ],
)
def test_the_name_of_a_rule_says_all_that_decides(rule: LabelRule, threshold: float, name: str) -> None:
    assert rule_name(EstimatorConfig(rule=rule, threshold=threshold)) == name
