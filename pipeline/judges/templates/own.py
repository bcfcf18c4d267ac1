"""A template of the user's own: a text file with fields, and a named parser for the answers.

The text is one turn of the user. `{problem}`, `{steps}` (lines that begin with `Step K: `), `{tagged_steps}` (`<step_K>`) and
`{answer}` are its fields. Other braces stay as they are, such as those of `\\boxed{}` or `x_{i}`; a word in braces that stands
alone and is no field is taken for a mistake.

The file is read when critiques are to be written, and for the identity of a run. Reading critiques needs no file.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from pathlib import Path

from pipeline.core.errors import UsageError
from pipeline.core.records import ChainText, Finish, Reading
from pipeline.judges.settings import JudgeParser
from pipeline.judges.templates.base import Messages, numbered_steps, shown_answer, tagged_steps
from pipeline.judges.templates.whole_chain import OfWholeChain
from pipeline.judges.verdicts import (
    Said,
    boxed_index,
    boxed_words,
    headings,
    index_reading,
    last_line_index,
    line_words,
    words_reading,
)

MOST_BYTES = 256 * 1024
"""The largest file of a template."""
_SETTING = "judge.template_file"
_FIELDS = ("problem", "steps", "tagged_steps", "answer")
_FIELD = re.compile(r"\{(" + "|".join(_FIELDS) + r")\}")
_UNKNOWN = re.compile(r"(?<![A-Za-z\\_^{}])\{([A-Za-z_]{1,64})\}")
_Reader = Callable[[str, Finish, int, int], Reading]
"""(text, finish, number of steps, index base) -> reading."""


class Own(OfWholeChain):
    """See the module. `file`: where the text is."""

    base = 0

    def __init__(self, index_base: int, *, parser: JudgeParser, file: str, show_answer: bool = False) -> None:
        super().__init__(index_base)
        self._read = _READERS[parser]
        self._file = file
        self._show_answer = show_answer

    @cached_property
    def text(self) -> str:
        """The content of the file. Raises UsageError where it cannot be a template."""
        text = _content(self._file)
        _refuse_unusable(self._file, text, show_answer=self._show_answer)
        return text

    def sha256(self) -> str:
        """The hash of the template. Raises UsageError as `text` does."""
        return sha256(self.text.encode()).hexdigest()

    def prompted(self, chain: ChainText, steps: Sequence[str]) -> tuple[Messages, str]:
        values = {
            "problem": chain.problem,
            "steps": numbered_steps(steps, self.index_base),
            "tagged_steps": tagged_steps(steps, self.index_base),
            "answer": shown_answer(chain) if self._show_answer else "",
        }
        return [{"role": "user", "content": _FIELD.sub(lambda field: values[field[1]], self.text)}], ""

    def verdict(self, turns: Sequence[str], finish: Finish, steps: int) -> Reading:
        return self._read(turns[-1], finish, steps, self.index_base)


def _by_index(index: Callable[[str], int | None]) -> _Reader:
    return lambda text, finish, steps, base: index_reading(index(text), finish, steps, base)


def _by_words(words: Callable[[str], Iterable[Said]]) -> _Reader:
    return lambda text, finish, steps, base: words_reading(list(words(text)), headings(text, base), finish, steps)


_READERS: Mapping[JudgeParser, _Reader] = {
    JudgeParser.boxed_index: _by_index(boxed_index),
    JudgeParser.boxed_words: _by_words(boxed_words),
    JudgeParser.line_words: _by_words(line_words),
    JudgeParser.last_line_index: _by_index(last_line_index),
}


def _content(file: str) -> str:
    try:
        with Path(file).expanduser().open("rb") as opened:
            raw = opened.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"{_SETTING}={file} cannot be read ({reason}): give the file of a template") from error
    if len(raw) > MOST_BYTES:
        raise UsageError(f"{_SETTING}={file} has more than {MOST_BYTES:,} bytes: give the file of a template")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{_SETTING}={file} is not UTF-8 (at byte {error.start:,}): save it as UTF-8") from error


def _refuse_unusable(file: str, text: str, *, show_answer: bool) -> None:
    """Raise UsageError unless the fields of a template are those that it needs."""
    has = {found[1] for found in _FIELD.finditer(text)}
    fields = ", ".join(f"{{{field}}}" for field in _FIELDS)
    for unknown in _UNKNOWN.finditer(text):
        if unknown[1] not in _FIELDS:
            line = text.count("\n", 0, unknown.start()) + 1
            raise UsageError(
                f"{_SETTING}={file}, line {line}: {{{unknown[1]}}} is no field: use {fields}, or write "
                f"{{ {unknown[1]} }} where no field is meant"
            )
    if "problem" not in has:
        raise UsageError(f"{_SETTING}={file} has no {{problem}}: write it where the problem stands")
    if not has & {"steps", "tagged_steps"}:
        raise UsageError(f"{_SETTING}={file} has no {{steps}} and no {{tagged_steps}}: write one where the steps stand")
    if "answer" in has and not show_answer:
        raise UsageError(
            f"{_SETTING}={file} shows the known answer: set judge.show_answer=true, or leave {{answer}} out of the file"
        )
    if show_answer and "answer" not in has:
        raise UsageError(
            f"judge.show_answer=true, but {_SETTING}={file} has no {{answer}}: write it where the known answer stands, or "
            "leave judge.show_answer out"
        )
