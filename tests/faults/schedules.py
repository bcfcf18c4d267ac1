"""Schedules drawn from a seed: which faults come together, and when, and what comes of it."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

from tests.faults.disk import Strike
from tests.faults.sim import Scenario, Schedule, Start, play
from tests.faults.workers import Fate, Misdeed
from tests.faults.world import World

TARGETS = (2, 3)
MAX_UNHEALTHY = 2
"""Workers per start that meet a fate: one fewer than `run.attempts`, so that no start gives up."""
START_LASTS = 8.0
"""Seconds that a start takes about."""
START_EFFECTS = 150
SHOWN_EVENTS = 40


def drawn(seed: int) -> tuple[int, Schedule]:
    """(a number that chooses the scenario, the schedule)."""
    rng = Random(f"schedule {seed}")
    target = rng.choice(TARGETS)
    starts = [_start(rng, target, first=number == 0) for number in range(rng.choice((1, 1, 1, 2, 3)))]
    if rng.random() < 0.15:
        starts.append(_start(rng, target + 1, first=False))
    # From here on the input has its later rows, if it has any.
    grown = Random(f"growth {seed}").randrange(len(starts) + 1)
    return rng.randrange(1 << 16), Schedule(
        starts=[replace(start, grown=number >= grown) for number, start in enumerate(starts)],
        turns=rng.choice((0.1, 0.5, 1.0)),
        poison=[rng.randrange(1 << 16)] if rng.random() < 0.08 else [],
        staged=rng.random() < 0.9,
    )


def _start(rng: Random, target: int, *, first: bool) -> Start:
    times: dict[str, Any] = {
        name: rng.random() * START_LASTS if rng.random() < likely else None
        for name, likely in (
            ("killed", 0.15),
            ("power_cut", 0.12),
            ("stopped", 0.08),
            ("jumped", 0.05),
            ("second", 0.15),
        )
    }
    struck = rng.random() < 0.35
    return Start(
        target=target,
        workers=rng.choice((1, 2)),
        fates=[_fate(rng) for _ in range(rng.randint(0, MAX_UNHEALTHY))],
        strikes={_effect(rng): rng.choice(list(Strike)) for _ in range(rng.choice((1, 1, 2)))} if struck else {},
        second_target=target + rng.choice((0, 0, 1)),
        damage=0 if first or rng.random() < 0.7 else rng.choice((1, 1, 2)),
        **times,
    )


def _effect(rng: Random) -> int:
    return 1 + int(START_EFFECTS * rng.random() ** 1.5)


def _fate(rng: Random) -> Fate:
    when = rng.random() * START_LASTS
    deaf = rng.random() * 2 * START_LASTS if rng.random() < 0.5 else 0.0
    fates: Sequence[Fate] = (
        Fate(killed=when),
        Fate(severed=when, deaf=deaf),
        Fate(severed=when, deaf=deaf, lost=True),
        Fate(frozen=when, frozen_for=START_LASTS * 2, deaf=deaf),
        Fate(doubled=True),
        Fate(never_starts=True),
        *(Fate(misdeed=misdeed, after=rng.randrange(12), deaf=deaf) for misdeed in Misdeed),
    )
    return rng.choice(fates)


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
