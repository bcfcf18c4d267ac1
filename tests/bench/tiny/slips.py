"""Chains for named exercises as somebody writes them who slips, and sometimes looks again. Pure: randomness is an argument.

A slip is a line whose result is wrong; the lines after it go on from there. Whoever looks again writes the last line once more,
more often after a slip than after a right line, or goes back to one of the lines before it:

    a*9=9
    b-9=0
    a*9=8
    b-9=99
    #99
"""

import random
from collections.abc import Iterator

from tests.tiny.arithmetic import KEPT, Exercise

SLIPS = {"+": 0.03, "-": 0.04, "*": 0.08}
"""How often the result of a line is wrong, by its sign."""
WRONG_BY = (-10, -2, -1, 1, 2, 10)
AGAIN_AFTER_SLIP, AGAIN = 0.5, 0.1
"""How often a slip, and a right line, is written once more at once."""
RETURNS = 0.04
"""How often a line is followed by a return to one of the last lines."""
BACK = 4
"""That one is among this number of lines, all equally likely."""


def slipping(rng: random.Random, exercise: Exercise) -> list[str]:
    return list(_lines(rng, exercise))


def _lines(rng: random.Random, exercise: Exercise) -> Iterator[str]:
    values = [exercise.first]
    while (place := len(values) - 1) < len(exercise.moves):
        after = exercise.after(values[place], place)
        slipped = rng.random() < SLIPS[exercise.moves[place].sign]
        if slipped:
            after = (after + rng.choice(WRONG_BY)) % KEPT
        yield exercise.line(place, values[place], after)
        values.append(after)
        if rng.random() < (AGAIN_AFTER_SLIP if slipped else AGAIN):
            del values[-1:]
        elif rng.random() < RETURNS:
            del values[-rng.randint(1, min(BACK, len(values) - 1)) :]
    yield f"#{values[-1]}"
