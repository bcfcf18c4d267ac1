"""Whether a problem is one that must not be trained on: it shares a run of words with a listed one.

A word is a run of letters or a number, in lower case, or one Chinese or Japanese character. Of LaTeX the names of commands and
what stands in them are words, but for commands that only arrange (`\\left`, `\\text`, `\\displaystyle`); `\\dfrac` and
`\\tfrac` count as `\\frac`, `\\frac13` as `\\frac{1}{3}`, `1{,}000` and `1,000` as `1000`. Signs are no words, so two runs
may differ in a plus and a minus.

A problem with fewer words than `ngram` is compared as a whole, signs included, and only with a listed one that is as short.
Not caught: a paraphrase, a translation, other numbers or names in the same text, a short listed problem within a longer one,
and a formula written otherwise (`1/2` and `\\frac{1}{2}`). A problem without a word is never a match.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from unicodedata import normalize

from pipeline.core.records import Place

_COMMAS = re.compile(r"(?<=\d)(?:,|\{,\}|\\,|\\!)(?=\d{3}(?!\d))")
_ARRANGING = re.compile(
    r"\\(?:left|right|bigg?[lr]?|displaystyle|textstyle|text|textbf|textit|mathrm|mathbf|mathit|rm|quad|qquad|operatorname)(?![a-z])"
)
_FRACTION = re.compile(r"\\[dt]?frac(?![a-z])(?:\s*(?P<above>\d)(?P<below>\d))?")
_SAME_SIGN = str.maketrans({"−": "-", "–": "-", "×": "*", "·": "*", "÷": "/"})
_CHARACTERS = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"\d+(?:\.\d+)?|[{_CHARACTERS}]|[^\W\d_{_CHARACTERS}]+")
_WORD_OR_SIGN = re.compile(rf"{_WORD.pattern}|[-+*/^=<>%!]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A problem that must not be trained on, and where it is listed."""

    problem: str
    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """The listed problem that another one is like, and the words that both have in a row."""

    listed: Listed
    words: str


class Contamination:
    """An index of listed problems: time and memory grow with their words."""

    def __init__(self, listed: Iterable[Listed], ngram: int) -> None:
        self._ngram = ngram
        self._runs: dict[tuple[str, ...], Listed] = {}
        self._short: dict[tuple[str, ...], Listed] = {}
        for each in listed:
            found = words(each.problem)
            if len(found) >= ngram:
                for run in _runs(found, ngram):
                    self._runs.setdefault(run, each)
            elif found:
                self._short.setdefault(_words_and_signs(each.problem), each)

    def contaminated_by(self, problem: str) -> Match | None:
        """The first listed problem that shares the earliest such run of words with this one; None where none does."""
        found = words(problem)
        if len(found) < self._ngram:
            whole = _words_and_signs(problem)
            return Match(listed=self._short[whole], words=" ".join(found)) if whole in self._short else None
        if self._runs.keys().isdisjoint(_runs(found, self._ngram)):
            return None
        run = next(run for run in _runs(found, self._ngram) if run in self._runs)
        return Match(listed=self._runs[run], words=" ".join(run))


def words(text: str) -> list[str]:
    """The words of a problem, as the module says."""
    return _WORD.findall(_normal(text))


def _words_and_signs(text: str) -> tuple[str, ...]:
    return tuple(_WORD_OR_SIGN.findall(_normal(text)))


def _normal(text: str) -> str:
    lower = _COMMAS.sub("", normalize("NFC", text).lower().translate(_SAME_SIGN))
    return _FRACTION.sub(r"\\frac \g<above> \g<below> ", _ARRANGING.sub(" ", lower)) if "\\" in lower else lower


def _runs(found: list[str], length: int) -> Iterable[tuple[str, ...]]:
    return zip(*(found[start:] for start in range(length)), strict=False)
