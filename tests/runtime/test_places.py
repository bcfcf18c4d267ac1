"""Which places are given up, and where a unit goes after a death."""

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
