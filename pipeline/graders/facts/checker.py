"""The checker of answers to factual questions: names with aliases, and numbers with units and tolerance.

Every answer is decided at once, in time that is bounded by the lengths of the texts, and without another process: it is equal
to a known answer or it is not. Nothing of a text is evaluated. Usable from any thread.

The answer of an output is found as the checker of mathematics finds it: `\\boxed{}`, "the answer is", `####`. Not covered: a
spelling that is neither among the known answers nor an alias in the table; dates in other words.
"""

import re
import time
from fractions import Fraction

from pipeline.core.records import Grade, Verdict
from pipeline.data.facts.quantities import EXACT, Tolerance, split_tolerance
from pipeline.data.facts.table import Table, equal_texts
from pipeline.graders.base import MAX_ANSWER_KEPT, Checker
from pipeline.graders.math import extract
from pipeline.graders.settings import FactsConfig

SETTING = "grader.table"
LONGEST_ANSWER = 400
"""Characters. A longer answer is no name and no number."""
_FONT = re.compile(r"\\(?:text|textbf|textit|mathrm|mathbf|ce)(?![A-Za-z])\s?")
_DEGREE = re.compile(r"\s?(?:\^\s?\{?\\circ\}?|°|\\degree)\s?(?=[CFK]?(?![A-Za-z]))")
_BRACED, _INDEX = re.compile(r"_\{(\d{1,3})\}"), re.compile(r"(?<=[A-Za-z)}])_(\d)")
_SMALL = re.compile(r"^(?:in|on|at|by|about|approximately)\s+(?=\S)", re.IGNORECASE)
_NO_ANSWER = Grade(verdict=Verdict.NO_ANSWER, answer="", ms=0.0)


class FactsChecker(Checker):
    """Grades names and numbers. Raises InputError and StoreError where the table of the settings cannot be used."""

    Config = FactsConfig

    @classmethod
    def ending_for(cls, config: FactsConfig) -> extract.AnswerSeen:
        return extract.AnswerSeen(pattern=None)

    @classmethod
    def ends_by_default(cls, config: FactsConfig) -> bool:
        return True

    def __init__(self, config: FactsConfig) -> None:
        self._config = config
        self._table = Table(config.table, SETTING) if config.table else None
        self._tolerance = Tolerance(Fraction(config.relative_tolerance), relative=True)

    def final_answer(self, text: str, *, complete: bool = True) -> str | None:
        """The answer that a text states. In a text that was cut short only an explicit statement counts, and not at its end."""
        return extract.final_answer(text, fallback=self._config.fallback, complete=complete)

    def stated_answer(self, text: str, *, complete: bool = True) -> str | None:
        """The answer that a text marks as final. Ignores `grader.fallback`."""
        return extract.final_answer(text, complete=complete)

    def quick_answer(self, golds: tuple[str, ...], answer: str | None) -> Grade:
        """The grade of a bare answer, which is always known at once."""
        if answer is None or not answer.strip():
            return _NO_ANSWER
        began = time.perf_counter()
        bare = _bare(answer)
        correct = any(self._is(gold, bare) for gold in golds)
        verdict = Verdict.CORRECT if correct else Verdict.INCORRECT
        return Grade(verdict=verdict, answer=answer[:MAX_ANSWER_KEPT], ms=1000 * (time.perf_counter() - began))

    def grade_answer(self, golds: tuple[str, ...], answer: str) -> Grade:
        """See `quick_answer`."""
        return self.quick_answer(golds, answer)

    def parses(self, gold: str) -> bool:
        """Whether answers can be compared with `gold`: a name or a number that is not too long."""
        return bool(_bare(gold))

    def close(self) -> None:
        if self._table is not None:
            self._table.close()

    def _is(self, gold: str, answer: str) -> bool:
        """Whether an answer is a known one. `gold` may have a tolerance of its own: `8849 ± 5 m`."""
        text, own = split_tolerance(_bare(gold))
        if not answer or not text:
            return False
        same = equal_texts(answer, text, self._tolerance if own == EXACT else own)
        return same or (self._table is not None and self._table.same_entity(answer, text))


def _bare(text: str) -> str:
    """A text without `\\boxed{}`, quotes, LaTeX for upright letters and indices, and a small word before it; empty where it is
    too long to be an answer."""
    if len(text) > LONGEST_ANSWER:
        return ""
    text = (extract.final_answer(text) if "\\boxed" in text else None) or extract.unwrap(text)
    text = _DEGREE.sub("°", _FONT.sub("", text))
    text = _INDEX.sub(r"\1", _BRACED.sub(r"_\1", text))
    return _SMALL.sub("", text.replace("{", "").replace("}", "") if "\\" not in text else text).strip()
