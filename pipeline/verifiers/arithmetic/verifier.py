"""The verifier `arithmetic`: a step is refuted by a false equation of plain numbers. Pure.

It never proves a whole step: that all equations of a step hold is no evidence for the step.
"""

import re
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from pipeline.data.numbers import Fit
from pipeline.graders.math.rounding import decimal_places
from pipeline.verifiers.arithmetic.equations import equations_of
from pipeline.verifiers.arithmetic.expressions import Budget
from pipeline.verifiers.arithmetic.judging import judge
from pipeline.verifiers.arithmetic.tokens import plain, tokens_of
from pipeline.verifiers.arithmetic.words import is_doubtful, is_mentioned, redefines
from pipeline.verifiers.base import UNKNOWN, Finding, StepInContext, StepVerdict, Verifier
from pipeline.verifiers.sentences import holding, in_a_line, sentence_around
from pipeline.verifiers.settings import ArithmeticConfig

TOKENS_PER_CHARACTER = 4
"""How many tokens are read at most, for each character of a step."""
MOST_DOUBTED = 20
"""After more equations that are false but doubtful a step is unknown."""
_MARK = re.compile(r"<<([^<>\n]{0,200})>>")
_LOOSE = re.compile(r"(?i)\b(?:about|approx\w*|round\w*|roughly|estimat\w*|nearly|almost)\b|≈|\\approx|\\simeq")
_WORD = re.compile(r"[a-z]+|[%$¢]")
_MOST_OF_PROBLEM = 20_000
_PLACES = 12


class Arithmetic(Verifier):
    """Equations of plain numbers: chains, percent, units, calculator marks, LaTeX. Exact; roundings by the digits written."""

    Config = ArithmeticConfig
    settings: ArithmeticConfig

    def verify(self, step: StepInContext) -> Finding:
        if len(step.step) > self.settings.most_characters or not any(mark in step.step for mark in "=≈≅≃∼~\\q"):
            return UNKNOWN
        if redefines(step):
            return UNKNOWN
        held: list[str] = []
        doubted = 0
        for fit, shown, place in _judged(step.step):
            if fit is Fit.EQUAL and not is_mentioned(*place):
                held.append(shown)
            elif fit is Fit.APART:
                if shown and not is_doubtful(step, *place) and not _states_false_equation(step.problem):
                    return Finding(verdict=StepVerdict.REFUTED, evidence=shown)
                doubted += 1
                if doubted > MOST_DOUBTED:
                    break
        return UNKNOWN if doubted else holding(held)


def _judged(text: str) -> Iterator[tuple[Fit, str, tuple[str, int, int]]]:
    """How each equation of a text is judged, the equation with what is wrong, and the text where it stands; marks first.

    Nothing is shown of one that is false as it is written, and may be meant otherwise."""
    loosely = _LOOSE.search(text) is not None
    budget = Budget(left=TOKENS_PER_CHARACTER * len(text))
    for part in map(plain, (*_MARK.findall(text), _MARK.sub("", text))):
        for equation in equations_of(tokens_of(part), budget):
            place = (part, equation.start, equation.end)
            fit, ours, theirs = judge(
                equation, frozenset(_WORD.findall(sentence_around(*place).lower())), loosely=loosely
            )
            shown = in_a_line(part[equation.start : equation.end])
            if fit is Fit.APART:
                sides = (part[equation.start : equation.middle], part[equation.after : equation.end], ours)
                if equation.left.node.is_number and not equation.right.node.is_number:
                    sides = (sides[1], sides[0], theirs)
                wrong = f"{shown}: {in_a_line(sides[0])} is {_number(sides[2])}, not {in_a_line(sides[1])}"
                shown = wrong if ours != theirs else ""
            yield fit, shown, place


@lru_cache(maxsize=64)
def _states_false_equation(problem: str) -> bool:
    """Whether a problem states a false equation, which its solutions quote."""
    return any(fit is Fit.APART and shown for fit, shown, _ in _judged(problem[:_MOST_OF_PROBLEM]))


def _number(number: Fraction) -> str:
    """A number in plain digits, to a limited number of places."""
    places = decimal_places(number)
    if not places or places > _PLACES:
        return in_a_line(str(number))
    return in_a_line(f"{Decimal(f'{number * 10**places}e-{places}'):f}")
