"""Golden rows for expressions: radicals, constants, complex numbers, polynomials, quotients, identities.

Right forms come from exact arithmetic on integers (squares taken out of roots, products of complex numbers and of polynomials
by their coefficients) or from the laws of powers and logarithms.
"""

import math
import random
from collections.abc import Iterator, Sequence

from tests.graders.golden.rows import Row, row, some

Coefficients = Sequence[int]
"""Of a polynomial, the constant first."""


def expressions(chance: random.Random) -> Iterator[Row]:
    """All rows of this module."""
    for _ in range(18):
        yield _radical(chance)
    for _ in range(9):
        yield _rationalised(chance)
    for _ in range(14):
        yield _of_pi(chance)
    for _ in range(9):
        yield _logarithm(chance)
    for _ in range(14):
        yield _complex(chance)
    for _ in range(22):
        yield _polynomial(chance)
    for _ in range(11):
        yield _quotient(chance)
    for _ in range(9):
        yield _two_letters(chance)
    for _ in range(7):
        yield _power_law(chance)


def times(left: Coefficients, right: Coefficients) -> list[int]:
    """The product of two polynomials."""
    product = [0] * (len(left) + len(right) - 1)
    for i, a in enumerate(left):
        for j, b in enumerate(right):
            product[i + j] += a * b
    return product


def polynomial(coefficients: Coefficients, letter: str = "x", *, ascending: bool = False) -> str:
    """The terms that are not 0; highest power first unless `ascending`."""
    text = ""
    order = range(len(coefficients)) if ascending else reversed(range(len(coefficients)))
    for power in order:
        c = coefficients[power]
        if not c:
            continue
        size = "" if abs(c) == 1 and power else str(abs(c))
        term = size + (
            ""
            if power == 0
            else letter
            if power == 1
            else f"{letter}^{power}"
            if power < 10
            else f"{letter}^{{{power}}}"
        )
        text += ("-" if c < 0 else "+" if text else "") + term
    return text or "0"


def _root(outside: int, inside: int) -> str:
    return f"{'' if outside == 1 else outside}\\sqrt{{{inside}}}"


def _radical(chance: random.Random) -> Row:
    inside = chance.choice((2, 3, 5, 6, 7, 10, 11, 13, 14, 15, 17, 19, 21))
    a = chance.randrange(2, 14)
    gold = _root(a, inside)
    near = math.sqrt(inside) * a
    right = [
        f"\\sqrt{{{a * a * inside}}}",
        f"{a}*sqrt({inside})",
        f"{a} \\cdot \\sqrt{{{inside}}}",
        f"{a}\\sqrt {inside}" if inside < 10 else f"{a} \\sqrt{{{inside}}}",
        f"{a}√{inside}",
        f"\\sqrt{{{inside}}}\\cdot {a}",
        f"\\frac{{{a * inside}}}{{\\sqrt{{{inside}}}}}",
        f"{a} \\cdot {inside}^{{1/2}}",
        f"\\left({a * a * inside}\\right)^{{\\frac{{1}}{{2}}}}",
        f"{_root(a - 1, inside)} + \\sqrt{{{inside}}}",
        f"x = {gold}",
        f"sqrt({a * a * inside})",
    ]
    wrong = [
        f"\\sqrt{{{a * inside}}}",
        f"{a}\\sqrt{{{inside + 1}}}",
        _root(a + 1, inside),
        f"-{gold}",
        f"{near:.2f}",
        f"{near:.4f}",
        f"{a}\\sqrt[3]{{{inside}}}",
        f"{a * inside}",
        f"{a}+\\sqrt{{{inside}}}",
        f"\\sqrt{{{a * a * inside + 1}}}",
        f"\\frac{{{a}}}{{\\sqrt{{{inside}}}}}",
        f"\\pm {gold}",
    ]
    return row("radical", gold, some(chance, right, 6), some(chance, wrong, 5))


