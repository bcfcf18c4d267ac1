"""Problems to train on and others to choose answers for. Pure: randomness is an argument."""

import random
from dataclasses import dataclass

from tests.tiny.arithmetic import Exercise, Size, random_exercise


@dataclass(frozen=True, slots=True, kw_only=True)
class Problems:
    """Exercises without repetition, and none in both."""

    train: tuple[Exercise, ...]
    test: tuple[Exercise, ...]


def drawn(rng: random.Random, size: Size, train: int, test: int) -> Problems:
    """`train` and `test` exercises, all different."""
    every = tuple(exercises(rng, size, train + test))
    return Problems(train=every[:train], test=every[train:])


def exercises(rng: random.Random, size: Size, count: int) -> list[Exercise]:
    """`count` different exercises in random order: short ones, of which there are fewer, would otherwise come first."""
    found: dict[str, Exercise] = {}
    while len(found) < count:
        exercise = random_exercise(rng, size)
        found.setdefault(exercise.problem, exercise)
    shuffled = list(found.values())
    rng.shuffle(shuffled)
    return shuffled


def row(exercise: Exercise) -> dict[str, object]:
    """An exercise as `label` reads it, without a chain."""
    return {"id": exercise.problem, "problem": exercise.problem, "answer": str(exercise.answer)}
