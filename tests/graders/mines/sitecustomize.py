"""Makes every evaluation of text raise an error ("explode") in all Python processes that have this folder on PYTHONPATH.

What explodes:
- a text that is passed to one of sympy's own parsers, above all `sympify` (`simplify`, `N`, `Number` and `S` pass text to it);
- `eval`, `exec` and `compile` in a frame of sympy, of the LaTeX grammar or of this project, under any name: the interpreter
  itself reports them to an audit hook.
What does not explode:
- evaluation while a module is imported: the import system runs modules, and some modules of sympy sympify their own constants;
- a text in the source of the function of sympy that evaluates it: S("3/2") in its tables of integrals;
- the functions that sympy generates for polynomials from only the number of their generators;
- code that other libraries generate and run for themselves (dataclasses, namedtuples, Hypothesis, pytest).

An explosion is noted in `EXPLOSIONS` next to this file, because a checker may hide an exception. It is raised as an exception
that `except Exception` does not catch. `ARMED` lists the command lines of the processes that loaded this file.
"""

import os
import sys
from collections.abc import Callable
from functools import wraps
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import FrameType, ModuleType
from typing import Any

PARSERS = {
    "sympy.core.sympify": ("sympify", "kernS"),
    "sympy.parsing.ast_parser": ("parse_expr",),
    "sympy.parsing.latex": ("parse_latex", "parse_latex_lark"),
    "sympy.parsing.mathematica": ("mathematica", "parse_mathematica"),
    "sympy.parsing.maxima": ("parse_maxima",),
    "sympy.parsing.sympy_parser": ("eval_expr", "parse_expr", "stringify_expr"),
}
WATCHED = ("sympy", "latex2sympy2_extended", "math_verify", "antlr4", "pipeline")
POLYNOMIALS = os.path.join("sympy", "polys", "monomials.py")
EXPLOSIONS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "explosions.txt")
ARMED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "armed.txt")
MAX_NOTED = 200
_IMPORT = "<frozen importlib._bootstrap>"


class EvaluatedError(BaseException):
    """A text was about to be evaluated."""


def explode(what: str, text: object, frame: FrameType | None) -> None:
    """Note and raise, unless a module is being imported."""
    trace = []
    while frame is not None:
        if frame.f_code.co_filename == _IMPORT:
            return
        trace.append(f"{frame.f_code.co_filename}:{frame.f_lineno}")
        frame = frame.f_back
    _note(EXPLOSIONS, f"{what} {repr(text)[:MAX_NOTED]} at {' < '.join(trace[:6])}")
    raise EvaluatedError(f"{what} was given {repr(text)[:MAX_NOTED]}")


class _Constants:
    """Whether a text that sympy wrote itself is being parsed."""

    being_parsed = False


def _spelled_out(text: object, frame: FrameType | None) -> bool:
    """Whether it is a constant of the function of sympy's, outside its parsers, that asks for it."""
    while frame is not None and frame.f_globals.get("__name__") in (*PARSERS, __name__):
        frame = frame.f_back
    return frame is not None and _package(frame) == "sympy" and text in frame.f_code.co_consts


def _package(frame: FrameType) -> str:
    # Of `python -m package.module` only the second is the package's.
    name, package = (str(frame.f_globals.get(key) or "") for key in ("__name__", "__package__"))
    return (package if name == "__main__" else name).partition(".")[0]


def _note(path: str, line: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(descriptor, f"{line}\n".encode(errors="backslashreplace"))
    os.close(descriptor)


def _mined(name: str, parser: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(parser)
    def guarded(*arguments: Any, **settings: Any) -> Any:
        # Strict, it refuses texts.
        text = bool(arguments) and isinstance(arguments[0], str | bytes) and not settings.get("strict")
        if not text or _Constants.being_parsed:
            return parser(*arguments, **settings)
        caller = sys._getframe(1)
        if not _spelled_out(arguments[0], caller):
            explode(name, arguments[0], caller)
        _Constants.being_parsed = True
        try:
            return parser(*arguments, **settings)
        finally:
            _Constants.being_parsed = False

    return guarded


class _Miner(MetaPathFinder):
    """Mines the parsers of a module before anyone can import them from it."""

    def find_spec(self, fullname: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, path, target) if fullname in PARSERS else None
        if spec is None or spec.loader is None:
            return None
        run = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            run(module)
            for name in PARSERS[fullname]:
                setattr(module, name, _mined(f"{fullname}.{name}", getattr(module, name)))

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if event not in ("compile", "exec") or _Constants.being_parsed:
        return
    frame = sys._getframe(0).f_back
    if frame is not None and _package(frame) in WATCHED and not frame.f_code.co_filename.endswith(POLYNOMIALS):
        explode(event, arguments[0], frame)


_note(ARMED, " ".join(sys.orig_argv))
sys.meta_path.insert(0, _Miner())
sys.addaudithook(_watch)