def _rationalised(chance: random.Random) -> Row:
    """1/(sqrt(a) - sqrt(b)) with a - b = d is (sqrt(a) + sqrt(b))/d."""
    b = chance.choice((2, 3, 5, 6, 7, 10, 11, 13))
    d = chance.randrange(2, 7)
    a = b + d
    while math.isqrt(a) ** 2 == a:
        d += 1
        a = b + d
    gold = f"\\frac{{\\sqrt{{{a}}}+\\sqrt{{{b}}}}}{{{d}}}"
    right = [
        f"\\frac{{1}}{{\\sqrt{{{a}}}-\\sqrt{{{b}}}}}",
        f"\\frac{{\\sqrt{{{b}}}+\\sqrt{{{a}}}}}{{{d}}}",
        f"\\frac{{\\sqrt{{{a}}}}}{{{d}}}+\\frac{{\\sqrt{{{b}}}}}{{{d}}}",
        f"(\\sqrt{{{a}}}+\\sqrt{{{b}}})/{d}",
        f"\\frac{{1}}{{{d}}}(\\sqrt{{{a}}}+\\sqrt{{{b}}})",
    ]
    wrong = [
        f"\\frac{{1}}{{\\sqrt{{{a}}}+\\sqrt{{{b}}}}}",
        f"\\frac{{\\sqrt{{{a}}}-\\sqrt{{{b}}}}}{{{d}}}",
        f"\\frac{{\\sqrt{{{a + b}}}}}{{{d}}}",
        f"\\frac{{\\sqrt{{{a}}}+\\sqrt{{{b}}}}}{{{d + 1}}}",
        f"\\sqrt{{{a}}}+\\frac{{\\sqrt{{{b}}}}}{{{d}}}",
        f"{(math.sqrt(a) + math.sqrt(b)) / d:.3f}",
    ]
    return row("radical", gold, some(chance, right, 4), some(chance, wrong, 4))


def _of_pi(chance: random.Random) -> Row:
    a, q = chance.randrange(2, 40), chance.choice((1, 1, 2, 3, 4, 6))
    while math.gcd(a, q) > 1:
        a += 1
    gold = f"{a}\\pi" if q == 1 else f"\\frac{{{a}\\pi}}{{{q}}}"
    right = [
        f"{a}\\cdot\\pi/{q}",
        f"\\pi \\cdot \\frac{{{a}}}{{{q}}}",
        f"\\frac{{{2 * a}\\pi}}{{{2 * q}}}",
        f"\\frac{{{a}}}{{{q}}}\\pi",
    ]
    right += [f"{a}π/{q}", f"{a}*pi/{q}", f"\\frac{{{a}}}{{{q}}} \\pi", f"\\dfrac{{{a}\\pi}}{{{q}}}"]
    if q == 1:
        right = [
            f"{a} \\pi",
            f"{a}π",
            f"\\pi \\cdot {a}",
            f"{a}*pi",
            f"{a}pi",
            f"\\frac{{{2 * a}\\pi}}{{2}}",
            f"{a - 1}\\pi+\\pi",
        ]
    value = a * math.pi / q
    wrong = [f"{value:.2f}", f"{value:.5f}", gold.replace("\\pi", "\\pi^2"), gold.replace("\\pi", ""), f"-{gold}"]
    wrong += [
        gold.replace(str(a), str(a + 1), 1),
        gold.replace("\\pi", "e"),
        f"\\frac{{{a}}}{{{q}\\pi}}",
        f"2\\cdot {gold}",
    ]
    return row("constant", gold, some(chance, right, 5), some(chance, wrong, 4))


def _logarithm(chance: random.Random) -> Row:
    base, power = chance.choice((2, 3, 5, 7)), chance.randrange(2, 5)
    if chance.randrange(2):
        gold = f"\\ln {base**power}"
        right = [f"{power}\\ln {base}", f"{power} \\ln({base})", f"\\ln({base}^{power})", f"\\ln({base**power})"]
        right += [f"\\ln {base} + {power - 1}\\ln {base}", f"-\\ln\\frac{{1}}{{{base**power}}}"]
        wrong = [f"{power + 1}\\ln {base}", f"\\ln {base**power + 1}", f"(\\ln {base})^{power}", f"{base}\\ln {power}"]
        wrong += [f"{power * math.log(base):.3f}", f"-{power}\\ln {base}"]
        if base == power:
            wrong.pop(3)
    else:
        gold = str(power)
        right = [
            f"\\log_{{{base}}} {base**power}",
            f"\\log_{base} {base**power}",
            f"\\frac{{\\ln {base**power}}}{{\\ln {base}}}",
        ]
        right += [f"\\ln e^{power}", f"\\log_{{10}} {10**power}", f"-\\log_{base} \\frac{{1}}{{{base**power}}}"]
        wrong = [
            f"\\log_{{{base}}} {base ** (power + 1)}",
            f"\\frac{{\\ln {base}}}{{\\ln {base**power}}}",
            f"\\ln {base**power}",
        ]
        wrong += [f"e^{power}", f"\\log_{{{base}}} {base**power + 1}"]
    return row("logarithm", gold, some(chance, right, 4), some(chance, wrong, 4))


