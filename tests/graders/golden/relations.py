"""Golden rows for intervals, inequalities, equations and systems of them."""

import random
from collections.abc import Iterator

from tests.graders.golden.expressions import polynomial
from tests.graders.golden.rows import Row, row, some
from tests.graders.golden.several import distinct, signed


def relations(chance: random.Random) -> Iterator[Row]:
    """All rows of this module."""
    for make, count in (
        (_interval, 15),
        (_union, 9),
        (_inequality, 9),
        (_line, 14),
        (_circle, 6),
        (_assigned, 9),
        (_system, 6),
    ):
        for _ in range(count):
            yield make(chance)


def _interval(chance: random.Random) -> Row:
    low, high = sorted(distinct(chance, 2, 15))
    left, right_mark = chance.choice("[("), chance.choice("])")
    shape = chance.randrange(4)
    flip = {"[": "(", "(": "[", "]": ")", ")": "]"}
    signs = {"[": "\\le", "(": "<", "]": "\\le", ")": "<"}
    words = {"[": "\\geq", "(": ">"}
    if shape < 2:
        gold = f"{left}{low},{high}{right_mark}"
        right = [
            f"{left}{low}, {high}{right_mark}",
            f"\\left{left}{low},{high}\\right{right_mark}",
            f"{low} {signs[left]} x {signs[right_mark]} {high}",
            f"x \\in {left}{low}, {high}{right_mark}",
            f"${gold}$",
            f"\\{{x : {low} {signs[left]} x {signs[right_mark]} {high}\\}}",
        ]
        wrong = [
            f"{flip[left]}{low},{high}{right_mark}",
            f"{left}{low},{high}{flip[right_mark]}",
            f"{left}{low},{high + 1}{right_mark}",
            f"{left}{low - 1},{high}{right_mark}",
            f"{left}{-high},{-low}{right_mark}" if low != -high else f"{left}{low},{high + 2}{right_mark}",
            f"{left}{low},\\infty)",
            f"\\{{{low},{high}\\}}",
            f"(-\\infty,{low}) \\cup ({high},\\infty)",
        ]
    elif shape == 2:
        gold = f"{left}{low},\\infty)"
        right = [
            f"x {words[left]} {low}",
            f"{left}{low}, +\\infty)",
            f"{low} {signs[left]} x",
            f"\\left{left}{low}, \\infty\\right)",
            f"{left}{low}, ∞)",
        ]
        right += [f"x \\in {left}{low},\\infty)"]
        wrong = [
            f"{flip[left]}{low},\\infty)",
            f"{left}{low + 1},\\infty)",
            f"(-\\infty,{low})",
            f"x < {low}",
            f"{left}{low},{high}]",
            str(low),
        ]
    else:
        gold = f"(-\\infty,{high}{right_mark}"
        right = [
            f"x {signs[right_mark]} {high}",
            f"(-\\infty, {high}{right_mark}",
            f"\\left(-\\infty,{high}\\right{right_mark}",
            f"(-∞,{high}{right_mark}",
        ]
        right += [f"x \\in (-\\infty, {high}{right_mark}"]
        wrong = [
            f"(-\\infty,{high}{flip[right_mark]}",
            f"(-\\infty,{high - 1}{right_mark}",
            f"x > {high}",
            f"({high},\\infty)",
            f"(\\infty,{high}{right_mark}",
        ]
    return row("interval", gold, some(chance, right, 4), some(chance, wrong, 4))


def _union(chance: random.Random) -> Row:
    a, b = sorted(distinct(chance, 2, 12))
    inner, close = chance.choice(((")", "("), ("]", "[")))
    below, above = ("<", ">") if inner == ")" else ("\\le", "\\ge")
    gold = f"(-\\infty,{a}{inner} \\cup {close}{b},\\infty)"
    right = [
        f"{close}{b},\\infty) \\cup (-\\infty,{a}{inner}",
        f"(-\\infty, {a}{inner}\\cup{close}{b}, \\infty)",
        f"x {below} {a} \\text{{ or }} x {above} {b}",
        f"x \\in (-\\infty,{a}{inner} \\cup {close}{b},\\infty)",
        f"(-∞,{a}{inner} ∪ {close}{b},∞)",
        f"\\left(-\\infty,{a}\\right{inner} \\cup \\left{close}{b},\\infty\\right)",
    ]
    wrong = [
        f"{close}{a},{b}{inner}",
        f"(-\\infty,{a}{inner}",
        f"{close}{b},\\infty)",
        f"(-\\infty,{a}{inner} \\cup {close}{b + 1},\\infty)",
        f"(-\\infty,{a}{']' if inner == ')' else ')'} \\cup {close}{b},\\infty)",
        f"(-\\infty,{b}{inner} \\cup {close}{b + 3},\\infty)",
        f"(-\\infty,{a}{inner} \\cap {close}{b},\\infty)",
        f"{a} < x < {b}",
        "(-\\infty,\\infty)",
    ]
    return row("union", gold, some(chance, right, 4), some(chance, wrong, 4))


