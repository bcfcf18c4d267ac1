"""Makes a finished run whose values can be learned in seconds: steps of a sum have a high value until one has the wrong sign,
and a low value from there on."""

import random
from pathlib import Path
from typing import Any
from unittest.mock import patch

from pipeline.core.records import Completion, Request
from pipeline.engines import oracle
from tests.conftest import write_rows
from tests.runtime.in_process import label_in_process
from tests.settings import compose_label
from tests.tiny.arithmetic import Exercise, random_exercise

PROBLEMS = 80
VALUE_RIGHT, VALUE_WRONG = 0.95, 0.02


def sums(count: int, seed: int) -> list[dict[str, Any]]:
    """Rows of exercises, each with a correct chain and one with the wrong sign in a random step."""
    rng = random.Random(seed)
    rows = []
    for number in range(count):
        exercise = random_exercise(rng)
        for kind, steps in (("right", exercise.steps), ("wrong", _with_error(exercise, rng))):
            rows.append(
                {"id": f"{number}-{kind}", "problem": exercise.problem, "answer": str(exercise.answer), "steps": steps}
            )
    return rows


def is_right(step: str) -> bool:
    """Whether a step such as `12*3=36` is correct. No result of an exercise is negative."""
    return "=-" not in step


def learnable_run(folder: Path, *overrides: str, problems: int = PROBLEMS, seed: int = 1) -> Path:
    """The directory of a run on `sums`. Its rollouts succeed with the probability that is their prefix's value."""
    folder.mkdir(parents=True, exist_ok=True)
    data = write_rows(folder / "rows.jsonl", sums(problems, seed))
    complete = oracle.OracleEngine._complete

    def knowing(engine: oracle.OracleEngine, request: Request, keep_tokens: bool) -> Completion:
        steps = [line for line in request.prefix.text.splitlines() if line]
        engine._values[request.prefix.prefix_id] = VALUE_RIGHT if all(map(is_right, steps)) else VALUE_WRONG
        return complete(engine, request, keep_tokens)

    settings = [
        "policy=oracle",
        "estimator=fixed",
        "sampling.rollouts=8",
        "grader.answer_pattern='#([0-9]+)'",
        f"data.path={data}",
        f"run_dir={folder / 'run'}",
    ]
    with patch.object(oracle.OracleEngine, "_complete", knowing):
        label_in_process(compose_label([*settings, *overrides]))
    return folder / "run"


def _with_error(exercise: Exercise, rng: random.Random) -> list[str]:
    steps = exercise.steps
    at = rng.randrange(len(steps) - 1)
    return [*steps[:at], steps[at].replace("=", "=-"), *steps[at + 1 :]]
