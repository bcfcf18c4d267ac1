"""Random exercises in arithmetic with their right chains, as text. Pure: randomness is an argument.

An exercise is worked out from left to right, as on a pocket calculator without precedence. `12*3-9` has the chain

    12*3=36
    36-9=27
    #27

with a step for every operator and one for the answer. No value on the way is negative or above `MAX_VALUE`.

A named exercise can be long: each operator has a letter, and of every value on the way only the last two digits are kept.
`12a*9b-9` has the chain

    a*9=8
    b-9=99
    #99
"""

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from string import ascii_lowercase

ALPHABET = "0123456789+-*=#\n"
"""Every character of problems and chains without letters."""
LETTERS = ascii_lowercase
KEPT = 100
"""Values of named exercises are modulo this number."""
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
    named: bool = False

    @property
    def problem(self) -> str:
        """The exercise as it is asked, such as `12*3-9`."""
        moves = (f"{self._name(at)}{move.sign}{move.number}" for at, move in enumerate(self.moves))
        return f"{self.first}" + "".join(moves)

    @property
    def values(self) -> list[int]:
        """The first number and the value after every move."""
        return list(accumulate(range(len(self.moves)), self.after, initial=self.first))

    @property
    def answer(self) -> int:
        """The value after the last move."""
        return self.values[-1]

    @property
    def steps(self) -> list[str]:
        """The lines of the right chain, without line ends."""
        values = self.values
        return [*map(self.line, range(len(self.moves)), values, values[1:]), f"#{self.answer}"]

    def after(self, value: int, place: int) -> int:
        """What the move at this place, counted from 0, makes of `value`."""
        result = self.moves[place].after(value)
        return result % KEPT if self.named else result

    def line(self, place: int, before: int, after: int) -> str:
        """The step that claims the move at this place to make `after` of `before`."""
        move = self.moves[place]
        return f"{self._name(place) if self.named else before}{move.sign}{move.number}={after}"

    def _name(self, place: int) -> str:
        return LETTERS[place] if self.named else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How long exercises are and how large their numbers. Named ones have no largest value."""

    operators: range = OPERATORS
    max_value: int = MAX_VALUE
    max_term: int = MAX_TERM
    named: bool = False


POLICY_SIZE = Size()
"""Of what the policy was trained on."""
LONG_SIZE = Size(operators=range(7, 20), max_term=9, named=True)
"""Of what the policy for long chains was trained on."""


def random_exercise(rng: random.Random, size: Size = POLICY_SIZE) -> Exercise:
    """An exercise of that size, each of the three signs as likely as the others wherever its result is allowed."""
    first = value = rng.randint(1, size.max_term)
    moves: list[Move] = []
    length = rng.choice(size.operators)
    while len(moves) < length:
        move = _random_move(rng, size.max_term)
        if size.named or 0 <= move.after(value) <= size.max_value:
            moves.append(move)
            value = move.after(value)
    return Exercise(first=first, moves=tuple(moves), named=size.named)


def _random_move(rng: random.Random, max_term: int) -> Move:
    sign = rng.choice("+-*")
    return Move(sign=sign, number=rng.choice(FACTORS) if sign == "*" else rng.randint(1, max_term))


def named_exercise(problem: str) -> Exercise:
    """The named exercise that is asked by this text."""
    first, *moves = re.split(r"[a-z]", problem)
    return Exercise(
        first=int(first), moves=tuple(Move(sign=move[0], number=int(move[1:])) for move in moves), named=True
    )


def right_steps(steps: Sequence[str], exercise: Exercise) -> list[bool]:
    """Of each step of a chain for a named exercise, whether it is what the right chain has for its move, whatever stands before
    it: steps after an error are right again where the error has been corrected."""
    right = set(exercise.steps)
    return [step in right for step in steps]
