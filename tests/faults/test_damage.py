"""Files that are not what was written: every one is noticed, set aside and redone, and the labels come out the same."""

import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from pipeline.core.errors import StoreError
from pipeline.core.tables import LABELS
from pipeline.storage.commits import INPUT, UNIT, record_sequences
from pipeline.storage.local import LocalStorage
from pipeline.storage.repair import damaged_files
from pipeline.storage.run_record import recorded_identity
from pipeline.storage.starts import FOLDER as STARTS
from pipeline.storage.stored_run import stored_run
from tests.faults.runs import Found, Scene, Scenes, assert_same, files, scene, until

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(280)]

FLIPS = 300
CUTS = 50
ROUNDS = 5
SUPERSEDED = "flushed"
"""Folder of parts, which nobody reads once their unit is whole."""


@pytest.fixture(scope="module")
def finished(quick_folder: Path) -> Scene:
    done = scene(quick_folder / "finished")
    done.finish()
    return done


@pytest.fixture
def copy(finished: Scene, scenes: Scenes) -> Scene:
    """A finished run, to be damaged."""
    mine = scenes()
    shutil.copytree(finished.run_dir, mine.run_dir)
    return mine


def committed(run_dir: Path) -> list[Path]:
    """Every file that a reader of the finished run may need."""
    return sorted(
        path
        for path in run_dir.rglob("*")
        if path.is_file()
        and path.stat().st_size
        and path.parent.name not in (SUPERSEDED, STARTS)
        and path.name != ".lock"
    )


def noticed(run_dir: Path) -> set[str]:
    """Names of what the next start will take for damaged."""
    storage = LocalStorage(run_dir)
    names = {
        name
        for kind in (INPUT, UNIT)
        for found in record_sequences(storage, kind)
        for name in (*found.unreadable, *damaged_files(storage, found))
    }
    try:
        recorded_identity(storage)
    except StoreError:
        names.add("run.json")
    return names


def flip(path: Path, luck: random.Random) -> None:
    data = bytearray(path.read_bytes())
    data[luck.randrange(len(data))] ^= 1 << luck.randrange(8)
    path.write_bytes(data)


def cut(path: Path, luck: random.Random) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: luck.randrange(len(data))])


@pytest.mark.parametrize(("hurt", "times"), [(flip, FLIPS), (cut, CUTS)], ids=["one bit", "cut short"])
def test_every_damage_is_noticed(hurt: Callable[[Path, random.Random], None], times: int, copy: Scene) -> None:
    luck = random.Random(times)
    files = committed(copy.run_dir)
    for turn in range(times):
        path = files[turn % len(files)]
        before = path.read_bytes()
        hurt(path, luck)
        assert noticed(copy.run_dir) == {str(path.relative_to(copy.run_dir))}
        path.write_bytes(before)


@pytest.mark.parametrize("hurt", [flip, cut], ids=["one bit", "cut short"])
def test_what_is_damaged_is_set_aside_and_redone(
    hurt: Callable[[Path, random.Random], None], scenes: Scenes, finished: Scene, reference: Found
) -> None:
    for turn in range(ROUNDS):
        mine = scenes(f"round {turn}")
        shutil.copytree(finished.run_dir, mine.run_dir)
        luck = random.Random(turn)
        victims = luck.sample(committed(mine.run_dir), 4)
        for victim in victims:
            hurt(victim, luck)
        names = noticed(mine.run_dir)
        summary = mine.finish()
        assert set(summary["damaged"]) >= names
        assert {path.name for path in (mine.run_dir / "damaged").iterdir()} >= {
            name.replace("/", "-") for name in names
        }
        assert_same(mine, reference)
        assert noticed(mine.run_dir) == set()


def test_damaged_labels_are_never_returned(copy: Scene) -> None:
    flip(sorted((copy.run_dir / "labels").iterdir())[0], random.Random(0))
    with pytest.raises(StoreError, match="start the command of this run directory again"):
        list(stored_run(LocalStorage(copy.run_dir)).frames(LABELS))


def deleted(folder: Path) -> None:
    sorted(folder.iterdir())[0].unlink()


def swapped(folder: Path) -> None:
    first, *_, last = sorted(folder.iterdir())
    one, other = first.read_bytes(), last.read_bytes()
    first.write_bytes(other)
    last.write_bytes(one)
    assert len(noticed(folder.parent)) == 2


def all_of_a_unit(folder: Path) -> None:
    records = sorted(folder.glob("unit-*.json"))
    for record in records:
        if record.name.split("-")[1] == records[0].name.split("-")[1]:
            record.unlink()


@pytest.mark.parametrize(
    ("hurt", "folder"),
    [
        *((deleted, folder) for folder in ("labels", "rollouts", "solutions", "inputs", "commits")),
        *((swapped, folder) for folder in ("labels", "rollouts", "commits")),
        (all_of_a_unit, "commits"),
    ],
)
def test_lost_and_swapped_files_are_owed_again(
    hurt: Callable[[Path], None], folder: str, copy: Scene, reference: Found
) -> None:
    hurt(copy.run_dir / folder)
    copy.finish()
    assert_same(copy, reference)


def test_what_nobody_committed_is_left_alone(copy: Scene, reference: Found) -> None:
    strays = [
        copy.run_dir / "commits" / ".unit-0123.json.0a1b.tmp",
        copy.run_dir / "labels" / ".labels-0123.parquet.0a1b.tmp",
        copy.run_dir / "commits" / "notes.txt",
        copy.run_dir / "rollouts" / "rollouts-0123-4567.parquet",
        copy.run_dir / "something else",
    ]
    for stray in strays:
        stray.write_bytes(b"\x00 not ours")
    before = files(copy.run_dir)
    copy.finish()
    assert files(copy.run_dir) == before
    assert_same(copy, reference)


@pytest.mark.parametrize("hurt", [flip, cut, lambda path, _: path.unlink()], ids=["one bit", "cut short", "deleted"])
def test_damaged_parts_of_a_unit_in_work(
    hurt: Callable[[Path, random.Random], None], scenes: Scenes, reference: Found
) -> None:
    mine = scenes()
    start = mine.start("policy.lab.tokens_per_second=40000")
    parts = mine.run_dir / "flushed"
    until(lambda: parts.is_dir() and len(named(parts, mine.run_dir)) >= 2)
    start.kill()
    for victim in named(parts, mine.run_dir):
        hurt(victim, random.Random(1))
    mine.finish()
    assert_same(mine, reference)


def named(parts: Path, run_dir: Path) -> Sequence[Path]:
    """The parts that commit records name."""
    records = "".join(path.read_text() for path in (run_dir / "commits").glob("unit-*.json"))
    return [path for path in parts.glob("*.parquet") if path.name in records]
