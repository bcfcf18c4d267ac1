"""Problems of the loop, and what is right about their chains, known from arithmetic alone. Pure: randomness is an argument."""

import random
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tests.tiny.arithmetic import Exercise, Size, random_exercise, right_steps


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


def right(steps: Sequence[str], exercise: Exercise) -> list[bool]:
    """Of each step, whether the chain is right when it stands there: all steps so far are those of the right chain, or, for
    named exercises, whose chains can return to a step and write it again, this step is."""
    return right_steps(steps, exercise) if exercise.named else right_so_far(steps, exercise)


def right_so_far(steps: Sequence[str], exercise: Exercise) -> list[bool]:
    """Of each step, whether it and all before it are those of the right chain."""
    given = zip(steps, [*exercise.steps, *[None] * len(steps)], strict=False)
    return [bool(flag) for flag in np.cumprod([step == wanted for step, wanted in given])]


def error_free(steps: Sequence[str], exercise: Exercise) -> list[bool]:
    """Of each step, whether neither it nor a step before it is wrong. A chain that corrects an error is not error-free."""
    return [bool(flag) for flag in np.cumprod(right(steps, exercise))]


def judged(chains: Iterable[Mapping[str, Any]], known: Mapping[str, Exercise]) -> list[dict[str, Any]]:
    """Chains with what arithmetic says about their steps, in ProcessBench's layout: `label` is the index of the first wrong
    step from 0, or -1. `chains`: rows of `labels`. `known`: exercises by the text of the problem."""
    rows: list[dict[str, Any]] = []
    for number, chain in enumerate(chains):
        flags = right(chain["steps"], known[chain["problem"]])
        rows.append(
            {
                "id": f"arithmetic-{number}",
                "problem": chain["problem"],
                "answer": chain["gold_answer"],
                "steps": chain["steps"],
                "label": -1 if all(flags) else flags.index(False),
                "final_answer_correct": chain["outcome"] is True,
            }
        )
    return rows
