"""A run directory belongs to one run; another is told what differs and touches nothing."""

from pathlib import Path

import pytest
from hypothesis import given

from pipeline.errors import RunConflict, StoreError
from pipeline.records import Totals
from pipeline.store.commits import UNIT, Commit, publish
from pipeline.store.run_record import claim, recorded_identity
from tests import strategies as our

FACTS: dict[str, object] = {
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


def started(run_dir: Path) -> None:
    """A run that has committed its input."""
    claim(run_dir, FACTS)
    publish(run_dir, Commit(kind=UNIT, unit_id="1" * 20, shards=(), totals=Totals(), seconds=0.0))


def test_a_fresh_directory_is_claimed_and_stays_claimed(tmp_path: Path) -> None:
    (tmp_path / ".lock").touch()
    claim(tmp_path, FACTS)
    before = snapshot(tmp_path)
    claim(tmp_path, dict(reversed(FACTS.items())))
    assert recorded_identity(tmp_path) == FACTS
    assert snapshot(tmp_path) == before
    assert before.keys() == {".lock", "run.json"}


@pytest.mark.parametrize(
    ("other", "named"),
    [
        (FACTS | {"sampling.rollouts": 16}, ["sampling.rollouts was 8, now 16"]),
        (FACTS | {"input": "cd34"}, ['input was "ab12", now "cd34"']),
        (FACTS | {"policy.model": "m"}, ['policy.model was null, now "m"']),
        (FACTS | {"new.key": 1}, ["new.key was null, now 1"]),
        ({"input": "ab12"}, ["data.separator was", "sampling.rollouts was 8, now null"]),
        (FACTS | {"sampling.rollouts": 9, "sampling.stop": ["\n"]}, ["sampling.rollouts was 8", 'now ["\\n"]']),
    ],
)
def test_another_run_is_told_every_difference(tmp_path: Path, other: dict[str, object], named: list[str]) -> None:
    started(tmp_path)
    before = snapshot(tmp_path)
    with pytest.raises(RunConflict, match="belongs to another run") as caught:
        claim(tmp_path, other)
    assert all(part in str(caught.value) for part in named)
    assert "data.path" not in str(caught.value)
    assert snapshot(tmp_path) == before


def test_a_run_that_never_had_its_input_keeps_nobody_out(tmp_path: Path) -> None:
    claim(tmp_path, FACTS)
    (tmp_path / "rejects").mkdir()
    mended = FACTS | {"input": "cd34"}
    claim(tmp_path, mended)
    assert recorded_identity(tmp_path) == mended
    assert snapshot(tmp_path).keys() == {"rejects", "run.json"}


def test_long_values_are_shown_short(tmp_path: Path) -> None:
    started(tmp_path)
    with pytest.raises(RunConflict) as caught:
        claim(tmp_path, FACTS | {"data.separator": "x" * 5000})
    assert len(str(caught.value)) < 400 + len(str(tmp_path))


@pytest.mark.parametrize("stranger", ["thesis.tex", "labels/a.parquet"])
def test_a_directory_with_other_things_is_left_alone(tmp_path: Path, stranger: str) -> None:
    (tmp_path / stranger).parent.mkdir(exist_ok=True)
    (tmp_path / stranger).write_text("mine")
    before = snapshot(tmp_path)
    with pytest.raises(RunConflict, match=f"holds other files .{stranger.split('/')[0]}"):
        claim(tmp_path, FACTS)
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"3", b"\xff", b"\0\0\0"])
def test_a_damaged_record_is_named_and_kept(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "run.json").write_bytes(content)
    with pytest.raises(StoreError, match=r"run\.json is damaged"):
        claim(tmp_path, FACTS)
    assert (tmp_path / "run.json").read_bytes() == content


def test_what_is_no_run_directory_is_told(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "absent"):
        with pytest.raises(StoreError, match=r"is not a run directory: it has no run\.json"):
            recorded_identity(folder)


@given(our.identities)
def test_any_plain_settings_are_recorded_as_they_are(
    tmp_path_factory: pytest.TempPathFactory, facts: dict[str, object]
) -> None:
    folder = tmp_path_factory.mktemp("run")
    claim(folder, facts)
    claim(folder, facts)
    assert recorded_identity(folder) == facts
