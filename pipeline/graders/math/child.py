"""The child process that runs `algebra`. It reads one JSON task per line and writes one JSON result per line.

    {"gold": "\\\\frac12", "answer": "2^{-1}"}  ->  {"verdict": "correct"}
    {"parse": "\\\\frac12"}                     ->  {"verdict": "correct"} if it parses, else {"verdict": "unparseable"}

Covered: limits of memory and of processor time per task, no core files, no stray output, no text that runs as Python.
Not covered: wall time. The parent kills a child that is late, and nothing here uses alarms.

`latex2sympy` passes every numeral and the arguments of gcd and lcm to sympy as text, and sympy runs text as Python. Both are
converted here instead. As a second barrier, sympy's parser for such texts reads numerals and fractions alone here, and its
compiler of numeric functions nothing (sympy then uses slower arithmetic or fails).
Not covered: code that runs while a module is imported, and the polynomial arithmetic that sympy generates from only the number
of variables. Neither contains any text from outside.
"""

import json
import os
import re
import sys
from typing import Any, NoReturn

import sympy

# These modules evaluate their own constants on import, so they are imported before evaluation is switched off.
import sympy.physics.units
from latex2sympy2_extended import latex2sympy2
from sympy.core import evalf
from sympy.parsing import sympy_parser  # noqa: TID251 - to take it out
from sympy.polys import rootoftools

from pipeline.core.records import Verdict
from pipeline.graders.line_child import limit_next_task, lines, results_alone
from pipeline.graders.math.algebra import judge, parses, warm_up

_NUMERAL = re.compile(
    r"[0-9]+(?P<point>\.[0-9]*)?(?P<exponent>[eE][+-]?[0-9]+)?|(?P<bare>\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
)
_FRACTION = re.compile(r"-?[0-9]+/[0-9]+")


def number(numeral: str) -> sympy.Number:
    """The sympy Integer or Float of a decimal numeral. Raises ValueError for any other text."""
    shape = _NUMERAL.fullmatch(numeral)
    if shape is None:
        raise ValueError(f"not a numeral: {numeral[:40]!r}")
    return sympy.Float(numeral) if any(shape.groups()) else sympy.Integer(int(numeral))


def evaluate_nothing() -> None:
    """Prevent sympy and `latex2sympy` from running text as Python in this process. A second call changes nothing."""
    latex2sympy2.Number = number
    latex2sympy2._Latex2Sympy.parse_number = lambda _grammar, numeral: number(numeral.replace(",", ""))
    latex2sympy2._Latex2Sympy.handle_gcd_lcm = _gcd_or_lcm
    latex2sympy2.parse_expr = sympy_parser.parse_expr = _plain
    evalf.lambdify = rootoftools.lambdify = _refuse


def _gcd_or_lcm(_grammar: object, name: str, arguments: list[Any]) -> Any:
    exact = [side.xreplace({each: sympy.Rational(str(each)) for each in side.atoms(sympy.Float)}) for side in arguments]
    return sympy.UnevaluatedExpr({"gcd": sympy.gcd, "lcm": sympy.lcm}[name]([side.doit() for side in exact]))


def _plain(text: str, *_: object, **__: object) -> sympy.Number:
    """Read numerals and fractions, the form of sympy's own constants. Raises SyntaxError otherwise, as sympy expects."""
    if _FRACTION.fullmatch(text):
        return sympy.Rational(text)
    try:
        return number(text)
    except ValueError as error:
        raise SyntaxError("texts are not evaluated here") from error


def _refuse(*_: object, **__: object) -> NoReturn:
    raise NotImplementedError("functions are not compiled here")


def answer_task(task: dict[str, str], tolerance: float) -> Verdict:
    """The verdict on one task of the protocol."""
    try:
        if "parse" in task:
            return Verdict.CORRECT if parses(task["parse"]) else Verdict.UNPARSEABLE
        return judge(task["gold"], task["answer"], tolerance)
    except RecursionError:
        return Verdict.UNPARSEABLE


def main(memory_mib: int, cpu_seconds: float, tolerance: float) -> None:
    """Serve tasks until standard input ends or the parent has died."""
    results = results_alone(memory_mib)
    evaluate_nothing()
    # The warm-up belongs to the start, so the first answers do not wait for it.
    warm_up()
    os.write(results, b'{"ready": true}\n')
    for line in lines():
        limit_next_task(cpu_seconds)
        verdict = answer_task(json.loads(line), tolerance)
        os.write(results, json.dumps({"verdict": verdict.value}).encode() + b"\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]))
