"""What is right, known from arithmetic alone. Pure."""

from collections.abc import Sequence

import numpy as np

from tests.tiny.arithmetic import Exercise, right_steps


def right(steps: Sequence[str], exercise: Exercise) -> list[bool]:
    """Of each step, whether the chain is right when it stands there: all steps so far are those of the right chain, or, for
    named exercises, whose chains can return to a step and write it again, this step is."""
    return right_steps(steps, exercise) if exercise.named else right_so_far(steps, exercise)


def right_so_far(steps: Sequence[str], exercise: Exercise) -> list[bool]:
    """Of each step, whether it and all before it are those of the right chain."""
    given = zip(steps, [*exercise.steps, *[None] * len(steps)], strict=False)
    flags = np.cumprod([step == wanted for step, wanted in given])
    return [bool(flag) for flag in flags]


def error_free(steps: Sequence[str], exercise: Exercise) -> list[bool]:
    """Of each step, whether neither it nor a step before it is wrong. A chain that corrects an error is not error-free."""
    return [bool(flag) for flag in np.cumprod(right(steps, exercise))]
