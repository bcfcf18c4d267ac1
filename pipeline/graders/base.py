"""What the rest of the pipeline knows of a checker. `pool` holds the one for mathematics."""

from collections.abc import Collection
from types import TracebackType
from typing import Protocol, Self

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


class Checker(Protocol):
    """Text in, `Grade` out, whatever the text holds; any of several golds counts. Usable from any thread."""

    def final_answer(self, text: str, *, complete: bool = True) -> str | None:
        """The answer that a whole output states, None where it states none. `complete` false: it was cut short."""

    def stated_answer(self, text: str, *, complete: bool = True) -> str | None:
        """The answer that a text marks as its final one, None where it marks none: no fallback, for golds and given chains."""

    def quick(self, golds: tuple[str, ...], text: str, *, complete: bool = True) -> Grade | None:
        """The grade of a whole output where it is known at once, else None."""

    def quick_answer(self, golds: tuple[str, ...], answer: str | None) -> Grade | None:
        """The grade of a bare answer where it is known at once, else None."""

    def grade(self, golds: tuple[str, ...], text: str, *, complete: bool = True) -> Grade:
        """The grade of a whole output, however long it takes."""

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
