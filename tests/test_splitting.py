"""The validation set has the given share of the problems and does not depend on the other problems."""

from hypothesis import given
from hypothesis import strategies as st

from pipeline.data.problems import in_validation
from tests.strategies import texts

PROBLEMS = [f"What is {number} + 1?" for number in range(2_000)]
shares = st.floats(0, 1)
seeds = st.integers(0, 2**32)


def held_out(share: float, seed: int) -> set[str]:
    return {problem for problem in PROBLEMS if in_validation(problem, share, seed)}


def test_the_share_is_that_of_the_problems() -> None:
    assert abs(len(held_out(0.1, 0)) - 200) < 60
    assert abs(len(held_out(0.5, 7)) - 1_000) < 100


@given(texts, seeds)
def test_none_are_held_out_of_a_share_of_0_and_all_of_1(problem: str, seed: int) -> None:
    assert not in_validation(problem, 0, seed)
    assert in_validation(problem, 1, seed)


@given(texts, shares, shares, seeds)
def test_a_larger_share_holds_what_a_smaller_one_does(problem: str, one: float, other: float, seed: int) -> None:
    assert in_validation(problem, max(one, other), seed) >= in_validation(problem, min(one, other), seed)


@given(st.lists(st.sampled_from(["Ann", "HAS", "12", "apples?"]), min_size=1), shares, seeds)
def test_white_space_and_case_do_not_count(words: list[str], share: float, seed: int) -> None:
    spread = "  " + "\n\t".join(words).upper() + " "
    assert in_validation(" ".join(words), share, seed) == in_validation(spread, share, seed)


def test_another_seed_holds_out_others() -> None:
    assert held_out(0.3, 0) != held_out(0.3, 1)


def test_what_is_held_out_never_changes() -> None:
    assert [number for number in range(40) if in_validation(f"What is {number} + 1?", 0.1, 0)] == [1, 3, 6, 9, 19, 33]
