r"""Decides whether two equations or inequalities say the same, by their polynomials. Pure and exact.

Each is given as its left side minus its right side. Two equations have the same solutions if one is the other times a factor
that is never zero where both are defined. x = 0 lacks solutions of xy = 0, and \frac{x}{y} = 1 lacks (0,0), a solution of
x = y. But y = \frac{1}{x} is xy = 1, because no solution of xy = 1 has x = 0.

It also decides which equations state a value: x^2 = 4 is to be solved, so it does not state 4, and m+n = 4 may state it.
"""

from pipeline.graders.math.expression import CONSTANTS, ROOT, Expression, expression
from pipeline.graders.math.ratio import ROUNDING, Monomial, Polynomial, TooLargeError, added, generator, product
from pipeline.graders.math.reader import OPAQUE

MAX_DIVISIONS = 8
MAX_REDUCTIONS = 40

_NO_UNKNOWN = f"{OPAQUE}0123456789"
_MINUS_ONE: Polynomial = {(): -1}
_NUMBER: Monomial = ()

# A polynomial in the variables. The coefficients are polynomials in roots and constants, and none is empty.
_Grouped = dict[Monomial, Polynomial]


def same_zeros(left: Expression, right: Expression) -> bool | None:
    """Whether left = 0 and right = 0 have the same solutions. None if it cannot be decided, as for functions.

    False also if a power of a sum is compared with the sum, although (x-1)^2 = 0 has the solutions of x-1 = 0.
    """
    if not (left.canonical and right.canonical):
        return None
    try:
        (zeros, variables, divisors), (others, other_variables, other_divisors) = _equation(left), _equation(right)
        same = variables == other_variables and _are_proportional(zeros, others)
        return same and _same_divisors(divisors, other_divisors)
    except TooLargeError:
        return None


def scale_sign(left: Expression, right: Expression) -> int | None:
    """The sign of the constant c with left = c * right: 1 or -1, 0 if there is no such constant, None if it is unknown."""
    if not (left.canonical and right.canonical):
        return None
    try:
        ours = _grouped(product(left.ratio.top, right.ratio.bottom))
        theirs = _grouped(product(right.ratio.top, left.ratio.bottom))
        related = bool(ours) and _are_proportional(ours, theirs) and _same_divisors(_divisors(left), _divisors(right))
    except TooLargeError:
        return None
    if not related:
        return 0
    quotient = Expression(left.ratio / right.ratio, left.values | right.values).value()
    if quotient is None or abs(quotient[0].imag) > ROUNDING * quotient[1]:
        return None
    return 1 if quotient[0].real > 0 else -1


def unknowns(side: str) -> set[str]:
    """The unknowns of a side of an equation outside of functions: of x+y and 2x, none of \\sin x, |z|, 5+3 and f(2)."""
    read = expression(side)
    names = read.ratio.names() if read else set()
    return {name for name in names if name not in CONSTANTS and (name.startswith(ROOT) or name[0] not in _NO_UNKNOWN)}


def is_to_be_solved(side: str) -> bool:
    """Whether a side that is equated with a number has one unknown, and one term or no divisor: 2x, x^2-x, \\frac{3}{x}.

    Other sides, as m+n and x+\\frac{1}{x}, may be the expression that was asked for.
    """
    names, read = unknowns(side), expression(side)
    if len(names) != 1 or read is None:
        return False
    whole = len(read.ratio.bottom) == 1 and all(power > 0 for term in read.ratio.top for _, power in term)
    return whole or len(read.ratio.top) == 1


def _grouped(polynomial: Polynomial) -> _Grouped:
    grouped: _Grouped = {}
    for term, factor in polynomial.items():
        fixed = tuple(part for part in term if part[0] in CONSTANTS or part[0][0].isdigit())
        free = tuple(part for part in term if part not in fixed)
        grouped.setdefault(free, {})[fixed] = factor
    return grouped


