"""The verifier `algebra`: a step is refuted by a false identity, or by a solution that does not solve its equation. Pure.

An equation with unknowns is no claim by itself: it may be given, assumed, or to be solved. It is taken for an identity only
where the text says that an expression was expanded, factored or simplified, or in a chain of expressions in the same unknowns;
and for false only if both sides agree in their leading terms and most others, as after a slip. A solution is judged only if
nothing but words such as "so" and "dividing by 2" stands between it and the equations before it.

A side is a run of symbols between words, punctuation and relations. It is read as a whole or not at all, by the algebra of the
answer checker and within its limits: nothing is evaluated. Hostile polynomials may take long up to these limits, so a run calls
it in a process with a deadline.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from pipeline.data.numbers import Fit
from pipeline.graders.math.expression import Expression, equal, expression
from pipeline.graders.math.limits import exceeded_limit
from pipeline.graders.math.normal import normal_form
from pipeline.graders.math.ratio import Coefficient, Monomial, Polynomial, Ratio, evaluate
from pipeline.verifiers.arithmetic.tokens import EQUAL, Token, plain, token_at, tokens_of
from pipeline.verifiers.arithmetic.values import Value, fit
from pipeline.verifiers.arithmetic.words import CHANGERS, CONTINUERS, is_doubtful, is_mentioned, words_of
from pipeline.verifiers.base import UNKNOWN, Finding, StepInContext, StepVerdict, Verifier
from pipeline.verifiers.sentences import finding, holding, sentence_around
from pipeline.verifiers.settings import AlgebraConfig

MOST_EQUATIONS = 60
"""In one text; later ones are not read."""
_MOST_TOKENS = 120
_SYMBOLS = frozenset({"number", "operator", "open", "close", "function", "bad", "factorial", "percent"})
_CHANGERS_AFTER = (CONTINUERS | {"mod", "remainder"}) - {"or", "to", "by"}
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
class Side:
    """A side of an equation, as it is written and as it is read. `places`: digits after the point of a plain decimal."""

    text: str
    read: Expression
    places: int


@dataclass(frozen=True, slots=True)
class Formula:
    """Two neighbours in a chain of equal sides, and where they stand in the text. `length`: how many sides the chain has."""

    left: Side
    right: Side
    start: int
    end: int
    length: int

    @property
    def variables(self) -> frozenset[str]:
        return self.left.read.variables | self.right.read.variables

    def __str__(self) -> str:
        return f"{self.left.text} = {self.right.text}"


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim that was decided: where its equation stands, whether it is true, and why not."""

    start: int
    end: int
    text: str
    holds: bool
    reason: str = ""


class Algebra(Verifier):
    """Identities in unknowns and solved equations, by the exact algebra of the answer checker."""

    Config = AlgebraConfig
    settings: AlgebraConfig

    def verify(self, step: StepInContext) -> Finding:
        longest = self.settings.most_characters
        if "=" not in step.step or len(step.step) > longest:
            return UNKNOWN
        before = plain(step.earlier[-1]) + "\n" if step.earlier and len(step.earlier[-1]) <= longest else ""
        text = before + plain(step.step)
        formulas = _formulas_of(text)
        own = [each for each in formulas if each.start >= len(before)]
        held: list[str] = []
        for claim in (*_identities(own, text), *_solutions(formulas, text, len(before))):
            if not claim.holds and not is_doubtful(step, text, claim.start, claim.end):
                return finding(StepVerdict.REFUTED, f"{claim.text}: {claim.reason}")
            held += [claim.text] if claim.holds and not is_mentioned(text, claim.start, claim.end) else []
        return holding(held)


def _identities(formulas: Sequence[Formula], text: str) -> Iterator[Claim]:
    for formula in formulas:
        left, right = formula.left, formula.right
        if not left.read.variables or not right.read.variables or _name(left) or _name(right):
            continue
        same = equal(left.read, right.read)
        if same and left.text != right.text:
            yield Claim(formula.start, formula.end, str(formula), True)
        elif same is False and _is_claimed(formula, sentence_around(text, formula.start, formula.end)):
            slip = _slip(left.read.ratio, right.read.ratio)
            if slip:
                yield Claim(formula.start, formula.end, str(formula), False, f"the two sides differ by {slip}")


