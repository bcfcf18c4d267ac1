"""Counts of targets by place, and the warnings that follow from them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.estimators.labels import values_with_evidence
from pipeline.estimators.target_places import NO_PLACES, TargetPlaces, place_warnings, target_places, total_places

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