def _equation(side: Expression) -> tuple[_Grouped, set[str], list[_Grouped]]:
    """A polynomial, variables and divisors: the polynomial or one of the variables is zero, but none of the divisors."""
    zeros, powers = _without_variables(_grouped(side.ratio.top))
    divisors = _divisors(side)
    # A divisor of one term is a variable.
    excluded = {term[0][0] for divisor in divisors if len(divisor) == 1 for term in divisor}
    variables = {name for name, power in powers.items() if power > 0} - excluded
    whole = {_shifted(term, dict.fromkeys(variables, 1), 1): factor for term, factor in zeros.items()}
    return zeros, variables, [divisor for divisor in divisors if not _never_both_zero(whole, divisor)]


def _divisors(side: Expression) -> list[_Grouped]:
    """What must not be zero: variables and polynomials without a variable as a factor."""
    found = []
    for divisor in side.divisors:
        rest, powers = _without_variables(_grouped(divisor.top))
        found += [_grouped(generator(name).top) for name in sorted(powers) if powers[name] > 0]
        if set(rest) != {_NUMBER}:
            found.append(rest)
    return found


def _without_variables(polynomial: _Grouped) -> tuple[_Grouped, dict[str, int]]:
    """The polynomial divided by the lowest power of each variable, and these powers."""
    names = {name for term in polynomial for name, _ in term}
    lowest = {name: int(min(dict(term).get(name, 0) for term in polynomial)) for name in names}
    return {_shifted(term, lowest, -1): factor for term, factor in polynomial.items()}, lowest


def _shifted(term: Monomial, by: dict[str, int], sign: int) -> Monomial:
    powers = dict(term)
    moved = {name: powers.get(name, 0) + sign * by.get(name, 0) for name in powers.keys() | by.keys()}
    return tuple(sorted((name, power) for name, power in moved.items() if power))


def _are_proportional(left: _Grouped, right: _Grouped) -> bool:
    """Whether one polynomial is a constant times the other."""
    if left.keys() != right.keys() or not left:
        return not left and not right
    first = min(left)
    return all(product(left[term], right[first]) == product(right[term], left[first]) for term in left)


def _same_divisors(left: list[_Grouped], right: list[_Grouped]) -> bool:
    pairs = (left, right), (right, left)
    return all(any(_are_proportional(one, two) for two in others) for some, others in pairs for one in some)


def _never_both_zero(left: _Grouped, right: _Grouped) -> bool:
    """Whether two polynomials certainly have no common zero, not even a complex one: their remainders reach a number."""
    for _ in range(MAX_DIVISIONS):
        left, right = right, _remainder(left, right)
        if not right or set(right) == {_NUMBER}:
            return bool(right)
    return False


def _remainder(left: _Grouped, right: _Grouped) -> _Grouped:
    """The remainder of a division, times a constant. Raises TooLargeError."""
    names = sorted({name for polynomial in (left, right) for term in polynomial for name, _ in term})

    def order(term: Monomial) -> tuple[int, ...]:
        powers = dict(term)
        return tuple(int(powers.get(name, 0)) for name in names)

    lead = max(right, key=order)
    lowest = order(lead)
    for _ in range(MAX_REDUCTIONS):
        divisible = [term for term in left if all(a >= b for a, b in zip(order(term), lowest, strict=True))]
        if not divisible:
            return left
        highest = max(divisible, key=order)
        factor, quotient = left[highest], {name: int(power) for name, power in lead}
        moved = _shifted(highest, quotient, -1)
        result = {term: product(coefficient, right[lead]) for term, coefficient in left.items()}
        for term, coefficient in right.items():
            at = _shifted(term, {name: int(power) for name, power in moved}, 1)
            result[at] = added(result.get(at, {}), product(_MINUS_ONE, product(factor, coefficient)))
        left = {term: coefficient for term, coefficient in result.items() if coefficient}
    raise TooLargeError
