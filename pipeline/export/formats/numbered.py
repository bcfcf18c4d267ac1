"""Layouts with numbered steps (`Step 1: ...`): Math-Shepherd's, and OpenR's conversion of it.

**Math-Shepherd.** One text with `ки` after every step, and the same text with `+` or `-` in its place. Readers: TRL's
`examples/datasets/math_shepherd.py` (commit 0ad367a), OpenR's `preprocess/src/preprocessors/math_shepherd.py` (commit 164eeef)
and `data.layout=math_shepherd` here. All three find the end of the problem by the only `Step 1:`. TRL's script replaces `ки` by
the single character `ⶻ` and finds labels at its places. OpenR's script leaves out rows with another `Step 2:` inside a step.
`task` names the data set of a row: ours.

**OpenR.** The input of its PRM fine-tuning: one text with five newlines after every step, and one sign for each step. Source of
the rules: `prm/code/finetune_qwen.py` of openreasoner/openr (commit 882cec5); rows are made like those of its
`preprocess/src/preprocessors/math_shepherd.py`. The trainer finds the tag by the last token of a blank and the tag, which is
one token for Qwen2.5. Surplus signs are dropped silently; too few signs stop the training. A row is cut at 2,048 tokens.
"""

import re
from collections.abc import Iterator, Sequence

import pyarrow as pa

from pipeline.export.example import TrainingExample
from pipeline.export.formats.base import (
    Encoder,
    Format,
    FormatError,
    Marks,
    Row,
    columns,
    mark_in_text,
    marks_among,
    no_steps,
    one_token,
    placeholder_in_text,
)
from pipeline.export.settings import FileType, TargetKind

FIRST = "Step 1: "
_OWN_NUMBER = re.compile(r"(?P<ornament>[#*_ ]*)[Ss]tep[ ]?(?P<number>\d+)[ ]*:(?P<closed>[*_]*)\s*")
"""A number at the beginning of a step, also as `## Step 2:`, `**Step 2:**` or `**Step 2: Title**`."""
_WORD = "tep"
_WORD_WITHIN = 16
"""Characters from the beginning of a step. A search for the word makes steps without a number three times as fast."""


def number_steps(steps: Sequence[str]) -> list[str]:
    """Put its number before each step. A step that begins with a number keeps it, in the common notation."""
    return [with_number(step, number) for number, step in enumerate(steps, start=1)]


def with_number(step: str, number: int) -> str:
    own = _OWN_NUMBER.match(step) if _WORD in step[:_WORD_WITHIN] else None
    if own is None:
        return f"Step {number}: {step}"
    opened = "" if own["closed"] else own["ornament"].strip("# ")
    return f"Step {own['number']}: {opened}{step[own.end() :]}"


PLACEHOLDER = "ки"
TASK = "stepvalue"
STAND_IN = "ⶻ"
"""TRL's replacement for the placeholder."""
RENUMBERED = (
    "Mr. Rocky",
    "Parker",
    "What is the smallest positive",
    " The Myth",
    "Let $\\mathbf{a}$",
    "Find the arithmetic",
    "Determine an ordered pair",
    "Determine the ordered pair",
    "At the Quill and Scroll stationery",
    "Round to the nearest",
    "Calculate $\\sqrt{10p}",
    "Simplify $\\sqrt{28x}",
)
"""If a problem begins with one of these, TRL's script treats the first step as part of it, to repair errors in the original
data."""
_NUMBER = re.compile(r"Step \d*:")


def _row(example: TrainingExample, marks: Marks) -> Row:
    steps = number_steps(example.steps)
    signs = ["+" if target else "-" for target in example.targets]
    return {
        "input": f"{example.problem} " + "\n".join([f"{step} {marks.placeholder}" for step in steps]),
        "label": f"{example.problem} " + "\n".join([f"{step} {sign}" for step, sign in zip(steps, signs, strict=True)]),
        "task": TASK,
    }


def _offences(example: TrainingExample, marks: Marks) -> Iterator[FormatError]:
    yield from no_steps(example)
    yield from mark_in_text(example, marks.placeholder, "every reader takes it for the end of a step")
    if not (example.problem.isascii() and all(map(str.isascii, example.steps))):
        yield from mark_in_text(example, STAND_IN, "TRL's script takes it for the end of a step")
    yield from _numbers(example)
    if example.problem.startswith(RENUMBERED):
        detail = "because of how the problem begins, TRL's script treats the first step as part of the problem"
        yield FormatError(kind="first_step_lost", detail=detail, fatal=False)


def _numbers(example: TrainingExample) -> Iterator[FormatError]:
    if "Step 1:" in example.problem:
        yield FormatError(
            kind="problem_end", detail="the problem contains 'Step 1:', which readers take for its end", fatal=True
        )
        return
    for number, step in enumerate(example.steps, start=1):
        if "tep" not in step:
            continue
        written = with_number(step, number)
        if number == 1 and not written.startswith(FIRST):
            detail = f"its first step has another number than {FIRST!r}, by which readers find the end of the problem"
            yield FormatError(kind="problem_end", detail=detail, fatal=True)
            return
        if "Step 1:" in written[number == 1 :]:
            detail = f"step {number} contains 'Step 1:', which readers take for the end of the problem"
            yield FormatError(kind="problem_end", detail=detail, fatal=True)
            return
        if _NUMBER.search(written, len("Step ")):
            detail = f"step {number} contains the number of another step: OpenR leaves the row out"
            yield FormatError(kind="number_in_step", detail=detail, fatal=False)
            return


def _token_offences(row: Row, marks: Marks, encoder: Encoder, max_length: int | None) -> Iterator[FormatError]:
    text = row["input"]
    assert isinstance(text, str)
    wrong = list(one_token(marks.placeholder, encoder))
    if wrong:
        yield from wrong
        return
    mark = encoder.ids(marks.placeholder)[0]
    yield from marks_among(encoder.ids(text), mark, text.count(marks.placeholder), max_length)


MATH_SHEPHERD = Format(
    targets=(TargetKind.hard,),
    row=_row,
    schema=columns(("input", pa.string()), ("label", pa.string()), ("task", pa.string())),
    offences=_offences,
    token_offences=_token_offences,
    marks=Marks(placeholder=PLACEHOLDER),
)


TAG = "\n\n\n\n\n"
MAX_LENGTH = 2048


def _openr_row(example: TrainingExample, marks: Marks) -> Row:
    return {
        "question": example.problem,
        "process": " ".join([f"{step} {marks.placeholder}" for step in number_steps(example.steps)]),
        "label": ["+" if target else "-" for target in example.targets],
    }


def _openr_token_offences(row: Row, marks: Marks, encoder: Encoder, max_length: int | None) -> Iterator[FormatError]:
    labels = row["label"]
    assert isinstance(labels, list)
    if len(encoder.ids(" + -")) != len("+-"):
        detail = "' + -' is not two tokens, but OpenR needs one token for good and one for bad: use another tokenizer"
        yield FormatError(kind="not_one_token", detail=detail, fatal=True)
        return
    ids = encoder.ids(f"{row['question']} {row['process']}")
    yield from marks_among(ids, encoder.ids(f" {marks.placeholder}")[-1], len(labels), max_length)


OPENR = Format(
    targets=(TargetKind.hard,),
    row=_openr_row,
    schema=columns(("question", pa.string()), ("process", pa.string()), ("label", pa.list_(pa.string()))),
    offences=placeholder_in_text,
    token_offences=_openr_token_offences,
    marks=Marks(placeholder=TAG),
    file=FileType.json,
    max_length=MAX_LENGTH,
)
