"""What is claimed about equations with unknowns, and whether it is true: identities, and solutions of equations. Pure.

An equation with unknowns is no claim by itself: it may be given, assumed, or to be solved. It is taken for an identity only
where the text says that an expression was expanded, factored or simplified, or in a chain of expressions in the same unknowns;
and for false only if both sides agree in their leading terms and most others, as after a slip. A solution is judged only if
nothing but words such as "so" and "dividing by 2" stands between it and the equations before it.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from pipeline.graders.math.expression import equal
from pipeline.graders.math.ratio import Coefficient, Monomial, Polynomial, Ratio
from pipeline.verifiers.algebra.formulas import Formula, Side
from pipeline.verifiers.arithmetic.rounding import Fit, fit
from pipeline.verifiers.arithmetic.values import Value
from pipeline.verifiers.arithmetic.words import words_of

MOST_SLIPS = 2
"""Terms in which an identity may be wrong. With more, it is likely another equation."""
MOST_DEGREE = 12
LONGEST_VALUE = 60
"""Digits of a solution that is put into an equation."""
_CHAIN = 3
_REWRITES = re.compile(
    r"\b(?:expand\w*|simplif\w*|factor\w*|distribut\w*|combin\w*|identity|foil|multiply(?:ing)? out|like terms)\b",
    re.IGNORECASE,
)
_CONDITIONS = re.compile(
    r"\b(?:if|when|where|let|set|setting|suppose|assume|given|since|because|substitut\w*|plug\w*|equations?|solv\w*|sides?|using"
    r"|roots?|zeros?|know|known|conditions?|satisf\w*|mod|modulo|gf|field|characteristic|ring|constraint|complet\w*|approximat\w*)\b",
    re.IGNORECASE,
)
_IMPLIES = re.compile(
    r"\b(?:so|therefore|thus|hence|then|gives?|get|getting|obtain|find|yields?|implies|means|solv\w*|dividing|divide|subtract\w*"
    r"|add|adding|multiply\w*|simplif\w*|follows|becomes|leads)\b|\\implies|\\Rightarrow|\\Longrightarrow|\\therefore|=>|⇒|→|∴|⟹",
    re.IGNORECASE,
)
_CONNECTORS = words_of(
    """so therefore thus hence then we get have find obtain gives give us which means implies imply that this it yields yield
    solving solve for dividing divide both sides by subtracting subtract from adding add to multiplying multiply with and
    or the simplifies simplifying simplify simplified is as into equation our of value unknown side each through out
    follows becomes leads getting now next finally first step result results in left right hand terms like combining
    combine rearranging isolating isolate quad qquad implies rightarrow longrightarrow therefore text begin end align
    aligned"""
)
_BRANCHES = re.compile(r"\b(?:or|and|either|both of)\b", re.IGNORECASE)
_BOTH_SIDES = re.compile(r"\bboth sides\b", re.IGNORECASE)
_COMMAND = re.compile(r"\\[A-Za-z]+")
_ONE: Polynomial = {(): 1}


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim that was decided: where its equation stands, whether it is true, and why not."""

    start: int
    end: int
    text: str
    holds: bool
    reason: str = ""


def identities(formulas: Sequence[Formula], sentences: Sequence[str]) -> Iterator[Claim]:
    """The identities among equations. `sentences`: that of each of them, up to the equation."""
    for formula, sentence in zip(formulas, sentences, strict=True):
        left, right = formula.left, formula.right
        if not left.read.variables or not right.read.variables or _name(left) or _name(right):
            continue
        same = equal(left.read, right.read)
        if same and left.text != right.text:
            yield Claim(formula.start, formula.end, str(formula), True)
        elif same is False and _is_claimed(formula, sentence):
            slip = _slip(left, right)
            if slip:
                yield Claim(formula.start, formula.end, str(formula), False, f"the two sides differ by {slip}")


def _is_claimed(formula: Formula, sentence: str) -> bool:
    if formula.left.read.variables != formula.right.read.variables or _CONDITIONS.search(sentence):
        return False
    return formula.length >= _CHAIN or _REWRITES.search(sentence) is not None


def _slip(left: Side, right: Side) -> str:
    """The difference of two polynomials that agree but for a slip, as a text; empty for others."""
    ours, theirs = _polynomial(left.read.ratio), _polynomial(right.read.ratio)
    if ours is None or theirs is None:
        return ""
    agree = [term for term in ours if theirs.get(term) == ours[term]]
    differ: list[Monomial] = sorted({*ours, *theirs} - set(agree))
    top = max(map(_degree, (*ours, *theirs)))
    if not agree or len(differ) > min(MOST_SLIPS, len(agree)) or any(_degree(term) == top for term in differ):
        return ""
    return " and ".join(_term(term, ours.get(term, 0) - theirs.get(term, 0)) for term in differ)


def _polynomial(ratio: Ratio) -> Polynomial | None:
    """A polynomial in unknowns with rational coefficients, or None for other expressions."""
    if ratio.bottom != _ONE or not ratio.top:
        return None
    plain = all(name[0].isalpha() and power > 0 and power == int(power) for term in ratio.top for name, power in term)
    return ratio.top if plain else None


def _degree(term: Monomial) -> Coefficient:
    return sum(power for _, power in term)


def _term(term: Monomial, factor: Coefficient) -> str:
    names = "".join(name if power == 1 else f"{name}^{power}" for name, power in term)
    if names and abs(factor) == 1:
        return names if factor > 0 else f"-{names}"
    return f"({factor}){names}" if names and factor.denominator != 1 else f"{factor}{names}"


