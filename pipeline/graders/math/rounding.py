"""Decides whether a long decimal is the rounding of an exact number: 0.2857142857 of 2/7. Pure.

A long decimal has at least `LEAST_DIGITS` significant digits and at least `LEAST_PLACES` digits after the point. It is
correctly rounded at its last digit, or it is what a program prints for the exact number. A zero at the end is a
digit too: 0.1428571429 is 1/7 to ten places, and 0.14285714290 is not 1/7 to eleven.
A number with a finite decimal form has no other roundings: 0.12345678912 is not 0.1234567891.
"""

from fractions import Fraction

from pipeline.graders.math.exact import Exact

LEAST_DIGITS = 10
LEAST_PLACES = 6
FLOAT_DIGITS = (16, 17)
"""A program prints a floating point number that is not short with 16 or 17 digits."""
FLOAT_NOISE = Fraction(1, 10**15)
"""The error of a computed number: 2.4000000000000004 is 12/5. Some units of the last binary digit."""
MOST_PLACES = 60
LARGEST = 10**30


def is_long(number: Exact) -> bool:
    """Whether a number has enough digits to be recognized as a rounding."""
    return (
        LEAST_PLACES <= _places(number) <= MOST_PLACES
        and abs(number.value) <= LARGEST
        and _digits(number) >= LEAST_DIGITS
    )


def is_rounding(decimal: Exact, value: Fraction, error: Fraction | None = None) -> bool | None:
    """Whether a decimal is the rounding of a number. None if the error of the number is too large to decide it.

    `error` is None for a rational number, else the largest error of `value`, which is then close to an irrational number.
    """
    if not is_long(decimal):
        return False
    printed = _digits(decimal) in FLOAT_DIGITS
    if error is None and not printed and decimal_places(value) is not None:
        return False
    distance, margin = abs(decimal.value - value), error or Fraction(0)
    limit = max(Fraction(1, 2 * 10 ** _places(decimal)), FLOAT_NOISE * abs(value) if printed else Fraction(0))
    if distance + margin <= limit:
        return True
    return None if distance - margin <= limit else False


def decimal_places(value: Fraction) -> int | None:
    """The number of digits after the point of a number, or None if its decimal form is infinite."""
    rest = value.denominator
    twos = (rest & -rest).bit_length() - 1
    rest >>= twos
    fives = 0
    while rest % 5 == 0:
        rest //= 5
        fives += 1
    return max(twos, fives) if rest == 1 else None


def _places(number: Exact) -> int:
    """The digits after the point. 0 if there are infinitely many."""
    return (decimal_places(number.value) or 0) if number.places is None else number.places


def _digits(number: Exact) -> int:
    return len(str(abs(int(number.value * 10 ** _places(number)))))
