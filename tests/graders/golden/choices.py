"""Golden rows for multiple choice."""

import random
from collections.abc import Iterator

from tests.graders.golden.rows import Row, row, some

_OPTIONS = [
    "the red box", "a rectangle", "12", "3x+1", "between 5 and 7", "it doubles", "none of these", "\\frac{1}{2}",
    "the second train", "36\\pi",
]  # fmt: skip


def choices(chance: random.Random) -> Iterator[Row]:
    """All rows of this module."""
    for _ in range(24):
        yield _choice(chance)
    for _ in range(7):
        yield _choices(chance)


def _choice(chance: random.Random) -> Row:
    letter = chance.choice("ABCDE")
    other = chance.choice([mark for mark in "ABCDE" if mark != letter])
    text, foreign = chance.choice(_OPTIONS), chance.choice(_OPTIONS)
    right = [
        f"({letter})",
        f"\\text{{{letter}}}",
        f"\\textbf{{({letter})}}",
        f"{letter}.",
        f"({letter}) {text}",
        f"{letter}. {text}",
        f"{letter}) {text}",
        f"option {letter}",
        f"Option ({letter})",
        f"**{letter}**",
        f"\\mathrm{{{letter}}}",
        f"$\\text{{({letter})}}$",
        f"choice {letter}",
        letter.lower(),
    ]
    wrong = [
        other,
        f"({other})",
        f"\\textbf{{({other})}}",
        f"{other}. {foreign}",
        f"({other}) {text}",
        f"option {other}",
        f"{letter} or {other}",
        f"{letter} and {other}",
        f"not {letter}",
        f"{letter}{other}",
        str(ord(letter)),
    ]
    return row("choice", letter, some(chance, right, 6), some(chance, wrong, 5))


def _choices(chance: random.Random) -> Row:
    picked = some(chance, "ABCDEF", chance.choice((2, 3)))
    other = next(mark for mark in "ABCDEF" if mark not in picked)
    gold = ", ".join(picked)
    right = [
        "".join(picked),
        ",".join(reversed(picked)),
        f"{', '.join(picked[:-1])} and {picked[-1]}",
        f"\\text{{{gold}}}",
    ]
    right += [", ".join(f"({mark})" for mark in picked)]
    wrong = [
        picked[0],
        ", ".join([*picked, other]),
        ", ".join([other, *picked[1:]]),
        other,
        "".join([*picked[:-1], other]),
    ]
    return row("choice", gold, some(chance, right, 4), some(chance, wrong, 4))
