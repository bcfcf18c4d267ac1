"""Which places are given up, and where a unit goes after a death."""

import pytest

from pipeline.core.errors import EngineDied
from pipeline.runtime.places import RESERVED_SECONDS, WorkerPlaces
from pipeline.runtime.worker_handle import WorkerLocation, WorkerSlot
from tests.runtime.idle import IdleWorker, job

DEAD = EngineDied("CUDA error: an illegal memory access")
FIRST, SECOND = (WorkerLocation(machine="m", gpus=(gpu,)) for gpu in "01")
NODE = WorkerLocation(machine="m", node_id="n")


def slot(place: WorkerLocation | None, moved_at: float = 0.0) -> WorkerSlot:
    return WorkerSlot(handle=IdleWorker(), moved_at=moved_at, location=place)


def after(*deaths: WorkerLocation, started: tuple[WorkerLocation, ...] = (FIRST, SECOND)) -> WorkerPlaces:
    places = WorkerPlaces(attempts=3)
    for place in started:
        places.started(place)
    for place in deaths:
        places.died(place, [job()], DEAD)
    return places


def test_the_warning_names_the_machine_the_gpu_and_the_cause() -> None:
    places = after(FIRST, FIRST)
    assert places.give_up(FIRST, bool) is None
    places.died(FIRST, [], DEAD)
    assert places.give_up(FIRST, bool) == (
        "workers died at work 3 times in a row on m, GPU 0 (CUDA error: an illegal memory access): "
        "the run goes on without this place"
    )
    assert places.give_up(SECOND, bool) is None
    assert places.has_others(SECOND), "where nothing has been finished, the given-up place may be the better one"
    places.finished(SECOND)
    assert not places.has_others(SECOND)


def test_a_place_where_nothing_is_finished_is_given_up_for_one_that_is_taken_back() -> None:
    places, suspect = after(*[FIRST] * 3), job()
    assert places.give_up(FIRST, lambda: True)
    suspect.failures, suspect.died_at = 3, FIRST
    for _ in range(3):
        assert places.give_up(SECOND, bool) is None
        assert places.died(SECOND, [suspect], DEAD)
    assert places.give_up(SECOND, bool)
    assert places.given_up == {SECOND}
    assert places.give_up(FIRST, bool) is None


@pytest.mark.parametrize(
    ("places", "free", "given_up"),
    [
        (after(*[FIRST] * 3, started=(FIRST,)), False, False),
        (after(*[FIRST] * 3, started=(FIRST,)), True, True),
        (after(*[FIRST] * 3, SECOND), False, False),
        (after(*[FIRST] * 3, SECOND), True, True),
    ],
)
def test_a_place_is_given_up_only_for_a_good_or_a_free_one(places: WorkerPlaces, free: bool, given_up: bool) -> None:
    assert bool(places.give_up(FIRST, lambda: free)) == given_up


def test_workers_without_gpus_share_the_place_of_their_node() -> None:
    other = WorkerLocation(machine="m", node_id="n")
    places = after(NODE, other, NODE, started=(NODE, other))
    assert not places.has_others(other)
    places.started(FIRST)
    assert places.give_up(other, bool)


def test_a_finished_unit_ends_the_row_and_takes_a_place_back() -> None:
    """Other workers of a node or a shared GPU may still be at work when it is given up."""
    places = after(FIRST, FIRST)
    places.finished(FIRST)
    assert places.died(FIRST, [job()], DEAD)
    assert places.give_up(FIRST, bool) is None
    places = after(FIRST, FIRST, FIRST)
    assert places.give_up(FIRST, bool)
    assert not places.died(FIRST, [job()], DEAD), "no failure of the run"
    places.finished(FIRST)
    assert places.give_up(FIRST, bool) is None
    assert places.died(FIRST, [job()], DEAD)


def test_a_place_is_not_blamed_for_a_unit_that_killed_an_engine_elsewhere() -> None:
    deadly = job()
    places = after()
    for place in [FIRST, *[SECOND, FIRST] * 9]:
        places.died(place, [job(), deadly] if place == FIRST else [deadly], DEAD)
    assert places.give_up(FIRST, bool) is None
    assert places.give_up(SECOND, bool) is None


def test_a_job_waits_for_a_better_place_while_one_is_there() -> None:
    places, failed = after(), job()
    here, there, placeless = slot(FIRST), slot(SECOND), slot(None)
    assert places.may_take(here, failed, [here, there], 0.0)
    places.died(FIRST, [failed], DEAD)
    assert not places.may_take(here, failed, [here, there], 0.0)
    assert places.may_take(there, failed, [here, there], 0.0)
    assert places.may_take(here, failed, [here], 0.0)
    assert not places.may_take(here, failed, [here, placeless], 0.0)
    assert places.may_take(here, failed, [here, placeless], RESERVED_SECONDS + 1)
    third = slot(WorkerLocation(machine="m", gpus=("2",)))
    places.died(SECOND, [], DEAD)
    assert not places.may_take(there, failed, [here, there, third], 0.0), "two suspects explain nothing"
    assert places.may_take(there, failed, [here, there], 0.0)
    assert not places.may_take(here, failed, [here, there], 0.0)
