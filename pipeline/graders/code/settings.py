"""Settings of grader=code."""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge
from annotated_types import Interval as Range

from pipeline.config.choices import Sandbox
from pipeline.config.fields import FREE, RELABEL
from pipeline.config.label import GraderConfig


@dataclass(kw_only=True, slots=True)
class CodeConfig(GraderConfig):
    """What a program may use decides whether it is right, and so is part of a run's identity."""

    kind: Annotated[str, RELABEL] = "code"
    memory_mib: Annotated[int, Ge(512), RELABEL] = 2048
    relative_tolerance: Annotated[float, Range(ge=0, lt=0.1), RELABEL] = 0.0
    """For numbers that a test writes as decimals; 0: exact."""
    cpu_seconds: Annotated[float, Range(gt=0, le=600), RELABEL] = 4.0
    """Processor time that a program may use on one test of standard input, or on one suite of calls."""
    suite_seconds: Annotated[float, Range(gt=0, le=3600), RELABEL] = 60.0
    """Wall time after which no further test of a suite is begun."""
    sandbox: Annotated[Sandbox, FREE, RELABEL] = Sandbox.standard
