"""Steps of people and of models with the first error that people have marked, from the data beside this checkout."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.verifiers.base import Finding, StepInContext, StepVerdict, Verifier
from tests.checkout import ROOT

SHARED = ROOT.parent / "shared" / "data"
HUMAN = SHARED / "gsm8k_dev.jsonl"
MARKED = SHARED / "processbench_dev.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class RealStep:
    """A step. `is_error`: people marked it as the first error of its chain; steps after it are left out."""

    chain: str
    context: StepInContext
    is_error: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a verifier said of a step, and the processor time that it took, in milliseconds."""

    step: RealStep
    found: Finding
    ms: float


def human_steps() -> list[RealStep]:
    """The steps of 300 solutions that people wrote."""
    return [step for row in _rows(HUMAN) for step in _steps(row, -1)]


def marked_steps() -> list[RealStep]:
    """The steps of 190 chains that models wrote, up to the first error of each."""
    return [step for row in _rows(MARKED) for step in _steps(row, row["first_error"])]


def asked(verifier: Verifier, steps: list[RealStep]) -> list[Asked]:
    """What a verifier says of steps."""
    found = []
    for step in steps:
        began = time.process_time_ns()
        said = verifier.verify(step.context)
        found.append(Asked(step=step, found=said, ms=(time.process_time_ns() - began) / 1e6))
    return found


def refuted(answers: list[Asked]) -> list[Asked]:
    return [each for each in answers if each.found.verdict is StepVerdict.REFUTED]


def _rows(file: Path) -> Iterator[dict[str, Any]]:
    with file.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def _steps(row: dict[str, Any], first_error: int) -> Iterator[RealStep]:
    last = len(row["steps"]) if first_error < 0 else first_error + 1
    for at, text in enumerate(row["steps"][:last]):
        context = StepInContext(problem=row["problem"], earlier=tuple(row["steps"][:at]), step=text)
        yield RealStep(chain=row["id"], context=context, is_error=at == first_error)
