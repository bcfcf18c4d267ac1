"""kill -9 of the driver and of a worker at every failpoint, and a full disk at every write."""

import os
import re
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pipeline.core.failpoints import ARMED, COUNTED
from tests.conftest import ROOT
from tests.faults.runs import MORE, Found, Scene, Scenes, assert_same, found

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(280)]

AT_ONCE = 2
FRESH_POINTS = 80
REPAIRING_POINTS = 25
FULL_POINTS = 20
LAST_POINTS = 8
Point = tuple[str, int]


def counted(scene: Scene, *overrides: str) -> dict[str, list[Point]]:
    """Every point that a run without faults reaches, with the number of the hit, by the kind of process."""
    logs = {role: scene.folder / f"{role}-hits" for role in ("driver", "worker")}
    scene.finish(
        *overrides,
        driver_environment={COUNTED: str(logs["driver"])},
        worker_environment={COUNTED: str(logs["worker"])},
    )
    hits = {role: Counter(log.read_text().split()) for role, log in logs.items()}
    return {
        role: [(name, hit) for name, times in counts.items() for hit in range(1, times + 1)]
        for role, counts in hits.items()
    }


def in_parallel(test: Callable[[Point], None], points: Sequence[Point]) -> None:
    """Run a test for each point, and tell which failed. Slow as the disk is, two at a time take half as long."""

    def outcome(point: Point) -> str:
        try:
            test(point)
        except (AssertionError, TimeoutError) as error:
            return f"{point}: {error}"
        return ""

    with ThreadPoolExecutor(AT_ONCE) as pool:
        failures = [failure for failure in pool.map(outcome, points) if failure]
    assert not failures, "\n".join(failures)


def finished_and_damaged(scene: Scene) -> None:
    """A finished run with a damaged file: its next start repairs, and moves labels."""
    scene.finish()
    victim = sorted((scene.run_dir / "rollouts").iterdir())[0]
    os.truncate(victim, 100)


@pytest.mark.parametrize("role", ["driver", "worker"])
@pytest.mark.parametrize("repairs", [False, True], ids=["a fresh run", "a run that repairs and extends"])
def test_killed_at_every_failpoint(role: str, repairs: bool, scenes: Scenes, request: pytest.FixtureRequest) -> None:
    more = (MORE,) if repairs else ()
    expected = request.getfixturevalue("extended" if repairs else "reference")

    def begun(name: str) -> Scene:
        scene = scenes(name)
        if repairs:
            finished_and_damaged(scene)
        return scene

    def killed(point: Point) -> None:
        scene = begun(f"{point[0]}-{point[1]}")
        kill_at(scene, role, point, *more)
        assert_same(scene, expected)

    points = counted(begun("counted"), *more)[role]
    in_parallel(killed, thinned(points, REPAIRING_POINTS if repairs else FRESH_POINTS))


def test_killed_while_it_learns_from_all_units(scenes: Scenes) -> None:
    # One unit after the other, so that each begins with the same state whenever the run was killed.
    asked = ("estimator=pooled", "run.units_in_flight=1", "sampling.rollouts=4")
    calm = scenes("calm")
    driver = counted(calm, *asked)["driver"]
    last = driver[driver.index(("driver.arrange", 1)) :]

    def killed(point: Point) -> None:
        scene = scenes(f"{point[0]}-{point[1]}")
        kill_at(scene, "driver", point, *asked)
        assert_same(scene, found(calm.run_dir))

    in_parallel(killed, last[:: max(1, len(last) // LAST_POINTS)])


def thinned(points: Sequence[Point], most: int) -> Sequence[Point]:
    """About `most` points spread over all, the first hit of each name among them."""
    step = -(-len(points) // most)
    return [point for at, point in enumerate(points) if point[1] == 1 or at % step == 0]


def kill_at(scene: Scene, role: str, point: Point, *overrides: str) -> None:
    """Kill a process at a point of the code; a driver is started again, a worker is replaced by its driver."""
    environment = {ARMED: f"{point[0]}:kill:{point[1]}"}
    start = scene.start(*overrides, **{f"{role}_environment": environment})
    code = start.wait()
    assert code in ((-9, 0) if role == "driver" else (0,)), start.output
    if code:
        scene.finish(*overrides)


@pytest.mark.parametrize("role", ["driver", "worker"])
def test_a_full_disk_at_every_write_ends_the_run_and_the_next_start_finishes_it(
    role: str, scenes: Scenes, reference: Found
) -> None:
    codes: list[int] = []

    def full(point: Point) -> None:
        scene = scenes(f"{point[0]}-{point[1]}")
        start = scene.start(**{f"{role}_environment": {ARMED: f"{point[0]}:enospc:{point[1]}"}})
        code = start.wait()
        codes.append(code)
        # A worker's flush that fails while its unit is completed loses nothing: the completion writes the same rows again.
        assert code == 1 or (code == 0 and role == "worker"), start.output
        assert code == 0 or "No space left on device; free disk space" in start.output, start.output
        assert "Traceback" not in start.output, start.output
        scene.finish()
        assert_same(scene, reference)

    points = counted(scenes("counted"))[role]
    writes = [point for point in points if point[0] in ("disk.write", "disk.sync", "disk.link", "disk.sync_folder")]
    in_parallel(full, thinned(writes, FULL_POINTS))
    assert codes.count(1) > len(codes) / 2


def test_every_failpoint_of_the_code_is_one_that_the_sweeps_reach(scenes: Scenes) -> None:
    in_code = {
        name
        for path in Path(ROOT, "pipeline").rglob("*.py")
        for name in re.findall(r'failpoint\("([a-z_.]+)"\)', path.read_text())
    } - {"name"}
    fresh, repaired = scenes("fresh"), scenes("repaired")
    finished_and_damaged(repaired)
    reached = [*counted(fresh).values(), *counted(repaired, MORE).values()]
    assert in_code == {name for points in reached for name, _ in points}
