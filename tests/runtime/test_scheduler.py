"""The scheduler with workers that die, hang and disappear at chosen points, on the scripted cluster of `test_starting`."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.errors import EngineDied, Interrupted, StepvalueError, StoreError, WorkerLost
from pipeline.core.progress import Load
from pipeline.runtime.scheduler import TAIL_UNITS
from pipeline.runtime.worker import Snapshot
from pipeline.runtime.worker_handle import WorkerLocation
from tests.runtime.idle import job
from tests.runtime.test_starting import DEAD, FOREVER, Gpus, done, run

LOST = WorkerLost("its node died")


def test_why_a_worker_died_stays_as_a_warning() -> None:
    assert done(Gpus(count=2, befalls=[DEAD]), 2).shown[-1].warnings == (f"a worker was replaced: {DEAD}",)


def test_units_of_a_worker_that_died_are_counted_once() -> None:
    """What the next worker will count again is left out: all of the unfinished unit, but its finished rollouts."""
    died = Snapshot(begun=3, planned=72, prefixes=9, decided=7, rollouts=50, load=Load(running=20))
    left = died.left_by(1)
    assert (left.begun, left.planned, left.prefixes, left.decided, left.rollouts) == (2, 50, 6, 6, 50)
    assert left.load == Load()
    again = left + Snapshot(begun=1, planned=22, prefixes=3, decided=3, rollouts=22)
    assert (again.begun, again.planned, again.prefixes, again.decided, again.rollouts) == (3, 72, 9, 9, 72)


def test_a_worker_without_unfinished_units_or_with_nothing_begun_leaves_its_counts() -> None:
    finished = Snapshot(begun=2, planned=9, prefixes=6, decided=6, rollouts=9)
    assert finished.left_by(0) == finished
    assert Snapshot().left_by(2) == Snapshot()


@pytest.mark.parametrize("count", [1, 2, 8])
@pytest.mark.parametrize("loading", [0.1, 100.0])
def test_a_request_that_kills_every_engine_is_written_off_and_costs_no_place(count: int, loading: float) -> None:
    deadly = frozenset({"u5-2", "u40-0"})
    gpus = Gpus(count=count, deadly=deadly, faults={gpu: [loading] for gpu in range(count)})
    ended = done(gpus, count)
    assert gpus.written_off == deadly
    assert not any("without this place" in warning for warning in ended.warnings)


def test_workers_that_are_taken_away_cost_no_attempt() -> None:
    gpus = Gpus(count=1, befalls=[LOST] * 20)
    ended = done(gpus, 1, max_failures=1)
    assert gpus.hired == 21
    assert any("replacing a worker" in status.stage for status in ended.shown)


def test_a_place_where_no_worker_lives_ends_the_run() -> None:
    ended = run(Gpus(count=1, befalls=[LOST] * 1000), 1)
    assert isinstance(ended.error, EngineDied)
    assert "100 workers in a row were lost with their machines and no unit was finished" in str(ended.error)


def test_a_worker_that_hangs_is_replaced() -> None:
    (warning,) = done(Gpus(count=1, befalls=[FOREVER]), 1).warnings
    assert "run.stall_seconds" in warning


def test_a_worker_that_is_slow_and_moves_is_left_alone() -> None:
    gpus = Gpus(count=1, befalls=[1000.0], moves=True)
    ended = done(gpus, 1, stall_seconds=100)
    assert gpus.hired == 1
    assert ended.warnings == []


def test_too_many_failures_end_the_run_and_the_others_commit_what_they_have() -> None:
    gpus = Gpus(count=2, befalls=[DEAD] * 100)
    ended = run(gpus, 2, max_failures=7)
    assert isinstance(ended.error, EngineDied)
    assert "workers failed 7 times (run.max_failures)" in str(ended.error)
    assert "start the same command again" in str(ended.error)
    assert gpus.drained >= 2


@pytest.mark.parametrize("error", [StoreError("as the test wants it"), Interrupted("as the test wants it")])
def test_other_errors_end_the_run_at_once_and_workers_are_drained(error: StepvalueError) -> None:
    gpus = Gpus(count=2, befalls=[error])
    assert run(gpus, 2).error is error
    assert gpus.drained == 2


def test_a_signal_drains_the_workers() -> None:
    looks, stop, gpus = iter(range(10)), Interrupted("stop"), Gpus(count=2)

    def check() -> None:
        if next(looks) == 3:
            raise stop

    assert run(gpus, 2, check=check).error is stop
    assert gpus.drained == 2


def test_the_last_units_are_given_out_longest_first() -> None:
    sizes = Random(5).sample(range(1000), 3 * TAIL_UNITS)
    gpus, first = Gpus(count=1), len(sizes) - TAIL_UNITS
    done(gpus, 1, units=len(sizes), sizes=sizes)
    names = list(gpus.owed)
    assert gpus.order[:first] == names[:first]
    assert gpus.order[first:] == sorted(names[first:], key=lambda name: -sizes[names.index(name)])


@given(st.sets(st.integers(0, 300), min_size=1, max_size=300), st.data())
def test_exactly_the_deadly_requests_are_written_off(numbers: set[int], data: st.DataObject) -> None:
    requests = [f"{number:05d}" for number in sorted(numbers)]
    deadly = set(data.draw(st.lists(st.sampled_from(requests), max_size=5)))
    suspect = job(groups=[requests])
    answered: set[str] = set()
    deaths = 0
    while suspect.groups:
        probe = suspect.probe().probe
        assert probe is not None
        if probe.only & deadly:
            deaths += 1
            suspect.fail_group(WorkerLocation(), has_others=False)
        else:
            answered |= probe.only
            written_off = probe.failed
            suspect.pass_group()
    assert suspect.written_off == deadly
    assert answered == set(requests) - deadly
    assert not deadly or written_off == deadly or written_off < deadly
    assert deaths <= len(deadly) * (len(requests).bit_length() + 1)
