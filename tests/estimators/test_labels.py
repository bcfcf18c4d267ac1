"""Each label rule at, above and below its threshold, labels after an error, and warnings about where labels are."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config.choices import AfterError, LabelRule
from pipeline.config.label import EstimatorConfig
from pipeline.core.records import Counts, Origin, StepValue
from pipeline.estimators.fixed import measured_value, terminal_value
from pipeline.estimators.labels import (
    NEGATIVE,
    NEUTRAL,
    POSITIVE,
    after_error,
    describe_rule,
    rule_name,
    values_with_evidence,
)
from pipeline.estimators.target_places import NO_PLACES, TargetPlaces, place_warnings, target_places, total_places
from tests import strategies as our
from tests.settings import estimator_settings, rule_labels

SEQUENTIAL = ["first_success", "pooled"]


def worth(correct: int, graded: int = 8) -> StepValue:
    return measured_value(Counts(correct=correct, graded=graded), estimator_settings("fixed"))


def believed(value: float, unbiased: float | None = None, correct: int = 1) -> StepValue:
    """A step value whose unbiased value and best estimate are far apart."""
    return replace(worth(correct), value=value, unbiased_value=unbiased)


UNMEASURED = worth(0, 0)
ALONE = [rule for rule in LabelRule if rule not in (LabelRule.first_error, LabelRule.lasting_drop, LabelRule.consensus)]
"""The rules that look at a step and the one before it, under any estimator."""


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
        (LabelRule.three_class, 0.5, worth(8), worth(4), NEGATIVE),
        (LabelRule.three_class, 0.5, worth(4), worth(5), POSITIVE),
        (LabelRule.three_class, 0.5, worth(8, 10), worth(7, 10), POSITIVE),
        (LabelRule.three_class, 0.5, worth(9, 10), worth(7, 10), NEUTRAL),
        (LabelRule.three_class, 0.5, UNMEASURED, worth(8), None),
        (LabelRule.three_class, 0.5, UNMEASURED, worth(2), NEGATIVE),
        (LabelRule.three_class, 0.5, worth(8), UNMEASURED, None),
    ],
)
def test_rules_at_their_boundaries(
    rule: LabelRule, threshold: float, root: StepValue, step: StepValue, label: int | None
) -> None:
    assert rule_labels(root, [step], estimator_settings("fixed", rule=rule, threshold=threshold)) == (label,)


@pytest.mark.parametrize(
    ("above", "label"),
    [(1.0, 1), (0.9, 1), (0.899, None), (0.5, None), (0.101, None), (0.1, 0), (0.0, 0), (None, None)],
)
@pytest.mark.parametrize("name", ["fixed", *SEQUENTIAL])
def test_the_posterior_decides_where_it_is_certain(name: str, above: float | None, label: int | None) -> None:
    config = estimator_settings(name, rule=LabelRule.posterior, certainty=0.9)
    assert rule_labels(UNMEASURED, [replace(worth(4), p_above=above)], config) == (label,)


@pytest.mark.parametrize("name", SEQUENTIAL)
@pytest.mark.parametrize(
    ("rule", "root", "step", "label"),
    [
        (LabelRule.any, believed(0.9), believed(0.01, unbiased=0.0, correct=1), 1),
        (LabelRule.any, believed(0.9), believed(0.99, unbiased=1.0, correct=0), 0),
        (LabelRule.any, believed(0.9), replace(UNMEASURED, value=0.9, origin=Origin.IMPLIED), None),
        (LabelRule.threshold, UNMEASURED, believed(0.51, unbiased=0.0), 1),
        (LabelRule.threshold, UNMEASURED, believed(0.5, unbiased=1.0), 0),
        (LabelRule.threshold, UNMEASURED, UNMEASURED, None),
        (LabelRule.relative, believed(0.6, unbiased=1.0), believed(0.31, unbiased=0.0), 1),
        (LabelRule.relative, believed(0.6, unbiased=0.0), believed(0.29, unbiased=1.0), 0),
        (LabelRule.relative, believed(0.1, correct=0), believed(0.9), None),
        (LabelRule.relative, replace(UNMEASURED, value=0.5), believed(0.9), None),
        (LabelRule.three_class, believed(0.9, unbiased=0.0), believed(0.7, unbiased=0.0), NEUTRAL),
        (LabelRule.three_class, believed(0.8, unbiased=1.0), believed(0.7, unbiased=0.0), POSITIVE),
        (LabelRule.three_class, believed(0.8, unbiased=1.0), believed(0.5, unbiased=1.0), NEGATIVE),
    ],
)
def test_rules_look_at_the_best_estimate_and_not_at_the_unbiased_one(
    name: str, rule: LabelRule, root: StepValue, step: StepValue, label: int | None
) -> None:
    assert rule_labels(root, [step], estimator_settings(name, rule=rule)) == (label,)


def test_each_step_is_compared_with_the_one_before_it() -> None:
    config = estimator_settings("fixed", rule=LabelRule.three_class, threshold=0.3)
    steps = [worth(8), worth(6), worth(6), worth(2), worth(4), UNMEASURED, worth(7)]
    assert rule_labels(worth(8), steps, config) == (1, NEUTRAL, 1, 0, 1, None, None)


@pytest.mark.parametrize("name", ["fixed", *SEQUENTIAL])
@pytest.mark.parametrize("rule", ALONE)
def test_the_end_of_a_chain_is_labelled_by_its_outcome(rule: LabelRule, name: str) -> None:
    ends = [terminal_value(True, 0.5), terminal_value(False, 0.5)]
    assert rule_labels(worth(4), ends, estimator_settings(name, rule=rule)) == (1, 0)


configs = st.builds(EstimatorConfig, rule=st.sampled_from(ALONE), threshold=st.floats(0, 0.99))
values = our.counts.map(lambda counts: worth(*counts)) | st.just(UNMEASURED)


@given(values, st.lists(values, max_size=6), configs)
def test_one_label_per_step_and_none_only_where_it_must_be(
    root: StepValue, steps: list[StepValue], config: EstimatorConfig
) -> None:
    labels = rule_labels(root, steps, config)
    assert len(labels) == len(steps)
    rootless = config.rule is LabelRule.relative and not root.value
    for before, step, label in zip([root, *steps], steps, labels, strict=False):
        if step.value is None or rootless:
            assert label is None
        elif config.rule is LabelRule.posterior:
            assert step.p_above is not None
            assert (label is None) == (max(step.p_above, 1 - step.p_above) < config.least_certainty)
        elif config.rule is LabelRule.three_class and before.value is None:
            assert label == (NEGATIVE if step.value <= config.threshold else None)
        else:
            assert label is not None


@given(
    values,
    st.lists(values.filter(lambda step: step.value is not None), max_size=6),
    configs.filter(lambda config: config.rule is not LabelRule.posterior),
)
def test_a_better_step_never_has_a_worse_label(
    root: StepValue, steps: list[StepValue], config: EstimatorConfig
) -> None:
    ordered = sorted(steps, key=lambda step: step.value or 0.0)
    judged = [label for step in ordered for label in rule_labels(root, [step], config) if label is not None]
    rank = {NEGATIVE: 0, NEUTRAL: 1, POSITIVE: 2}
    assert [rank[label] for label in judged] == sorted(rank[label] for label in judged)


@pytest.mark.parametrize(
    ("rule", "labels", "expected"),
    [
        (AfterError.keep, (1, 0, 1, None, 2), (1, 0, 1, None, 2)),
        (AfterError.uncertain, (1, 0, 1, None, 2), (1, 0, None, None, None)),
        (AfterError.negative, (1, 0, 1, None, 2), (1, 0, 0, 0, 0)),
        (AfterError.uncertain, (None, 2, 0, 0, 1), (None, 2, 0, None, None)),
        (AfterError.negative, (None, 2, 1, None), (None, 2, 1, None)),
        (AfterError.uncertain, (1, 1, 0), (1, 1, 0)),
        (AfterError.uncertain, (), ()),
    ],
)
def test_what_becomes_of_labels_behind_the_first_error(
    rule: AfterError, labels: Sequence[int | None], expected: Sequence[int | None]
) -> None:
    assert after_error(labels, estimator_settings("fixed", after_error=rule)) == expected


@pytest.mark.parametrize(
    ("config", "name"),
    [
        (estimator_settings("fixed", threshold=0.3), "any"),
        (estimator_settings("fixed", after_error=AfterError.uncertain), "any,uncertain_after_error"),
        (estimator_settings("fixed", rule=LabelRule.lasting_drop, threshold=0.3), "lasting_drop>0.5"),
        (estimator_settings("fixed", rule=LabelRule.lasting_drop, certainty=0.8), "lasting_drop>0.5@0.8"),
        (estimator_settings("fixed", rule=LabelRule.threshold), "threshold>0.5"),
        (estimator_settings("fixed", rule=LabelRule.threshold, threshold=0.0), "threshold>0"),
        (estimator_settings("fixed", rule=LabelRule.relative, threshold=0.25), "relative>0.25"),
        (estimator_settings("fixed", rule=LabelRule.posterior, threshold=0.1), "posterior>0.1@0.95"),
        (estimator_settings("fixed", rule=LabelRule.three_class), "three_class>0.5-0.1"),
        (
            estimator_settings("fixed", rule=LabelRule.three_class, neutral=0.2, after_error=AfterError.negative),
            "three_class>0.5-0.2,negative_after_error",
        ),
    ],
)
def test_the_name_of_a_rule_says_all_that_decides(config: EstimatorConfig, name: str) -> None:
    assert rule_name(config) == name


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (estimator_settings("fixed"), "any: a step is good if one of its rollouts is correct, else bad"),
        (
            estimator_settings("fixed", rule=LabelRule.threshold, threshold=0.3),
            "threshold: a step is good if its value is above 0.3, else bad",
        ),
        (
            estimator_settings("fixed", rule=LabelRule.relative, threshold=0.25, after_error=AfterError.uncertain),
            "relative: a step is good if its value is above 0.25 times the value of the bare problem, else bad; "
            "every step after the first bad one is uncertain",
        ),
        (
            estimator_settings("fixed", rule=LabelRule.posterior, threshold=0.1),
            "posterior: a step is good if P(V_k > 0.1) is at least 0.95, bad if P(V_k <= 0.1) is at least 0.95, else uncertain",
        ),
        (
            estimator_settings("fixed", rule=LabelRule.three_class, neutral=0.2, after_error=AfterError.negative),
            "three_class: a step is bad if its value is 0.5 or less; another step is neutral if its value is more than 0.2 "
            "below that of the step before, else good; every step after the first bad one is bad",
        ),
    ],
)
def test_a_rule_is_described_in_words(config: EstimatorConfig, words: str) -> None:
    assert describe_rule(config) == words


ORIGINS = ["measured", "implied", "measured", "terminal"]


def test_ends_are_no_inner_steps() -> None:
    assert target_places([1, None, 0, 0], ORIGINS, hard=True) == (3, 2, 1, 2, 1, 0)
    assert target_places([1, None, 0], ORIGINS, hard=True) == (3, 2, 1, 1, 0, 0)
    assert target_places([0.5, None, 0.0, 0.0], ORIGINS, hard=False) == (3, 2, 0.5, 0, 0, 0)
    assert target_places([(1, 4), None, (2, 2), (0, 1)], ORIGINS, hard=False) == (3, 2, 1.25, 0, 0, 0)
    assert target_places([0], ["terminal"], hard=True) == (0, 0, 0, 1, 1, 0)
    assert target_places([], [], hard=True) == NO_PLACES


def test_what_a_promoted_chain_implies_is_counted_as_left_out() -> None:
    assert target_places([1, None], ORIGINS, hard=True, grown=True).implied == 1
    assert target_places([1], ORIGINS, hard=True, grown=True).implied == 0
    assert target_places([1, None], ORIGINS, hard=True).implied == 0


def warned(places: TargetPlaces) -> list[str]:
    return [line.split(" ")[0] for line in place_warnings(places, what="label", instead="Train on values")]


@pytest.mark.parametrize(
    ("places", "lines"),
    [
        (TargetPlaces(inner=10, known=5), []),
        (TargetPlaces(inner=10, known=4), ["few"]),
        (TargetPlaces(inner=0, known=0), []),
        (TargetPlaces(inner=90, known=90, good=50, bad=40, bad_at_ends=20), []),
        (TargetPlaces(inner=90, known=90, good=50, bad=40, bad_at_ends=21), ["21"]),
        (TargetPlaces(inner=90, known=90, good=50, bad=19, bad_at_ends=19), []),
        (TargetPlaces(inner=100, known=100, good=5.0), ["nearly"]),
        (TargetPlaces(inner=100, known=100, good=5.1), []),
        (TargetPlaces(inner=20, known=20, good=19.0), ["nearly"]),
        (TargetPlaces(inner=19, known=19, good=0.0), []),
        (TargetPlaces(inner=0, bad=20, bad_at_ends=20), ["no"]),
        (TargetPlaces(inner=10, known=0, bad=20, bad_at_ends=20), ["few", "20"]),
    ],
)
def test_few_or_equal_targets_and_zeros_at_ends_are_worth_a_warning(places: TargetPlaces, lines: list[str]) -> None:
    assert warned(places) == lines


def test_warnings_name_the_target_that_is_missing_and_a_better_one() -> None:
    places = TargetPlaces(inner=10, known=1, bad=20, bad_at_ends=20)
    few, ends = place_warnings(places, what="value", instead="Train on labels")
    assert few.startswith("few inner steps have a value: 1 of 10.")
    assert few.endswith("from a step without a value. Train on labels")
    assert ends.endswith(
        "Train on labels, or make more labels 0 with `relabel`: another estimator.rule, or a higher estimator.threshold"
    )


@given(st.lists(st.tuples(st.sampled_from([0, 1, 2, None]), st.sampled_from(ORIGINS)), max_size=8), st.integers(0, 8))
def test_counts_of_chains_add_up(steps: list[tuple[int | None, str]], cut: int) -> None:
    first, second = (
        target_places([label for label, _ in part], [origin for _, origin in part], hard=True)
        for part in (steps[:cut], steps[cut:])
    )
    whole = target_places([label for label, _ in steps], [origin for _, origin in steps], hard=True)
    assert total_places([first, second]) == whole
    assert whole.known <= whole.inner
    assert whole.bad_at_ends <= whole.bad


def test_values_need_a_graded_rollout_somewhere_in_the_chain() -> None:
    values = [0.4, 0.5, 0.6, 1.0]
    assert values_with_evidence(values, ORIGINS, [0, 0, 0, 0], 0) == [None, None, None, 1.0]
    assert values_with_evidence(values, ORIGINS, [0, 0, 0, 0], 1) == values
    assert values_with_evidence(values, ORIGINS, [0, 0, 2, 0], 0) == values
