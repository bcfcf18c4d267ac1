"""Finds problems that must not be trained on: they share `ngram` words in a row with a listed problem.

A word is a run of letters or a number, in lower case, or one Chinese or Japanese character. In LaTeX, the names of commands and
their contents are words, except for commands that only change the layout (`\\left`, `\\text`, `\\displaystyle`). `\\dfrac` and
`\\tfrac` count as `\\frac`, `\\frac13` as `\\frac{1}{3}`, `1{,}000` and `1,000` as `1000`. Signs are not words, so two equal
runs of words may differ in a plus and a minus.

A problem with fewer words than `ngram` is compared as a whole, signs included, and only with listed problems that are also
shorter than `ngram`. Not found: a paraphrase, a translation, other numbers or names in the same text, a short listed problem
within a longer one, and a formula in another notation (`1/2` and `\\frac{1}{2}`). A problem without words never matches.

The listed problems are read from files or data sets. An incomplete list would not protect, so a single unusable row ends the
command.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from unicodedata import normalize

from pipeline.core.errors import InputError
from pipeline.core.records import Reject, RowLocation
from pipeline.data.layouts import column, column_names
from pipeline.data.rows import blame, open_lines, read_rows
from pipeline.export.settings import DecontaminateConfig

_COMMAS = re.compile(r"(?<=\d)(?:,|\{,\}|\\,|\\!)(?=\d{3}(?!\d))")
_ARRANGING = re.compile(
    r"\\(?:left|right|bigg?[lr]?|displaystyle|textstyle|text|textbf|textit|mathrm|mathbf|mathit|rm|quad|qquad|operatorname)(?![a-z])"
)
_FRACTION = re.compile(r"\\[dt]?frac(?![a-z])(?:\s*(?P<above>\d)(?P<below>\d))?")
_SAME_SIGN = str.maketrans({"−": "-", "–": "-", "×": "*", "·": "*", "÷": "/"})
_CHARACTERS = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"\d+(?:\.\d+)?|[{_CHARACTERS}]|[^\W\d_{_CHARACTERS}]+")
_WORD_OR_SIGN = re.compile(rf"{_WORD.pattern}|[-+*/^=<>%!]")
SETTING = "decontaminate.paths"
TEXT = ".txt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A problem that must not be trained on, and its location in the list."""

    problem: str
    location: RowLocation


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """The listed problem that matches another problem, and the words in a row that they share."""

    listed: Listed
    words: str


class Contamination:
    """An index of listed problems. Time and memory grow with their number of words."""

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
        """The first listed problem that has the earliest shared run of words of `problem`; None without a match."""
        found = words(problem)
        if len(found) < self._ngram:
            whole = _words_and_signs(problem)
            return Match(listed=self._short[whole], words=" ".join(found)) if whole in self._short else None
        if self._runs.keys().isdisjoint(_runs(found, self._ngram)):
            return None
        run = next(run for run in _runs(found, self._ngram) if run in self._runs)
        return Match(listed=self._runs[run], words=" ".join(run))


def contamination(config: DecontaminateConfig) -> Contamination:
    """The index of all problems in `config.paths`.

    Raises InputError for a path that does not exist, a file that cannot be read, and a row without a text in the column.
    """
    return Contamination((each for path in config.paths for each in _some(path, config.column)), config.ngram)


def words(text: str) -> list[str]:
    """The words of a problem, as defined in the module docstring."""
    return _WORD.findall(_normal(text))


def _words_and_signs(text: str) -> tuple[str, ...]:
    return tuple(_WORD_OR_SIGN.findall(_normal(text)))


def _normal(text: str) -> str:
    lower = _COMMAS.sub("", normalize("NFC", text).lower().translate(_SAME_SIGN))
    return _FRACTION.sub(r"\\frac \g<above> \g<below> ", _ARRANGING.sub(" ", lower)) if "\\" in lower else lower


def _runs(found: list[str], length: int) -> Iterable[tuple[str, ...]]:
    return zip(*(found[start:] for start in range(length)), strict=False)


def _some(path: str, name: str) -> Iterator[Listed]:
    empty = True
    for each in _listed(path, name):
        empty = False
        yield each
    if empty:
        raise InputError(f"{SETTING}: {path} lists no problem, so nothing would be filtered; check the file")


def _listed(path: str, name: str) -> Iterator[Listed]:
    if path.lower().endswith(TEXT):
        yield from _text_lines(Path(path))
        return
    for location, row in read_rows(path, None, SETTING):
        if isinstance(row, Reject):
            raise InputError(f"{SETTING}: {location.file}, row {location.line}: {row.detail}")
        problem = column(row, name)
        if not isinstance(problem, str):
            raise InputError(
                f"{SETTING}: {location.file}, row {location.line}: the column {name!r} holds no text; set decontaminate.column "
                f"to the column with the problem. The row has: {column_names(row)}"
            )
        yield Listed(problem=problem, location=location)


def _text_lines(path: Path) -> Iterator[Listed]:
    with blame(SETTING, path), open_lines(path) as stream:
        for number, line in enumerate(stream, start=1):
            try:
                problem = line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
            except UnicodeDecodeError as error:
                raise InputError(f"{SETTING}: {path}, line {number} is not UTF-8: convert the file") from error
            if problem:
                yield Listed(problem=problem, location=RowLocation(file=str(path), line=number))
