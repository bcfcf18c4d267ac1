"""Formulas of first-order logic with sorts, equality and arithmetic, as graphs that are checked when they are made. Pure.

Every term has a sort and is within the limits below, or `NotRead` is raised. A part that stands in several places is one
object, so a formula with many `let`s stays small here. Its limits count what it is when it is written out, because a solver
may do so. A `Question` is what a formal step asks of them: whether premises entail a claim.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from pipeline.verifiers.base import Covers
from pipeline.verifiers.reading import NotRead

BOOL, INT, REAL = "Bool", "Int", "Real"
NUMBERS = (INT, REAL)

MOST_SIZE = 20_000
"""Nodes of a formula when it is written out as a tree."""
MOST_DEPTH = 150
"""Solvers and the code here go down a formula by recursion, and a stack that overflows ends the process."""
MOST_ARGUMENTS = 200
MOST_BITS = 2_048
"""Bits that a number may have, written or computed from those that are: products fold before any limit of a solver applies."""
MOST_DEGREE = 12
"""Factors that are unknown in a product when it is multiplied out."""


@dataclass(frozen=True, slots=True, eq=False)
class Symbol:
    """A constant, a function, a predicate or a bound variable. Two symbols of one name are different ones."""

    name: str
    parameters: tuple[str, ...]
    sort: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """What the limits of this module bound."""

    size: int = 1
    depth: int = 1
    bits: int = 0
    degree: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """A term or formula. `operator`: a key of `OPERATORS`, or a word below. `is_literal`: it is written with numbers alone."""

    operator: str
    arguments: tuple["Term", ...]
    sort: str
    symbol: Symbol | None = None
    value: Fraction = Fraction(0)
    bound: tuple[Symbol, ...] = ()
    measures: Measures = Measures()
    is_literal: bool = False


NUMBER, APPLY, FORALL, EXISTS = "number", "apply", "forall", "exists"


def number(value: Fraction, sort: str) -> Term:
    bits = max(value.numerator.bit_length(), value.denominator.bit_length())
    return _checked(Term(NUMBER, (), sort, value=value, measures=Measures(bits=bits), is_literal=True))


def applied(symbol: Symbol, arguments: Sequence[Term] = ()) -> Term:
    """A symbol with its arguments, of which it may have none."""
    if len(arguments) != len(symbol.parameters):
        raise NotRead(f"{symbol.name} takes {len(symbol.parameters)} arguments, not {len(arguments)}")
    fitted = tuple(fitting(term, sort) for term, sort in zip(arguments, symbol.parameters, strict=True))
    degree = 1 if symbol.sort in NUMBERS else 0
    return _checked(Term(APPLY, fitted, symbol.sort, symbol=symbol, measures=replace(_measures(fitted), degree=degree)))


def quantified(quantifier: str, bound: Sequence[Symbol], body: Term) -> Term:
    """`forall` or `exists`."""
    if body.sort != BOOL or not bound:
        raise NotRead(f"{quantifier} needs variables and a formula")
    return _checked(Term(quantifier, (body,), BOOL, bound=tuple(bound), measures=_measures((body,))))


def operation(operator: str, arguments: Sequence[Term]) -> Term:
    """An operator of `OPERATORS` with its arguments. A number written without a point is real where a real is needed."""
    least, most, build = OPERATORS[operator]
    if not least <= len(arguments) <= min(most, MOST_ARGUMENTS):
        raise NotRead(f"{operator} cannot have {len(arguments)} arguments")
    return build(operator, tuple(arguments))


def conjunction(formulas: Sequence[Term]) -> Term:
    return formulas[0] if len(formulas) == 1 else operation("and", formulas)


def fitting(term: Term, sort: str) -> Term:
    """The term in the sort that is needed: itself, or a number that is written without a point as a real one."""
    if term.sort == sort:
        return term
    if term.sort == INT and sort == REAL and term.is_literal:
        if term.operator == NUMBER:
            return number(term.value, REAL)
        return _made("to_real", (term,), REAL)
    raise NotRead(f"{sort} is needed, not {term.sort}")


def parts(terms: Iterable[Term]) -> Iterator[Term]:
    """Every term that stands in these, once each, from the outside to the inside."""
    seen: set[int] = set()
    waiting = list(reversed(list(terms)))
    while waiting:
        term = waiting.pop()
        if id(term) not in seen:
            seen.add(id(term))
            yield term
            waiting.extend(reversed(term.arguments))


def bound_in(terms: Sequence[Term]) -> frozenset[Symbol]:
    """The variables that quantifiers in these terms bind."""
    return frozenset(symbol for term in parts(terms) for symbol in term.bound)


def is_closed(term: Term, bound: frozenset[Symbol]) -> bool:
    """Whether none of these variables stands in a term."""
    return not any(part.symbol in bound for part in parts([term]) if part.symbol is not None)


def divisors(terms: Sequence[Term]) -> list[Term]:
    """What the terms divide by, where that may be 0. SMT-LIB lets a quotient by 0 be anything."""
    found: dict[int, Term] = {}
    for term in parts(terms):
        if term.operator in ("/", "div", "mod"):
            for divisor in term.arguments[1:]:
                if divisor.operator != NUMBER or divisor.value == 0:
                    found[id(divisor)] = divisor
    return list(found.values())


def _measures(arguments: Sequence[Term]) -> Measures:
    inner = [each.measures for each in arguments]
    return Measures(
        size=1 + sum(each.size for each in inner),
        depth=1 + max((each.depth for each in inner), default=0),
        bits=max((each.bits for each in inner), default=0),
        degree=max((each.degree for each in inner), default=0),
    )


def _checked(term: Term) -> Term:
    found = term.measures
    limits = (
        (found.size, MOST_SIZE, "parts"),
        (found.depth, MOST_DEPTH, "levels"),
        (found.bits, MOST_BITS, "bits in a number"),
        (found.degree, MOST_DEGREE, "factors"),
    )
    for amount, most, what in limits:
        if amount > most:
            raise NotRead(f"a formula with more than {most} {what}")
    return term


def _made(operator: str, arguments: tuple[Term, ...], sort: str, **changed: int) -> Term:
    measures = replace(_measures(arguments), **changed)
    is_literal = sort in NUMBERS and all(each.is_literal for each in arguments)
    return _checked(Term(operator, arguments, sort, measures=measures, is_literal=is_literal))


def _logical(operator: str, arguments: tuple[Term, ...]) -> Term:
    if any(each.sort != BOOL for each in arguments):
        raise NotRead(f"{operator} is of formulas")
    return _made(operator, arguments, BOOL)


def _equal(operator: str, arguments: tuple[Term, ...]) -> Term:
    fitted = _in_one_sort(arguments)
    pairs = len(arguments) ** 2 if operator == "distinct" else len(arguments)
    return _made(operator, fitted, BOOL, size=1 + pairs * max(each.measures.size for each in fitted))


def _choice(operator: str, arguments: tuple[Term, ...]) -> Term:
    condition = fitting(arguments[0], BOOL)
    first, second = _in_one_sort(arguments[1:])
    return _made(operator, (condition, first, second), first.sort)


def _order(operator: str, arguments: tuple[Term, ...]) -> Term:
    return _made(operator, _numbers(operator, arguments), BOOL)


def _sum(operator: str, arguments: tuple[Term, ...]) -> Term:
    fitted = _numbers(operator, arguments)
    bits = max(each.measures.bits for each in fitted) + len(fitted).bit_length()
    return _made(operator, fitted, fitted[0].sort, bits=bits)


def _product(operator: str, arguments: tuple[Term, ...]) -> Term:
    fitted = _numbers(operator, arguments)
    return _made(operator, fitted, fitted[0].sort, **_multiplied(fitted))


def _quotient(operator: str, arguments: tuple[Term, ...]) -> Term:
    fitted = tuple(fitting(each, REAL) for each in arguments)
    return _made(operator, fitted, REAL, **_multiplied(fitted))


def _whole(operator: str, arguments: tuple[Term, ...]) -> Term:
    fitted = tuple(fitting(each, INT) for each in arguments)
    return _made(operator, fitted, INT, **_multiplied(fitted))


def _converted(operator: str, arguments: tuple[Term, ...]) -> Term:
    wanted, made = (INT, REAL) if operator == "to_real" else (REAL, INT)
    return _made(operator, (fitting(arguments[0], wanted),), made)


def _multiplied(arguments: tuple[Term, ...]) -> dict[str, int]:
    inner = [each.measures for each in arguments]
    return {"bits": sum(each.bits for each in inner), "degree": sum(each.degree for each in inner)}


def _numbers(operator: str, arguments: tuple[Term, ...]) -> tuple[Term, ...]:
    fitted = _in_one_sort(arguments)
    if fitted[0].sort not in NUMBERS:
        raise NotRead(f"{operator} is of numbers")
    return fitted


def _in_one_sort(arguments: tuple[Term, ...]) -> tuple[Term, ...]:
    sort = REAL if any(each.sort == REAL for each in arguments) else arguments[0].sort
    return tuple(fitting(each, sort) for each in arguments)


_MANY = MOST_ARGUMENTS
OPERATORS: dict[str, tuple[int, int, Callable[[str, tuple[Term, ...]], Term]]] = {
    "not": (1, 1, _logical),
    "and": (2, _MANY, _logical),
    "or": (2, _MANY, _logical),
    "xor": (2, _MANY, _logical),
    "=>": (2, _MANY, _logical),
    "=": (2, _MANY, _equal),
    "distinct": (2, _MANY, _equal),
    "ite": (3, 3, _choice),
    "<": (2, _MANY, _order),
    "<=": (2, _MANY, _order),
    ">": (2, _MANY, _order),
    ">=": (2, _MANY, _order),
    "+": (2, _MANY, _sum),
    "-": (1, _MANY, _sum),
    "*": (2, _MANY, _product),
    "/": (2, _MANY, _quotient),
    "div": (2, _MANY, _whole),
    "mod": (2, 2, _whole),
    "abs": (1, 1, _whole),
    "to_real": (1, 1, _converted),
    "to_int": (1, 1, _converted),
}
"""Operators of SMT-LIB 2.6 (theories Core and Reals_Ints) -> the fewest and most arguments, and what makes the term."""
TRUE, FALSE = Term("true", (), BOOL), Term("false", (), BOOL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Whether premises entail a claim; with `is_independence`, whether they entail neither the claim nor its negation.

    `given`, `claimed`: premises and claim as evidence names them. `written`: the text of a term in the layout of the step.
    `doubt`: why a claim that does not follow is not refuted, empty if it is. `covers`: what part of the step the claim is."""

    premises: tuple[Term, ...]
    claim: Term
    given: str
    claimed: str
    written: Callable[[Term], str]
    is_independence: bool = False
    doubt: str = ""
    covers: Covers = Covers.WHOLE
