"""Settings of the built-in checkers: grader=math (grader=default on the command line), grader=code and grader=facts."""

import re
from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge
from annotated_types import Interval as Range

from pipeline.config.choices import Fallback, Sandbox, TimeoutIs, UnreadableIs
from pipeline.config.fields import FREE, RELABEL, TABLE, check
from pipeline.config.label import GraderConfig


@dataclass(kw_only=True, slots=True)
class MathConfig(GraderConfig):
    kind: Annotated[str, RELABEL] = "math"
    fallback: Annotated[Fallback, RELABEL] = Fallback.closing_statement
    """The answer of a text without `\\boxed{}`, `####` or "the answer is". closing_statement: the formula, number, choice or
    bold words that its last line states. last_number: its last number. none: no answer, so the verdict is no_answer."""
    answer_pattern: Annotated[str | None, RELABEL] = None
    """A regular expression that finds the final answer in a text. Its first group is the answer; the last match counts. It goes
    before the built-in markers, such as `\\boxed{}`. Example: `'answer: (.+)'`."""
    relative_tolerance: Annotated[float, Range(ge=0, lt=0.1), RELABEL] = 0.0
    """Relative tolerance between decimal numbers. 0: they must be exactly equal."""
    unreadable_is: Annotated[UnreadableIs, RELABEL] = UnreadableIs.ungraded
    """The verdict on an answer that cannot be read or compared, such as `\\boxed{@@}`, or is too large for it, where the known
    answers can be read. wrong: incorrect. ungraded: unparseable or over_limit, which a policy can learn to choose."""

    def check(self) -> None:
        if self.answer_pattern is None:
            return
        try:
            groups = re.compile(self.answer_pattern).groups
        except re.error as error:
            raise ValueError(f"grader.answer_pattern is not a regular expression: {error}") from error
        check(groups >= 1, "grader.answer_pattern", repr(self.answer_pattern), "a pattern with a group for the answer")


@dataclass(kw_only=True, slots=True)
class CodeConfig(GraderConfig):
    """A program's limits decide whether it passes, so they are part of the run's identity."""

    kind: Annotated[str, RELABEL] = "code"
    memory_mib: Annotated[int, Ge(512), RELABEL] = 2048
    """Memory limit of a program, in MiB."""
    relative_tolerance: Annotated[float, Range(ge=0, lt=0.1), RELABEL] = 0.0
    """Tolerance for numbers that a test writes as decimals. 0: they must be exactly equal."""
    cpu_seconds: Annotated[float, Range(gt=0, le=600), RELABEL] = 4.0
    """Processor time limit of a program, per test on standard input or per suite of calls or assertions."""
    suite_seconds: Annotated[float, Range(gt=0, le=3600), RELABEL] = 60.0
    """Wall time after which no further test of a suite on standard input is started. The verdict is then timeout."""
    timeout_is: Annotated[TimeoutIs, RELABEL] = TimeoutIs.wrong
    """The verdict on a program that sleeps, stops itself or crashes its tests, twice. wrong: incorrect, unless the machine was
    busy or out of memory. ungraded: timeout or crashed, which a policy can learn to choose."""
    sandbox: Annotated[Sandbox, FREE, RELABEL] = Sandbox.standard
    """The protection that the machine must provide. If it cannot, no program is run."""


@dataclass(kw_only=True, slots=True)
class FactsConfig(GraderConfig):
    kind: Annotated[str, RELABEL] = "facts"
    table: Annotated[str | None, RELABEL, TABLE] = None
    """A table of facts whose aliases count: an answer that names the same entity as the known answer is correct. It is a file
    as for `verifier.table`, on each machine, or `sample` for the shipped one. null: none."""
    relative_tolerance: Annotated[float, Range(ge=0, lt=0.5), RELABEL] = 0.0
    """Relative tolerance between numbers. 0: they must be exactly equal. A known answer may have its own: `8849 ± 5 m`."""
    fallback: Annotated[Fallback, RELABEL] = Fallback.closing_statement
    """The answer of a text without `\\boxed{}`, `####` or "the answer is", as with grader=math."""

    def check(self) -> None:
        named = self.table is None or bool(self.table.strip())
        check(named, "grader.table", repr(self.table), "a file, sample or null")
