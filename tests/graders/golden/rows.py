"""The rows of the golden set: how they are made, written and read.

A line of a file is one gold with its answers: those that are right and those that are wrong. In the files of outputs an answer
is the whole output of a model, in the other files a bare answer. Nothing here asks the checker.
"""

import json
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TypeVar

from tests.graders.dev_files import Case

Item = TypeVar("Item")

FOLDER = Path(__file__).parent
MAX_SECONDS = 6.0
"""A verdict that takes longer is late: the deadline of a child, and time to start another one on a busy machine."""
CANARY = "stepvalue-golden*"
"""No file of this name may exist after the hostile answers were graded: some of them try to create one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One gold, and answers whose verdict is known."""

    kind: str
    gold: str
    right: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Form:
    """A text and the number that it stands for; None for a text that stands for no number."""

    text: str
    value: Fraction | None


def numeric(kind: str, gold: Form, forms: Iterable[Form]) -> Row:
    """The forms that have the gold's value are right, all others wrong. Exact: values are fractions."""
    sorted_forms = list(forms)
    return row(
        kind,
        gold.text,
        (form.text for form in sorted_forms if form.value == gold.value),
        (form.text for form in sorted_forms if form.value != gold.value),
    )


def row(kind: str, gold: str, right: Iterable[str], wrong: Iterable[str]) -> Row:
    """A row without repetitions. Raises ValueError where an answer is both right and wrong."""
    found = Row(kind=kind, gold=gold, right=tuple(dict.fromkeys(right)), wrong=tuple(dict.fromkeys(wrong)))
    if set(found.right) & set(found.wrong) or gold in found.wrong:
        raise ValueError(f"an answer is both right and wrong: {found}")
    return found


def some(chance: random.Random, items: Sequence[Item], count: int) -> list[Item]:
    """`count` of the items, in their order. Uses `randrange` alone, which draws the same in every version of Python."""
    places = list(range(len(items)))
    while len(places) > count:
        places.pop(chance.randrange(len(places)))
    return [items[place] for place in places]


def text_of(rows: Iterable[Row]) -> str:
    """The lines of a file."""
    lines = []
    for made in rows:
        line = {"kind": made.kind, "gold": made.gold, "right": made.right, "wrong": made.wrong}
        lines.append(json.dumps({key: value for key, value in line.items() if value}, ensure_ascii=True))
    return "".join(f"{line}\n" for line in lines)


def read(name: str, folder: Path = FOLDER) -> list[Row]:
    """The rows of one file of the set, or of another folder with files of this form."""
    rows = map(json.loads, (folder / f"{name}.jsonl").read_text(encoding="utf-8").splitlines())
    return [
        Row(
            kind=line["kind"],
            gold=line["gold"],
            right=tuple(line.get("right", ())),
            wrong=tuple(line.get("wrong", ())),
        )
        for line in rows
    ]


def cases_of(rows: Iterable[Row], *, extracts: bool) -> Iterator[tuple[str, Case]]:
    """Each answer with its kind, as the checker is asked about it."""
    for found in rows:
        for answers, expected in ((found.right, True), (found.wrong, False)):
            for answer in answers:
                yield (
                    found.kind,
                    Case(
                        gold=found.gold,
                        prediction=answer,
                        expected=expected,
                        extracts=extracts,
                        max_seconds=MAX_SECONDS,
                        canary=CANARY,
                    ),
                )
