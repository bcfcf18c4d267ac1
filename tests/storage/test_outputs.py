"""An output file appears whole or not at all."""

from pathlib import Path

import pytest

from pipeline.core.errors import StoreError, UsageError
from pipeline.storage.outputs import atomic_file, check_output_file, refuse_overwriting
from tests.storage.test_local import names


def replace(path: Path, data: bytes) -> None:
    with atomic_file(path) as file:
        file.write(data)


def test_a_file_is_replaced_when_the_block_has_ended(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a"
    with atomic_file(path) as file:
        file.write(b"first")
        assert not path.exists()
    assert path.read_bytes() == b"first"
    with atomic_file(path) as file:
        file.write(b"second")
        assert path.read_bytes() == b"first"
    assert path.read_bytes() == b"second"
    replace(path, b"third")
    assert path.read_bytes() == b"third"
    assert names(tmp_path) == ["new", "new/a"]


@pytest.mark.parametrize("failure", [KeyboardInterrupt, OSError, ValueError])
def test_a_block_that_fails_changes_nothing(tmp_path: Path, failure: type[BaseException]) -> None:
    replace(tmp_path / "a", b"old")

    def replace_half() -> None:
        with atomic_file(tmp_path / "a") as file:
            file.write(b"new")
            raise failure

    with pytest.raises(failure):
        replace_half()
    assert (tmp_path / "a").read_bytes() == b"old"
    assert names(tmp_path) == ["a"]


def test_an_interruption_as_soon_as_the_file_is_there_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(path: Path, mode: str) -> None:
        path.touch()
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "open", interrupted)
    with pytest.raises(KeyboardInterrupt):
        replace(tmp_path / "a", b"data")
    assert names(tmp_path) == []


def test_a_place_for_a_replacement_that_cannot_be_had_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"mine")
    with pytest.raises(StoreError, match="cannot be written"), atomic_file(tmp_path / "file" / "a"):
        pytest.fail("the block was entered")
    with pytest.raises(StoreError, match="cannot be written"):
        replace(tmp_path, b"data")
    assert names(tmp_path) == ["file"]


def test_what_is_read_or_written_already_is_not_overwritten(tmp_path: Path) -> None:
    run, rows, new = tmp_path / "run", tmp_path / "rows.jsonl", tmp_path / "new.jsonl"
    (tmp_path / "link.jsonl").symlink_to(rows)
    refuse_overwriting({"out": new, "best": tmp_path / "run.jsonl"}, [run, rows])
    for out in (rows, tmp_path / "x" / ".." / "rows.jsonl", tmp_path / "link.jsonl"):
        with pytest.raises(
            UsageError, match=r"out=.* would overwrite .*rows\.jsonl, which is read: choose another out"
        ):
            refuse_overwriting({"out": out}, [run, rows])
    for out in (run, run / "labels" / "a.parquet", tmp_path):
        with pytest.raises(UsageError, match=r"would overwrite .*run, which is read"):
            refuse_overwriting({"out": out}, [run])
    with pytest.raises(UsageError, match=r"best=.*, which is out: choose another best"):
        refuse_overwriting({"out": new, "best": new}, [])


def test_a_file_needs_a_folder_to_be_in(tmp_path: Path) -> None:
    check_output_file("out", tmp_path / "a")
    with pytest.raises(UsageError, match=r"out=.* is a folder: give the name of a file"):
        check_output_file("out", tmp_path)
    with pytest.raises(UsageError, match=r"the folder .*mistyped does not exist; create it, or correct the path"):
        check_output_file("out", tmp_path / "mistyped" / "a")
