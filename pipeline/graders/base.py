"""What the rest of the pipeline knows of a checker (`Checker`), and what somebody's own has to do (`Grader`)."""

from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from types import TracebackType
from typing import Any, ClassVar, Protocol, Self

from pipeline.config.label import GraderConfig
from pipeline.core.records import Grade, Verdict

MAX_ANSWER_KEPT = 1_000
"""Characters of an answer that a `Grade` holds."""
# What several golds yield when none matched: the first of these that occurred.
_PRECEDENCE = (Verdict.TIMEOUT, Verdict.CRASHED, Verdict.OVER_LIMIT, Verdict.UNPARSEABLE)


def of_any(verdicts: Collection[Verdict | None]) -> Verdict:
    """The verdict on an answer of which these are the verdicts gold by gold: any right one counts."""
    if Verdict.CORRECT in verdicts:
        return Verdict.CORRECT
    return next((verdict for verdict in _PRECEDENCE if verdict in verdicts), Verdict.INCORRECT)


class Ending(Protocol):
    """When a text that is still being written has stated its final answer, for engines that end completions there."""

    def may_state(self, piece: str) -> bool:
        """Whether a line may state an answer: quick, and false for most."""
        ...

    def complete(self, text: str) -> bool:
        """Whether a text has stated a final answer that stands. What follows its last line end is not looked at."""
        ...


class _Described(Protocol):
    """What is asked of a checker's class before one is made."""

    Config: ClassVar[type[GraderConfig]] = GraderConfig
    """Its settings: a dataclass under `GraderConfig`, with its name as `kind`."""
    no_ending: ClassVar[str] = "does not say when a text has stated its answer"
    """Why completions cannot end at their answer, in a clause after its name; of one with an `ending`."""

    @classmethod
    def ending(cls, config: Any) -> Ending | None:
        """When a completion has stated its answer; None where that cannot be told."""
        return None

    @classmethod
    def ends_by_default(cls, config: Any) -> bool:
        """Whether completions of base models end at their answer where the settings leave that open."""
        return False


class Checker(_Described, Protocol):
    """Text in, `Grade` out, whatever the text holds; any of several golds counts. Usable from any thread."""

    def final_answer(self, text: str, *, complete: bool = True) -> str | None:
        """The answer that a whole output states, None where it states none. `complete` false: it was cut short."""

    def stated_answer(self, text: str, *, complete: bool = True) -> str | None:
        """The answer that a text marks as its final one, None where it marks none: no fallback, for golds and given chains."""
        return self.final_answer(text, complete=complete)

    def quick(self, golds: tuple[str, ...], text: str, *, complete: bool = True) -> Grade | None:
        """The grade of a whole output where it is known at once, else None."""
        return self.quick_answer(golds, self.final_answer(text, complete=complete))

    def quick_answer(self, golds: tuple[str, ...], answer: str | None) -> Grade | None:
        """The grade of a bare answer where it is known at once, else None."""

    def grade(self, golds: tuple[str, ...], text: str, *, complete: bool = True) -> Grade:
        """The grade of a whole output, however long it takes."""
        return self.grade_answer(golds, self.final_answer(text, complete=complete) or "")

    def grade_answer(self, golds: tuple[str, ...], answer: str) -> Grade:
        """The grade of a bare answer, however long it takes."""

    def parses(self, gold: str) -> bool:
        """Whether answers can be compared with `gold`. Asked when input is read, before any model is loaded."""

    def close(self) -> None:
        """End the child processes."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Grader(_Described, Protocol):
    """A checker of one's own: what an installed distribution offers under `stepvalue.graders`. Batches in, lists of the same
    length out. It is used from several threads, in the worker's process: what runs for long or may crash belongs elsewhere.
    """

    settings: GraderConfig

    def __init__(self, settings: Any) -> None:
        self.settings = settings

    @abstractmethod
    def extract(self, texts: Sequence[str], *, complete: bool) -> Sequence[str | None]:
        """The answer that each whole output states, None where it states none. `complete` false: they were cut short."""
        ...

    @abstractmethod
    def grade(self, golds: Sequence[Sequence[str]], answers: Sequence[str]) -> Sequence[Verdict]:
        """The verdict on each answer; any of its golds counts."""
        ...

    @abstractmethod
    def parses(self, golds: Sequence[str]) -> Sequence[bool]:
        """Whether answers can be compared with each gold. Asked when input is read, before any model is loaded."""
        ...

    def close(self) -> None:
        """Free what it holds."""


def _wrong_answers(found: Any, texts: Sequence[str], **_named: object) -> str:
    if not _is_list_of(found, len(texts), (str, type(None))):
        return f"it has to give a text or None for each of {len(texts)} texts, and gave {found!r:.200}"
    return ""


def _wrong_verdicts(found: Any, _golds: object, answers: Sequence[str]) -> str:
    if not _is_list_of(found, len(answers), (str, Verdict)) or any(each not in set(Verdict) for each in found):
        return f"it has to give a Verdict for each of {len(answers)} answers, and gave {found!r:.200}"
    return ""


def _wrong_readings(found: Any, golds: Sequence[str]) -> str:
    if not _is_list_of(found, len(golds), (bool,)):
        return f"it has to give true or false for each of {len(golds)} golds, and gave {found!r:.200}"
    return ""


def _is_list_of(found: Any, length: int, kinds: tuple[type, ...]) -> bool:
    return isinstance(found, Sequence) and len(found) == length and all(isinstance(each, kinds) for each in found)


ANSWERS: Mapping[str, Callable[..., str]] = {
    "extract": _wrong_answers,
    "grade": _wrong_verdicts,
    "parses": _wrong_readings,
}
"""What is wrong with the answers of a `Grader`, by method; empty: nothing."""
