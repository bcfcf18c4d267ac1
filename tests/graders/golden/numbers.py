"""Golden rows for numbers: integers, decimals, fractions, percent, counts, bases, ratios.

Every form is written together with the exact number that it stands for, so equality of fractions gives the verdict.
"""

import math
import random
from collections.abc import Iterator
from fractions import Fraction

from tests.graders.golden.rows import Form, Row, numeric, row, some

_ONES = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
]  # fmt: skip
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_PARTS = {2: "half", 3: "third", 4: "fourth", 5: "fifth", 6: "sixth", 7: "seventh", 8: "eighth", 10: "tenth"}
_VULGAR = {(1, 2): "½", (1, 3): "⅓", (2, 3): "⅔", (1, 4): "¼", (3, 4): "¾", (1, 5): "⅕", (1, 8): "⅛", (3, 8): "⅜"}


def numbers(chance: random.Random) -> Iterator[Row]:
    """All rows of this module."""
    for _ in range(35):
        yield _integer(chance)
    for _ in range(22):
        yield _decimal(chance)
    for _ in range(30):
        yield _fraction(chance)
    for _ in range(15):
        yield _percent(chance)
    for _ in range(12):
        yield _count(chance)
    for _ in range(9):
        yield _base(chance)
    for _ in range(7):
        yield _ratio(chance)


def fraction_tex(value: Fraction, command: str = "\\frac") -> str:
    """A fraction in lowest terms, or a whole number."""
    if value.denominator == 1:
        return str(value.numerator)
    return f"{'-' if value < 0 else ''}{command}{{{abs(value.numerator)}}}{{{value.denominator}}}"


def decimal_text(value: Fraction) -> str:
    """A decimal that ends, digit for digit. Raises ValueError for one that does not."""
    for places in range(13):
        scaled = value * 10**places
        if scaled.denominator == 1:
            digits = f"{abs(scaled.numerator):0{places + 1}d}"
            text = digits if places == 0 else f"{digits[:-places]}.{digits[-places:]}"
            return f"{'-' if value < 0 else ''}{text}"
    raise ValueError(f"{value} has no short decimal")


def in_words(number: int) -> str:
    """A number below a hundred in English."""
    if number < 20:
        return _ONES[number]
    tens, ones = divmod(number, 10)
    return _TENS[tens - 2] + (f"-{_ONES[ones]}" if ones else "")


def _changed_digit(chance: random.Random, digits: str) -> str:
    place = chance.randrange(len(digits))
    other = str((int(digits[place]) + 1 + chance.randrange(8)) % 10)
    if place == 0 and other == "0":
        other = "9" if digits[0] != "9" else "8"
    return digits[:place] + other + digits[place + 1 :]