def _complex_text(a: int, b: int, letter: str = "i") -> str:
    if not b:
        return str(a)
    imaginary = f"{'-' if b < 0 else ''}{'' if abs(b) == 1 else abs(b)}{letter}"
    return imaginary if not a else f"{a}{'+' if b > 0 else ''}{imaginary}"


def _complex(chance: random.Random) -> Row:
    a, b, c, d = (chance.randrange(1, 8) * chance.choice((1, -1)) for _ in range(4))
    real, imaginary = a * c - b * d, a * d + b * c
    if not real or not imaginary:
        return _complex(chance)
    gold = _complex_text(real, imaginary)
    norm = c * c + d * d
    right = [
        f"({_complex_text(a, b)})({_complex_text(c, d)})",
        f"{_complex_text(0, imaginary)}{'+' if real > 0 else ''}{real}",
        f"{real} {'+' if imaginary > 0 else '-'} {abs(imaginary)} i",
        f"({real}) + ({imaginary})i",
        gold.replace("i", "\\mathrm{i}"),
        f"\\frac{{{_complex_text(real * norm, imaginary * norm)}}}{{{norm}}}",
        f"z = {gold}",
    ]
    wrong = [
        _complex_text(real, -imaginary),
        _complex_text(-real, imaginary),
        _complex_text(real + 1, imaginary),
        _complex_text(real, imaginary + 1) if imaginary != -1 else str(real),
        f"({real}, {imaginary})",
        str(real),
        str(real * real + imaginary * imaginary),
        f"({_complex_text(a, b)})({_complex_text(c, d + 1)})",
        f"{real}{'+' if imaginary > 0 else ''}{imaginary}",
    ]
    if real != imaginary:
        wrong.append(_complex_text(imaginary, real))
    return row("complex", gold, some(chance, right, 5), some(chance, wrong, 4))


def _linear(root: int, factor: int = 1) -> list[int]:
    return [-root * factor, factor]


def _polynomial(chance: random.Random) -> Row:
    letter = chance.choice("xxxtynak")
    roots = [chance.randrange(-7, 8) for _ in range(chance.choice((2, 2, 3)))]
    lead = chance.choice((1, 1, 2, 3, -1))
    whole: list[int] = [lead]
    for root in roots:
        whole = times(whole, _linear(root))
    power = chance.randrange(len(whole))
    changed, flipped = list(whole), list(whole)
    changed[power] += chance.choice((1, -1, 2))
    flipped[power] = -flipped[power] if flipped[power] else 1
    factors = "".join(f"({polynomial(_linear(root), letter)})" for root in roots)
    front = {1: "", -1: "-"}.get(lead, str(lead))
    expanded = polynomial(whole, letter)
    right = [
        front + factors,
        polynomial(whole, letter, ascending=True),
        expanded.replace("+", " + ").replace("-", " - ").strip(),
        f"({polynomial(times([lead], _linear(roots[0])), letter)})"
        + "".join(f"({polynomial(_linear(r), letter)})" for r in roots[1:]),
        f"f({letter}) = {expanded}",
        f"\\left({expanded}\\right)",
        f"-({polynomial([-c for c in whole], letter)})",
        f"\\frac{{{polynomial([2 * c for c in whole], letter)}}}{{2}}",
    ]
    wrong = [
        polynomial(changed, letter),
        polynomial(flipped, letter),
        polynomial([-c for c in whole], letter),
        f"{front}({polynomial(_linear(roots[0] + 1), letter)})"
        + "".join(f"({polynomial(_linear(r), letter)})" for r in roots[1:]),
        polynomial(whole, "z"),
        polynomial([0, *whole], letter),
        str(sum(whole)),
        f"{expanded}+C",
    ]
    gold, swapped = (expanded, False) if chance.randrange(3) else (front + factors, True)
    right = [expanded if swapped and form == gold else form for form in right]
    return row("polynomial", gold, some(chance, right, 5), some(chance, [w for w in wrong if w != gold], 4))


