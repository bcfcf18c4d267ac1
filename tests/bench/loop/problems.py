"""Problems to train on, others to choose answers for, and those of the second lap. Pure: randomness is an argument."""

import random
from collections.abc import Collection
from dataclasses import dataclass

from tests.tiny.arithmetic import Exercise, Size, random_exercise


@dataclass(frozen=True, slots=True, kw_only=True)
class Problems:
    """Exercises without repetition, and none in two of these. `others`: of the second lap."""

    train: tuple[Exercise, ...]
    test: tuple[Exercise, ...]
    others: tuple[Exercise, ...]


def drawn(rng: random.Random, size: Size, train: int, test: int, others: int = 0) -> Problems:
    """`train`, `test` and `others` exercises, all different. The first two do not depend on how many others there are."""
    every = tuple(exercises(rng, size, train + test))
    return Problems(
        train=every[:train],
        test=every[train:],
        others=tuple(exercises(rng, size, others, without={exercise.problem for exercise in every})),
    )


def exercises(rng: random.Random, size: Size, count: int, without: Collection[str] = ()) -> list[Exercise]:
    """`count` different exercises in random order: short ones, of which there are fewer, would otherwise come first. `without`:
    problems that are none of them."""
    found: dict[str, Exercise] = {}
    while len(found) < count:
        exercise = random_exercise(rng, size)
        if exercise.problem not in without:
            found.setdefault(exercise.problem, exercise)
    shuffled = list(found.values())
    rng.shuffle(shuffled)
    return shuffled


def row(exercise: Exercise) -> dict[str, object]:
    """An exercise as `label` reads it, without a chain."""
    return {"id": exercise.problem, "problem": exercise.problem, "answer": str(exercise.answer)}
