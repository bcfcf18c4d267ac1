"""Settings of the checkers: grader=math (grader=default on the command line) and grader=code."""

import re
from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge
from annotated_types import Interval as Range

from pipeline.config.choices import Fallback, Sandbox
from pipeline.config.fields import FREE, RELABEL, check
from pipeline.config.label import GraderConfig


@dataclass(kw_only=True, slots=True)
class MathConfig(GraderConfig):
    kind: Annotated[str, RELABEL] = "math"
    fallback: Annotated[Fallback, RELABEL] = Fallback.closing_statement
    """What counts as the answer of a text without `\\boxed{}`, `####` or "the answer is": what its closing line comes down to
    (its last formula, number, choice or bold words), the last number anywhere, or nothing, which is the verdict no_answer."""
    answer_pattern: Annotated[str | None, RELABEL] = None
    """A regular expression whose last match's first group is the final answer, before any built-in marker."""
    relative_tolerance: Annotated[float, Range(ge=0, lt=0.1), RELABEL] = 0.0
    """For decimal numbers; 0: exact."""

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
    """What a program may use decides whether it is right, and so is part of a run's identity."""

    kind: Annotated[str, RELABEL] = "code"
    memory_mib: Annotated[int, Ge(512), RELABEL] = 2048
    """Memory that a program may use."""
    relative_tolerance: Annotated[float, Range(ge=0, lt=0.1), RELABEL] = 0.0
    """For numbers that a test writes as decimals; 0: exact."""
    cpu_seconds: Annotated[float, Range(gt=0, le=600), RELABEL] = 4.0
    """Processor time that a program may use on one test of standard input, or on one suite of calls."""
    suite_seconds: Annotated[float, Range(gt=0, le=3600), RELABEL] = 60.0
    """Wall time after which no further test of a suite is begun."""
    sandbox: Annotated[Sandbox, FREE, RELABEL] = Sandbox.standard
    """What the machine must be able to keep programs from; without it nothing runs."""
