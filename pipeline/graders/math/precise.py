r"""Equality by value to many digits, for what `expression` cannot decide exactly: identities, nested roots, functions.

Two expressions that agree to 40 digits at four points are taken for equal. A difference at positive values is a difference; at
negative values alone it proves nothing, since sqrt(x^2) is x to many.
"""

from fractions import Fraction
from typing import Any

from mpmath import mp

from pipeline.graders.math.ratio import IMAGINARY, evaluate
from pipeline.graders.math.reader import PI, Numbers, UnreadableError, read_expression

DIGITS = 60
AGREEMENT = 1e-40
TURNS = 4
NEGATIVE_TURN = 3
LARGEST_ANGLE = 1e12


def same_value(left: str, right: str) -> bool | None:
    """Whether two normal forms have the same values; None where one cannot be read whole or has no value."""
    with mp.workdps(DIGITS):
        for turn in range(TURNS):
            numbers = _numbers(turn)
            try:
                values = []
                for text in (left, right):
                    ratio, generators = read_expression(text, numbers)
                    values.append(evaluate(ratio, generators, numbers.exact))
                (a, a_scale), (b, b_scale) = values
                if not (mp.isfinite(a) and mp.isfinite(b)):
                    return None
                if abs(a - b) > AGREEMENT * max(a_scale, b_scale):
                    return None if turn == NEGATIVE_TURN else False
            except (UnreadableError, ArithmeticError, ValueError, TypeError, RecursionError):
                return None
    return True


def _exact(number: Any) -> Any:
    fraction = Fraction(number)
    return mp.mpc(mp.mpf(fraction.numerator) / fraction.denominator)


def _numbers(turn: int) -> Numbers:
    return Numbers(
        exact=_exact,
        functions={
            "\\sin": mp.sin, "\\cos": mp.cos, "\\tan": mp.tan, "\\exp": mp.exp, "\\ln": mp.log, "\\sec": mp.sec,
            "\\csc": mp.csc, "\\cot": mp.cot, "\\sinh": mp.sinh, "\\cosh": mp.cosh, "\\tanh": mp.tanh, "\\arcsin": mp.asin,
            "\\arccos": mp.acos, "\\arctan": mp.atan, "\\log": lambda _: mp.nan, "power": mp.power,
            "abs": lambda x: mp.mpc(abs(x)), "log": lambda base, x: mp.log(x) / mp.log(base),
        },
        constants={PI: mp.mpc(mp.pi), "e": mp.mpc(mp.e), IMAGINARY: mp.mpc(0, 1)},
        largest_angle=LARGEST_ANGLE,
        turn=turn,
        negative=turn == NEGATIVE_TURN,
    )  # fmt: skip
