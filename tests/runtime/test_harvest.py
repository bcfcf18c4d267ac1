"""What a run's rollouts wrote, read by several processes."""

import os

import pytest

from pipeline.config.choices import BudgetUnit
from pipeline.core.errors import StepvalueError
from pipeline.pickers.settings import PairsConfig
from pipeline.runtime.harvest import read_harvest
from pipeline.storage.location import storage_at
from pipeline.storage.stored_run import stored_run
from tests.runtime.grown import labelled

pytestmark = pytest.mark.slow


class Deadly(PairsConfig):
    """Settings that end the process which receives them."""

    def __reduce__(self) -> tuple[object, ...]:
        return os._exit, (9,)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    made = tmp_path_factory.mktemp("run")
    labelled(made, "run.unit_problems=1")
    return str(made / "run")


def test_several_processes_read_the_same_as_one(folder: str) -> None:
    storage = storage_at(folder)
    run, settings = stored_run(storage), PairsConfig(budget=100, budget_unit=BudgetUnit.rollouts)
    alone, together = (read_harvest(storage, run, settings, processes) for processes in (1, 3))
    assert len(run.units) > 3
    assert alone.counts.candidates > 0
    assert together == alone
    assert [each.unit_id for each in alone.problems] == [unit.unit_id for unit in run.units]


def test_the_death_of_a_process_is_reported(folder: str) -> None:
    storage = storage_at(folder)
    with pytest.raises(StepvalueError, match="killed, probably for want of memory: 2 of them"):
        read_harvest(storage, stored_run(storage), Deadly(budget=100), 2)
