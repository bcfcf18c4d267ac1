r"""What texts of judges say: the index of the first error, or a word for each step. Pure, and linear in the length of the text.

- An **index** is the last complete `\boxed{...}` that names one, with -1 for "no error"; by `stated_index`, a text that is an
  index and nothing else needs no box. A number that no step has is out of range, and so is step 0 where steps are counted
  from 1. A critique that the token limit cuts has no index, even after a box: the model may have been about to change its mind.
- **Words** are good, ok or bad, one for each step. The last word in the part about a step counts. A part begins with a line
  that begins with `Step K`; in a text without such lines, the K-th word is about step K. The first bad step is the first error,
  even where the critique skips a step before it or is cut after it. A chain has no error where all of its steps have a word,
  and none is bad.
- Only complete **boxes** count, with braces inside them paired. What a box says is stripped of `\text{...}`, braces, `$`, stars
  and blanks around it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pipeline.core.records import Finish, Reading, ReadingKind, StepOpinion

NONE = -1
"""The index that means "no error"."""
_INDEX = re.compile(r"(?:(?:paragraph|step|index)\W{0,3}_?\W{0,3})?([-\u2212]?[0-9]{1,6})", re.IGNORECASE)
_NUMBER = re.compile(r"(?<![\w.,])[-\u2212]?[0-9]+(?![\w]|[.,][0-9])")
_NONE_WORD = re.compile(r"\bnone\b|\bno errors?\b", re.IGNORECASE)
_MOST_DIGITS = 6
_MOST_BARE = 64
"""Longest text that can be a bare index."""
HEADING = re.compile(r"(?:\A|\n)[ \t#*<>-]{0,16}(?:Step|Paragraph)[ _]{0,4}([0-9]{1,6})\b", re.IGNORECASE)
"""The begin of the part about a step, with its number."""
_LINE = re.compile(
    r"(?:\A|\n)[ \t#*<>-]{0,16}(?:Step|Paragraph)[ _]{0,4}([0-9]{1,6})\b[ \t:.*>()-]{0,16}([A-Za-z]{2,9})\b",
    re.IGNORECASE,
)
_BRACES = re.compile(r"\\f?boxed[ ]{0,4}\{|[{}]")
_MOST_CHARACTERS = 128
"""Longest content of a box that is a verdict. A longer one is no verdict."""
_WRAPPED = re.compile(r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|mathit|emph)[ ]{0,4}\{(.*)\}", re.DOTALL)
_BARE = re.compile(r"\{(.*)\}", re.DOTALL)
_MOST_LAYERS = 8
AROUND = " \t\r\n*_$.\"'"
"""Characters around a verdict that are no part of it."""
WORDS: Mapping[str, StepOpinion] = {
    "correct": StepOpinion.GOOD,
    "yes": StepOpinion.GOOD,
    "good": StepOpinion.GOOD,
    "ok": StepOpinion.OK,
    "incorrect": StepOpinion.BAD,
    "no": StepOpinion.BAD,
    "bad": StepOpinion.BAD,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """`says`: its content, stripped. `begin`, `end`: the box in the text."""

    says: str
    begin: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A word about a step. `at`: where it stands in the text."""

    opinion: StepOpinion
    at: int


_WITHOUT_VERDICT: Mapping[Finish, ReadingKind] = {
    Finish.STOP: ReadingKind.UNPARSEABLE,
    Finish.LENGTH: ReadingKind.CUT,
    Finish.TOO_LONG: ReadingKind.TOO_LONG,
    Finish.ENGINE_FAILED: ReadingKind.FAILED,
    Finish.ABORT: ReadingKind.FAILED,
}


def unwritten(turns: Sequence[str], finish: Finish) -> Reading | None:
    """The reading of a critique that was not written. None where there is a text."""
    return None if any(turns) else Reading(kind=_WITHOUT_VERDICT[finish])


def boxes(text: str) -> Iterator[Box]:
    """The complete boxes of a text, in the order in which they end. Of boxes within boxes, both are given."""
    opened: list[tuple[int, int] | None] = []
    """Of each open brace: begin of its box and of the content, or None if it is no box's."""
    for found in _BRACES.finditer(text):
        if found[0] != "}":
            opened.append((found.start(), found.end()) if len(found[0]) > 1 else None)
        elif opened and (box := opened.pop()) and found.start() - box[1] <= _MOST_CHARACTERS:
            yield Box(says=_stripped(text[box[1] : found.start()]), begin=box[0], end=found.end())


def _stripped(content: str) -> str:
    for _ in range(_MOST_LAYERS):
        content = content.strip(AROUND)
        inner = _WRAPPED.fullmatch(content) or _BARE.fullmatch(content)
        if inner is None:
            return content
        content = inner[1]
    return content


