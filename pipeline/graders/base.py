"""The interface of a checker inside the pipeline (`Checker`), and the one that a plug-in implements (`Grader`)."""

from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar, Protocol, Self

from pipeline.config.label import GraderConfig
from pipeline.core.records import Grade, Verdict

MAX_ANSWER_KEPT = 1_000
"""A `Grade` keeps at most this many characters of an answer."""
# When no gold matches, the result is the first of these verdicts that occurred, else INCORRECT.
_PRECEDENCE = (Verdict.TIMEOUT, Verdict.CRASHED, Verdict.OVER_LIMIT, Verdict.UNPARSEABLE)


def of_any(verdicts: Collection[Verdict | None]) -> Verdict:
    """The verdict on an answer, from its verdicts against each gold. It is CORRECT if any of them is."""
    if Verdict.CORRECT in verdicts:
        return Verdict.CORRECT
    return next((verdict for verdict in _PRECEDENCE if verdict in verdicts), Verdict.INCORRECT)


class Ending(Protocol):
    """Detects that a growing text has stated its final answer. Engines use it to end completions there."""

    def may_state(self, piece: str) -> bool:
        """Whether a line may state an answer. This test is quick, and false for most lines."""

    def complete(self, text: str) -> bool:
        """Whether a text has stated its final answer. Ignores everything after the last line end."""


class _Described(Protocol):
    """What the pipeline asks of a checker's class before it creates an instance."""

    Config: ClassVar[type[GraderConfig]] = GraderConfig
    """The settings: a subclass of `GraderConfig`, a dataclass, whose `kind` is the checker's name."""
    no_ending: ClassVar[str] = "does not say when a text has stated its answer"
    """Why completions cannot end at their answer. An error prints it after the checker's name if `ending_for` gives None."""

    @classmethod
    def ending_for(cls, config: Any) -> Ending | None:
        """Detects that a completion has stated its answer. None if this checker cannot detect it."""
        return None

    @classmethod
    def ends_by_default(cls, config: Any) -> bool:
        """Whether completions of base models end at their answer when no setting decides that."""
        return False


class Checker(_Described, Protocol):
    """Turns any text into a `Grade`. An answer is correct if it matches any of several golds. Usable from any thread."""

    def final_answer(self, text: str, *, complete: bool = True) -> str | None:
        """The answer that a whole output states, or None. `complete` is false for an output that was cut short."""

    def stated_answer(self, text: str, *, complete: bool = True) -> str | None:
        """The answer that a text marks as final, or None. It uses no fallback; for golds and given chains."""
        return self.final_answer(text, complete=complete)

    def quick(self, golds: tuple[str, ...], text: str, *, complete: bool = True) -> Grade | None:
        """The grade of a whole output if it is known at once, else None."""
        return self.quick_answer(golds, self.final_answer(text, complete=complete))

    def quick_answer(self, golds: tuple[str, ...], answer: str | None) -> Grade | None:
        """The grade of a bare answer if it is known at once, else None."""

    def grade(self, golds: tuple[str, ...], text: str, *, complete: bool = True) -> Grade:
        """The grade of a whole output. May wait for a child process."""
        return self.grade_answer(golds, self.final_answer(text, complete=complete) or "")

    def grade_answer(self, golds: tuple[str, ...], answer: str) -> Grade:
        """The grade of a bare answer. May wait for a child process."""

    def grade_patiently(self, golds: tuple[str, ...], answer: str) -> Grade:
        """Like `grade_answer`, for an answer that was late. May wait longer where it sees that the machine is busy."""
        return self.grade_answer(golds, answer)

    def parses(self, gold: str) -> bool:
        """Whether answers can be compared with `gold`. Called while input is read, before any model is loaded."""

    def close(self) -> None:
        """End the child processes."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


class Grader(_Described, Protocol):
    """The interface of a plugin: an installed distribution offers it under the entry point group `stepvalue.graders`.

    Each method takes a batch and returns a sequence of the same length. Several threads of the worker process call it, so code
    that runs for long or may crash belongs in a process of its own.
    """

    settings: GraderConfig

    def __init__(self, settings: Any) -> None:
        self.settings = settings

    @abstractmethod
    def extract(self, texts: Sequence[str], *, complete: bool) -> Sequence[str | None]:
        """For each whole output the answer that it states, or None. `complete` is false for outputs that were cut short."""

    @abstractmethod
    def grade(self, golds: Sequence[Sequence[str]], answers: Sequence[str]) -> Sequence[Verdict]:
        """The verdict on each answer. It is correct if it matches any of its golds."""

    @abstractmethod
    def parses(self, golds: Sequence[str]) -> Sequence[bool]:
        """For each gold, whether answers can be compared with it. Called while input is read, before any model is loaded."""

    def close(self) -> None:
        """Free all resources."""
        return


def _one_for_each(noun: str, wanted: str, is_wanted: Callable[[Any], bool]) -> Callable[..., str]:
    """A check that a method has returned one such value for each entry of its last argument."""

    def wrong(found: Any, *given: Sequence[object], **_named: object) -> str:
        if isinstance(found, Sequence) and len(found) == len(given[-1]) and all(map(is_wanted, found)):
            return ""
        return f"it must return {wanted} for each of {len(given[-1])} {noun}, but returned {found!r:.200}"

    return wrong


ANSWERS: Mapping[str, Callable[..., str]] = {
    "extract": _one_for_each("texts", "a text or None", lambda each: each is None or isinstance(each, str)),
    "grade": _one_for_each("answers", "a Verdict", lambda each: isinstance(each, str) and each in set(Verdict)),
    "parses": _one_for_each("golds", "true or false", lambda each: isinstance(each, bool)),
}
"""For each method of `Grader`, a function that checks what the method returned. It returns an error text, empty if valid."""