def _name(side: Side) -> str:
    """The unknown that a side is, or an empty text."""
    (term, factor), *more = side.read.ratio.top.items() or [((), 0)]
    alone = not more and factor == 1 and len(term) == 1 and term[0][1] == 1 and side.read.ratio.bottom == _ONE
    return str(term[0][0]) if alone and term[0][0] in side.read.variables else ""


def solutions(formulas: Sequence[Formula], text: str, begin: int) -> Iterator[Claim]:
    """The solutions of equations in one unknown that stand before them. `begin`: where the step begins in the text, which
    has the step before it too."""
    open_ones: list[Formula] = []
    before: Formula | None = None
    branched = derived = False
    for formula in formulas:
        between = text[before.end : formula.start] if before is not None else ""
        connected = (
            before is not None and before.variables == formula.variables and _connects(between, formula.variables)
        )
        if not connected:
            open_ones, branched = [], False
        last, before = before, formula
        name, value, solution = _solution(formula)
        if value is None:
            if len(formula.variables) != 1:
                open_ones = []
            elif not branched:
                branched = bool(open_ones) and _BRANCHES.search(_BOTH_SIDES.sub("", between)) is not None
                # Of x - 4 = 0 or x - 8 = 0 a solution solves one.
                open_ones = open_ones[:-1] if branched else [*open_ones, formula]
        elif formula.start >= begin and open_ones and solution is not None:
            if open_ones[-1] is last:
                derived = _is_derived(between, crosses=last.end <= begin)
            if derived:
                yield from _judged(formula, name, value, solution, open_ones)


def _connects(between: str, names: frozenset[str]) -> bool:
    """Whether nothing but words of a derivation stands between two equations."""
    words = re.findall(r"[A-Za-z]+", between)
    return len(words) <= LONGEST_VALUE and all(word.lower() in _CONNECTORS or word in names for word in words)


def _is_derived(between: str, *, crosses: bool) -> bool:
    """Whether a solution is said to follow from the equation before it, or stands in the next line of a derivation.

    `crosses`: the equation stands in the step before, so that words have to say it."""
    return _IMPLIES.search(between) is not None or not (crosses or re.search("[A-Za-z]{2}", _COMMAND.sub("", between)))


def _solution(formula: Formula) -> tuple[str, Fraction | None, Side | None]:
    """The unknown, its value and the side with the value, where an equation gives one."""
    for side, other in ((formula.left, formula.right), (formula.right, formula.left)):
        name, value = _name(side), other.read.ratio.rational()
        if name and value is not None:
            return name, value, other
    return "", None, None


def _judged(formula: Formula, name: str, value: Fraction, side: Side, open_ones: Sequence[Formula]) -> Iterator[Claim]:
    """Whether a value solves the equations that it was derived from."""
    for equation in reversed(open_ones):
        solved = _solves(equation, name, value, side.places)
        if solved is None:
            return
        if not solved:
            sides = [_at(each.read.ratio, name, value) for each in (equation.left, equation.right)]
            shown = " and ".join("no number" if each is None else str(each) for each in sides)
            reason = f"with {name} = {value} the sides of {equation} are {shown}"
            yield Claim(formula.start, formula.end, str(formula), False, reason)
            return
    yield Claim(formula.start, formula.end, f"{formula} solves {open_ones[0]}", True)


def _solves(equation: Formula, name: str, value: Fraction, places: int) -> bool | None:
    """Whether a value solves an equation. None if it may be rounded, or if the equation has no value there."""
    left, right = (_at(side.read.ratio, name, value) for side in (equation.left, equation.right))
    if left is None or right is None:
        return None
    if left == right:
        return True
    root = _root(equation, name)
    if root is not None and not places:
        # 22/3 boxes may be 7 whole ones.
        return None if root.denominator != 1 and abs(root - value) < 1 else False
    if root is not None:
        found = fit(Value(root), Value(value), Fraction(1, 10**places), about=False, divided=True)
        return None if found is Fit.DOUBTFUL else found is Fit.EQUAL
    return None if places else False


def _root(equation: Formula, name: str) -> Fraction | None:
    """The solution of a linear equation, or None for others."""
    slope, rest = Fraction(0), Fraction(0)
    for side, sign in ((equation.left, 1), (equation.right, -1)):
        factors = _polynomial_in(side.read.ratio, name)
        if factors is None or max(factors, default=0) > 1:
            return None
        slope += sign * factors.get(1, Fraction(0))
        rest += sign * factors.get(0, Fraction(0))
    return -rest / slope if slope else None


def _polynomial_in(ratio: Ratio, name: str) -> dict[int, Fraction] | None:
    if ratio.bottom != _ONE:
        return None
    found: dict[int, Fraction] = {}
    for term, factor in ratio.top.items():
        powers = dict(term)
        power = Fraction(powers.pop(name, 0))
        if powers or power.denominator != 1 or not 0 <= power <= MOST_DEGREE:
            return None
        found[int(power)] = Fraction(factor)
    return found


def _at(ratio: Ratio, name: str, value: Fraction) -> Fraction | None:
    """The value of an expression in one unknown. None if it has other names in it, is too large or divides by zero."""
    top, bottom = _sum_at(ratio.top, name, value), _sum_at(ratio.bottom, name, value)
    return top / bottom if top is not None and bottom else None


def _sum_at(polynomial: Polynomial, name: str, value: Fraction) -> Fraction | None:
    total = Fraction(0)
    if len(str(value.numerator)) + len(str(value.denominator)) > LONGEST_VALUE:
        return None
    for term, factor in polynomial.items():
        powers = dict(term)
        power = Fraction(powers.pop(name, 0))
        if powers or power.denominator != 1 or abs(power) > MOST_DEGREE or (not value and power < 0):
            return None
        total += factor * value ** int(power)
    return total
