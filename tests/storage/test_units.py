"""Units depend only on the staged input, keep its order, and return the rows that were written."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.records import InputRow, Problem, Reject, RejectReason, RowLocation
from pipeline.core.tables import REJECTS
from pipeline.storage.commits import INPUT, Commit, CommitState
from pipeline.storage.local import LocalStorage
from pipeline.storage.shards import write_shard
from pipeline.storage.storage import Storage
from pipeline.storage.units import unit_rows, units_of, write_units
from tests import strategies as our


def staged(storage: Storage, files: list[list[list[InputRow]]]) -> Commit:
    """A staged input of several files with several units of several rows, and a file of rejects."""
    reject = Reject(location=RowLocation(file="f", line=1), reason=RejectReason.NOT_JSON, detail="x")
    shards = [write_units(storage, f"{number:020x}", units) for number, units in enumerate(files)]
    rejects = write_shard(storage, "rejects", "f" * 20, [REJECTS.to_table([reject])])
    return Commit(kind=INPUT, sequence_id="1" * 20, number=0, state=CommitState.WHOLE, shards=(*shards, rejects))


inputs = st.lists(
    st.lists(st.lists(our.input_rows(), min_size=1, max_size=2), min_size=1, max_size=3), min_size=1, max_size=2
)


@given(inputs)
def test_units_give_back_the_rows_in_order(
    tmp_path_factory: pytest.TempPathFactory, files: list[list[list[InputRow]]]
) -> None:
    storage = LocalStorage(tmp_path_factory.mktemp("run"))
    commit = staged(storage, files)
    units = list(units_of(storage, commit))
    assert [unit_rows(storage, unit) for unit in units] == [unit for file in files for unit in file]
    assert list(units_of(storage, commit)) == units


def row(number: int) -> InputRow:
    problem = Problem(problem_id=f"{number:020x}", text="?", golds=("1",))
    return InputRow(location=RowLocation(file="f", line=number), source_id=None, problem=problem, solution=None)


def test_ids_of_units_come_from_what_they_ask_for_wherever_they_stand(tmp_path: Path) -> None:
    layouts = [[[[row(1)], [row(2), row(3)]]], [[[row(2), row(3)]], [[row(1)]]], [[[row(1)], [row(2)], [row(3)]]]]
    ids = [
        {unit.unit_id for unit in units_of(storage, staged(storage, files))}
        for number, files in enumerate(layouts)
        if (storage := LocalStorage(tmp_path / str(number)))
    ]
    assert ids[0] == ids[1]
    assert len(ids[0] | ids[2]) == 4