def _is_claimed(formula: Formula, sentence: str) -> bool:
    same = formula.left.read.variables == formula.right.read.variables and not _CONDITIONS.search(sentence)
    return same and (formula.length >= _CHAIN or _REWRITES.search(sentence) is not None)


def _slip(left: Ratio, right: Ratio) -> str:
    """The difference of two polynomials that agree but for a slip, as a text; empty for others."""
    ours, theirs = left.top, right.top
    names = [part for term in (*ours, *theirs) for part in term]
    if left.bottom != _ONE or right.bottom != _ONE or not ours or not theirs:
        return ""
    if any(not name[0].isalpha() or power <= 0 or power != int(power) for name, power in names):
        return ""
    agree = [term for term in ours if theirs.get(term) == ours[term]]
    differ: list[Monomial] = sorted({*ours, *theirs} - set(agree))
    degrees = {term: sum(power for _, power in term) for term in (*ours, *theirs)}
    top = max(degrees.values())
    if len(differ) > min(MOST_SLIPS, len(agree)) or any(degrees[term] == top for term in differ):
        return ""
    return " and ".join(_term(term, ours.get(term, 0) - theirs.get(term, 0)) for term in differ)


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


def _solutions(formulas: Sequence[Formula], text: str, begin: int) -> Iterator[Claim]:
    """The solutions of equations in one unknown that stand before them."""
    open_ones: list[Formula] = []
    before: Formula | None = None
    branched = derived = False
    for formula in formulas:
        between = text[before.end : formula.start] if before is not None else ""
        same = before is not None and before.variables == formula.variables
        if not (same and _connects(between, formula.variables)):
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
                # In the step before, words have to say that the solution follows; a line of a derivation may have none.
                silent = last.end > begin and not re.search("[A-Za-z]{2}", _COMMAND.sub("", between))
                derived = silent or _IMPLIES.search(between) is not None
            if derived:
                yield from _judged(formula, name, value, solution, open_ones)


def _connects(between: str, names: frozenset[str]) -> bool:
    """Whether nothing but words of a derivation stands between two equations."""
    words = re.findall(r"[A-Za-z]+", between)
    return len(words) <= LONGEST_VALUE and all(word.lower() in _CONNECTORS or word in names for word in words)


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
        left, right = (_at(each.read.ratio, name, value) for each in (equation.left, equation.right))
        if left is None or right is None:
            return
        solved = Fit.EQUAL if left == right else _fit_of_rounded(equation, name, value, side.places)
        if solved is Fit.DOUBTFUL:
            return
        if solved is Fit.APART:
            reason = f"with {name} = {value} the sides of {equation} are {left} and {right}"
            yield Claim(formula.start, formula.end, str(formula), False, reason)
            return
    yield Claim(formula.start, formula.end, f"{formula} solves {open_ones[0]}", True)


def _fit_of_rounded(equation: Formula, name: str, value: Fraction, places: int) -> Fit:
    """How a value that does not solve an equation agrees with its solution, if that is known because the equation is linear."""
    try:
        off = equation.left.read.ratio - equation.right.read.ratio
    except ArithmeticError:
        return Fit.DOUBTFUL
    slope = off.top.get(((name, 1),), 0)
    if off.bottom != _ONE or len(off.top) > 1 + (() in off.top) or not slope:
        return Fit.DOUBTFUL if places else Fit.APART
    root = -Fraction(off.top.get((), 0)) / slope
    if not places:
        # 22/3 boxes may be 7 whole ones.
        return Fit.DOUBTFUL if root.denominator != 1 and abs(root - value) < 1 else Fit.APART
    return fit(Value(root), Value(value), Fraction(1, 10**places), about=False, divided=True)


