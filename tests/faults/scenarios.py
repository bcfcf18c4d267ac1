"""Inputs of the schedules: as small as can be, with every way a chain comes to be, and every estimator."""

from pathlib import Path

from tests.faults.sim import Scenario


def scenarios(folder: Path) -> list[Scenario]:
    """`folder` is where their input files are written."""
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
