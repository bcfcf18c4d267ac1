"""CPU time of the machines of search: what one problem costs beside its engines, for each sampled step.

Answers are computed before, so that only the machine, its method and their questions count.
"""

import time
from statistics import median

from pipeline.searches.base import Ask
from pipeline.searches.machine import Machine
from pipeline.searches.registry import SEARCHES
from tests.searches.worlds import TreeWorld, WorldKind, problem_of, run, search_of, task_of

KIND = WorldKind(seed=9, depth=12, branching=4, mean=0.3)
SIZES = (16, 64, 256)
PROBLEMS = 12
WANTED = 200.0
"""Microseconds for each step and machine."""
_MICROSECONDS = 1e6


def search_cpu() -> None:
    print(f"\nsearch: CPU time of a machine for each step, wanted <= {WANTED:g} us; median of {PROBLEMS} problems")
    print(f"  {'method':<12}" + "".join(f"{f'n = {n}':>10}" for n in SIZES))
    for method in SEARCHES.our_settings():
        print(f"  {method:<12}" + "".join(f"{median(costs(method, n)):>7.0f} us" for n in SIZES), flush=True)


def costs(method: str, n: int) -> list[float]:
    """Microseconds for each sampled step, of each problem."""
    search = search_of(method, n=n)
    found = []
    for number in range(PROBLEMS):
        world = TreeWorld(KIND, problem_of(number), newest_only=search.newest_only)
        answers: dict[str, object] = {}

        def answer(ask: Ask, world: TreeWorld = world, answers: dict[str, object] = answers) -> object:
            answers[ask.key] = world.answer(ask)
            return answers[ask.key]

        task = task_of(world, search.settings)
        run(Machine(search.search(task)), answer)
        steps, began = world.steps, time.process_time()
        run(Machine(search.search(task)), lambda ask, answers=answers: answers[ask.key])  # type: ignore[misc]
        found.append((time.process_time() - began) / steps * _MICROSECONDS)
    return found
