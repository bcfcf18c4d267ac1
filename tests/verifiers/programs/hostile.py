"""Programs that want to pass tests without being right, to blame other steps, or to reach out of the sandbox.

In attacks.txt, `{bad}` stands for a function whose results are wrong. None of these steps may hold as a whole,
and no step after one of them may be refuted where it is right by itself.
"""

import ast
import re
from collections.abc import Mapping
from pathlib import Path

from pipeline.verifiers.base import StepInContext
from tests.verifiers.programs.functions import NAMED, Task
from tests.verifiers.programs.generated import fenced, problem_of

FILE = "stepvalue-written-by-a-step"
CARRIERS = ("square", "caesar", "unique", "is_prime")
_PARTS = re.split(r"^=== (.*)\n", (Path(__file__).parent / "attacks.txt").read_text("utf-8"), flags=re.MULTILINE)[1:]
ATTACKS: Mapping[str, str] = {name: source.strip("\n") for name, source in zip(_PARTS[::2], _PARTS[1::2], strict=True)}
SABOTAGE: Mapping[str, str] = {
    "len is another function": "import builtins\nbuiltins.len = None",
    "range is hidden": "range = None",
    "sorted raises": "import builtins\ndef fail(*given):\n    raise ValueError\nbuiltins.sorted = fail",
    "an exception later": "import threading\nthreading.Timer(0.01, lambda: 1 / 0).start()",
    "a trace that raises": "import sys\ndef trace(*given):\n    raise KeyError\nsys.settrace(trace)",
    "statements for later": 'import os\nos.write(7, b\'{"cell": 1, "error": "ValueError", "bases": ["Exception"]}\')',
    "frames": "import sys\nsys._getframe(1).f_globals['compile'] = None",
    "an import hook": "import sys\nsys.meta_path.insert(0, None)",
}


def wrong_body(task: Task, calls: tuple[str, ...]) -> str:
    """A body that fails one of the calls."""
    return next(body for body in task.wrong if not task.passes(body, calls))


def attack(attack: str, name: str) -> StepInContext:
    """A hostile step in place of a function, with the tests of the problem."""
    task = NAMED[name]
    calls = task.calls[:4]
    known = dict(zip(task.calls, task.values, strict=True))
    table = {repr(ast.literal_eval(f"({call},)")): known[call] for call in calls}
    text = ATTACKS[attack].format(
        name=name,
        signature=task.head.removeprefix(f"{name}(")[:-1],
        bad=task.source(wrong_body(task, calls)),
        good=task.source(task.right),
        call=calls[0],
        value=repr(known[calls[0]]),
        table=repr(table),
    )
    return StepInContext(problem=problem_of(task, calls, "asserts"), earlier=(), step=fenced(text))


def hostile_steps() -> dict[str, StepInContext]:
    """Each attack in place of each function. None may hold as a whole."""
    return {f"{kind}: {name}": attack(kind, name) for kind in ATTACKS for name in CARRIERS}


def after_sabotage() -> dict[str, StepInContext]:
    """Right steps after hostile ones. None may be refuted."""
    found: dict[str, StepInContext] = {}
    for kind, source in SABOTAGE.items():
        for name in ("square", "unique", "median"):
            task = NAMED[name]
            problem = problem_of(task, task.calls[:4], "asserts")
            earlier = (fenced(source),)
            found[f"{kind}: {name}"] = StepInContext(
                problem=problem, earlier=earlier, step=fenced(task.source(task.right))
            )
    return found
