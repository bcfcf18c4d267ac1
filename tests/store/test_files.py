"""What is published is whole, the first writer wins, and nothing else is left behind."""

import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import StoreError
from pipeline.store.files import publish_if_absent, read, sha256_of


def names(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def test_the_first_writer_wins_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "new" / "deep" / "a.json"
    assert publish_if_absent(path, b"first")
    assert not publish_if_absent(path, b"second")
    assert read(path) == b"first"
    assert names(tmp_path) == ["new", "new/deep", "new/deep/a.json"]


@given(st.binary(max_size=300))
def test_what_is_read_is_what_was_published(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("published") / "a"
    assert publish_if_absent(path, memoryview(data))
    assert read(path) == data


def test_of_many_writers_exactly_one_wins(tmp_path: Path) -> None:
    path = tmp_path / "a"
    contents = [str(number).encode() * 10_000 for number in range(8)]
    gate = threading.Barrier(len(contents))
    won: list[bytes] = []

    def write(data: bytes) -> None:
        gate.wait()
        if publish_if_absent(path, data):
            won.append(data)

    threads = [threading.Thread(target=write, args=(data,)) for data in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert won == [read(path)]
    assert names(tmp_path) == ["a"]


def test_a_place_that_cannot_be_written_is_told_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"mine")
    for path in (tmp_path / "file" / "a", tmp_path / "file" / "b" / "a", tmp_path / ("x" * 300)):
        with pytest.raises(StoreError, match=r"cannot be written: .*; free space or permit writing") as caught:
            publish_if_absent(path, b"data")
        assert str(path) in str(caught.value)
    assert names(tmp_path) == ["file"]
    assert (tmp_path / "file").read_bytes() == b"mine"


@pytest.mark.parametrize("name", ["absent", "absent/deeper", "."])
def test_what_cannot_be_read_is_told(tmp_path: Path, name: str) -> None:
    with pytest.raises(StoreError, match="cannot be read"):
        read(tmp_path / name)


def test_hashes_are_sha256() -> None:
    assert sha256_of(b"abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert sha256_of(memoryview(b"abc")) == sha256_of(b"abc")
