"""`policy=programs`: the oracle, with a right or a wrong program as its answer, so that every rollout runs in the sandbox.

`offered` makes it known to the command line, the way an installed distribution does.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from pipeline.config.fields import BY_GROUP
from pipeline.config.label import SamplingConfig
from pipeline.core.records import Completion
from pipeline.engines.base import Engine, Surroundings
from pipeline.engines.oracle import Oracle, OracleEngine, OraclePolicyConfig
from pipeline.graders.base import Ending
from tests.conftest import write_rows

SUITE = ("assert square(2) == 4", "assert square(3) == 9")
_PROGRAM = "I write a function.\n```python\ndef square(x):\n    return x {sign} x  # {name}\n```\nDone."


@dataclass(kw_only=True, slots=True)
class ProgramsConfig(OraclePolicyConfig):
    kind: Annotated[str, BY_GROUP] = "programs"


class ProgramsEngine(OracleEngine):
    """Its programs differ in a comment, so that no verdict is remembered."""

    def _garbled(self, batch: Sequence[Completion]) -> Sequence[Completion]:
        return [replace(each, text=_program(each)) for each in super()._garbled(batch)]


class Programs(Oracle):
    Config = ProgramsConfig

    def engine(self, sampling: SamplingConfig, ending: Ending | None, around: Surroundings) -> Engine:
        return ProgramsEngine(self.settings, attempt=around.attempt)


def offered(site: Path) -> Path:
    """A folder for `PYTHONPATH` with a distribution that offers the policy."""
    known = site / "stepvalue_programs-1.0.dist-info"
    known.mkdir(parents=True)
    (known / "METADATA").write_text("Metadata-Version: 2.1\nName: stepvalue-programs\nVersion: 1.0\n")
    (known / "entry_points.txt").write_text(f"[stepvalue.engines]\nprograms = {__name__}:{Programs.__name__}\n")
    return site


def problems(path: Path, count: int) -> Path:
    """An input of so many problems with a chain each."""
    rows = (
        {"id": f"p{n}", "problem": f"Write square(x), number {n}.", "answer": list(SUITE),
         "solution": _PROGRAM.format(sign="*" if n % 2 else "+", name=n)}
        for n in range(count)
    )  # fmt: skip
    return write_rows(path, rows)


def _program(answer: Completion) -> str:
    """In place of an answer of the oracle, which quotes the whole suite where it is right."""
    right = answer.request.problem.golds[0] in answer.text
    return _PROGRAM.format(sign="*" if right else "+", name=answer.request.request_id)