def _at(ratio: Ratio, name: str, value: Fraction) -> Fraction | None:
    """The value of an expression in one unknown. None if it has other names in it, is too large or divides by zero."""
    powers = [power for term in (*ratio.top, *ratio.bottom) for _, power in term]
    small = len(str(value.numerator)) + len(str(value.denominator)) <= LONGEST_VALUE
    low = all(power.denominator == 1 and abs(Fraction(power)) <= MOST_DEGREE for power in powers)
    if not (small and low) or ratio.names() - {name}:
        return None
    try:
        return Fraction(evaluate(ratio, {name: value}, Fraction)[0])
    except ArithmeticError:
        return None


def _formulas_of(text: str) -> list[Formula]:
    """The equations of a text that `plain` has prepared, whose sides can both be read, in their order."""
    tokens = tokens_of(text)
    found: list[Formula] = []
    tried = 0
    for chain in _chains(tokens):
        tried += len(chain) - 1
        if tried > MOST_EQUATIONS:
            break
        sides = [_side(text, tokens, begin, end) for begin, end in chain]
        for at, (left, right) in enumerate(pairwise(sides)):
            if left is not None and right is not None:
                start, end = tokens[chain[at][0]].start, tokens[chain[at + 1][1] - 1].end
                found.append(Formula(left, right, start, end, len(chain)))
    return found


def _chains(tokens: Sequence[Token]) -> Iterator[list[tuple[int, int]]]:
    """For each chain of equal sides where each of them begins and ends."""
    at = 0
    while at < len(tokens):
        if not _equals(tokens, at):
            at += 1
            continue
        begin = at
        while begin > max(0, at - _MOST_TOKENS) and _is_symbol(tokens, begin - 1):
            if tokens[begin - 1].kind == "open" and tokens[begin - 1].match >= at:
                break
            begin -= 1
        chain = [(begin, at)]
        while _equals(tokens, at):
            end = begin = at + 1
            while end < begin + _MOST_TOKENS and _is_symbol(tokens, end):
                if tokens[end].kind == "close" and 0 <= tokens[end].match < begin:
                    break
                end += 1
            chain.append((begin, end))
            at = end
        yield chain


def _equals(tokens: Sequence[Token], at: int) -> bool:
    return (token := token_at(tokens, at)).kind == "relation" and token.text == EQUAL


def _is_symbol(tokens: Sequence[Token], at: int) -> bool:
    token, before, after = (token_at(tokens, place) for place in (at, at - 1, at + 1))
    if token.kind != "word":
        return token.kind in _SYMBOLS
    touches = token.glued and before.kind == "number"
    if len(token.text) == 1:
        # A letter that is also a word stands beside an operator or a relation, or touches a number.
        return token.text not in "aAI" or touches or not {before.kind, after.kind}.isdisjoint(("operator", "relation"))
    return len(token.text) == 2 and (touches or (token.glued and before.kind == "close"))


def _side(text: str, tokens: Sequence[Token], begin: int, end: int) -> Side | None:
    if not 0 < end - begin < _MOST_TOKENS:
        return None
    first, last = tokens[begin], tokens[end - 1]
    before, after = token_at(tokens, begin - 1), token_at(tokens, end)
    # A sign after a word may be a dash or an operator, "twice x" is not x, nor are "2 times y" and "5\\%" what they begin with.
    changed = first.kind == "operator" or first.glued or before.text.lower() in CHANGERS
    goes_on = after.glued or after.text.lower() in _CHANGERS_AFTER
    if (before.kind == "word" and changed) or last.kind == "operator" or (after.kind == "word" and goes_on):
        return None
    written = text[first.start : last.end]
    normal = normal_form(written)
    read = expression(normal) if normal and exceeded_limit(normal) is None else None
    if read is None or not read.canonical:
        return None
    return Side(" ".join(written.split()), read, last.places if begin + 1 == end else 0)