def _inequality(chance: random.Random) -> Row:
    letter, bound, factor = chance.choice("xyn"), signed(chance, 15), chance.randrange(2, 6)
    sign, back, other = chance.choice(
        (("<", ">", "\\le"), (">", "<", "\\ge"), ("\\le", "\\ge", "<"), ("\\ge", "\\le", ">"))
    )
    gold = f"{letter} {sign} {bound}"
    right = [
        f"{bound} {back} {letter}",
        f"{factor}{letter} {sign} {factor * bound}",
        f"-{letter} {back} {-bound}",
        f"{letter} {sign.replace('le', 'leq').replace('ge', 'geq')} {bound}",
        f"${letter}{sign} {bound}$",
        f"{letter} {sign} {bound}.0",
    ]
    wrong = [
        f"{letter} {back} {bound}",
        f"{letter} {other} {bound}",
        f"{letter} {sign} {bound + 1}",
        f"{letter} = {bound}",
    ]
    wrong += [f"{letter} {sign} {-bound}", str(bound), f"{letter} \\ne {bound}", f"-{letter} {sign} {-bound}"]
    return row("inequality", gold, some(chance, right, 4), some(chance, wrong, 4))


def _line(chance: random.Random) -> Row:
    m, c, k = signed(chance, 9), signed(chance, 12), chance.randrange(2, 5)
    slope = polynomial([c, m])
    gold = f"y = {slope}"
    right = [
        f"y={polynomial([c, m], ascending=True)}",
        slope,
        f"{slope} = y",
        f"y - ({polynomial([0, m])}) = {c}",
        f"{polynomial([c, m])} - y = 0",
        f"{k}y = {polynomial([k * c, k * m])}",
        f"f(x) = {slope}",
        f"-y = {polynomial([-c, -m])}",
    ]
    wrong = [
        f"y = {polynomial([-c, m])}",
        f"y = {polynomial([c, -m])}",
        f"y = {polynomial([c + 1, m])}",
        f"y = {polynomial([m, c])}" if m != c else f"y = {polynomial([c + 2, m])}",
        f"y = {polynomial([c, m + 10])}",
        f"x = {polynomial([c, m], 'y')}" if (m, c) != (1, 0) else "x = 99",
        f"y = {polynomial([0, m])}",
        f"{k}y = {slope}",
        f"y > {slope}",
    ]
    if m == -1:
        wrong.pop(5)
    return row("equation", gold, some(chance, right, 5), some(chance, wrong, 4))


def _circle(chance: random.Random) -> Row:
    a, b, r = signed(chance, 7), signed(chance, 7), chance.randrange(2, 9)
    first = f"(x{'-' if a > 0 else '+'}{abs(a)})^2"
    second = f"(y{'-' if b > 0 else '+'}{abs(b)})^2"
    gold = f"{first}+{second}={r * r}"
    rest = a * a + b * b - r * r
    minus = polynomial([0, -2 * a]), polynomial([0, -2 * b], "y")
    plain = (
        f"x^2+y^2{'' if minus[0].startswith('-') else '+'}{minus[0]}{'' if minus[1].startswith('-') else '+'}{minus[1]}"
    )
    right = [
        f"{second}+{first}={r * r}",
        f"{r * r}={first}+{second}",
        f"{first} = {r * r} - {second}",
        f"{first}+{second}-{r * r}=0",
    ]
    right += [f"{plain}{'' if rest < 0 else '+'}{rest}=0" if rest else f"{plain}=0"]
    wrong = [
        f"{first}+{second}={r}",
        f"{first}-{second}={r * r}",
        f"{first.replace('-', '?').replace('+', '-').replace('?', '+')}+{second}={r * r}",
        f"{first}+{second}={r * r + 1}",
        f"x^2+y^2={r * r}",
        f"{plain}={r * r}" if r * r != -rest else f"{plain}=1",
    ]
    return row("equation", gold, some(chance, right, 3), some(chance, wrong, 4))


def _assigned(chance: random.Random) -> Row:
    letter, other, n = chance.choice("xntkz"), chance.choice("yqw"), signed(chance, 60)
    gold, plain = f"{letter} = {n}", str(n)
    right = [
        plain,
        f"{letter}={n}",
        f"{n} = {letter}",
        f"${letter} = {n}$",
        f"{letter} = {n - 3} + 3",
        f"{letter} = \\frac{{{2 * n}}}{{2}}",
    ]
    wrong = [
        f"{letter} = {n + 1}",
        f"{other} = {n}",
        f"{letter} = {-n}",
        f"{letter} = {n}.5",
        f"{letter} < {n}",
        letter,
        f"{n + 2}",
    ]
    if chance.randrange(2):
        # A bare number is what any letter may be called.
        gold = plain
        right[0], wrong[1] = f"{other} = {n}", f"{n} = {n + 1}"
    return row("equation", gold, some(chance, right, 4), some(chance, wrong, 4))


def _system(chance: random.Random) -> Row:
    a, b = distinct(chance, 2, 20)
    gold = f"x={a}, y={b}"
    right = [f"y={b}, x={a}", f"({a},{b})", f"x = {a}\\text{{ and }}y = {b}", f"(x,y) = ({a},{b})", f"x={a}; y={b}"]
    right += [f"\\begin{{cases}} x={a} \\\\ y={b} \\end{{cases}}"]
    wrong = [f"x={b}, y={a}", f"x={a}", f"x={a}, y={b + 1}", f"({b},{a})", f"x={a}, y={-b}", f"x={a}, z={b}"]
    return row("system", gold, some(chance, right, 4), some(chance, wrong, 4))
