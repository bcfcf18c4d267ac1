"""One seed, one schedule, one verdict."""

from collections.abc import Sequence

from tests.faults.schedules import drawn
from tests.faults.sim import Scenario, play
from tests.faults.world import World

SHOWN_EVENTS = 40


def played(seed: int, scenarios: Sequence[Scenario]) -> World:
    number, schedule = drawn(seed)
    return play(seed, scenarios[number % len(scenarios)], schedule)


def complaint(seed: int, scenarios: Sequence[Scenario]) -> str | None:
    """What a schedule brought to light, and how to see it again; None where all is well."""
    world = played(seed, scenarios)
    if not world.violations:
        return None
    faults, events = "\n".join(world.violations), "\n".join(world.trace[-SHOWN_EVENTS:])
    return f"seed {seed} (again: SEED={seed} pytest tests/faults/test_simulated.py -k schedules):\n{faults}\n{events}"
