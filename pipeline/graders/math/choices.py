r"""Recognizes enumerations: the choices of a question, or the parts of an answer, such as "a) 3 b) 5". Pure, linear time.

A) 3 B) 4 C) 5 are choices, and state no answer. a) 3 b) 4 c) 5 and (1) 3 (2) 4 (3) 5 may be either. As a whole they are the
answer to a question with parts, and none of them alone is an answer. Parts have the labels a, b, c or i, ii, iii, each in
brackets or before a bracket or point, or 1, 2, 3 in brackets or before a bracket, in this order and without a gap. The kind of
label does not matter. Parts that an output states in one box each are written (a) \boxed{3}, (b) \boxed{5}.
"""

import re
from collections.abc import Sequence

from pipeline.graders.math.forms import FormKind, read_form
from pipeline.graders.math.normal import normal_form

_ALPHABETS = (tuple("abcdefgh"), ("i", "ii", "iii", "iv", "v", "vi"), tuple("12345678"))


def are_consecutive(labels: Sequence[str]) -> bool:
    """Whether labels are the first ones of an alphabet, in order."""
    return any(tuple(labels) == alphabet[: len(labels)] for alphabet in _ALPHABETS)


MAX_CHOICES = 1_000
"""The last two choices are within this number of characters at the end of a text."""

_LETTERS = "ABCDEFGHIJ"
_AT_BEGINNING = re.compile(r"[ \t*#>-]{0,8}\(?([A-J])[ *]{0,3}[).:]")
_INSIDE = re.compile(r"(?:(?<=[\s,;\d}$*])|^)(?:\(([A-J])\)|([A-J])[).:])")


_LABEL = r"(?:\((?P<in>[a-h]|[1-9]|i{1,3}|iv|vi?)\)|(?P<letter>[a-h]|i{1,3}|iv|vi?)[).:]|(?P<digit>[1-9])\))[ *]{1,3}"
_PART_INSIDE = re.compile(rf"(?:^|(?<=[\s,;:*])){_LABEL}(?=\S)")
_PART_LINE = re.compile(rf"[ \t*#>-]{{0,8}}(?:{_LABEL}|(?P<point>[1-9])[.:][ *]{{1,3}})(?=\S)(?P<item>.*)")
# Every part has one of these. They are quicker to look for.
_ENDS_OF_LABELS = (") ", ". ", ": ", ")*", ".*", ":*")
_WORD = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{2,}")
_VALUE = re.compile(r"[-+$\\(\[{|.\d∞π√]|[A-Za-z]\w? ?[=<>]|[A-Za-z]\b|(?:[Tt]rue|[Ff]alse|[Yy]es|[Nn]o|[Nn]one)\b")
MAX_ITEM = 60
MAX_ITEM_WORDS = 2


def has_more_choices(text: str) -> bool:
    """Whether the text of a choice goes on with another choice: in "(A) 3 (B) 4" the text after (A)."""
    return _INSIDE.search(text) is not None


def ends_with_choices(text: str) -> bool:
    """Whether the last line is the last of several choices, in one line or in a line each."""
    above, _, last = text[-MAX_CHOICES:].rstrip().rpartition("\n")
    inside = [mark[1] or mark[2] for mark in _INSIDE.finditer(last)]
    starting = [mark[1] for line in (above.rstrip().rpartition("\n")[2], last) if (mark := _AT_BEGINNING.match(line))]
    return any(len(letters) > 1 and "".join(letters) in _LETTERS for letters in (inside, starting))


def parts_at_end(text: str) -> str | None:
    """The parts that the last line or the last lines enumerate, as "(a) 3, (b) 4". None for a text that ends otherwise.

    Steps of a solution are no parts: a part has at most two words, and a numbered line no equation.
    """
    tail = text[-MAX_CHOICES:].rstrip()
    last = tail[tail.rfind("\n") + 1 :]
    if not any(end in last for end in _ENDS_OF_LABELS):
        return None
    marks = list(_PART_INSIDE.finditer(last))
    if len(marks) > 1:
        ends = [*(mark.start() for mark in marks[1:]), len(last)]
        parts = [(_label(mark), last[mark.end() : end]) for mark, end in zip(marks, ends, strict=True)]
    else:
        parts = []
        for line in filter(str.strip, reversed(tail.split("\n"))):
            found = _PART_LINE.fullmatch(line)
            if found is None:
                break
            parts.insert(0, (_label(found), found["item"]))
        if any(label.isdigit() and "=" in item for label, item in parts):
            return None
    contents = [item.strip(" \t,;.*") for _, item in parts]
    if len(parts) < 2 or not are_consecutive([label for label, _ in parts]):
        return None
    # A part is a value with at most a unit or two, not the words between "From (1) and (2) we get".
    if any(
        len(each) > MAX_ITEM or len(_WORD.findall(each)) > MAX_ITEM_WORDS or not _VALUE.match(each) for each in contents
    ):
        return None
    return ", ".join(f"({label}) {content}" for (label, _), content in zip(parts, contents, strict=True))


def _label(mark: re.Match[str]) -> str:
    return next(label for label in mark.groups() if label)


MAX_PART_CHARS = 2_000

_BLANK = re.compile(r"\\(?:q?quad(?![A-Za-z])|[ ,;:])|~")
_PART_LABEL = re.compile(
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
    marks = list(_PART_LABEL.finditer(spaced))
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
        golds = [_content(text) for _, text in wanted]
    elif not all(_BOXED.fullmatch(text) for _, text in given):
        return []
    else:
        values = read_form(normal_form(gold))
        if values.kind is not FormKind.LIST:
            # A gold with one value is the gold of the last part.
            return [(gold, contents[-1])]
        golds = [value.text for value in values.items]
    return list(zip(golds, contents, strict=True)) if len(golds) == len(contents) else []


def _content(text: str) -> str:
    boxed = _BOXED.fullmatch(text)
    return boxed.group(1) if boxed else text
