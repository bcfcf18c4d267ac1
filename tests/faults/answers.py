"""`policy=answers`: the oracle with programs or expressions as answers, so that a child process grades every rollout."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated
from zlib import crc32

from pipeline.config.fields import BY_GROUP
from pipeline.config.label import SamplingConfig
from pipeline.core.records import Completion, Request
from pipeline.engines.base import Engine, Surroundings
from pipeline.engines.oracle import Oracle, OracleEngine, OraclePolicyConfig
from pipeline.graders.base import Ending
from tests.conftest import write_rows

SUITE = ("assert square(2) == 4", "assert square(3) == 9")
SINE = r"\sin(2x)"
_PROGRAM = "I write a function.\n```python\ndef square(x):\n    return x {sign} x  # {name}\n```\nDone."
_SUM = "I double the angle.\nThe answer is $2\\sin(x)\\cos(x)+{name}-{less}$."


@dataclass(kw_only=True, slots=True)
class AnswersConfig(OraclePolicyConfig):
    kind: Annotated[str, BY_GROUP] = "answers"


class AnswersEngine(OracleEngine):
    def _complete(self, request: Request, keep_tokens: bool) -> Completion:
        done = super()._complete(request, keep_tokens)
        return replace(done, text=_answer(done))


class Answers(Oracle):
    Config = AnswersConfig

    def engine(self, sampling: SamplingConfig, ending: Ending | None, around: Surroundings) -> Engine:
        return AnswersEngine(self.settings)


def code_problems(path: Path, count: int) -> Path:
    """An input of `count` problems with a suite and a chain each."""
    return write_rows(path, [
        {"id": f"p{n}", "problem": f"Write square(x), number {n}.", "answer": list(SUITE),
         "solution": _PROGRAM.format(sign="*" if n % 2 else "+", name=n)}
        for n in range(count)
    ])  # fmt: skip


def sums(path: Path, count: int) -> Path:
    """An input of `count` problems of mathematics with a chain each."""
    return write_rows(path, [
        {"id": f"p{n}", "problem": f"Double the angle of sin(x), number {n}.", "answer": SINE,
         "solution": _SUM.format(name=n, less=n + n % 2)}
        for n in range(count)
    ])  # fmt: skip


def _answer(oracle: Completion) -> str:
    """In place of an answer of the oracle, which quotes the gold where it is right. No two are the same, so each is graded."""
    request = oracle.request
    right = request.problem.golds[0] in oracle.text
    if request.problem.golds[0] == SINE:
        number = crc32(request.request_id.encode())
        return _SUM.format(name=number, less=number if right else number + 1)
    return _PROGRAM.format(sign="*" if right else "+", name=request.request_id)
