r"""Compares expressions without computer algebra: polynomials exactly, other expressions by value. Pure."""

import cmath
import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from pipeline.graders.math.exact import Exact
from pipeline.graders.math.ratio import IMAGINARY, ROUNDING, Ratio, TooLargeError, evaluate, generator, product
from pipeline.graders.math.reader import OPAQUE, PI, Numbers, UndefinedError, functions_of, read_expression
from pipeline.graders.math.rounding import is_rounding

INFINITY = "\\infty"
LARGEST_VALUE = 1e200
FLOAT_ERROR = 1e-14
"""The error of a value in floating point, relative to its scale: far more than a few operations lose."""

# The name of a root that is not expanded, as `reader` begins it.
ROOT = f"{OPAQUE}power"
CONSTANTS: dict[str, complex] = {PI: complex(math.pi), "e": complex(math.e), IMAGINARY: 1j}
_FLOATS = Numbers(lambda number: complex(float(number)), functions_of(cmath), CONSTANTS, largest_angle=1e6)


@dataclass(frozen=True, slots=True)
class Expression:
    """The exact content of a text, and the value of each generator at one fixed point.

    `divisors`: what it divides by, also where that cancels, as x in x^2/x. It has no value where one of them is zero.
    """

    ratio: Ratio
    values: dict[str, complex]
    divisors: tuple[Ratio, ...] = ()

    @property
    def canonical(self) -> bool:
        """Whether a different `ratio` always means a different expression."""
        return not any(name.startswith(OPAQUE) for name in self.values)

    @property
    def variables(self) -> frozenset[str]:
        """The variables in the expression, except those inside functions. `e`, `i` and pi are not variables."""
        return frozenset(name for name in self.ratio.names() if not name[0].isdigit() and name not in CONSTANTS)

    def value(self) -> tuple[complex, float] | None:
        """The value at the fixed point and the scale of its rounding error. None if it has none or is very large."""
        try:
            value, scale = evaluate(self.ratio, self.values, _FLOATS.exact)
        except ArithmeticError:
            return None
        return (value, scale) if cmath.isfinite(value) and scale < LARGEST_VALUE else None

    def number(self) -> float | None:
        """The real value of an expression without variables as a float, which may be infinite. None if it has none."""
        if self.ratio.names() == {INFINITY}:
            return math.inf if next(iter(self.ratio.top.values())) > 0 else -math.inf
        if any(name not in CONSTANTS for name in self.values):
            return None
        value = self.value()
        return value[0].real if value and abs(value[0].imag) <= ROUNDING * value[1] else None


@lru_cache(maxsize=8192)
def expression(normal: str) -> Expression | None:
    """Read a normal form. None if it cannot be read completely. Never raises."""
    sign, _, rest = normal.rpartition(INFINITY)
    if not rest and sign in ("", "+", "-") and normal:
        ratio = generator(INFINITY)
        return Expression(-ratio if sign == "-" else ratio, {})
    try:
        return Expression(*read_expression(normal, _FLOATS))
    except (ArithmeticError, ValueError, RecursionError):
        return None


@lru_cache(maxsize=1024)
def is_undefined(normal: str) -> bool:
    """Whether a normal form is read completely and has no value, as 5+0\\cdot\\frac{1}{0}. Never raises."""
    try:
        read_expression(normal, _FLOATS)
    except (ArithmeticError, ValueError, RecursionError) as error:
        return isinstance(error, UndefinedError)
    return False


def equal(left: Expression, right: Expression) -> bool | None:
    """Whether two expressions are equal. None if arithmetic cannot decide it. False is certain."""
    try:
        if product(left.ratio.top, right.ratio.bottom) == product(right.ratio.top, left.ratio.bottom):
            return True
    except TooLargeError:
        return None
    if left.canonical and right.canonical:
        return False
    a, b = left.value(), right.value()
    return False if a and b and abs(a[0] - b[0]) > ROUNDING * max(a[1], b[1]) else None


def all_of(results: Iterable[bool | None]) -> bool | None:
    """False if one of the comparisons is, else None if one is not decided. Stops at the first difference."""
    certain = True
    for result in results:
        if result is False:
            return False
        certain = certain and result is not None
    return True if certain else None


def close(left: Expression, right: Expression, tolerance: float) -> bool | None:
    """Whether two numbers agree to a relative tolerance. None if one of them has no value."""
    a, b = left.number(), right.number()
    if a is None or b is None or not (math.isfinite(a) and math.isfinite(b)):
        return None
    return abs(a - b) <= tolerance * max(abs(a), abs(b))


def rounds_to(side: Expression, decimal: Exact) -> bool | None:
    """Whether a long decimal is the rounding of a rational number or of roots of such numbers. None if it is not decided here.

    A number with pi, e or a function has no roundings: who asks for it asks for the exact form.
    """
    rational = side.ratio.rational()
    if rational is not None:
        return is_rounding(decimal, rational)
    found = side.value() if all(name.startswith(ROOT) for name in side.values) else None
    if found is None:
        return False
    value, scale = found
    error = FLOAT_ERROR * scale
    return abs(value.imag) <= error and is_rounding(decimal, Fraction(value.real), Fraction(error))
