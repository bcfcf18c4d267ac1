"""How labels and figures of steps are judged by arithmetic."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.loop.judgement import LabelsCount, Ranking, counted, ranking

CHAINS = st.lists(
    st.lists(st.tuples(st.sampled_from([1, 0, None]), st.booleans(), st.floats(0, 1)), min_size=1, max_size=5),
    max_size=8,
)


def test_labels_are_counted_by_what_they_say_and_by_where_the_first_error_is() -> None:
    found = counted(
        [
            ([1, 0, 0], [True, False, False]),
            ([1, 1, 0], [True, False, False]),
            ([1, None, 0], [True, True, False]),
            ([1, 1], [True, True]),
            ([None, None], [True, True]),
            ([0, None], [False, False]),
        ]
    )
    assert found == LabelsCount(
        steps=15, ones=6, zeros=5, right_ones=5, right_zeros=5, chains=6, located=4, right_located=3
    )
    assert (found.labelled, found.right) == (11 / 15, 10 / 11)
    assert "73.3% of steps,  90.9% of them right" in found.shown()


def test_shares_of_nothing_are_no_numbers() -> None:
    found = counted([([None], [True])])
    assert found.labelled == 0
    assert math.isnan(found.right)
    assert counted([]) == LabelsCount()


@given(CHAINS)
def test_the_truth_as_labels_is_right_everywhere(chains: list[list[tuple[int | None, bool, float]]]) -> None:
    free = [[all(flag for _, flag, _ in chain[: at + 1]) for at in range(len(chain))] for chain in chains]
    found = counted([([int(flag) for flag in flags], flags) for flags in free])
    assert found.ones + found.zeros == found.right_ones + found.right_zeros == found.steps == sum(map(len, chains))
    assert found.located == found.right_located == len(chains)


@given(CHAINS)
def test_counts_add_up(chains: list[list[tuple[int | None, bool, float]]]) -> None:
    found = counted([([label for label, _, _ in chain], [flag for _, flag, _ in chain]) for chain in chains])
    assert found.right_ones <= found.ones
    assert found.right_zeros <= found.zeros
    assert found.ones + found.zeros <= found.steps
    assert found.right_located <= found.located <= found.chains == len(chains)


def test_steps_are_ranked_with_and_without_the_last_of_each_chain() -> None:
    chains: list[tuple[list[float | None], list[bool]]] = [
        ([0.9, 0.4, 0.0], [True, False, False]),
        ([0.3, None, 1.0], [True, True, True]),
    ]
    found = ranking(chains)
    # Of the pairs of an error-free step and another one, 0.3 is below 0.4 alone.
    assert found.every == pytest.approx(5 / 6)
    assert found.inner == pytest.approx(1 / 2)
    assert found.shown() == "AUC 0.833 over all steps, 0.500 over all but the last of each chain"
    assert ranking([([0.5], [True])]) == Ranking(every=None, inner=None)
    assert "AUC - over" in ranking([]).shown()
