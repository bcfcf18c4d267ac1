"""A run directory belongs to one run. Another run gets an error that names the differences, and changes nothing."""

from pathlib import Path

import pytest
from hypothesis import given

from pipeline.core.errors import RunConflict, StoreError
from pipeline.storage.commits import INPUT, UNIT, Commit, CommitState, publish
from pipeline.storage.local import LocalStorage
from pipeline.storage.run_record import check_claim, claim, recorded_identity, settings_copy
from tests import strategies as our

IDENTITY: dict[str, object] = {
    "input": "ab12",
    "sampling.rollouts": 8,
    "policy.model": None,
    "sampling.stop": [],
    "data.separator": "\né",
}


def snapshot(folder: Path) -> dict[str, bytes | None]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")
    }


def started(run_dir: Path) -> LocalStorage:
    """A run that has committed its input and a unit."""
    storage = LocalStorage(run_dir)
    claim(storage, IDENTITY)
    staged = Commit(
        kind=INPUT, sequence_id="2" * 20, number=0, state=CommitState.WHOLE, settings=settings_copy(IDENTITY)
    )
    for commit in (staged, Commit(kind=UNIT, sequence_id="1" * 20, number=0, state=CommitState.WHOLE)):
        assert publish(storage, commit)
    return storage


def test_a_fresh_directory_is_claimed_and_stays_claimed(tmp_path: Path) -> None:
    (tmp_path / ".lock").touch()
    claim(LocalStorage(tmp_path), IDENTITY)
    before = snapshot(tmp_path)
    claim(LocalStorage(tmp_path), dict(reversed(IDENTITY.items())))
    assert recorded_identity(LocalStorage(tmp_path)) == IDENTITY
    assert snapshot(tmp_path) == before
    assert before.keys() == {".lock", "run.json"}


@pytest.mark.parametrize(
    ("other", "named"),
    [
        (IDENTITY | {"sampling.rollouts": 16}, ["sampling.rollouts was 8, now 16"]),
        (IDENTITY | {"input": "cd34"}, ['data.path (content) was "ab12", now "cd34"']),
        (IDENTITY | {"policy.model": "m"}, ['policy.model was null, now "m"']),
        (IDENTITY | {"new.key": 1}, ["new.key was null, now 1"]),
        ({"input": "ab12"}, ["data.separator was", "sampling.rollouts was 8, now null"]),
        (IDENTITY | {"sampling.rollouts": 9, "sampling.stop": ["\n"]}, ["sampling.rollouts was 8", 'now ["\\n"]']),
    ],
)
def test_another_run_is_reported_every_difference(tmp_path: Path, other: dict[str, object], named: list[str]) -> None:
    started(tmp_path)
    before = snapshot(tmp_path)
    with pytest.raises(RunConflict, match="belongs to another run"):
        check_claim(LocalStorage(tmp_path), other)
    with pytest.raises(RunConflict, match="belongs to another run") as caught:
        claim(LocalStorage(tmp_path), other)
    assert all(part in str(caught.value) for part in named)
    assert "data.path was" not in str(caught.value)
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("damage", [None, b"", b"{", b"[]", b"\xff"])
def test_a_lost_or_damaged_record_is_written_again_from_its_copy(tmp_path: Path, damage: bytes | None) -> None:
    storage, path = started(tmp_path), tmp_path / "run.json"
    whole = path.read_bytes()
    path.unlink()
    if damage is not None:
        path.write_bytes(damage)
    with pytest.raises(RunConflict, match=r"sampling.rollouts was 8, now 16"):
        claim(storage, IDENTITY | {"sampling.rollouts": 16})
    claim(storage, IDENTITY)
    assert path.read_bytes() == whole
    assert [kept.read_bytes() for kept in (tmp_path / "damaged").glob("*")] == ([] if damage is None else [damage])


def test_every_flipped_bit_of_the_record_is_noticed_and_mended(tmp_path: Path) -> None:
    storage, path = started(tmp_path), tmp_path / "run.json"
    whole = path.read_bytes()
    for at in range(0, len(whole), 7):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ (1 << at % 8)]) + whole[at + 1 :])
        with pytest.raises(StoreError, match=r"run\.json is damaged"):
            recorded_identity(storage)
        claim(storage, IDENTITY)
        assert path.read_bytes() == whole


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"3", b"\xff", b"\0\0\0"])
def test_a_damaged_record_is_named_and_kept(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "run.json").write_bytes(content)
    with pytest.raises(StoreError, match=r"run\.json is damaged"):
        claim(LocalStorage(tmp_path), IDENTITY)
    assert (tmp_path / "run.json").read_bytes() == content


def test_what_is_no_run_directory_is_reported(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "absent"):
        with pytest.raises(StoreError, match=r"is not a run directory: it has no run\.json"):
            recorded_identity(LocalStorage(folder))


# No setting has the name of the checksum, or the key that sets commit records apart from the record of the run.
@given(our.identities.filter(lambda run_identity: not {"check", "chain_id"} & run_identity.keys()))
def test_any_plain_settings_are_recorded_as_they_are(
    tmp_path_factory: pytest.TempPathFactory, run_identity: dict[str, object]
) -> None:
    folder = tmp_path_factory.mktemp("run")
    claim(LocalStorage(folder), run_identity)
    claim(LocalStorage(folder), run_identity)
    assert recorded_identity(LocalStorage(folder)) == run_identity


def test_the_remedy_comes_first_and_what_follows_from_one_choice_is_one_line(tmp_path: Path) -> None:
    oracle = IDENTITY | {
        "policy.kind": "oracle",
        "policy.oracle.seed": 0,
        "policy.oracle.world": "tree",
        "staged_input": "1",
    }
    storage = LocalStorage(tmp_path)
    claim(storage, oracle)
    publish(storage, Commit(kind=UNIT, sequence_id="1" * 20, number=0, state=CommitState.WHOLE))
    other = IDENTITY | {"policy.kind": "hf", "policy.model": "m", "sampling.rollouts": 9, "staged_input": "2"}
    with pytest.raises(RunConflict) as caught:
        claim(storage, other)
    assert str(caught.value) == (
        f"{storage.run_dir} belongs to another run: use another run_dir, or give the settings of that run again. They differ:\n"
        '  policy.kind was "oracle", now "hf", with 3 other settings of the policy\n'
        "  sampling.rollouts was 8, now 9"
    )


def test_many_differences_are_counted_and_long_values_are_shown_short(tmp_path: Path) -> None:
    storage = started(tmp_path)
    with pytest.raises(RunConflict) as caught:
        claim(storage, IDENTITY | {f"data.key{number}": number for number in range(30)})
    lines = str(caught.value).splitlines()
    assert len(lines) == 10
    assert lines[-1] == "  and 22 more"
    with pytest.raises(RunConflict) as caught:
        claim(storage, IDENTITY | {"data.separator": "x" * 5000})
    assert len(str(caught.value)) < 400 + len(str(tmp_path))