def boxed_index(text: str) -> int | None:
    """The index in the last complete box that names one. None without such a box."""
    found = None
    for box in boxes(text):
        if index := _INDEX.fullmatch(box.says):
            found = int(index[1].replace("\u2212", "-"))
    return found


def stated_index(text: str) -> int | None:
    """`boxed_index`, or the index that is all of the text: small models often leave the box out."""
    boxed = boxed_index(text)
    if boxed is not None or len(text) > _MOST_BARE:
        return boxed
    index = _INDEX.fullmatch(text.strip(AROUND))
    return int(index[1].replace("\u2212", "-")) if index else None


def last_line_index(text: str) -> int | None:
    """The only number on the last line that is not empty, or NONE where it has the word none or "no error" instead."""
    line = text.rstrip().rpartition("\n")[2]
    numbers = _NUMBER.findall(line)
    if not numbers:
        return NONE if _NONE_WORD.search(line) else None
    digits = numbers[0].replace("\u2212", "-")
    return int(digits) if len(numbers) == 1 and len(digits) <= _MOST_DIGITS else None


def index_reading(index: int | None, finish: Finish, steps: int, base: int) -> Reading:
    """The reading of an answer that names an index. `base`: the number of the first step."""
    if finish is not Finish.STOP:
        return Reading(kind=ReadingKind.CUT)
    if index is None:
        return Reading(kind=ReadingKind.UNPARSEABLE)
    if index == NONE:
        return Reading(kind=ReadingKind.NO_ERROR)
    if not base <= index < base + steps:
        return Reading(kind=ReadingKind.OUT_OF_RANGE)
    return Reading(kind=ReadingKind.ERROR, first_error=index - base + 1)


def headings(text: str, base: int, pattern: re.Pattern[str] = HEADING) -> list[tuple[int, int]]:
    """Where the parts about steps begin: the index of the step, counted from 0, and the place in the text."""
    return [(int(found[1]) - base, found.start()) for found in pattern.finditer(text)]


def step_words(said: Sequence[Said], parts: Sequence[tuple[int, int]], steps: int) -> tuple[list[int | None], bool]:
    """Which words count for which step. Both sequences are in the order of the text.

    For each step, the number of its word among those of the text, None for a step without one; and whether a step that the
    chain does not have is called bad."""
    of_steps: list[int | None] = [None] * steps
    if not parts:
        numbers = range(len(said)) if len(said) <= steps else ()
        return [*numbers, *of_steps[len(numbers) :]], False
    at, beyond = -1, False
    for number, word in enumerate(said):
        while at + 1 < len(parts) and parts[at + 1][1] <= word.at:
            at += 1
        if at >= 0 and 0 <= parts[at][0] < steps:
            of_steps[parts[at][0]] = number
        elif at >= 0:
            beyond = beyond or word.opinion is StepOpinion.BAD
    return of_steps, beyond


def words_reading(said: Sequence[Said], parts: Sequence[tuple[int, int]], finish: Finish, steps: int) -> Reading:
    """The reading of a text with words about steps."""
    of_steps, beyond = step_words(said, parts, steps)
    opinions = tuple(None if number is None else said[number].opinion for number in of_steps)
    return opinions_reading(opinions, finish, beyond=beyond)


def opinions_reading(opinions: tuple[StepOpinion | None, ...], finish: Finish, *, beyond: bool = False) -> Reading:
    """The reading of opinions on all steps. `beyond`: whether a step that the chain does not have is called bad."""
    steps = opinions if any(opinions) else ()
    if StepOpinion.BAD in opinions:
        return Reading(kind=ReadingKind.ERROR, first_error=opinions.index(StepOpinion.BAD) + 1, steps=steps)
    if beyond:
        return Reading(kind=ReadingKind.OUT_OF_RANGE, steps=steps)
    if opinions and None not in opinions:
        return Reading(kind=ReadingKind.NO_ERROR, steps=steps)
    return Reading(kind=_WITHOUT_VERDICT[finish], steps=steps)


def boxed_words(text: str) -> Iterator[Said]:
    """The words in boxes."""
    for box in boxes(text):
        if opinion := WORDS.get(box.says.lower()):
            yield Said(opinion=opinion, at=box.begin)


def line_words(text: str) -> Iterator[Said]:
    """The words of lines that begin with `Step K:` and a word. Where they stand is where their line begins."""
    for found in _LINE.finditer(text):
        if opinion := WORDS.get(found[2].lower()):
            yield Said(opinion=opinion, at=found.start())