def _integer(chance: random.Random) -> Row:
    size = chance.randrange(1, 8)
    n = chance.randrange(max(2, 10 ** (size - 1)), 10**size)
    same = Fraction(n)
    factor = next((d for d in (2, 3, 5, 7, 11, 13) if n % d == 0 and n > d), 1)
    part, times = chance.randrange(1, n), chance.randrange(2, 9)
    zeros = len(str(n)) - len(str(n).rstrip("0"))
    forms = [
        Form(f"{n}.0", same),
        Form(f"+{n}", same),
        Form(f"x={n}", same),
        Form(f"x = {n}.", same),
        Form(f"${n}$", same),
        Form(f"\\({n}\\)", same),
        Form(f"\\boxed{{{n}}}", same),
        Form(f"\\text{{{n}}}", same),
        Form(f"\\mathbf{{{n}}}", same),
        Form(f"**{n}**", same),
        Form(f"{n - part} + {part}", same),
        Form(f"{factor} \\times {n // factor}", same),
        Form(f"\\frac{{{n * times}}}{{{times}}}", same),
        Form(f"{n * times}/{times}", same),
        Form("".join(chr(0xFF10 + int(digit)) for digit in str(n)), same),
        Form(f"\\left({n}\\right)", same),
    ]
    if n > 999:
        forms += [
            Form(text, same)
            for text in (
                f"{n:,}",
                f"{n:,}".replace(",", "{,}"),
                f"{n:,}".replace(",", "\\,"),
                f"{n:,}".replace(",", ",\\!"),
            )
        ]
    if n < 100:
        forms += [Form(in_words(n), same), Form(in_words(n + 1), same + 1), Form(in_words(n).capitalize(), same)]
    if n < 2000:
        forms += [Form(f"\\sqrt{{{n * n}}}", same)]
    if zeros:
        forms += [Form(f"{n // 10**zeros} \\times 10^{{{zeros}}}", same), Form(f"{n // 10**zeros}e{zeros}", same)]
    digits = str(n)
    changed = _changed_digit(chance, digits)
    near = [
        Form(str(n + 1), same + 1),
        Form(str(n - 1), same - 1),
        Form(f"{n}0", same * 10),
        Form(f"-{n}", -same),
        Form(f"{n}.5", same + Fraction(1, 2)),
        Form(f"{n}x", None),
        Form(f"{n}, {n + 1}", None),
        Form(f"{n} or {n + 2}", None),
        Form(f"\\frac{{{n}}}{{{times}}}", same / times),
        Form(f"\\frac{{1}}{{{n}}}", 1 / same),
        Form(f"{n}^2", same**2),
        Form(f"{n}\\pi", None),
        Form(f"\\sqrt{{{n}}}", None),
        Form(f"{n - part} + {part + 1}", same + 1),
        Form(f"{n}!", None if n > 9 else Fraction(math.factorial(n))),
        Form(changed, Fraction(changed)),
        Form(digits[1:] + digits[0], Fraction(digits[1:] + digits[0])),
    ]
    return numeric("integer", Form(str(n), same), some(chance, forms, 7) + some(chance, near, 6))


def _decimal(chance: random.Random) -> Row:
    places = chance.randrange(1, 5)
    scaled = chance.randrange(1, 10 ** (places + chance.randrange(0, 3)))
    value = Fraction(scaled if scaled % 10 else scaled + 1, 10**places) * (-1 if chance.randrange(6) == 0 else 1)
    text = decimal_text(value)
    forms = [
        Form(f"{text}0", value),
        Form(f"{text}00", value),
        Form(f"${text}$", value),
        Form(fraction_tex(value), value),
        Form(fraction_tex(value, "\\dfrac"), value),
        Form(f"{value.numerator}/{value.denominator}", value),
        Form(f"{decimal_text(value * 100)}\\%", value),
        Form(f"{decimal_text(value * 10)} \\times 10^{{-1}}", value),
        Form(f"{decimal_text(value * 1000)}e-3", value),
        Form(f"y = {text}", value),
    ]
    if 0 < value < 1:
        forms.append(Form(text[1:], value))
    near = [
        Form(decimal_text(value * 10), value * 10),
        Form(decimal_text(value / 10), value / 10),
        Form(decimal_text(-value), -value),
        Form(f"{text}1", value + Fraction(1 if value > 0 else -1, 10 ** (places + 1))),
        Form(decimal_text(value + Fraction(1, 10**places)), value + Fraction(1, 10**places)),
        Form(decimal_text(value - Fraction(2, 10**places)), value - Fraction(2, 10**places)),
        Form(fraction_tex(1 / value), 1 / value),
        Form(f"{decimal_text(value * 10)}\\%", value / 10),
        Form(f"{text}x", None),
        Form(f"{text} \\times 10^{{2}}", value * 100),
        Form(text[:-1].rstrip("."), Fraction(text[:-1].rstrip("."))),
    ]
    # The sign % may be left out, so 100 times a percentage is never asked about here.
    return numeric("decimal", Form(text, value), some(chance, forms, 6) + some(chance, near, 5))


