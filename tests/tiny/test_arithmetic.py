"""Exercises against an arithmetic of the test's own, which knows their text alone."""

import random
import re

from hypothesis import given
from hypothesis import strategies as st

from tests.tiny.arithmetic import (
    ALPHABET,
    LONG_SIZE,
    MAX_VALUE,
    OPERATORS,
    Exercise,
    Size,
    named_exercise,
    random_exercise,
    right_steps,
)
from tests.tiny.policy import LONG, MAX_TOKENS

_LINE = re.compile(r"(\d+)([-+*])(\d+)=(\d+)")
_MOVE = re.compile(r"([-+*])(\d+)")

_NAMED_LINE = re.compile(r"([a-z])([-+*]\d+)=(\d+)")
_NAMED_MOVE = re.compile(r"([a-z])([-+*]\d+)")

exercises = st.integers(0, 2**32).map(lambda seed: random_exercise(random.Random(seed)))
named_exercises = st.integers(0, 2**32).map(lambda seed: random_exercise(random.Random(seed), LONG_SIZE))


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


@given(named_exercises)
def test_named_exercises_name_their_moves_in_the_alphabet_s_order_and_keep_two_digits(exercise: Exercise) -> None:
    first, *_ = re.split(r"[a-z]", exercise.problem)
    asked = _NAMED_MOVE.findall(exercise.problem)
    assert "".join(name for name, _ in asked) == "abcdefghijklmnopqrstuvwxyz"[: len(asked)]
    assert len(asked) in LONG_SIZE.operators
    value, written = int(first), []
    for name, move in asked:
        value = worked_out(value, move[0], int(move[1:])) % 100
        written.append((name, move, str(value)))
    *lines, answer = exercise.steps
    assert [match.groups() for line in lines if (match := _NAMED_LINE.fullmatch(line))] == written
    assert answer == f"#{value}" == f"#{exercise.answer}"


@given(named_exercises)
def test_a_named_exercise_is_read_back_and_all_its_steps_are_right(exercise: Exercise) -> None:
    assert named_exercise(exercise.problem) == exercise
    assert all(right_steps(exercise.steps, exercise))


def test_steps_are_right_again_where_an_error_is_corrected() -> None:
    exercise = named_exercise("12a*9b-9")
    steps = ["a*9=9", "b-9=0", "a*9=8", "b-9=99", "#99"]
    assert right_steps(steps, exercise) == [False, False, True, True, True]


@given(named_exercises)
def test_named_exercises_fit_into_a_completion_and_have_characters_of_their_policy(exercise: Exercise) -> None:
    chain = "\n".join(exercise.steps)
    assert len(chain) + 1 <= LONG.max_tokens
    assert len(exercise.problem) + 1 + len(chain) + 1 + LONG.max_tokens <= LONG.context
    assert set(exercise.problem + chain) <= set(LONG.alphabet)
