"""Chains of hostile steps of all kinds, as many as are wanted: the known ones, pieces of them, and what is made of both."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.graders.hostile import hostile_answers
from tests.verifiers.hostile import HOSTILE
from tests.verifiers.z3_hostile import COMMANDS, DERIVATIONS, FORMULAS, FOVER, PROBLEM

STEPS = 10
"""Steps of each chain."""
MOST_CHARACTERS = 1_500
"""Of most steps. One in `WHOLE_ONE_IN` is as long as it is written, up to the limit of a step."""
WHOLE_ONE_IN = 200
_AROUND = (
    *("So {0}.", "Hence {0} = 7, and x = {0}.", "Solving 2x = 4 gives x = {0}.", "{0} = {0} + 1"),
    "The capital of Peru is {0}.",
)
_NOISE = (
    *(
        "(",
        ")",
        "{",
        "}",
        "\\frac{",
        "^",
        "**",
        "=",
        "<<",
        ">>",
        "$",
        "\x00",
        "\u202e",
        "9" * 40,
        "\n",
        " and ",
        "''; --",
    ),
    "`",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostileChain:
    """A problem with `STEPS` steps."""

    problem: str
    steps: tuple[str, ...]


def hostile_chains(count: int, seed: int) -> Iterator[HostileChain]:
    """`count` chains. The same seed gives the same ones."""
    chance = random.Random(seed)
    answers = (each.answer for each in hostile_answers(count * STEPS, seed))
    kinds: list[Callable[[], HostileChain]] = [
        lambda: HostileChain(
            problem="What is x?", steps=_steps(chance, lambda: chance.choice(_AROUND).format(next(answers)))
        ),
        lambda: HostileChain(problem="What is x?", steps=_steps(chance, lambda: _piece(chance))),
        lambda: HostileChain(problem=PROBLEM, steps=_steps(chance, lambda: _formal(chance))),
        lambda: HostileChain(problem=FOVER, steps=_steps(chance, lambda: chance.choice([*DERIVATIONS.values()]))),
    ]
    for _ in range(count):
        yield chance.choices(kinds, (4, 4, 3, 1))[0]()


def _steps(chance: random.Random, step: Callable[[], str]) -> tuple[str, ...]:
    return tuple(_spoilt(chance, step()) for _ in range(STEPS))


def _piece(chance: random.Random) -> str:
    """A known hostile step, or a piece of it."""
    text = chance.choice([*HOSTILE.values()])
    if not chance.randrange(WHOLE_ONE_IN) or len(text) <= MOST_CHARACTERS:
        return text
    begin, length = chance.randrange(len(text)), chance.randrange(1, MOST_CHARACTERS)
    return text[begin : begin + length]


def _formal(chance: random.Random) -> str:
    if chance.random() < 0.5:
        return chance.choice([*COMMANDS.values()])
    return f"(assert {chance.choice([*FORMULAS.values()])})"


def _spoilt(chance: random.Random, text: str) -> str:
    """The text, mostly with noise at some place. A step is not empty and stays below the limit."""
    if chance.random() < 0.6:
        at = chance.randrange(len(text) + 1)
        text = text[:at] + chance.choice(_NOISE) + text[at:]
    # A row with half of a surrogate pair or with NUL is rejected as a whole.
    return text.encode(errors="ignore").decode().replace("\x00", "")[:20_000].strip() or "="
