"""Compares answers by value to many digits and by computer algebra if exact comparison cannot decide. Runs only in `child`.

By value: identities, nested roots, functions. Two expressions that agree to 40 digits at four points count as equal. A
difference at positive values proves that they differ. A difference only at negative values proves nothing, because many writers
simplify sqrt(x^2) to x.

By algebra: text reaches sympy only through the LaTeX grammar of latex2sympy2, after `child` has removed from both the code that
runs text as Python. The rules of exact comparison for kinds of answers still apply: algebra compares the parts of an answer. It
compares whole answers only if they have no parts that can be compared one by one.
"""

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import permutations
from typing import Any

import sympy
from latex2sympy2_extended import latex2sympy, normalize_latex
from latex2sympy2_extended.sets import FiniteSet
from math_verify import LatexExtractionConfig, verify
from math_verify.grader import should_treat_as_complex
from mpmath import mp

from pipeline.core.records import Verdict
from pipeline.graders.math.choices import may_have_parts, paired
from pipeline.graders.math.compare import (
    for_grammar,
    long_decimal,
    of_all,
    same_answer,
    same_expression,
    without_algebra,
)
from pipeline.graders.math.exact import exact_value, without_unit
from pipeline.graders.math.expression import expression, rounds_to
from pipeline.graders.math.extract import unwrap
from pipeline.graders.math.normal import normal_form
from pipeline.graders.math.ratio import IMAGINARY, evaluate
from pipeline.graders.math.reader import PI, Numbers, functions_of, read_expression
from pipeline.graders.math.rounding import is_rounding

PRECISION = 60
AGREEMENT = sympy.Rational(1, 10**30)
AGREEMENT_BY_VALUE = 1e-40
TURNS = 4
NEGATIVE_TURN = 3
LARGEST_ANGLE = 1e12
MAX_PERMUTED = 5
_OPTIONS = {"float_rounding": 12, "numeric_precision": PRECISION, "timeout_seconds": None, "raise_on_error": True}
_INFINITE = {sympy.oo, -sympy.oo}
_UNDONE = (sympy.Sum, sympy.Product, sympy.Integral, sympy.Derivative, sympy.Limit)
# Signs of the points at which expressions are compared. Only positive points prove a difference: sqrt(x^2) often stands for x.
_SIGNS = ((1,), (1,), (-1, 1), (1, -1))

# Unit removal is off: it would read 2ab as 2.
_NORMALIZATION = replace(LatexExtractionConfig().normalization_config, units=False)
_EXAMPLES = (
    ("\\frac{n(n+1)}{2}", "\\sum_{k=1}^{n} k"),
    ("\\sin^{2}x+\\cos^{2}x", "\\sqrt{1}"),
    ("(1,2]\\cup[3,\\infty)", "(1,2]\\cup[4,\\infty)"),
    ("\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}", "\\begin{pmatrix}1&2\\\\3&x\\end{pmatrix}"),
    ("\\{1,x\\}", "\\{x,2\\}"),
    ("x^{2}=4", "2<x"),
    ("\\log_{2}(x)", "\\binom{n}{2}"),
)


class UnparseableError(Exception):
    """The grammar cannot read the whole text, or algebra cannot decide the comparison."""


@lru_cache(maxsize=1024)
def read(normal: str) -> Any:
    """Parse a normal form into a sympy object, with floats as exact fractions. Raises `UnparseableError`."""
    text = for_grammar(normal)
    if text is None:
        raise UnparseableError
    try:
        latex = normalize_latex(text, _NORMALIZATION)
        parsed = latex2sympy(
            latex, is_real=not should_treat_as_complex(latex), convert_degrees=False, normalization_config=None
        )
    except MemoryError:
        raise
    except Exception as error:
        # The grammar raises a bare Exception on text that it cannot read.
        raise UnparseableError from error
    return _without_floats(parsed)


def _without_floats(parsed: Any) -> Any:
    try:
        floats = parsed.atoms(sympy.Float)
        return parsed.xreplace({number: sympy.Rational(str(number)) for number in floats}) if floats else parsed
    except (TypeError, ValueError, AttributeError):
        return parsed


