"""The rows of the golden set: how they are read.

A line of a file is one gold with its answers: those that are right and those that are wrong. In the files of outputs an answer
is the whole output of a model, in the other files a bare answer. Nothing here asks the checker.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.graders.dev_files import Case

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


def row(kind: str, gold: str, right: Iterable[str], wrong: Iterable[str]) -> Row:
    """A row without repetitions. Raises ValueError where an answer is both right and wrong."""
    found = Row(kind=kind, gold=gold, right=tuple(dict.fromkeys(right)), wrong=tuple(dict.fromkeys(wrong)))
    if set(found.right) & set(found.wrong) or gold in found.wrong:
        raise ValueError(f"an answer is both right and wrong: {found}")
    return found


def read(name: str, folder: Path = FOLDER) -> list[Row]:
    """The rows of one file of the set, or of another folder with files of this form."""
    rows = map(json.loads, (folder / f"{name}.jsonl").read_text(encoding="utf-8").splitlines())
    return [
        Row(
            kind=line["kind"], gold=line["gold"], right=tuple(line.get("right", ())), wrong=tuple(line.get("wrong", ()))
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
