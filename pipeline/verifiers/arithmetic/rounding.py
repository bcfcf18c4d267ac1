"""Whether a number that is written stands for an exact one, judged by its digits. Pure.

0.33 is 1/3 and 0.34 is not. 0.66 for 2/3 is cut off, 3 for 7/2 may be rounded in a way that the text gives: both are doubtful.
"""

from fractions import Fraction

from pipeline.data.numbers import Fit, last_place
from pipeline.graders.math.rounding import decimal_places
from pipeline.verifiers.arithmetic.values import USUAL, Meaning, Node, Percent, Value, value_of
from pipeline.verifiers.arithmetic.words import words_of

NEAR = Fraction(1, 20)
"""A number that is said to be approximate may be off by this share."""
FAR = Fraction(1, 4)
"""It is wrong if it is off by more than this share."""
_TEN = 10
_EXACT_TAILS = frozenset({"125", "375", "625", "875"})
_REPEATING = words_of("33 66 67 16 17 83 11 22 44 55 56 77 78 88 89 14 29 28 43 42 57 71 86 85")
_REPEATING_MONEY = frozenset({"33", "66", "67"})
_FEWEST_PLACES = 2
FLOAT_DIGIT = Fraction(1, 10**10)
FLOAT_NOISE = Fraction(1, 10**12)
"""A number with more digits than FLOAT_DIGIT may be what a computer printed, off by this share."""


def last_digit(node: Node, meaning: Meaning = USUAL) -> Fraction | None:
    """The worth of the last digit of a number that is written as one: of 0.25 it is 0.01. None for other expressions."""
    if node.kind == "negative":
        return last_digit(node.parts[0], meaning)
    if node.kind == "number" and (node.value.denominator == 1 or node.places):
        unit = Fraction(node.scale if meaning.scaled else 1, 10**node.places)
        return unit / 100 if node.percent and meaning.percent is not Percent.PLAIN else unit
    if node.kind == "*" and node.parts[0].kind == "number" and node.parts[1].kind == "^":
        part, power = last_digit(node.parts[0], meaning), node.parts[1]
        return part * value_of(power).number if part is not None and power.parts[0].value == _TEN else None
    return None


def fit(one: Value, other: Value, unit: Fraction | None, *, about: bool, divided: bool) -> Fit:
    """How two values agree, the other one written with a last digit worth `unit` (None: not as a number).

    `about`: the text says that it is approximate. `divided`: the one is a quotient, which may be rounded to a whole number.
    """
    distance = abs(one.number - other.number)
    if not distance or (unit is not None and unit < FLOAT_DIGIT and distance <= FLOAT_NOISE * abs(one.number)):
        return Fit.EQUAL
    slack = one.radius + (other.radius if unit is None else 0)
    if about:
        digit = _last_nonzero(other.number) if unit is not None else Fraction(0)
        size = abs(one.number)
        if distance <= max(digit / 2, NEAR * size) + slack:
            return Fit.EQUAL
        return Fit.DOUBTFUL if distance <= max(digit, FAR * size) + slack else Fit.APART
    if unit is not None and unit != 1:
        if distance <= unit / 2:
            return Fit.EQUAL
        cut = distance < unit and abs(other.number) < abs(one.number)
        return Fit.DOUBTFUL if cut or distance <= slack + unit / 2 else Fit.APART
    if unit is not None and one.number.denominator != 1:
        if decimal_places(one.number) is None and distance <= unit / 2:
            return Fit.EQUAL
        if distance < unit and (divided or distance <= unit / 2):
            return Fit.DOUBTFUL
        return Fit.DOUBTFUL if distance <= slack + unit / 2 and slack else Fit.APART
    return Fit.DOUBTFUL if distance <= slack else Fit.APART


def _last_nonzero(number: Fraction) -> Fraction:
    """The worth of the last digit of a number that is not zero: of 2,300 it is 100."""
    if number and number.denominator == 1:
        return Fraction(last_place(str(number)))
    places = decimal_places(number)
    return Fraction(0) if places is None else Fraction(1, 10**places)


def maybe_rounded(node: Node, *, loosely: bool) -> Fraction:
    """How far off a number may be as it is written: half a unit of its last digit if it looks like a rounding, else 0.

    `loosely`: the text speaks of approximate numbers, so any decimal may be one."""
    tail = f"{node.value.numerator * 10**node.places // node.value.denominator % 1000:03d}"
    repeats = tail[1:] in (_REPEATING_MONEY if node.money else _REPEATING)
    long = node.places > _FEWEST_PLACES and tail not in _EXACT_TAILS and not tail.endswith("0")
    looks = node.places >= _FEWEST_PLACES and (loosely or repeats or long)
    return Fraction(1, 2 * 10**node.places) if looks else Fraction(0)