def equal(gold: Any, answer: Any, tolerance: float) -> bool:
    """Whether two parsed answers are equal. Values must agree to 30 significant digits, or to `tolerance` if that is wider.

    Raises `UnparseableError` if it cannot decide the comparison.
    """
    if isinstance(gold, sympy.Tuple) and isinstance(answer, sympy.Tuple):
        return len(gold) == len(answer) and all(equal(g, a, tolerance) for g, a in zip(gold, answer, strict=True))
    sets = all(isinstance(parsed, sympy.FiniteSet | FiniteSet) for parsed in (gold, answer))
    if sets and len(gold.args) == len(answer.args) <= MAX_PERMUTED:
        return any(
            all(equal(g, a, tolerance) for g, a in zip(gold.args, order, strict=True))
            for order in permutations(answer.args)
        )
    try:
        if isinstance(gold, sympy.Eq) and isinstance(answer, sympy.Eq):
            return _proportional(gold.lhs - gold.rhs, answer.lhs - answer.rhs)
        if isinstance(gold, sympy.Expr) and isinstance(answer, sympy.Expr):
            identical = _identical(gold, answer, tolerance)
            if identical is not None:
                return identical
        return bool(verify([gold], [answer], **_OPTIONS))
    except MemoryError:
        raise
    except Exception as error:
        # A comparison that cannot be decided does not make the answer wrong.
        raise UnparseableError from error


def _is_number(parsed: Any) -> bool:
    return isinstance(parsed, sympy.Expr) and not parsed.free_symbols and parsed.is_number is not False


def _identical(gold: sympy.Expr, answer: sympy.Expr, tolerance: float) -> bool | None:
    """Equality by value: one comparison for numbers, several points for expressions. None if they have no value.

    math-verify's own test uses an absolute tolerance, so it takes 2^-99 for 0. Its simplifications have no time limit.
    """
    # Sums over an integer index are evaluated first, because a fractional value cannot be substituted for a bound.
    gold, answer = gold.doit(), answer.doit()
    if _is_number(gold) and _is_number(answer):
        return _close(gold, answer, tolerance)
    if gold.has(*_UNDONE) or answer.has(*_UNDONE):
        return None
    return _agree(gold, answer)


def _agree(gold: sympy.Expr, answer: sympy.Expr) -> bool | None:
    """Whether two expressions have the same values at several points. None if they have none, or differ at a negative one."""
    for round_, signs in enumerate(_SIGNS):
        point = _point((gold, answer), round_, signs)
        near = _close(gold.xreplace(point), answer.xreplace(point), 0.0)
        if not near:
            return None if -1 in signs else near
    return True


def _proportional(gold: sympy.Expr, answer: sympy.Expr) -> bool:
    """Whether one expression is a constant times the other one, at several points. Raises UnparseableError if unknown.

    math-verify compares solutions for one unknown, and loses those with other unknowns.
    """
    gold, answer = gold.doit(), answer.doit()
    point = _point((gold, answer), 0, _SIGNS[0])
    values = gold.xreplace(point), answer.xreplace(point)
    nonzero = all(_close(value, sympy.Integer(0), 0.0) is False for value in values)
    same = _agree(gold * values[1], answer * values[0]) if nonzero else None
    if same is None:
        raise UnparseableError
    return same


def _point(sides: Sequence[sympy.Expr], round_: int, signs: Sequence[int]) -> dict[Any, Any]:
    symbols = sorted(set().union(*(side.free_symbols for side in sides)), key=str)
    return {
        symbol: sympy.Rational(signs[position % len(signs)] * (31 + 7 * position + 13 * round_), 37)
        for position, symbol in enumerate(symbols)
    }


def _close(gold: Any, answer: Any, tolerance: float) -> bool | None:
    """Whether two numbers agree to the relative `tolerance`, or to 30 digits if that is wider. None if they have no value."""
    try:
        g, a = (sympy.N(side, PRECISION) for side in (gold, answer))
        if not (g.is_finite and a.is_finite):
            # math-verify may take a number for infinity, and not each time.
            both = {g, a}
            return g == a if both & _INFINITE and all(side.is_finite or side in _INFINITE for side in both) else None
        scale = max(abs(g), abs(a))
        limit = max(AGREEMENT, sympy.Rational(tolerance))
        return bool(scale == 0 or abs(g - a) <= limit * scale)
    except (TypeError, ValueError, AttributeError, ArithmeticError, NotImplementedError):
        return None