def _quotient(chance: random.Random) -> Row:
    """a/(x+b) + c/(x+d) over its common denominator."""
    a, c = chance.randrange(1, 8), chance.randrange(1, 8)
    b, d = chance.randrange(1, 9), chance.randrange(1, 9)
    if b == d:
        return _quotient(chance)
    top = polynomial([a * d + c * b, a + c])
    bottom = times([b, 1], [d, 1])
    gold = f"\\frac{{{a}}}{{x+{b}}}+\\frac{{{c}}}{{x+{d}}}"
    right = [
        f"\\frac{{{top}}}{{{polynomial(bottom)}}}",
        f"\\frac{{{top}}}{{(x+{b})(x+{d})}}",
        f"\\frac{{{c}}}{{x+{d}}}+\\frac{{{a}}}{{x+{b}}}",
        f"\\frac{{{a}(x+{d})+{c}(x+{b})}}{{(x+{b})(x+{d})}}",
        f"({top})/((x+{b})(x+{d}))",
        f"{a}/(x+{b}) + {c}/(x+{d})",
    ]
    wrong = [
        f"\\frac{{{a + c}}}{{2x+{b + d}}}",
        f"\\frac{{{top}}}{{x^2+{b * d}}}",
        f"\\frac{{{polynomial([a * d + c * b + 1, a + c])}}}{{{polynomial(bottom)}}}",
        f"\\frac{{{a}}}{{x+{b}}}-\\frac{{{c}}}{{x+{d}}}",
        f"\\frac{{{a}}}{{x-{b}}}+\\frac{{{c}}}{{x+{d}}}",
        f"\\frac{{{polynomial(bottom)}}}{{{top}}}",
        f"\\frac{{{a * c}}}{{(x+{b})(x+{d})}}",
    ]
    return row("quotient", gold, some(chance, right, 4), some(chance, wrong, 4))


def _two_letters(chance: random.Random) -> Row:
    first, second = chance.choice((("a", "b"), ("x", "y"), ("m", "n"), ("p", "q")))
    s, t = chance.randrange(2, 6), chance.randrange(2, 6)
    gold = f"{s * s}{first}^2-{t * t}{second}^2"
    right = [
        f"({s}{first}-{t}{second})({s}{first}+{t}{second})",
        f"-{t * t}{second}^2+{s * s}{first}^2",
        f"({s}{first})^2-({t}{second})^2",
        f"{s * s}{first}^{{2}} - {t * t}{second}^{{2}}",
        f"({s}{first}+{t}{second})^2 - {2 * t}{second}({s}{first}+{t}{second})",
    ]
    wrong = [
        f"({s}{first}-{t}{second})^2",
        f"{s * s}{first}^2+{t * t}{second}^2",
        f"{s * s}{second}^2-{t * t}{first}^2",
        f"({s}{first}-{t}{second})({s}{first}+{t + 1}{second})",
        f"{s * s}{first}-{t * t}{second}",
        f"{s}{first}^2-{t}{second}^2",
    ]
    return row("polynomial", gold, some(chance, right, 4), some(chance, wrong, 4))


def _power_law(chance: random.Random) -> Row:
    base, k = chance.choice((2, 3, 5)), chance.randrange(1, 4)
    gold = f"{base}^{{n+{k}}}"
    right = [
        f"{base**k}\\cdot {base}^n",
        f"{base}^{k}\\cdot {base}^{{n}}",
        f"{base}^{{{k}+n}}",
        f"{base}^{{n+{k + 1}}}/{base}",
    ]
    right += [f"\\frac{{{base}^{{2n+{k}}}}}{{{base}^n}}"]
    wrong = [
        f"{base}^{{n-{k}}}",
        f"{base}^n+{base**k}",
        f"{base}^{{{k}n}}" if k > 1 else f"{base}^n",
        f"{base**k}^{{n}}",
    ]
    wrong += [f"{base + 1}^{{n+{k}}}", f"{base}^n+{k}", f"(n+{k})^{base}"]
    if k == 1:
        wrong.remove(f"{base**k}^{{n}}") if f"{base**k}^{{n}}" in wrong else None
    return row("power", gold, some(chance, right, 3), some(chance, wrong, 4))
