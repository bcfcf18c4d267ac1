"""Published files are whole, the first writer wins, and no other files remain."""

from pathlib import Path

import pytest

from pipeline.core.errors import Absent, StoreError
from pipeline.storage.disk import OsDisk
from pipeline.storage.local import LocalStorage


def names(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def test_the_first_writer_wins_and_leaves_nothing_else(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path / "new")
    assert storage.create("deep/a.json", b"first")
    assert not storage.create("deep/a.json", b"second")
    assert storage.read("deep/a.json") == b"first"
    assert names(tmp_path) == ["new", "new/deep", "new/deep/a.json"]


def test_a_place_that_cannot_be_written_is_reported_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"mine")
    storage = LocalStorage(tmp_path)
    for name in ("file/a", "file/b/a", "x" * 300):
        for write in (storage.create, storage.replace):
            with pytest.raises(StoreError, match=r"cannot be written: .*; free disk space or permit writing") as caught:
                write(name, b"data")
            assert str(tmp_path / name) in str(caught.value)
    assert names(tmp_path) == ["file"]
    assert (tmp_path / "file").read_bytes() == b"mine"


def test_what_cannot_be_read_is_reported(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    for name in ("absent", "absent/deeper"):
        with pytest.raises(Absent, match="is missing"):
            storage.read(name)
    (tmp_path / "folder").mkdir()
    with pytest.raises(StoreError, match="cannot be read"):
        storage.read("folder")


class ForgetfulDisk(OsDisk):
    """A disk that flips one bit of the written data."""

    def read(self, path: str) -> bytes:
        data = super().read(path)
        return bytes([data[0] ^ 1]) + data[1:]


def test_what_reads_back_differently_is_never_published(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path, ForgetfulDisk())
    with pytest.raises(StoreError, match="reads back differently"):
        storage.create("a", b"data")
    assert names(tmp_path) == []


def test_what_a_crash_leaves_of_a_file_is_reported_apart_from_published_ones(tmp_path: Path) -> None:
    class TornDisk(OsDisk):
        def remove(self, path: str) -> None:
            raise OSError(5, "the machine is gone")

    LocalStorage(tmp_path, TornDisk()).create("deep/a.json", b"first")
    storage = LocalStorage(tmp_path)
    (tmp_path / "deep" / ".hidden").write_bytes(b"mine")
    (tmp_path / "deep" / ".mine.tmp").write_bytes(b"mine")
    (left,) = storage.unfinished_files("deep")
    assert left.startswith("deep/.a.json.")
    assert storage.names("deep") == ["deep/a.json"]
    storage.remove(left)
    assert storage.unfinished_files("deep") == []
    assert storage.unfinished_files("absent") == storage.names("absent") == storage.names("deep/a.json") == []
