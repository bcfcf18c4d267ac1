"""A unit is committed once, by whoever was first, and a record that is no record is named."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import StoreError
from pipeline.records import Totals
from pipeline.store.commits import INPUT, UNIT, Commit, committed, committed_ids, committed_unit, publish
from pipeline.store.shards import ShardRecord
from tests import strategies as our

SHARD = ShardRecord(table="labels", file="labels/x.parquet", sha256="f" * 64, rows=2)
COMMIT = Commit(
    kind=UNIT, unit_id="1" * 20, shards=(SHARD,), totals=Totals(rows=2, used=1, rejected=1, tokens=9), seconds=0.5
)


@given(
    st.builds(
        Commit,
        kind=st.sampled_from([UNIT, INPUT]),
        unit_id=our.hex_ids,
        shards=st.lists(
            st.builds(ShardRecord, table=st.text(), file=st.text(), sha256=st.text(), rows=st.integers(0))
        ).map(tuple),
        totals=st.builds(Totals, rows=st.integers(0), used=st.integers(0), solution_tokens=st.integers(0)),
        seconds=st.floats(0, 1e9),
    )
)
def test_a_record_comes_back_as_it_was_published(tmp_path_factory: pytest.TempPathFactory, commit: Commit) -> None:
    run_dir = tmp_path_factory.mktemp("run")
    assert publish(run_dir, commit) == commit
    assert committed_unit(run_dir, commit.kind, commit.unit_id) == commit
    assert list(committed(run_dir, commit.kind)) == [commit]


def test_the_first_record_stands(tmp_path: Path) -> None:
    late = replace(COMMIT, totals=Totals(rows=99), shards=(), seconds=9.0)
    assert publish(tmp_path, COMMIT) == COMMIT
    assert publish(tmp_path, late) == COMMIT
    assert committed_unit(tmp_path, UNIT, COMMIT.unit_id) == COMMIT
    assert len(list((tmp_path / "commits").iterdir())) == 1


def test_records_are_listed_by_kind_in_the_order_of_their_ids(tmp_path: Path) -> None:
    units = [replace(COMMIT, unit_id=digit * 20) for digit in "c1a"]
    staged = replace(COMMIT, kind=INPUT, unit_id="2" * 20)
    for commit in (*units, staged):
        publish(tmp_path, commit)
    assert [commit.unit_id[0] for commit in committed(tmp_path, UNIT)] == ["1", "a", "c"]
    assert list(committed(tmp_path, INPUT)) == [staged]
    assert committed_ids(tmp_path, UNIT) == {commit.unit_id for commit in units}
    assert committed_ids(tmp_path, INPUT) == {staged.unit_id}


def test_a_directory_without_records_has_none(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "absent"):
        assert list(committed(folder, UNIT)) == []
        assert committed_ids(folder, UNIT) == set()
        assert committed_unit(folder, UNIT, COMMIT.unit_id) is None


def test_half_written_records_do_not_exist(tmp_path: Path) -> None:
    publish(tmp_path, COMMIT)
    (tmp_path / "commits" / f".unit-{'2' * 20}.json.abc.tmp").write_text("{")
    assert list(committed(tmp_path, UNIT)) == [COMMIT]
    assert committed_ids(tmp_path, UNIT) == {COMMIT.unit_id}


GOOD = {
    "kind": "unit",
    "unit_id": "1" * 20,
    "shards": [{"table": "labels", "file": "labels/x.parquet", "sha256": "f" * 64, "rows": 2}],
    "totals": {"rows": 2},
    "seconds": 0.5,
}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b"\xff\xfe",
        b"\0" * 400,
        json.dumps(GOOD).encode()[:-10],
        *(json.dumps({name: value for name, value in GOOD.items() if name != gone}).encode() for gone in GOOD),
        json.dumps(GOOD | {"shards": 3}).encode(),
        json.dumps(GOOD | {"shards": ["x"]}).encode(),
        json.dumps(GOOD | {"shards": [{"table": "labels"}]}).encode(),
        json.dumps(GOOD | {"totals": {"rows": 2, "unheard_of": 1}}).encode(),
        json.dumps(GOOD | {"totals": None}).encode(),
    ],
)
def test_a_damaged_record_is_named(tmp_path: Path, content: bytes) -> None:
    publish(tmp_path, COMMIT)
    path = tmp_path / "commits" / f"unit-{'1' * 20}.json"
    path.write_bytes(content)
    for look in (
        lambda: committed_unit(tmp_path, UNIT, COMMIT.unit_id),
        lambda: list(committed(tmp_path, UNIT)),
        lambda: publish(tmp_path, COMMIT),
    ):
        with pytest.raises(StoreError, match="is not a commit record") as caught:
            look()
        assert str(path) in str(caught.value)
    assert path.read_bytes() == content
