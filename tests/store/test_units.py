"""Units depend on the staged input alone, keep its order, and hand back the rows that went in."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import StoreError
from pipeline.records import InputRow, Place, Problem, Reject, RejectReason, Totals
from pipeline.store.commits import INPUT, Commit
from pipeline.store.shards import write_shard
from pipeline.store.units import unit_rows, units_of
from pipeline.tables import inputs_table, rejects_table
from tests import strategies as our


def staged(run_dir: Path, files: list[list[list[InputRow]]]) -> Commit:
    """An input of some files, each with some units, each with some rows; and a file of rejects."""
    reject = Reject(place=Place(file="f", line=1), reason=RejectReason.NOT_JSON, detail="x")
    shards = [
        write_shard(run_dir, "inputs", f"{number:020x}", [inputs_table(unit) for unit in units])
        for number, units in enumerate(files)
    ]
    rejects = write_shard(run_dir, "rejects", "f" * 20, [rejects_table([reject])])
    return Commit(kind=INPUT, unit_id="1" * 20, shards=(*shards, rejects), totals=Totals(), seconds=0.0)


inputs = st.lists(
    st.lists(st.lists(our.input_rows(), min_size=1, max_size=2), min_size=1, max_size=3), min_size=1, max_size=2
)


@given(inputs)
def test_units_give_back_the_rows_in_order(
    tmp_path_factory: pytest.TempPathFactory, files: list[list[list[InputRow]]]
) -> None:
    run_dir = tmp_path_factory.mktemp("run")
    commit = staged(run_dir, files)
    units = list(units_of(run_dir, commit))
    assert [unit_rows(run_dir, unit) for unit in units] == [unit for file in files for unit in file]
    assert list(units_of(run_dir, commit)) == units


@given(our.input_rows(), our.input_rows())
def test_ids_of_units_come_from_content_and_place_in_the_input(
    tmp_path_factory: pytest.TempPathFactory, first: InputRow, second: InputRow
) -> None:
    folders = [tmp_path_factory.mktemp("run") for _ in range(3)]
    contents = [[[[first], [second]]], [[[first], [second]]], [[[first], [second], [first]]]]
    ids = [
        [unit.unit_id for unit in units_of(folder, staged(folder, content))]
        for folder, content in zip(folders, contents, strict=True)
    ]
    assert ids[0] == ids[1]
    assert len({*ids[0], *ids[2]}) == 5


def test_a_damaged_input_is_no_input(tmp_path: Path) -> None:
    problem = Problem(problem_id="a" * 20, text="?", golds=("1",))
    row = InputRow(place=Place(file="f", line=1), source_id=None, problem=problem, solution=None)
    commit = staged(tmp_path, [[[row]]])
    (unit,) = units_of(tmp_path, commit)
    path = tmp_path / commit.shards[0].file
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(StoreError, match="is damaged"):
        list(units_of(tmp_path, commit))
    with pytest.raises(StoreError, match="is damaged"):
        unit_rows(tmp_path, unit)