def _fraction(chance: random.Random) -> Row:
    q = chance.randrange(2, 60)
    p = next(p for p in iter(lambda: chance.randrange(1, 90), None) if math.gcd(p, q) == 1)
    value = Fraction(p, q) * (-1 if chance.randrange(4) == 0 else 1)
    sign, times = "-" if value < 0 else "", chance.randrange(2, 8)
    forms = [
        Form(fraction_tex(value, "\\dfrac"), value),
        Form(fraction_tex(value, "\\tfrac"), value),
        Form(f"{sign}{p}/{q}", value),
        Form(f"{sign}({p})/({q})", value),
        Form(f"{sign}\\frac{{{p * times}}}{{{q * times}}}", value),
        Form(f"\\frac{{{sign}{p}}}{{{q}}}", value),
        Form(f"{sign}{p} \\div {q}", value),
        Form(f"{sign}\\frac {{{p}}} {{{q}}}", value),
        Form(f"{sign}\\left(\\frac{{{p}}}{{{q}}}\\right)", value),
        Form(f"x = {fraction_tex(value)}", value),
        Form(f"\\displaystyle {fraction_tex(value)}", value),
        Form(f"{fraction_tex(value + 1)} - 1", value),
        Form(f"{sign}{p}\\cdot\\frac{{1}}{{{q}}}", value),
        Form(f"{sign}\\frac{{1}}{{{q}}} \\cdot {p}", value),
        Form(f"{sign}{p} \\cdot {q}^{{-1}}", value),
    ]
    if p > q:
        whole, rest = divmod(p, q)
        forms += [
            Form(f"{sign}{whole}\\frac{{{rest}}}{{{q}}}", value),
            Form(f"{sign}{whole} {rest}/{q}", value),
            Form(
                f"{sign}{whole}\\frac{{{rest + 1}}}{{{q}}}", (whole + Fraction(rest + 1, q)) * (1 if value > 0 else -1)
            ),
        ]
    if set(_primes(q)) <= {2, 5}:
        forms.append(Form(decimal_text(value), value))
    else:
        rounded = Fraction(round(value * 1000), 1000)
        forms += [Form(decimal_text(rounded), rounded), Form(_repeating(value), value)]
    if value > 0 and (p, q) in _VULGAR:
        forms.append(Form(_VULGAR[p, q], value))
    if value > 0 and p < 10 and q in _PARTS and p < q:
        forms.append(Form(f"{_ONES[p]} {_PARTS[q]}{'s' if p > 1 else ''}", value))
    near = [
        Form(fraction_tex(1 / value), 1 / value),
        Form(fraction_tex(-value), -value),
        Form(f"{sign}\\frac{{{p + 1}}}{{{q}}}", Fraction(p + 1, q) * (-1 if sign else 1)),
        Form(f"{sign}\\frac{{{p}}}{{{q + 1}}}", Fraction(p, q + 1) * (-1 if sign else 1)),
        Form(f"{sign}\\frac{{{p * times}}}{{{q}}}", value * times),
        Form(f"\\frac{{{sign}{p}}}{{-{q}}}", -value),
        Form(f"{sign}{p}", value * q),
        Form(f"{sign}{p}.{q}", Fraction(f"{sign}{p}.{q}")),
        Form(f"{sign}\\frac{{{p}}}{{{q}x}}", None),
        Form(f"({sign}{p}, {q})", None),
        Form(f"{sign}\\sqrt{{\\frac{{{p}}}{{{q}}}}}", None),
    ]
    return numeric("fraction", Form(fraction_tex(value), value), some(chance, forms, 8) + some(chance, near, 5))


def _primes(number: int) -> list[int]:
    return [d for d in range(2, number + 1) if number % d == 0 and all(d % e for e in range(2, d))]


def _repeating(value: Fraction) -> str:
    """The decimal with its period under a bar, by long division."""
    whole, rest = divmod(abs(value.numerator), value.denominator)
    digits, seen = "", dict[int, int]()
    while rest and rest not in seen:
        seen[rest] = len(digits)
        digit, rest = divmod(rest * 10, value.denominator)
        digits += str(digit)
    start = seen[rest]
    return f"{'-' if value < 0 else ''}{whole}.{digits[:start]}\\overline{{{digits[start:]}}}"


def _percent(chance: random.Random) -> Row:
    value = Fraction(chance.randrange(3, 400), chance.choice((1, 1, 1, 2, 4, 10)))
    if value == 50:
        value += 1
    text = decimal_text(value)
    forms = [f"{text}%", f"{text} \\%", f"${text}\\%$", f"{text} percent", f"{text}\\text{{ percent}}", text]
    forms += [
        decimal_text(value / 100),
        fraction_tex(value / 100),
        f"{text}0\\%" if "." in text else f"{text}.0\\%",
        f"{text}％",
    ]
    near = [
        f"{decimal_text(value + 1)}\\%",
        f"{decimal_text(value * 10)}\\%",
        f"{decimal_text(value / 10)}\\%",
        f"-{text}\\%",
        f"{decimal_text(value / 100)}\\%",
        decimal_text(value / 1000),
        decimal_text(value / 100 + 1),
        f"{decimal_text(abs(100 - value))}\\%",
        decimal_text(value + Fraction(1, 2)),
    ]
    return row("percent", f"{text}\\%", some(chance, forms, 6), some(chance, near, 4))


