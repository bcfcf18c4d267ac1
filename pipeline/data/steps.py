r"""Splits a solution text into steps without losing a character.

Steps are given by their `ends`: step i is `text[ends[i-1]:ends[i]]`, including the separator after it. The joined slices are
the text. No step is blank: a blank piece belongs to the step before it, a leading one to the first step. No cut is inside a
formula or block (see `formulas`). The time is linear in the length of the text, except for a user's own slow `pattern`.

The README lists the splitters. A single carriage return is no line end, because it is usually a damaged `\r` of `\rho`. Text
before `Step 1` belongs to step 1, because it usually restates the problem. `sentence` also cuts at blank lines.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

from pipeline.config.choices import Splitter
from pipeline.data.formulas import formulas

STEP_TAG = re.compile(r"(?<!\w)ки(?!\w)")
"""Math-Shepherd's tag at the end of a step."""

_LOOK_BACK = 16  # number of characters before a full stop or a label that determine its kind
_LINE_END = re.compile(r"\n")
_BLANK_LINE = re.compile(r"\n(?:[^\S\n]*+\n)++")
_AFTER_TAG = re.compile(STEP_TAG.pattern + r"\s*+")
_LABEL = re.compile(
    r"\bstep[^\S\n]{0,3}(?P<number>\d{1,3})(?=[*_\s]{0,6}[:.)(–—-]|[*_]{0,3}[^\S\n]{0,3}(?:\n|\Z))", re.IGNORECASE
)
_ORNAMENT = " \t*#_>-"
_SENTENCE_END = re.compile(
    r"""(?<![.!?…])(?P<mark>[.!?…]++)(?:["'’”»)\]}*_$]|\\[)\]])*+(?=\s)\s*+"""
    r"""|[。！？]++["'’”」』）)]*+\s*+"""
    r"""|\n[^\S\n]*+\n\s*+"""
)
_LIST_MARK = re.compile(r"\s*[*_#>(-]*\s*(?:\d{1,3}|[A-Za-z]|[ivx]{1,4})", re.IGNORECASE)
_LAST_WORD = re.compile(r"[A-Za-z.]*\Z")
_FACTORIAL = re.compile(r"(?:[)}\d²³]|(?<![^\W\d_])[^\W\d_])\Z")
_NEVER_LAST = re.compile(r"mr|mrs|ms|dr|prof|st|e\.?g|i\.?e|vs|cf|viz|eqs?|figs?|resp|approx")
_SELDOM_LAST = re.compile(r"etc|a\.m|p\.m|u\.s|nos?|ft|in|oz|lbs?|mins?|hrs?|sec|al|jr|sr|inc")


def split(text: str, splitter: Splitter, pattern: str | None = None) -> tuple[int, ...]:
    """The ends of the steps: strictly increasing, the last one is `len(text)`; empty for a blank text.

    Raises ValueError for `regex` without a pattern, and re.error for an invalid pattern.
    """
    first, last = len(text) - len(text.lstrip()), len(text.rstrip())
    if not last:
        return ()
    if splitter is Splitter.regex and not pattern:
        raise ValueError("the regex splitter needs a pattern")
    cuts = _ends_of(re.compile(pattern or "")) if splitter is Splitter.regex else _CUTS[splitter]
    ends: list[int] = []
    spans = [(0, 0), *formulas(text)]
    for cut in cuts(text):
        start, end = spans[bisect_left(spans, (cut,)) - 1]
        if not first < cut < last or start < cut < end:
            continue
        if ends and text[ends[-1] : cut].isspace():
            ends[-1] = cut
        elif not ends or cut > ends[-1]:
            ends.append(cut)
    return (*ends, len(text))


def join(steps: Sequence[str], separator: str) -> tuple[str, tuple[int, ...]]:
    """The text and the ends of given steps. The separator belongs to the step before it; the last step has none.

    The steps are not changed: a blank one stays a step.
    """
    pieces = [step + separator for step in steps[:-1]] + list(steps[-1:])
    return "".join(pieces), tuple(accumulate(map(len, pieces)))


def step_texts(text: str, ends: Sequence[int]) -> list[str]:
    """The texts of the steps without surrounding white space. Tags and labels stay."""
    return [text[start:end].strip() for start, end in zip((0, *ends), ends, strict=False)]


def prefix_text(text: str, ends: Sequence[int], k: int) -> str:
    """The first `k` steps with the separator after them; empty for k = 0. Raises ValueError if k is out of range."""
    if not 0 <= k <= len(ends):
        raise ValueError(f"there is no prefix of {k} steps in a solution of {len(ends)} steps")
    return text[: ends[k - 1]] if k else ""


def _ends_of(pattern: re.Pattern[str]) -> Callable[[str], Iterator[int]]:
    return lambda text: (match.end() for match in pattern.finditer(text))


def _before_labels(text: str) -> Iterator[int]:
    unlabelled = True
    for label in _LABEL.finditer(text):
        before = text[max(0, label.start() - _LOOK_BACK) : label.start()]
        head = before.rstrip(_ORNAMENT)
        ornament = before[len(head) :]
        at_line_start = head.endswith("\n") or (not head and label.start() <= _LOOK_BACK)
        behind_sentence = ornament[:1].isspace() and head.rstrip("\"'’”)]}*_$").endswith((".", "!", "?"))
        if not (at_line_start or behind_sentence):
            continue
        if not (unlabelled and int(label["number"]) <= 1):
            yield label.start() - len(ornament if at_line_start else ornament.lstrip())
        unlabelled = False


def _sentence_ends(text: str) -> Iterator[int]:
    begin = 0
    for end in _SENTENCE_END.finditer(text):
        if not end["mark"] or _is_sentence_end(text, begin, end.start(), end["mark"], end.end()):
            begin = end.end()
            yield begin


def _is_sentence_end(text: str, begin: int, at: int, mark: str, after: int) -> bool:
    """Whether `mark` at `at` ends the sentence that begins at `begin`. `after`: where the next sentence would begin."""
    capital = text[after : after + 1].isupper()
    if "?" in mark:
        return True
    if "!" in mark:
        # What may be a factorial: a number, a bracket or a single letter stands before.
        return capital or not _FACTORIAL.search(text, max(begin, at - 2), at)
    if mark != ".":
        return capital
    recent = max(begin, at - _LOOK_BACK)
    word = _LAST_WORD.search(text[recent:at])
    name = word.group().lower() if word else ""
    if _NEVER_LAST.fullmatch(name) or (_SELDOM_LAST.fullmatch(name) and not capital):
        return False
    newline = text.rfind("\n", recent, at)
    at_line_start = newline >= 0 or recent == begin
    return not (at_line_start and _LIST_MARK.fullmatch(text, max(recent, newline + 1), at))


_CUTS: dict[Splitter, Callable[[str], Iterator[int]]] = {
    Splitter.newline: _ends_of(_LINE_END),
    Splitter.blank_line: _ends_of(_BLANK_LINE),
    Splitter.step_label: _before_labels,
    Splitter.sentence: _sentence_ends,
    Splitter.math_shepherd: _ends_of(_AFTER_TAG),
    Splitter.whole: lambda _text: iter(()),
}
