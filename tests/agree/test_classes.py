"""PRMBench's scores are those that the formulas of its authors give, and differ from them only where they give -1."""

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.analysis.agree.classes import Classes, error_classes
from pipeline.analysis.agree.human import ChainPair
from tests.agree.pairs import RESAMPLES, human, labelled

CHAINS = st.lists(
    st.lists(st.tuples(st.booleans(), st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])), min_size=1, max_size=6), min_size=1
)


def classed(name: str | None, steps: list[tuple[bool, float]]) -> ChainPair:
    person = replace(human([good for good, _ in steps]), error_class=name)
    return ChainPair(human=person, labelled=labelled([score for _, score in steps]))


def found_in(*pairs: ChainPair, threshold: float = 0.5) -> Classes:
    found = error_classes(pairs, threshold, RESAMPLES)
    assert found is not None
    return found


def published(steps: list[tuple[bool, float]], threshold: float) -> tuple[float, float]:
    """F1 and negative F1, from precision and recall with -1 for a division by 0, in the way of the published evaluation."""
    cells = dict.fromkeys(product((True, False), repeat=2), 0)
    for good, score in steps:
        cells[good, score > threshold] += 1

    def f1(hit: int, wrongly: int, missed: int) -> float:
        precision = hit / (hit + wrongly) if hit + wrongly else -1
        recall = hit / (hit + missed) if hit + missed else -1
        return 2 * precision * recall / (precision + recall) if precision + recall else -1

    return (
        f1(cells[True, True], cells[False, True], cells[True, False]),
        f1(cells[False, False], cells[True, False], cells[False, True]),
    )


@given(CHAINS, st.sampled_from([0.0, 0.4, 0.5]))
def test_f1_is_the_published_one(chains: list[list[tuple[bool, float]]], threshold: float) -> None:
    found = found_in(*(classed("circular", steps) for steps in chains), threshold=threshold).total
    steps = [step for chain in chains for step in chain]
    f1, negative = published(steps, threshold)
    if found.true_good:
        assert found.f1.value == pytest.approx(f1, abs=1e-12)
    else:
        assert found.f1.value in (0, None)
        assert f1 in (0, -1)
    if found.true_bad:
        assert found.negative_f1.value == pytest.approx(negative, abs=1e-12)
    if found.true_good and found.true_bad:
        assert found.prm_score.value == pytest.approx((f1 + negative) / 2, abs=1e-12)


def test_original_processes_are_a_class_and_not_in_the_total() -> None:
    found = found_in(classed("circular", [(True, 0.9), (False, 0.1)]), classed("correct", [(True, 0.1)]))
    assert set(found.by_class) == {"circular", "correct"}
    assert found.by_class["correct"].false_bad == 1
    assert (found.total.chains, found.total.false_bad, found.total.prm_score.value) == (1, 0, 1)


def test_a_class_without_a_bad_step_has_its_f1_as_its_score() -> None:
    found = found_in(classed("multi_solutions", [(True, 0.9), (True, 0.1)])).by_class["multi_solutions"]
    assert found.negative_f1.value is None
    assert found.f1.value == found.prm_score.value == pytest.approx(2 / 3)


def test_a_dimension_is_the_mean_of_its_classes_if_they_are_all_there() -> None:
    right, half = [(True, 0.9), (False, 0.1)], [(True, 0.9), (True, 0.9), (False, 0.9), (False, 0.1)]
    found = found_in(classed("circular", right), classed("redundency", half), classed("deception", right))
    score = found.by_class["redundency"].prm_score.value
    assert score is not None
    assert found.dimensions["simplicity"] == pytest.approx((1 + score) / 2)
    assert found.dimensions["sensitivity"] is None
    assert found.dimensions["soundness"] is None


def test_other_data_have_no_classes() -> None:
    assert error_classes([classed(None, [(True, 0.5)])], 0.5, RESAMPLES) is None
