"""Word problems and exercises with their solutions, right ones and ones with a slip; in our own words.

A story is arithmetic that is done here, so the answer that each solution ends with is known.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from tests.graders.golden.numbers import decimal_text, fraction_tex

_NAMES = [
    "Ada", "Bo", "Chen", "Dora", "Emil", "Femi", "Goran", "Hana", "Ines", "Jonas", "Kemi", "Lev", "Mira", "Nils",
    "Olga", "Pavel", "Rosa", "Sven", "Tara", "Uma",
]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """The steps of a solution and the answer that they lead to, in plain text and in LaTeX; `thing`: what it counts."""

    steps: tuple[str, ...]
    plain: str
    tex: str
    thing: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """The solution, and solutions with a slip that end with another answer."""

    good: Solution
    slips: tuple[Solution, ...]


def _whole(steps: Sequence[str], answer: int, thing: str) -> Solution:
    return Solution(steps=tuple(steps), plain=str(answer), tex=str(answer), thing=thing)


def _two(chance: random.Random) -> tuple[str, str]:
    first = chance.choice(_NAMES)
    return first, chance.choice([name for name in _NAMES if name != first])


def _baskets(chance: random.Random) -> Story:
    name, _ = _two(chance)
    n, each, eaten = chance.randrange(3, 15), chance.randrange(4, 30), chance.randrange(2, 11)

    def solved(total: int, left: int) -> Solution:
        steps = [
            f"{name} fills {n} baskets with {each} pears each: {n} * {each} = {total}.",
            f"After {eaten} are eaten, {total} - {eaten} = {left} are left.",
        ]
        return _whole(steps, left, "pears")

    right = n * each
    return Story(
        good=solved(right, right - eaten),
        slips=(
            solved(right + 10, right + 10 - eaten),
            solved(right, right + eaten),
            solved(n + each, n + each - eaten),
        ),
    )


def _wages(chance: random.Random) -> Story:
    name, _ = _two(chance)
    hours, rate, extra = chance.randrange(3, 40), chance.randrange(9, 36), chance.randrange(10, 95)

    def solved(pay: int, total: int) -> Solution:
        steps = [
            f"Pay for {hours} hours at ${rate}: {hours} × {rate} = ${pay}.",
            f"With the bonus of ${extra}, {name} gets {pay} + {extra} = ${total}.",
        ]
        return _whole(steps, total, "dollars")

    pay = hours * rate
    return Story(
        good=solved(pay, pay + extra),
        slips=(solved(pay, pay - extra), solved(pay - rate, pay - rate + extra), solved(pay, pay)),
    )


def _trip(chance: random.Random) -> Story:
    speed, hours, second = chance.randrange(30, 110, 5), chance.randrange(2, 7), chance.randrange(20, 95, 5)

    def solved(first: int, total: int) -> Solution:
        steps = [
            f"In {hours} hours at {speed} km/h the bus covers {speed} * {hours} = {first} km.",
            f"One more hour at {second} km/h makes {first} + {second} = {total} km.",
        ]
        return _whole(steps, total, "kilometers")

    first = speed * hours
    return Story(
        good=solved(first, first + second),
        slips=(solved(first + 100, first + 100 + second), solved(first, first - second)),
    )


def _shares(chance: random.Random) -> Story:
    a, b = _two(chance)
    parts, size, more = chance.randrange(2, 7), chance.randrange(5, 40), chance.randrange(3, 20)
    total = parts * size

    def solved(share: int, end: int) -> Solution:
        steps = [
            f"{total} stickers among {parts} children are {total}/{parts} = {share} each.",
            f"{a} gets {more} more from {b}, so {share} + {more} = {end}.",
        ]
        return _whole(steps, end, "stickers")

    return Story(
        good=solved(size, size + more),
        slips=(solved(size, size - more), solved(size + 1, size + 1 + more), solved(size, total + more)),
    )


def _sale(chance: random.Random) -> Story:
    price, off = chance.randrange(20, 400, 4), chance.choice((10, 20, 25, 30, 50, 75))
    cut = Fraction(price * off, 100)

    def solved(cut: Fraction, end: Fraction) -> Solution:
        steps = (
            f"{off}% of {price} is {decimal_text(cut)}.",
            f"The price becomes {price} - {decimal_text(cut)} = {decimal_text(end)}.",
        )
        return Solution(steps=steps, plain=decimal_text(end), tex=decimal_text(end), thing="dollars")

    return Story(
        good=solved(cut, price - cut),
        slips=(solved(cut, price + cut), solved(cut, cut), solved(cut / 10, price - cut / 10)),
    )


def _chance_of(chance: random.Random) -> Story:
    red, blue = chance.randrange(2, 12), chance.randrange(3, 15)
    both = Fraction(red * (red - 1), (red + blue) * (red + blue - 1))
    with_return = Fraction(red * red, (red + blue) ** 2)

    def solved(second: str, value: Fraction) -> Solution:
        steps = (
            f"The first ball is red with probability \\(\\frac{{{red}}}{{{red + blue}}}\\).",
            f"The second one is red with probability \\(\\frac{{{second}}}\\), and the product is \\({fraction_tex(value)}\\).",
        )
        return Solution(steps=steps, plain=f"{value.numerator}/{value.denominator}", tex=fraction_tex(value))

    return Story(
        good=solved(f"{red - 1}}}{{{red + blue - 1}", both),
        slips=(solved(f"{red}}}{{{red + blue}", with_return), solved(f"{red - 1}}}{{{red + blue - 1}", both / 2)),
    )


def _roots(chance: random.Random) -> Story:
    p, q = chance.randrange(1, 9), chance.randrange(-9, 0)
    middle, last = -(p + q), p * q

    def solved(first: int, second: int) -> Solution:
        sign = "+" if middle >= 0 else "-"
        steps = (
            f"We solve $x^2 {sign} {abs(middle)}x - {-last} = 0$.",
            f"It factors with roots $x = {first}$ and $x = {second}$.",
        )
        return Solution(steps=steps, plain=f"{first}, {second}", tex=f"{first}, {second}")

    return Story(good=solved(p, q), slips=(solved(-p, q), solved(p, q - 1), solved(p + 1, q)))


def _slope(chance: random.Random) -> Story:
    a, n, b = chance.randrange(2, 9), chance.randrange(3, 7), chance.randrange(1, 12)

    def solved(factor: int, power: int, rest: int) -> Solution:
        tex = f"{factor}x^{{{power}}}" + (f" + {rest}" if rest else "")
        steps = (f"We differentiate $f(x) = {a}x^{{{n}}} + {b}x$ term by term.", f"The power rule gives ${tex}$.")
        return Solution(steps=steps, plain=tex, tex=tex)

    return Story(
        good=solved(a * n, n - 1, b), slips=(solved(a * n, n, b), solved(a, n - 1, b), solved(a * n, n - 1, 0))
    )


def _distance(chance: random.Random) -> Story:
    inside, k = chance.choice((2, 3, 5, 6, 7, 10)), chance.randrange(2, 9)

    def solved(outside: int, root: int) -> Solution:
        tex = f"{outside}\\sqrt{{{root}}}"
        steps = (
            f"The squared length is ${k * k * inside}$.",
            f"Since ${k * k * inside} = {k}^2 \\cdot {inside}$, the length is ${tex}$.",
        )
        return Solution(steps=steps, plain=tex, tex=tex)

    return Story(
        good=solved(k, inside), slips=(solved(inside, k * k + 1), solved(k + 1, inside), solved(k * k, inside))
    )


def _point(chance: random.Random) -> Story:
    x, y = chance.randrange(-9, 10), chance.randrange(1, 12)

    def solved(a: int, b: int) -> Solution:
        steps = (
            f"Adding the equations $x + y = {x + y}$ and $x - y = {x - y}$ gives $2x = {2 * x}$.",
            f"So $x = {a}$ and $y = {b}$.",
        )
        return Solution(steps=steps, plain=f"({a}, {b})", tex=f"({a},{b})")

    return Story(
        good=solved(x, y), slips=(solved(x, -y), solved(y, x) if x != y else solved(x, y + 1), solved(x + 1, y))
    )


def _range(chance: random.Random) -> Story:
    low, high = chance.randrange(-8, 1), chance.randrange(2, 12)

    def solved(text: str) -> Solution:
        steps = (
            f"We need $(x - {high})(x + {-low}) \\le 0$.",
            "The product is not positive between the roots, ends included.",
        )
        return Solution(steps=steps, plain=text, tex=text)

    return Story(
        good=solved(f"[{low}, {high}]"),
        slips=(
            solved(f"({low}, {high})"),
            solved(f"[{low}, {high})"),
            solved(f"[{-high}, {-low}]"),
            solved(f"(-\\infty, {low}]"),
        ),
    )


def _option(chance: random.Random) -> Story:
    value, letter = chance.randrange(5, 60), chance.choice("ABCDE")

    def solved(mark: str, number: int) -> Solution:
        steps = (f"Both sides are halved, so x = {2 * number}/2 = {number}.", f"That is what choice {mark} says.")
        return Solution(steps=steps, plain=mark, tex=f"\\text{{({mark})}}")

    others = [mark for mark in "ABCDE" if mark != letter]
    return Story(good=solved(letter, value), slips=tuple(solved(mark, value + 1) for mark in others[:3]))


STORIES: tuple[Callable[[random.Random], Story], ...] = (
    _baskets, _wages, _chance_of, _trip, _roots, _shares, _slope, _sale, _distance, _point, _range, _option,
)  # fmt: skip
