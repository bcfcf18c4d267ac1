"""What is published is whole, the first writer wins, and nothing else is left behind."""

import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import StoreError
from pipeline.store.files import publish_if_absent, read, replace, replaced_at_end, sha256_of


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


def test_a_file_is_replaced_when_the_block_has_ended(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a"
    with replaced_at_end(path) as file:
        file.write(b"first")
        assert not path.exists()
    assert read(path) == b"first"
    with replaced_at_end(path) as file:
        file.write(b"second")
        assert read(path) == b"first"
    assert read(path) == b"second"
    replace(path, b"third")
    assert read(path) == b"third"
    assert names(tmp_path) == ["new", "new/a"]


@pytest.mark.parametrize("failure", [KeyboardInterrupt, OSError, ValueError])
def test_a_block_that_fails_changes_nothing(tmp_path: Path, failure: type[BaseException]) -> None:
    replace(tmp_path / "a", b"old")

    def replace_half() -> None:
        with replaced_at_end(tmp_path / "a") as file:
            file.write(b"new")
            raise failure

    with pytest.raises(failure):
        replace_half()
    assert read(tmp_path / "a") == b"old"
    assert names(tmp_path) == ["a"]


def test_a_place_for_a_replacement_that_cannot_be_had_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"mine")
    with pytest.raises(StoreError, match="cannot be written"), replaced_at_end(tmp_path / "file" / "a"):
        pytest.fail("the block was entered")
    with pytest.raises(StoreError, match="cannot be written"):
        replace(tmp_path, b"data")
    assert names(tmp_path) == ["file"]
