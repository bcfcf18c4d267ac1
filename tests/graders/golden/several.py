"""Golden rows for answers with parts: lists, pairs, sets, matrices.

A wrong answer is the right one with a part changed, missing, added, or in another order where order counts.
"""

import math
import random
from collections.abc import Iterator, Sequence
from fractions import Fraction

from tests.graders.golden.numbers import fraction_tex
from tests.graders.golden.rows import Row, row, some


def several(chance: random.Random) -> Iterator[Row]:
    """All rows of this module."""
    for make, count in (
        (_roots, 15),
        (_plus_minus, 9),
        (_pair, 17),
        (_pairs, 6),
        (_set, 9),
        (_matrix, 9),
        (_column, 5),
    ):
        for _ in range(count):
            yield make(chance)


def signed(chance: random.Random, size: int) -> int:
    return chance.randrange(1, size) * chance.choice((1, -1))


def distinct(chance: random.Random, count: int, size: int) -> list[int]:
    found: list[int] = []
    while len(found) < count:
        number = signed(chance, size)
        if number not in found:
            found.append(number)
    return found


def _roots(chance: random.Random) -> Row:
    parts = distinct(chance, chance.choice((2, 2, 3, 4)), 20)
    texts = [str(part) for part in parts]
    turned = [texts[-1], *texts[:-1]]
    comma, back = ",".join(texts), ", ".join(reversed(texts))
    missing, more = ", ".join(texts[1:]), ", ".join([*texts, str(max(parts) + 1)])
    changed = ", ".join([str(max(parts) + 2), *texts[1:]])
    letter = chance.choice("xxnt")
    right = [
        comma,
        back,
        ", ".join(turned),
        f"\\{{{', '.join(turned)}\\}}",
        ", ".join(f"{letter}={text}" for text in texts),
        f" \\text{{ or }} {letter}=".join([f"{letter}={texts[0]}", *texts[1:]]),
        f"{', '.join(texts[:-1])} and {texts[-1]}",
        f"{', '.join(turned[:-1])} \\text{{ and }} {turned[-1]}",
        f"${comma}$",
        f"{letter} = {', '.join(texts)}",
    ]
    wrong = [
        missing,
        more,
        changed,
        texts[0],
        ", ".join(str(-part) for part in parts) if sorted(-p for p in parts) != sorted(parts) else more,
        str(sum(parts)),
        ", ".join([*texts[:-1], texts[-1] + "1"]),
        " + ".join(f"({text})" for text in texts),
        "".join(text.lstrip("-") for text in texts),
    ]
    return row("list", ", ".join(texts), some(chance, right, 6), some(chance, wrong, 4))


def _plus_minus(chance: random.Random) -> Row:
    a, b = chance.randrange(1, 9), chance.choice((2, 3, 5, 6, 7, 10, 11))
    if chance.randrange(2):
        gold = f"{a} \\pm \\sqrt{{{b}}}"
        right = [
            f"{a}+\\sqrt{{{b}}}, {a}-\\sqrt{{{b}}}",
            f"{a}\\pm\\sqrt{b}" if b < 10 else gold + " ",
            f"x={a}\\pm\\sqrt{{{b}}}",
        ]
        right += [
            f"x = {a} - \\sqrt{{{b}}} \\text{{ or }} x = {a} + \\sqrt{{{b}}}",
            f"\\{{{a}-\\sqrt{{{b}}}, {a}+\\sqrt{{{b}}}\\}}",
        ]
        right += [f"\\frac{{{2 * a} \\pm \\sqrt{{{4 * b}}}}}{{2}}", f"{a}±\\sqrt{{{b}}}"]
        wrong = [
            f"{a}+\\sqrt{{{b}}}",
            f"-{a} \\pm \\sqrt{{{b}}}",
            f"{a} \\pm \\sqrt{{{b + 2}}}",
            f"{a} \\pm {b}",
            f"\\pm \\sqrt{{{b}}}",
        ]
        wrong += [
            f"{a + 1}+\\sqrt{{{b}}}, {a + 1}-\\sqrt{{{b}}}",
            f"{a} \\pm {math.sqrt(b):.2f}",
            f"\\sqrt{{{b}}} - {a}",
        ]
    else:
        gold = f"\\pm {a}"
        right = [
            f"{a}, -{a}",
            f"-{a},{a}",
            f"±{a}",
            f"x=\\pm {a}",
            f"{a} and -{a}",
            f"x={a} \\text{{ or }} x=-{a}",
            f"\\{{{a}, -{a}\\}}",
        ]
        wrong = [str(a), f"-{a}", f"\\pm {a + 1}", f"{a}, -{a + 1}", f"{a}, {a}", f"({a}, -{a + 1})", f"{2 * a}"]
    return row("plus or minus", gold, some(chance, right, 5), some(chance, wrong, 4))


def _number(chance: random.Random) -> str:
    if chance.randrange(3):
        return str(signed(chance, 30))
    return fraction_tex(Fraction(signed(chance, 12), chance.randrange(2, 9)))


