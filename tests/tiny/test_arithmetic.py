"""Exercises against an arithmetic of the test's own, which knows their text alone."""

import random
import re

from hypothesis import given
from hypothesis import strategies as st

from tests.tiny.arithmetic import ALPHABET, MAX_VALUE, OPERATORS, Exercise, Size, random_exercise
from tests.tiny.policy import MAX_TOKENS

_LINE = re.compile(r"(\d+)([-+*])(\d+)=(\d+)")
_MOVE = re.compile(r"([-+*])(\d+)")

exercises = st.integers(0, 2**32).map(lambda seed: random_exercise(random.Random(seed)))


def worked_out(before: int, sign: str, number: int) -> int:
    return {"+": before + number, "-": before - number, "*": before * number}[sign]


@given(exercises)
def test_every_step_is_right_and_begins_where_the_last_one_ended(exercise: Exercise) -> None:
    value = int(re.split(r"\D", exercise.problem)[0])
    *lines, answer = exercise.steps
    for line in lines:
        match = _LINE.fullmatch(line)
        assert match is not None
        before, sign, number, after = int(match[1]), match[2], int(match[3]), int(match[4])
        assert before == value
        assert after == worked_out(before, sign, number)
        value = after
    assert answer == f"#{value}" == f"#{exercise.answer}"


@given(exercises)
def test_the_steps_make_the_moves_of_the_problem_in_their_order(exercise: Exercise) -> None:
    asked = _MOVE.findall(exercise.problem)
    made = [match.group(2, 3) for line in exercise.steps[:-1] if (match := _LINE.fullmatch(line))]
    assert made == asked
    assert len(asked) in OPERATORS


@given(exercises)
def test_a_right_chain_and_its_end_fit_into_a_completion(exercise: Exercise) -> None:
    assert len("\n".join(exercise.steps)) + 1 <= MAX_TOKENS


@given(exercises)
def test_texts_keep_to_the_alphabet_and_values_to_their_range(exercise: Exercise) -> None:
    assert set("\n".join([exercise.problem, *exercise.steps])) <= set(ALPHABET)
    assert all(0 <= int(number) <= MAX_VALUE for line in exercise.steps for number in re.findall(r"\d+", line))


@given(st.integers(0, 2**32))
def test_smaller_exercises_keep_to_their_size(seed: int) -> None:
    size = Size(operators=range(1, 3), max_value=20, max_term=7)
    exercise = random_exercise(random.Random(seed), size)
    assert len(exercise.moves) in size.operators
    assert all(0 <= value <= size.max_value for value in exercise.values)
    assert all(number <= size.max_term for number in (exercise.first, *(move.number for move in exercise.moves)))


def test_a_seed_gives_its_exercises_again_and_they_are_of_every_length_and_sign() -> None:
    first, again = ([random_exercise(rng) for _ in range(200)] for rng in (random.Random(3), random.Random(3)))
    drawn = list(first)
    assert drawn == list(again)
    assert {len(exercise.moves) for exercise in drawn} == set(OPERATORS)
    assert {move.sign for exercise in drawn for move in exercise.moves} == set("+-*")
    assert len({exercise.problem for exercise in drawn}) > 190
