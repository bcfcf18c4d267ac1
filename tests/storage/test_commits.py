"""Each number of a record sequence is taken once, by the first writer, and invalid records are named."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.errors import StoreError
from pipeline.core.ids import shard_name
from pipeline.core.records import Tally, UnitTarget
from pipeline.storage.commits import (
    INPUT,
    UNIT,
    Commit,
    CommitState,
    commit_name,
    publish,
    record_sequence,
    record_sequences,
    refuse_damage,
)
from pipeline.storage.local import LocalStorage
from pipeline.storage.shards import ShardRecord
from tests import strategies as our

ID = "1" * 20
SHARD = ShardRecord(table="labels", file=f"labels/labels-{ID}-{'f' * 12}.parquet", sha256="f" * 64, rows=2)
KERNEL = ShardRecord(table="kernels", file=f"kernels/kernels-{ID}-{'f' * 12}.parquet", sha256="f" * 64, rows=1)
COMMIT = Commit(
    kind=UNIT,
    sequence_id=ID,
    number=0,
    state=CommitState.WHOLE,
    shards=(SHARD,),
    tally=Tally(rows=2, used=1, rejected=1, tokens=9),
    unit_target=UnitTarget(rollouts=8),
    base=(KERNEL,),
    learned_from=5,
)

files = st.builds(lambda unit, sha: f"labels/{shard_name('labels', unit, sha)}", our.hex_ids, st.just("e" * 64))
unit_targets = st.builds(
    UnitTarget,
    rollouts=st.integers(0),
    target_sd=st.floats(0, 1),
    budget=st.integers(0),
    budget_unit=st.sampled_from(["", "tokens", "rollouts"]),
)
shards = st.builds(ShardRecord, table=st.text(), file=files, sha256=st.text(), rows=st.integers(0))


@given(
    st.builds(
        Commit,
        kind=st.sampled_from([UNIT, INPUT]),
        sequence_id=our.hex_ids,
        number=st.just(0),
        state=st.sampled_from(CommitState),
        shards=st.lists(shards).map(tuple),
        tally=st.builds(Tally, rows=st.integers(0), used=st.integers(), solution_tokens=st.integers(0)),
        unit_target=unit_targets,
        base=st.lists(shards, max_size=1).map(tuple),
        learned_from=st.integers(0),
        void=st.lists(files).map(tuple),
        settings=st.lists(st.tuples(st.text(), st.text())).map(tuple),
    )
)
def test_a_record_comes_back_as_it_was_published(tmp_path_factory: pytest.TempPathFactory, commit: Commit) -> None:
    storage = LocalStorage(tmp_path_factory.mktemp("run"))
    assert publish(storage, commit)
    assert record_sequence(storage, commit.kind, commit.sequence_id).commits == (commit,)
    assert [found.commits for found in record_sequences(storage, commit.kind)] == [(commit,)]


def test_the_first_record_of_a_number_stands(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    late = replace(COMMIT, tally=Tally(rows=99), shards=())
    assert publish(storage, COMMIT)
    assert not publish(storage, late)
    assert publish(storage, COMMIT)  # equal content is success, whoever wrote it
    assert publish(storage, replace(late, number=1))
    found = record_sequence(storage, UNIT, ID)
    assert found.commits == (COMMIT, replace(late, number=1))
    assert found.length == 2


def test_sequences_are_listed_by_kind_in_the_order_of_their_ids(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    for commit in [
        *(replace(COMMIT, sequence_id=digit * 20) for digit in "c1a"),
        replace(COMMIT, kind=INPUT, sequence_id="2" * 20),
        replace(COMMIT, sequence_id="a" * 20, number=1),
    ]:
        publish(storage, commit)
    (tmp_path / "commits" / "notes.txt").touch()
    (tmp_path / "commits" / f".unit-{'2' * 20}-00000.json.abc.tmp").write_text("{")
    assert [(found.sequence_id[0], found.length) for found in record_sequences(storage, UNIT)] == [
        ("1", 1),
        ("a", 2),
        ("c", 1),
    ]
    assert [found.sequence_id[0] for found in record_sequences(storage, INPUT)] == ["2"]


def test_a_directory_without_records_has_none(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "absent"):
        assert list(record_sequences(LocalStorage(folder), UNIT)) == []
        assert record_sequence(LocalStorage(folder), UNIT, ID).commits == ()


def test_a_lost_record_is_a_hole_where_more_are_known(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    records = [replace(COMMIT, number=number) for number in range(3)]
    for record in records:
        publish(storage, record)
    (tmp_path / commit_name(records[1])).unlink()
    (found,) = record_sequences(storage, UNIT)
    assert found == record_sequence(storage, UNIT, ID, known_length=3)
    assert (found.commits, found.unreadable, found.length) == ((records[0], records[2]), (commit_name(records[1]),), 3)
    with pytest.raises(StoreError, match=r"00001\.json is missing or damaged: start the command of this run"):
        refuse_damage(found, storage.run_dir)
    publish(storage, Commit(kind=UNIT, sequence_id=ID, number=1, state=CommitState.VOID))
    refuse_damage(record_sequence(storage, UNIT, ID), storage.run_dir)


def test_every_flipped_bit_of_a_record_is_noticed(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    publish(storage, COMMIT)
    path = tmp_path / commit_name(COMMIT)
    whole = path.read_bytes()
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ (1 << at % 8)]) + whole[at + 1 :])
        found = record_sequence(storage, UNIT, ID)
        # A flip that JSON does not see, such as one blank for another, changes nothing that is read.
        assert found.unreadable == (commit_name(COMMIT),) or found.commits == (COMMIT,)


FIELDS = {**json.loads(encode_commit(COMMIT)), "check": "0" * 64}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b"\xff\xfe",
        b"\0" * 400,
        b"[" * 100_000,
        json.dumps(FIELDS).encode(),
        *(json.dumps({name: value for name, value in FIELDS.items() if name != gone}).encode() for gone in FIELDS),
        json.dumps(FIELDS | {"shards": ["x"]}).encode(),
    ],
)
def test_a_damaged_record_is_reported_apart(tmp_path: Path, content: bytes) -> None:
    storage = LocalStorage(tmp_path)
    publish(storage, COMMIT)
    path = tmp_path / commit_name(COMMIT)
    path.write_bytes(content)
    for found in (record_sequence(storage, UNIT, ID), *record_sequences(storage, UNIT)):
        assert found.unreadable == (commit_name(COMMIT),)
        assert found.length == 1
    assert not publish(storage, COMMIT)
    assert path.read_bytes() == content


@pytest.mark.parametrize("file", ["../x.parquet", "labels/../../x", "/etc/passwd", "labels/x.parquet", ""])
def test_a_record_that_names_a_file_elsewhere_is_damage(tmp_path: Path, file: str) -> None:
    storage = LocalStorage(tmp_path)
    publish(storage, replace(COMMIT, shards=(replace(SHARD, file=file),)))
    publish(storage, replace(COMMIT, number=1, state=CommitState.VOID, void=(file,)))
    assert record_sequence(storage, UNIT, ID).unreadable == (
        commit_name(COMMIT),
        commit_name(replace(COMMIT, number=1)),
    )


def test_a_record_under_the_name_of_another_is_damage(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    publish(storage, COMMIT)
    (tmp_path / commit_name(COMMIT)).rename(tmp_path / commit_name(replace(COMMIT, sequence_id="2" * 20)))
    assert record_sequence(storage, UNIT, "2" * 20).unreadable
