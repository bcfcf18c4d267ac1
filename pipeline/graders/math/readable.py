r"""What the LaTeX grammar of computer algebra reads, told from the text alone, before a child is asked. Pure.

The grammar takes words for products of letters, "5 6" for a sum, "1e5" for 5e, "52_8" for 52, a:b for a, 2^2^3
from the left, and drops the names behind \triangle and the prime of x': such texts are not handed to it.
"""

import re

from pipeline.core.records import Verdict
from pipeline.graders.math.exact import without_unit
from pipeline.graders.math.forms import Kind, read_form

_COMMAND = re.compile(r"\\[A-Za-z]+")
_WORD = re.compile(r"[A-Za-z]{3,}")
_FUNCTIONS = frozenset(
    {
        "sin", "cos", "tan", "cot", "sec", "csc", "log", "exp", "and", "arcsin", "arccos", "arctan", "min", "max",
        "mod", "gcd", "lcm", "det", "sqrt",
    }
)  # fmt: skip
_MISREAD = re.compile(
    r"[<>].*\b(?:and|or)\b|\d \d|\d[eE][+-]?\d|\d_|:|'|\^(?:\{[^{}]*\}|\w)\^"
    r"|\\(?:overline|triangle|angle|square|vec|hat|widehat|bar|overrightarrow|parallel|perp|cong|mathbb|neg|[lc]?dots)"
)
_MATHEMATICS = re.compile(r"[\d\\=^+*/<>]")
_CHAIN = re.compile(r"\\approx|\\doteq|\\simeq")
_SHORT_SCRIPT = re.compile(r"([_^])([A-Za-z0-9])(?![A-Za-z0-9])")
_LOG_OF_NO_BASE = re.compile(r"\\log(?![A-Za-z_])")


def for_grammar(normal: str) -> str | None:
    """The LaTeX to hand to the grammar for a normal form, None where it would be misread."""
    text = without_unit(_CHAIN.split(normal)[0].strip()).removesuffix("%").strip()
    if not text or "%" in text or _MISREAD.search(text) or (_has_words(text) and "\\begin{" not in text):
        return None
    return _SHORT_SCRIPT.sub(r"\1{\2}", text)


def without_algebra(wanted: str, given: str) -> Verdict | None:
    """The verdict on two normal forms of which algebra cannot read one; None where it may read both.

    Words that are not the gold's words are INCORRECT, and so is anything where the gold is words. Else it is UNPARSEABLE.
    """
    if not {read_form(wanted).kind, read_form(given).kind} <= {Kind.EXPRESSION, Kind.RELATION}:
        return None
    if for_grammar(wanted) is None:
        return Verdict.INCORRECT if _has_words(wanted) else Verdict.UNPARSEABLE
    if for_grammar(given) is None:
        return Verdict.INCORRECT if _WORD.search(given) and not _MATHEMATICS.search(given) else Verdict.UNPARSEABLE
    # One writer's log has base 10, another's e.
    ambiguous = bool(_LOG_OF_NO_BASE.search(wanted)) != bool(_LOG_OF_NO_BASE.search(given))
    return Verdict.UNPARSEABLE if ambiguous else None


def _has_words(text: str) -> bool:
    return any(word.lower() not in _FUNCTIONS for word in _WORD.findall(_COMMAND.sub(" ", text)))
