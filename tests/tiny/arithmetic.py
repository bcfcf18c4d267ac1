"""Random exercises in arithmetic with their right chains, as text. Pure: randomness is an argument.

An exercise is worked out from left to right, as on a pocket calculator without precedence. `12*3-9` has the chain

    12*3=36
    36-9=27
    #27

with a step for every operator and one for the answer. No value on the way is negative or above `MAX_VALUE`.
"""

import random
from dataclasses import dataclass
from itertools import accumulate

ALPHABET = "0123456789+-*=#\n"
"""Every character of problems and chains."""
OPERATORS = range(2, 6)
"""How many operators an exercise has."""
MAX_VALUE = 299
MAX_TERM = 60
"""The largest number that is added or taken away; also the largest to begin with."""
FACTORS = range(2, 6)


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """An operator and the number behind it."""

    sign: str
    number: int

    def after(self, value: int) -> int:
        """What becomes of `value`."""
        match self.sign:
            case "+":
                return value + self.number
            case "-":
                return value - self.number
            case _:
                return value * self.number


@dataclass(frozen=True, slots=True, kw_only=True)
class Exercise:
    """A number and the moves behind it."""

    first: int
    moves: tuple[Move, ...]

    @property
    def problem(self) -> str:
        """The exercise as it is asked, such as `12*3-9`."""
        return f"{self.first}" + "".join(f"{move.sign}{move.number}" for move in self.moves)

    @property
    def values(self) -> list[int]:
        """The first number and the value after every move."""
        return list(accumulate(self.moves, lambda value, move: move.after(value), initial=self.first))

    @property
    def answer(self) -> int:
        """The value after the last move."""
        return self.values[-1]

    @property
    def steps(self) -> list[str]:
        """The lines of the right chain, without line ends."""
        values = self.values
        lines = [
            f"{before}{move.sign}{move.number}={after}"
            for before, move, after in zip(values, self.moves, values[1:], strict=False)
        ]
        return [*lines, f"#{self.answer}"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How long exercises are and how large their numbers."""

    operators: range = OPERATORS
    max_value: int = MAX_VALUE
    max_term: int = MAX_TERM


POLICY_SIZE = Size()
"""Of what the policy was trained on."""


def random_exercise(rng: random.Random, size: Size = POLICY_SIZE) -> Exercise:
    """An exercise of that size, each of the three signs as likely as the others wherever its result is allowed."""
    first = value = rng.randint(1, size.max_term)
    moves: list[Move] = []
    length = rng.choice(size.operators)
    while len(moves) < length:
        move = _random_move(rng, size.max_term)
        if 0 <= move.after(value) <= size.max_value:
            moves.append(move)
            value = move.after(value)
    return Exercise(first=first, moves=tuple(moves))


def _random_move(rng: random.Random, max_term: int) -> Move:
    sign = rng.choice("+-*")
    return Move(sign=sign, number=rng.choice(FACTORS) if sign == "*" else rng.randint(1, max_term))
