"""What a planted step is made of: an equation, spoiled in one place.

Kinds of errors: `sum` and `product` (the result is another number), `conversion` (an amount in other units is wrong), `copied
digit` (a number loses, changes or swaps a digit when it is written again, so that its equation is false)."""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

SUM, PRODUCT, CONVERSION, COPIED = "sum", "product", "conversion", "copied digit"
KINDS = (SUM, PRODUCT, CONVERSION, COPIED)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantedStep:
    """A step with an error, and as it would be right."""

    kind: str
    wrong: str
    right: str


Numbers = random.Random
Template = Callable[[Numbers], PlantedStep]


def planted_steps(templates: Sequence[Template], count: int, seed: int) -> Iterator[PlantedStep]:
    """Steps by templates in turn, each with numbers of its own."""
    numbers = random.Random(f"planted {seed}")
    for at in range(count):
        yield templates[at % len(templates)](numbers)


def another(numbers: Numbers, right: int) -> int:
    """A number near to the right one, as people miscalculate: off by one, by a digit, by a carry."""
    ways = [
        right + 1,
        right - 1,
        right + 10,
        right - 10,
        right + 2,
        right - 2,
        right + numbers.randint(3, 9),
        right + 100,
    ]
    wrong = [each for each in ways if each > 0 and each != right]
    return numbers.choice(wrong)


def another_amount(numbers: Numbers, right: Fraction) -> str:
    """An amount of money that is not the right one, with two decimals."""
    return amount(right + Fraction(numbers.choice([1, 5, 10, 50, 100, -100, 200, 900]), 100))


def amount(value: Fraction) -> str:
    """An amount of money in dollars and cents."""
    cents = round(value * 100)
    return f"{cents // 100}.{cents % 100:02d}"


def miscopied(numbers: Numbers, number: int) -> int:
    """A number of at least two digits with one digit changed, two swapped, or one lost."""
    digits = str(number)
    while True:
        at = numbers.randrange(len(digits) - 1)
        other = numbers.choice(
            [
                digits[:at] + digits[at + 1] + digits[at] + digits[at + 2 :],
                digits[:at] + str(numbers.randint(1, 9)) + digits[at + 1 :],
                digits[:-1] + str(numbers.randint(0, 9)),
                digits[: at + 1] + digits[at + 2 :],
            ]
        )
        if other[0] != "0" and int(other) != number:
            return int(other)
