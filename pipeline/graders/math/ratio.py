r"""Exact arithmetic with quotients of polynomials with rational coefficients. Pure.

The generators are variables, `\pi`, `e`, `i`, the roots p^(k/n) of primes, and all other terms, each treated as a new variable.
Powers of `i` and of roots are reduced, so equal polynomials have the same terms. Roots of primes are linearly independent over
Q (Besicovitch, J. London Math. Soc. 15, 1940), so polynomials in these generators with different terms are different.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from pipeline.graders.math.limits import MAX_COEFFICIENT_BITS, MAX_EXPANDED_POWER, MAX_TERMS

Coefficient = int | Fraction
Monomial = tuple[tuple[str, Coefficient], ...]
Polynomial = dict[Monomial, Coefficient]

IMAGINARY = "i"
LARGEST_TRIED_PRIME = 997
# A smaller number without a prime factor up to 997 is prime.
SURELY_PRIME = 1_000_000
ROUNDING = 1e-8

_ONE: Polynomial = {(): 1}
_PRIMES = [n for n in range(2, LARGEST_TRIED_PRIME + 1) if all(n % p for p in range(2, math.isqrt(n) + 1))]


class TooLargeError(ArithmeticError):
    """The result has more terms or digits than the limits allow."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """The quotient `top` / `bottom`. Variables may have negative powers. `bottom` is not zero. If it has one term, it is 1."""

    top: Polynomial
    bottom: Polynomial

    def __add__(self, other: "Ratio") -> "Ratio":
        if self.bottom == other.bottom:
            return Ratio(added(self.top, other.top), self.bottom)
        top = added(product(self.top, other.bottom), product(other.top, self.bottom))
        return Ratio(top, product(self.bottom, other.bottom))

    def __neg__(self) -> "Ratio":
        return Ratio({term: -factor for term, factor in self.top.items()}, self.bottom)

    def __sub__(self, other: "Ratio") -> "Ratio":
        return self + -other

    def __mul__(self, other: "Ratio") -> "Ratio":
        return Ratio(product(self.top, other.top), product(self.bottom, other.bottom))

    def __truediv__(self, other: "Ratio") -> "Ratio":
        """The quotient. Raises ZeroDivisionError."""
        if not other.top:
            raise ZeroDivisionError
        if len(other.top) > 1:
            return Ratio(product(self.top, other.bottom), product(self.bottom, other.top))
        ((term, factor),) = other.top.items()
        inverse, scale = _reduced({name: -power for name, power in term})
        top = product(product(self.top, other.bottom), {inverse: Fraction(scale) / factor})
        return Ratio(top, self.bottom)

    def __pow__(self, power: int) -> "Ratio":
        """An integer power by multiplication. Raises TooLargeError and ZeroDivisionError."""
        if power < 0:
            return constant(1) / self**-power
        if power > MAX_EXPANDED_POWER and (len(self.top) > 1 or len(self.bottom) > 1):
            raise TooLargeError
        result = constant(1)
        for bit in f"{power:b}":
            result *= result
            if bit == "1":
                result *= self
        return result

    def rational(self) -> Fraction | None:
        """The value if it is a rational number, else None."""
        if len(self.bottom) == 1 and all(term == () for term in self.top):
            return Fraction(self.top.get((), 0))
        return None

    def names(self) -> set[str]:
        """The names of the generators that occur."""
        return {name for side in (self.top, self.bottom) for term in side for name, _ in term}

    def key(self) -> str:
        """A text that differs for different ratios."""
        return f"{sorted(self.top.items())}/{sorted(self.bottom.items())}"


def constant(value: Coefficient) -> Ratio:
    """A rational number as a `Ratio`."""
    return Ratio({(): value} if value else {}, _ONE)


def generator(name: str) -> Ratio:
    """A variable, or a constant that is treated like one, as a `Ratio`."""
    return Ratio({((name, 1),): 1}, _ONE)


def rational_power(base: Fraction, power: Fraction) -> Ratio | None:
    """The real base^power of a positive base as a product of roots of primes. None if the base cannot be factored quickly.

    Raises TooLargeError.
    """
    exponents: dict[str, Coefficient] = {}
    for number, sign in ((base.numerator, 1), (base.denominator, -1)):
        factors = _factors(number)
        if factors is None:
            return None
        for prime, count in factors.items():
            exponents[str(prime)] = exponents.get(str(prime), 0) + sign * count * power
    if any(abs(Fraction(count)) * int(prime).bit_length() > MAX_COEFFICIENT_BITS for prime, count in exponents.items()):
        raise TooLargeError
    term, factor = _reduced(exponents)
    return Ratio({term: factor}, _ONE)


def evaluate(ratio: Ratio, values: Mapping[str, Any], exact: Callable[[Any], Any]) -> tuple[Any, Any]:
    """The value, in the number type to which `exact` converts rational numbers, and the scale of its rounding error.

    The rounding error is relative to that scale. Raises ArithmeticError.
    """
    top, top_scale = _evaluate(ratio.top, values, exact)
    if len(ratio.bottom) == 1:
        return top, top_scale
    bottom, bottom_scale = _evaluate(ratio.bottom, values, exact)
    value = top / bottom
    return value, top_scale / abs(bottom) + abs(value) * bottom_scale / abs(bottom)


def added(left: Polynomial, right: Polynomial) -> Polynomial:
    """The sum of two polynomials. Raises TooLargeError."""
    result = dict(left)
    for term, factor in right.items():
        result[term] = result.get(term, 0) + factor
    result = {term: factor for term, factor in result.items() if factor}
    if len(result) > MAX_TERMS:
        raise TooLargeError
    return result


def product(left: Polynomial, right: Polynomial) -> Polynomial:
    """The product of two polynomials. Raises TooLargeError."""
    if right == _ONE:
        return left
    if left == _ONE:
        return right
    if len(left) * len(right) > MAX_TERMS:
        raise TooLargeError
    result: Polynomial = {}
    for left_term, left_factor in left.items():
        for right_term, right_factor in right.items():
            term, scale = _joined(left_term, right_term)
            factor = left_factor * right_factor * scale
            if factor.numerator.bit_length() + factor.denominator.bit_length() > MAX_COEFFICIENT_BITS:
                raise TooLargeError
            result[term] = result.get(term, 0) + factor
    return {term: factor for term, factor in result.items() if factor}


def _joined(left: Monomial, right: Monomial) -> tuple[Monomial, Coefficient]:
    if not left or not right:
        return left or right, 1
    powers = dict(left)
    for name, power in right:
        powers[name] = powers.get(name, 0) + power
    return _reduced(powers)


def _reduced(powers: dict[str, Coefficient]) -> tuple[Monomial, Coefficient]:
    """The monomial with powers of `i` below 2 and powers of primes below 1, and the factor that the reduction produces."""
    scale: Coefficient = 1
    for name, power in powers.items():
        if name == IMAGINARY:
            scale *= -1 if power % 4 >= 2 else 1
            powers[name] = power % 2
        elif name[0].isdigit():
            whole = math.floor(power)
            moved: Fraction = Fraction(int(name)) ** whole
            scale *= moved
            powers[name] = power - whole
    return tuple(sorted((name, power) for name, power in powers.items() if power)), scale


def _factors(number: int) -> dict[int, int] | None:
    """The prime factors with their counts, or None if trial division does not find them all."""
    found: dict[int, int] = {}
    for prime in _PRIMES:
        if prime * prime > number:
            break
        while number % prime == 0:
            found[prime] = found.get(prime, 0) + 1
            number //= prime
    root = math.isqrt(number)
    if 1 < number < SURELY_PRIME:
        found[number] = found.get(number, 0) + 1
    elif root * root == number > 1 and root < SURELY_PRIME:
        found[root] = 2
    elif number > 1:
        return None
    return found


def _evaluate(polynomial: Polynomial, values: Mapping[str, Any], exact: Callable[[Any], Any]) -> tuple[Any, Any]:
    total, scale = exact(0), abs(exact(0))
    for term, factor in polynomial.items():
        value = exact(factor)
        for name, power in term:
            base = exact(int(name)) if name[0].isdigit() else values[name]
            value *= base ** (power if isinstance(power, int) else exact(power))
        total += value
        scale += abs(value)
    return total, scale
