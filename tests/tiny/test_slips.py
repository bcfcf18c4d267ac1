"""Chains with slips against an arithmetic of the test's own."""

import random
import re
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tests.tiny.arithmetic import LONG_SIZE, random_exercise
from tests.tiny.slips import BACK, slipping

_MOVE = re.compile(r"([a-z])([-+*])(\d+)")


def results(first: int, lines: list[str]) -> list[bool]:
    """Of each line, whether its result is right for the value that it begins with: that of the line before it in the order of
    moves, which is the last one of this letter's predecessor."""
    values, right = {"`": first}, []
    for line in lines:
        text, after = line.split("=")
        match = _MOVE.fullmatch(text)
        assert match is not None
        before = values[chr(ord(match[1]) - 1)]
        number = int(match[3])
        wanted = {"+": before + number, "-": before - number, "*": before * number}[match[2]] % 100
        right.append(wanted == int(after))
        values[match[1]] = int(after)
    return right


@given(st.integers(0, 2**32))
def test_a_chain_goes_on_or_back_by_a_few_lines_and_answers_with_its_last_value(seed: int) -> None:
    rng = random.Random(seed)
    exercise = random_exercise(rng, LONG_SIZE)
    *lines, answer = slipping(rng, exercise)
    names = [line[0] for line in lines]
    right = results(exercise.first, lines)
    assert all(-BACK < ord(after) - ord(name) <= 1 for name, after in pairwise(names))
    assert (names[0], names[-1]) == ("a", chr(ord("a") + len(exercise.moves) - 1))
    assert answer == "#" + lines[-1].split("=")[1]
    if all(right):
        assert answer == exercise.steps[-1]


def test_slips_and_returns_are_as_frequent_as_they_are_meant_to_be_and_some_slips_are_corrected() -> None:
    rng = random.Random(4)
    made = [(exercise, slipping(rng, exercise)) for exercise in (random_exercise(rng, LONG_SIZE) for _ in range(2_000))]
    judged = [right for exercise, chain in made for right in results(exercise.first, chain[:-1])]
    assert 0.045 < judged.count(False) / len(judged) < 0.055
    returns = sum(after[0] <= line[0] for _, chain in made for line, after in pairwise(chain[:-1]))
    assert 0.13 < returns / len(judged) < 0.17
    corrected = [
        chain[-1] == exercise.steps[-1] and not all(results(exercise.first, chain[:-1])) for exercise, chain in made
    ]
    assert sum(corrected) / len(made) > 0.2
