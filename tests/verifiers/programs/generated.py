"""Generated chains of Python steps with known truth: which step is right, and which fails a test that is its own to pass."""

import random
from collections.abc import Iterator
from dataclasses import dataclass

from pipeline.verifiers.base import StepInContext
from tests.verifiers.programs.functions import TASKS, Task


@dataclass(frozen=True, kw_only=True)
class KnownStep:
    """A step and the truth. `passes`: whether it passes all tests that it may be judged by. `proved`: whether these are the
    problem's and look at all of it. `right`: whether its function is right for all calls, also those that no test makes."""

    family: str
    step: StepInContext
    passes: bool
    proved: bool
    right: bool


def fenced(source: str, words: str = "") -> str:
    """A step with a block of Python."""
    return f"{words}\n```python\n{source}\n```".lstrip()


def problem_of(task: Task, calls: tuple[str, ...], style: str) -> str:
    """A problem with tests for these calls."""
    known = dict(zip(task.calls, task.values, strict=True))
    if style == "asserts":
        lines = "\n".join(f"assert {task.name}({call}) == {known[call]!r}" for call in calls)
        asked = f"Write a function {task.head} that returns {task.does}."
        return f"{asked}\nYour code should pass these tests:\n{lines}"
    examples = "\n".join(f"    >>> {task.name}({call})\n    {known[call]!r}" for call in calls)
    return f'def {task.head}:\n    """Return {task.does}.\n\n{examples}\n    """\n'


def known_steps(count: int, seed: int) -> Iterator[KnownStep]:
    """Steps, right and wrong ones in turn."""
    draw = random.Random(seed)
    for number in range(count):
        task = TASKS[number // 2 % len(TASKS)]
        body = draw.choice(task.wrong) if number % 2 else task.right
        family = ("asserts", "examples", "with words", "two steps", "own tests", "own examples", "cells")[
            number // 2 % 7
        ]
        yield _step(family, task, body, draw)


def _step(family: str, task: Task, body: str, draw: random.Random) -> KnownStep:
    calls = tuple(draw.sample(task.calls, 4))
    source = task.source(body)
    passes, right = task.passes(body, calls), task.passes(body, task.calls)
    problem, proved = problem_of(task, calls, "asserts"), True
    earlier: tuple[str, ...] = ()
    text = fenced(source)
    known = dict(zip(task.calls, task.values, strict=True))
    match family:
        case "examples":
            problem = problem_of(task, calls, "examples")
        case "with words":
            text, proved = fenced(source, f"The function returns {task.does}."), False
        case "two steps":
            earlier = (fenced("import math\n\nLIMIT = 100", "First some constants."), "Now the function itself.")
        case "own tests":
            problem, proved = f"Write {task.name}.", False
            text = fenced("\n".join([source, *(f"assert {task.name}({call}) == {known[call]!r}" for call in calls)]))
        case "own examples":
            problem, proved = f"Write {task.name}.", False
            shown = "\n".join(f"    >>> {task.name}({call})\n    {known[call]!r}" for call in calls)
            head, _, rest = source.partition("\n")
            text = fenced(f'{head}\n    """Return {task.does}.\n\n{shown}\n    """\n{rest}')
        case "cells":
            problem, proved = "", False
            earlier = (fenced("values = [3, 1, 2]"), fenced("total = sum(values)"))
            text = fenced(f"{source}\nassert {task.name}({calls[0]}) == {known[calls[0]]!r}")
            passes = task.passes(body, calls[:1])
        case _:
            pass
    step = StepInContext(problem=problem, earlier=earlier, step=text)
    return KnownStep(family=family, step=step, passes=passes, proved=proved, right=right)
