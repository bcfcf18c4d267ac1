r"""Splits an answer with several parts, such as "a) 3 b) 5", and pairs its parts with those of the gold. Pure, linear time.

Parts have the labels a, b, c or i, ii, iii, each in brackets or before a bracket or point, or 1, 2, 3 in brackets or before a
bracket, in this order and without a gap. The kind of label does not matter.
Parts that an output states in one box each are written (a) \boxed{3}, (b) \boxed{5}.
"""

import re

from pipeline.graders.math.choices import are_consecutive
from pipeline.graders.math.forms import FormKind, read_form
from pipeline.graders.math.normal import normal_form

MAX_PART_CHARS = 2_000

_BLANK = re.compile(r"\\(?:q?quad(?![A-Za-z])|[ ,;:])|~")
_LABEL = re.compile(
    r"(?:^|[\s,;])\s?(?:Part |part )?(?:\(([a-h]|[1-8]|i{1,3}|iv|vi?)\)|([a-h]|i{1,3}|iv|vi?)[).]|([1-8])\))(?=\s)"
)
_FIRST = re.compile(r"[\s$]*(?:Part |part )?(?:\(?[ai][).]|\(?1\))")
_BEGINNINGS = frozenset("ai1(Pp$ \n\t")
_BOXED = re.compile(r"\\boxed\{(.*)\}", re.DOTALL)


def may_have_parts(gold: str, answer: str) -> bool:
    """Whether one of two texts may have parts. Quick, and false for most texts."""
    return bool(
        (gold[:1] in _BEGINNINGS and _FIRST.match(gold)) or (answer[:1] in _BEGINNINGS and _FIRST.match(answer))
    )


def split_parts(text: str) -> list[tuple[str, str]] | None:
    """The labels and texts of the parts. None if an answer has no parts."""
    if len(text) > MAX_PART_CHARS or not _FIRST.match(text):
        return None
    spaced = _BLANK.sub(" ", text).strip()
    marks = list(_LABEL.finditer(spaced))
    if len(marks) < 2 or marks[0].start():
        return None
    labels = [mark[1] or mark[2] or mark[3] for mark in marks]
    ends = [*(mark.start() for mark in marks[1:]), len(spaced)]
    parts = [spaced[mark.end() : end].strip(" \n\t,;") for mark, end in zip(marks, ends, strict=True)]
    if not all(parts) or not are_consecutive(labels):
        return None
    return list(zip(labels, parts, strict=True))


def paired(gold: str, answer: str) -> list[tuple[str, str]] | None:
    """The pairs of texts that must be equal. Empty if the parts do not belong together. None if neither side has parts."""
    wanted, given = split_parts(gold), split_parts(answer)
    if given is None:
        return None if wanted is None else []
    contents = [_content(text) for _, text in given]
    if wanted is not None:
        return (
            list(zip((_content(text) for _, text in wanted), contents, strict=True))
            if len(wanted) == len(given)
            else []
        )
    if not all(_BOXED.fullmatch(text) for _, text in given):
        return []
    values = read_form(normal_form(gold))
    if values.kind is FormKind.LIST:
        texts = [value.text for value in values.items]
        return list(zip(texts, contents, strict=True)) if len(texts) == len(contents) else []
    # A gold with one value is the gold of the last part.
    return [(gold, contents[-1])]


def _content(text: str) -> str:
    boxed = _BOXED.fullmatch(text)
    return boxed.group(1) if boxed else text
