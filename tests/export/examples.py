"""Training examples, made by hand or by Hypothesis, and functions that check them."""

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from pipeline.export.example import StepTarget, TrainingExample
from pipeline.export.formats.base import Format, FormatError, Marks

PIECES = (
    "Ann has 12 apples",
    " 3 + 4 = 7",
    "\\frac{1}{2}",
    " so",
    ".",
    "\n",
    "é",
    " $x^2$",
    "Step 2: add",
    "??",
    "  two",
)


def example(targets: Sequence[StepTarget] = (1, 0), **changes: Any) -> TrainingExample:
    """A chain with one short step for each of these targets."""
    known: dict[str, Any] = {
        "chain_id": "c",
        "problem_id": "p",
        "source_id": "s",
        "problem": "What is 3 + 4?",
        "gold_answer": "7",
        "final_answer": "8",
        "outcome": False,
        "steps": [f"We add {number} and go on." for number in range(1, len(targets) + 1)],
        "targets": list(targets),
        "labels": [target if isinstance(target, int) else None for target in targets],
    }
    return TrainingExample(**{**known, **changes})


def kinds(layout: Format, given: TrainingExample, **marks: str) -> list[tuple[str, bool]]:
    """Kind and `fatal` of the errors that a format finds in the texts of an example."""
    return [(offence.kind, offence.fatal) for offence in layout.offences(given, marks_of(layout, **marks))]


def marks_of(layout: Format, **marks: str) -> Marks:
    return Marks(**{"separator": layout.marks.separator, "placeholder": layout.marks.placeholder, **marks})


def lost(offences: Sequence[FormatError], labels: int) -> int:
    """The number of lost labels of a row according to the errors."""
    for offence in offences:
        if offence.kind == "all_labels_lost":
            return labels
        if offence.kind == "labels_lost":
            return int(offence.detail.split()[0])
    return 0


texts = st.lists(st.sampled_from(PIECES), min_size=1, max_size=6).map("".join).map(str.strip).filter(bool)
"""Texts without `ки` and without five newlines in a row, because these are marks."""


@st.composite
def examples(draw: st.DrawFn, targets: st.SearchStrategy[Any]) -> TrainingExample:
    """Chains of one to six steps with targets of this kind."""
    given = draw(st.lists(targets, min_size=1, max_size=6))
    steps = [draw(texts) for _ in given]
    return example(given, problem=draw(texts), steps=steps)


def cut_near(data: st.DataObject, places: Sequence[int]) -> int:
    """A length in tokens at which a label at one of these places is just kept or just lost, or any other length."""
    at_labels = [place + more for place in places for more in (0, 1)]
    return max(1, data.draw(st.sampled_from([*at_labels, 1, 10_000]), label="length"))