def same_value(left: str, right: str) -> bool | None:
    """Whether two normal forms have the same values. None if one of them has no value or cannot be read completely."""
    with mp.workdps(PRECISION):
        for turn in range(TURNS):
            numbers = _numbers(turn)
            try:
                values = []
                for text in (left, right):
                    ratio, generators, _ = read_expression(text, numbers)
                    values.append(evaluate(ratio, generators, numbers.exact))
                (a, a_scale), (b, b_scale) = values
                if not (mp.isfinite(a) and mp.isfinite(b)):
                    return None
                if abs(a - b) > AGREEMENT_BY_VALUE * max(a_scale, b_scale):
                    return None if turn == NEGATIVE_TURN else False
            except (ArithmeticError, ValueError, TypeError, RecursionError):
                return None
    return True


def _is_rounded(left: str, right: str) -> bool:
    """Whether one normal form is a long decimal, and the other one an irrational number that rounds to it."""
    for decimal_text, text in ((left, right), (right, left)):
        decimal = long_decimal(exact_value(decimal_text), text)
        side = expression(without_unit(text)) if decimal is not None else None
        if decimal is None or side is None or rounds_to(side, decimal) is False:
            continue
        with mp.workdps(PRECISION):
            ratio, generators, _ = read_expression(without_unit(text), _numbers(0))
            value, scale = evaluate(ratio, generators, _exact)
            if mp.isfinite(value) and abs(value.imag) <= AGREEMENT_BY_VALUE * scale:
                return bool(
                    is_rounding(decimal, *(Fraction(str(size)) for size in (value.real, AGREEMENT_BY_VALUE * scale)))
                )
    return False


def _exact(number: Any) -> Any:
    fraction = Fraction(number)
    return mp.mpc(mp.mpf(fraction.numerator) / fraction.denominator)


def _numbers(turn: int) -> Numbers:
    constants = {PI: mp.mpc(mp.pi), "e": mp.mpc(mp.e), IMAGINARY: mp.mpc(0, 1)}
    return Numbers(_exact, functions_of(mp), constants, LARGEST_ANGLE, turn, turn == NEGATIVE_TURN)


def judge(gold: str, answer: str, tolerance: float) -> Verdict:
    """The verdict on one pair. An unreadable answer is UNPARSEABLE, but an answer in plain words is INCORRECT."""
    pairs = paired(unwrap(gold), answer) if may_have_parts(gold, answer) else None
    if pairs is not None:
        return of_all([judge(*pair, tolerance) for pair in pairs]) or Verdict.UNPARSEABLE
    wanted, given = normal_form(gold), normal_form(answer)
    if wanted == given:
        return Verdict.CORRECT

    def by_algebra(one: str, other: str) -> bool | None:
        decided = same_expression(one, other, tolerance)
        if decided is None:
            decided = same_value(without_unit(one), without_unit(other))
            decided = _is_rounded(one, other) if decided is False else decided
        if decided is None:
            if without_algebra(one, other) is not None:
                return None
            with contextlib.suppress(UnparseableError):
                decided = equal(read(one), read(other), tolerance)
        return decided

    decided = same_answer(wanted, given, tolerance, by_algebra)
    if decided is not None:
        return Verdict.CORRECT if decided else Verdict.INCORRECT
    return _judge_whole(wanted, given, tolerance)


def _judge_whole(wanted: str, given: str, tolerance: float) -> Verdict:
    """Judge answers without parts that can be compared one by one: overlapping unions, relations that must be solved."""
    unread = without_algebra(wanted, given)
    if unread is not None:
        return unread
    # Brackets distinguish a closed interval from an open one. The grammar keeps them only for pairs.
    bracketed = wanted[0] in "[(" and given[0] in "[(" and (wanted[0], wanted[-1]) != (given[0], given[-1])
    try:
        expected, found = read(wanted), read(given)
        apart = bracketed and not (isinstance(expected, sympy.Expr) and isinstance(found, sympy.Expr))
        return Verdict.INCORRECT if apart or not equal(expected, found, tolerance) else Verdict.CORRECT
    except UnparseableError:
        return Verdict.UNPARSEABLE


def parses(gold: str) -> bool:
    """Whether the grammar can read the whole gold."""
    try:
        read(normal_form(gold))
    except UnparseableError:
        return False
    return True


def warm_up() -> None:
    """Build the tables of the grammar, and load the modules that the first comparison of each kind needs."""
    for gold, answer in _EXAMPLES:
        with contextlib.suppress(UnparseableError):
            equal(read(gold), read(answer), 0.0)
