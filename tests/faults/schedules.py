"""Schedules drawn from a seed: which faults come together, and when, and what comes of it."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
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


def scenarios(folder: Path) -> list[Scenario]:
    """As small as can be, with every way a chain comes to be, and every estimator. `folder` gets their input files."""
    one = [_given(1, "right", 2), _given(1, "wrong", 5)]
    several = [_given(3, "right", 6), _given(6, "right", 12), _given(8, "wrong", 3)]
    return [
        Scenario(folder, "given", one, "fixed"),
        Scenario(folder, "both", [_given(4, "open", None), _bare(7)], "fixed"),
        Scenario(folder, "several", several, "fixed"),
        Scenario(folder, "stopped", one, "first_success"),
        Scenario(folder, "searched", one, "bisect"),
        Scenario(folder, "pooled", several[1:], "pooled"),
        Scenario(folder, "growing", [*one, _given(3, "right", 6)], "fixed", [_given(1, "late", 7), _bare(9)]),
    ]


def _given(number: int, kind: str, last: int | None) -> dict[str, object]:
    steps = [f"{number} + {number} = {2 * number}."] + ([f"The answer is {last}."] if last is not None else [])
    return {"id": f"{number}-{kind}", **_problem(number), "steps": steps}


def _bare(number: int) -> dict[str, object]:
    return {"id": f"{number}-bare", **_problem(number)}


def _problem(number: int) -> dict[str, object]:
    return {"problem": f"{number} + {number}?", "answer": str(2 * number)}