def _count(chance: random.Random) -> Row:
    n = chance.randrange(4, 11)
    k = chance.randrange(2, n - 1)
    chosen, ordered, all_orders = math.comb(n, k), math.perm(n, k), math.factorial(n)
    if chance.randrange(2):
        value = Fraction(chosen)
        forms = [
            Form(f"\\binom{{{n}}}{{{k}}}", value),
            Form(f"\\dbinom{{{n}}}{{{n - k}}}", value),
            Form(f"\\frac{{{n}!}}{{{k}!{n - k}!}}", value),
            Form(f"\\frac{{{n}!}}{{{k}!\\cdot {n - k}!}}", value),
            Form(f"{{{n} \\choose {k}}}", value),
            Form(f"\\binom{{{n - 1}}}{{{k - 1}}}+\\binom{{{n - 1}}}{{{k}}}", value),
        ]
    else:
        value = Fraction(ordered)
        forms = [Form(f"\\frac{{{n}!}}{{{n - k}!}}", value), Form(f"{n}!/{n - k}!", value)]
        forms += [Form(f"\\binom{{{n}}}{{{k}}}\\cdot {k}!", value)]
        forms += [Form(" \\cdot ".join(str(n - i) for i in range(k)), value)]
    near = [
        Form(f"\\binom{{{n}}}{{{k + 1}}}", Fraction(math.comb(n, k + 1))),
        Form(f"\\binom{{{n + 1}}}{{{k}}}", Fraction(math.comb(n + 1, k))),
        Form(f"{n}!", Fraction(all_orders)),
        Form(f"\\frac{{{n}!}}{{{k}!}}", Fraction(all_orders, math.factorial(k))),
        Form(f"{n}^{{{k}}}", Fraction(n**k)),
        Form(f"{k}^{{{n}}}", Fraction(k**n)),
    ]
    return numeric("count", Form(decimal_text(value), value), some(chance, forms, 4) + some(chance, near, 3))


def _base(chance: random.Random) -> Row:
    base = chance.randrange(2, 10)
    number = chance.randrange(base**2, base**5)
    digits, rest = "", number
    while rest:
        rest, digit = divmod(rest, base)
        digits = str(digit) + digits
    changed = digits[:-1] + str((int(digits[-1]) + 1) % base)
    right = [
        f"{digits}_{base}",
        f"{digits}_{{{base}}}",
        digits,
        f"{digits} \\text{{ (base {base})}}",
        f"{digits} in base {base}",
    ]
    wrong = [
        f"{changed}_{{{base}}}",
        changed,
        f"{digits}_{{{base + 1}}}",
        f"{digits}0_{{{base}}}",
        f"1{digits}_{{{base}}}",
    ]
    return row("base", f"{digits}_{{{base}}}", some(chance, right, 4), some(chance, wrong, 3))


def _ratio(chance: random.Random) -> Row:
    a, b = 1, 1
    # 2:25 is a time of day, too: such a one is among the gaps.
    while math.gcd(a, b) > 1 or a == b or (a < 25 and 9 < b < 60):
        a, b = chance.randrange(1, 60), chance.randrange(2, 30)
    times = chance.randrange(2, 5)
    right = [f"{a} : {b}", f"{a} to {b}", f"{a * times}:{b * times}", f"\\frac{{{a}}}{{{b}}}", f"{a}/{b}", f"${a}:{b}$"]
    wrong = [
        f"{b}:{a}",
        f"{a + 1}:{b}",
        f"{a}:{b + 1}",
        f"{a}:{b}:{a}",
        f"\\frac{{{b}}}{{{a}}}",
        f"{a}:{a + b}",
        f"{a}{b}",
    ]
    return row("ratio", f"{a}:{b}", some(chance, right, 4), some(chance, wrong, 3))
