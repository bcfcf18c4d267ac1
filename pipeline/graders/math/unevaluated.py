"""Sympy and its LaTeX grammar with everything that runs a text as Python taken out, for the process that calls this.

`latex2sympy` hands every numeral, and the arguments of gcd and lcm, to sympy as text, and sympy runs text as Python. Both are
converted here instead. Behind them stands a barrier: the parser that sympy keeps for such texts refuses all but numerals,
and sympy's compiler of numeric functions refuses everything (it falls back to slower arithmetic, or fails).
Not covered: what runs while a module is imported, and the polynomial arithmetic that sympy writes from nothing but the number
of variables. Neither holds any text from outside.
"""

import re
from typing import Any, NoReturn

import sympy

# Imported for their own constants, which they evaluate, before nothing is evaluated any more.
import sympy.physics.units
from latex2sympy2_extended import latex2sympy2
from sympy.core import evalf
from sympy.parsing import sympy_parser  # noqa: TID251 - to take it out
from sympy.polys import rootoftools

_NUMERAL = re.compile(
    r"[0-9]+(?P<point>\.[0-9]*)?(?P<exponent>[eE][+-]?[0-9]+)?|(?P<bare>\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
)
_FRACTION = re.compile(r"-?[0-9]+/[0-9]+")


def number(numeral: str) -> sympy.Number:
    """An Integer or a Float. Raises ValueError where the text is not a decimal numeral."""
    shape = _NUMERAL.fullmatch(numeral)
    if shape is None:
        raise ValueError(f"not a numeral: {numeral[:40]!r}")
    return sympy.Float(numeral) if any(shape.groups()) else sympy.Integer(int(numeral))


def evaluate_nothing() -> None:
    """From here on, no text is run as Python by sympy or `latex2sympy` in this process. Again changes nothing."""
    latex2sympy2.Number = number
    latex2sympy2._Latex2Sympy.parse_number = _parse_number
    latex2sympy2._Latex2Sympy.handle_gcd_lcm = _gcd_or_lcm
    latex2sympy2.parse_expr = sympy_parser.parse_expr = _plain
    evalf.lambdify = rootoftools.lambdify = _refuse


def _parse_number(_grammar: object, numeral: str) -> sympy.Number:
    return number(numeral.replace(",", ""))


def _gcd_or_lcm(_grammar: object, name: str, arguments: list[Any]) -> Any:
    return sympy.UnevaluatedExpr({"gcd": sympy.gcd, "lcm": sympy.lcm}[name]([_exact(side) for side in arguments]))


def _exact(side: Any) -> Any:
    return side.xreplace({inexact: sympy.Rational(str(inexact)) for inexact in side.atoms(sympy.Float)}).doit()


def _plain(text: str, *_: object, **__: object) -> sympy.Number:
    """What sympy's own constants are written as; a SyntaxError, as sympy expects it, for anything else."""
    if _FRACTION.fullmatch(text):
        return sympy.Rational(text)
    try:
        return number(text)
    except ValueError as error:
        raise SyntaxError("texts are not evaluated here") from error


def _refuse(*_: object, **__: object) -> NoReturn:
    raise NotImplementedError("functions are not compiled here")