def _pair(chance: random.Random) -> Row:
    parts = [_number(chance) for _ in range(chance.choice((2, 2, 2, 3)))]
    while len(set(parts)) < len(parts):
        parts = [_number(chance) for _ in parts]
    other = str(int(parts[0]) + 1) if "frac" not in parts[0] else "41"
    if other == parts[0]:
        other = "43"
    inside, letters = ",".join(parts), "xyz"
    right = [
        f"( {' , '.join(parts)} )",
        f"\\left({', '.join(parts)}\\right)",
        f"$({inside})$",
        f"({', '.join(parts)})",
        f"\\left( {inside} \\right).",
        f"({', '.join(letters[: len(parts)])}) = ({inside})",
        ", ".join(f"{letter}={part}" for letter, part in zip(letters, parts, strict=False)),
        f"({', '.join(part.replace('frac', 'dfrac') for part in parts)})",
        f"\\big({inside}\\big)",
    ]
    wrong = [
        f"({','.join(reversed(parts))})",
        f"({','.join([other, *parts[1:]])})",
        f"({','.join(parts[1:])})",
        f"({inside},0)",
        f"({','.join(_negated(part) for part in parts)})",
        f"\\{{{inside}\\}}",
        parts[0],
        f"({','.join([*parts[:-1], _negated(parts[-1])])})",
    ]
    return row("pair", f"({inside})", some(chance, right, 5), some(chance, wrong, 4))


def _negated(text: str) -> str:
    return text[1:] if text.startswith("-") else f"-{text}"


def _pairs(chance: random.Random) -> Row:
    a, b, c, d = distinct(chance, 4, 15)
    gold = f"({a},{b}),({c},{d})"
    right = [
        f"({c},{d}),({a},{b})",
        f"({a}, {b}), ({c}, {d})",
        f"({a},{b}) \\text{{ and }} ({c},{d})",
        f"\\{{({a},{b}),({c},{d})\\}}",
    ]
    wrong = [
        f"({a},{b})",
        f"({b},{a}),({c},{d})",
        f"({a},{d}),({c},{b})",
        f"({a},{b},{c},{d})",
        f"({a},{b}),({c},{d + 40})",
    ]
    return row("pairs", gold, some(chance, right, 3), some(chance, wrong, 3))


def _set(chance: random.Random) -> Row:
    parts = [str(number) for number in distinct(chance, chance.randrange(2, 6), 25)]
    turned = [*parts[1:], parts[0]]
    inside = ", ".join(parts)
    right = [
        f"\\{{{', '.join(reversed(parts))}\\}}",
        f"\\{{ {','.join(turned)} \\}}",
        ",".join(parts),
        f"\\left\\{{{inside}\\right\\}}",
    ]
    right += [f"\\{{{inside}, {parts[0]}\\}}", f"{{{inside}}}", f"S = \\{{{inside}\\}}"]
    wrong = [
        f"\\{{{', '.join(parts[1:])}\\}}",
        f"\\{{{inside}, 99\\}}",
        f"({inside})",
        f"\\{{{', '.join([*parts[:-1], '98'])}\\}}",
    ]
    wrong += ["\\emptyset", str(len(parts)) if [str(len(parts))] != parts else "97"]
    return row("set", f"\\{{{inside}\\}}", some(chance, right, 5), some(chance, wrong, 4))


def _matrix_tex(rows: Sequence[Sequence[str]], name: str, wide: bool = False) -> str:
    blank = " " if wide else ""
    cells = f"{blank}\\\\{blank}".join(f"{blank}&{blank}".join(line) for line in rows)
    return f"\\begin{{{name}}}{blank}{cells}{blank}\\end{{{name}}}"


def _matrix(chance: random.Random) -> Row:
    height, width = chance.choice(((2, 2), (2, 2), (3, 3), (2, 3)))
    cells = [[str(signed(chance, 20)) for _ in range(width)] for _ in range(height)]
    turned = [list(line) for line in zip(*cells, strict=True)]
    changed = [list(line) for line in cells]
    changed[chance.randrange(height)][chance.randrange(width)] = "0"
    swapped = [cells[1], cells[0], *cells[2:]]
    gold = _matrix_tex(cells, "pmatrix")
    halves = [[f"\\frac{{{2 * int(cell)}}}{{2}}" for cell in line] for line in cells]
    columns = "c" * width
    right = [
        _matrix_tex(cells, "bmatrix"),
        _matrix_tex(cells, "pmatrix", wide=True),
        _matrix_tex(halves, "pmatrix"),
        "\\left(" + _matrix_tex(cells, "array").replace("{array}", f"{{array}}{{{columns}}}", 1) + "\\right)",
        "\\left[" + _matrix_tex(cells, "matrix") + "\\right]",
        f"A = {gold}",
    ]
    wrong = [_matrix_tex(changed, "pmatrix"), _matrix_tex(cells[:-1], "pmatrix")]
    wrong += [_matrix_tex([[_negated(cell) for cell in line] for line in cells], "pmatrix")]
    for other in (turned, swapped):
        if other != cells:
            wrong.append(_matrix_tex(other, "pmatrix"))
    if height == width == 2:
        (a, b), (c, d) = ([int(cell) for cell in line] for line in cells)
        wrong.append(str(a * d - b * c))
    return row("matrix", gold, some(chance, right, 3), some(chance, wrong, 3))


def _column(chance: random.Random) -> Row:
    cells = [str(number) for number in distinct(chance, chance.choice((2, 3)), 15)]
    gold = _matrix_tex([[cell] for cell in cells], "pmatrix")
    right = [
        _matrix_tex([[cell] for cell in cells], "bmatrix"),
        _matrix_tex([[cell] for cell in cells], "pmatrix", wide=True),
    ]
    right += [f"v = {gold}"]
    wrong = [
        _matrix_tex([[cell] for cell in reversed(cells)], "pmatrix"),
        _matrix_tex([[_negated(c)] for c in cells], "pmatrix"),
    ]
    wrong += [
        _matrix_tex([[cell] for cell in cells[1:]], "pmatrix"),
        cells[0],
        _matrix_tex([[c] for c in ["0", *cells[1:]]], "pmatrix"),
    ]
    return row("matrix", gold, some(chance, right, 3), some(chance, wrong, 3))
