"""The guarantees of every storage: on a disk, on an S3-compatible server and on other file systems of fsspec."""

import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import cast

import pytest
from fsspec.implementations.memory import MemoryFileSystem
from s3fs import S3FileSystem

from pipeline.core.errors import Absent, RunConflict, StoreError, Unreachable, UsageError
from pipeline.core.ids import shard_name
from pipeline.core.records import Tally
from pipeline.storage.commits import UNIT, Commit, CommitState, publish, record_sequence
from pipeline.storage.disk import OsDisk
from pipeline.storage.local import LocalStorage
from pipeline.storage.location import storage_at
from pipeline.storage.lock import MARKER, driver_marker, hold_lock
from pipeline.storage.repair import damaged_files
from pipeline.storage.run_record import claim, recorded_identity
from pipeline.storage.shards import ShardRecord
from pipeline.storage.storage import Storage
from tests.object_store import DEAF, HONEST, ObjectServer, object_server

pytestmark = pytest.mark.slow

UNIT_ID = "0" * 20
CALLERS = 8


@pytest.fixture(scope="module")
def server() -> Iterator[ObjectServer]:
    with object_server() as server, pytest.MonkeyPatch.context() as patch:
        for name, value in server.environment.items():
            patch.setenv(name, value)
        patch.setattr(S3FileSystem, "retries", 1)
        yield server


@pytest.fixture
def new_clients() -> Iterator[None]:
    """For tests that change the environment, which a client reads at its creation."""
    S3FileSystem.clear_instance_cache()
    yield
    S3FileSystem.clear_instance_cache()


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A run_dir of the kind that a test is run for; those in the memory of this process are emptied."""
    kind, name = request.param, tmp_path.name
    if kind == "local":
        return str(tmp_path / "run")
    if kind == "memory":
        MemoryFileSystem.store.clear()
        return f"memory://{name}/run"
    request.getfixturevalue("server")
    return f"s3://{kind}/{name}/run"


everywhere = pytest.mark.parametrize("place", ["local", HONEST, DEAF, "memory"], indirect=True)
where_the_first_wins = pytest.mark.parametrize("place", ["local", HONEST], indirect=True)
where_nobody_is_refused = pytest.mark.parametrize("place", [DEAF, "memory"], indirect=True)


@everywhere
def test_a_name_is_given_once(place: str) -> None:
    storage = storage_at(place)
    assert storage.create("commits/a", b"first")
    assert not storage.create("commits/a", b"second")
    assert storage.read("commits/a") == b"first"
    assert storage_at(place).read("commits/a") == b"first"


@where_the_first_wins
def test_of_many_callers_at_once_exactly_one_wins(place: str) -> None:
    storages, at_once = [storage_at(place) for _ in range(CALLERS)], threading.Barrier(CALLERS)

    def create(number: int) -> bool:
        at_once.wait()
        return storages[number].create("commits/a", b"from %d" % number)

    with ThreadPoolExecutor(CALLERS) as callers:
        won = list(callers.map(create, range(CALLERS)))
    assert sum(won) == 1
    assert storages[0].read("commits/a") == b"from %d" % won.index(True)


@everywhere
def test_names_are_those_of_a_folder_as_it_is_now(place: str) -> None:
    storage, other = storage_at(place), storage_at(place)
    assert storage.names("") == storage.names("labels") == []
    for name in ("labels/b", "labels/a", "run.json"):
        other.create(name, b"1")
    assert storage.names("") == ["labels", "run.json"]
    assert storage.names("labels") == ["labels/a", "labels/b"]
    other.remove("labels/a")
    assert storage.names("labels") == ["labels/b"]


@everywhere
def test_files_are_moved_replaced_and_removed(place: str) -> None:
    storage = storage_at(place)
    storage.create("labels/a", b"old")
    storage.create("aside/a", b"in the way")
    storage.move("labels/a", "aside/a")
    assert (storage.names("labels"), storage.read("aside/a")) == ([], b"old")
    storage.replace("aside/a", b"new")
    assert storage.read("aside/a") == b"new"
    storage.remove("aside/a")
    storage.remove("aside/a")
    with pytest.raises(Absent, match="aside/a is missing"):
        storage.read("aside/a")
    with pytest.raises(Absent, match="aside/a is missing"):
        storage.move("aside/a", "labels/a")


@pytest.mark.parametrize("place", [HONEST, "memory"], indirect=True)
@pytest.mark.parametrize("name", ["../a", "labels/../../a", "/a", "labels//a", "."])
def test_no_name_leads_out_of_the_run_directory(place: str, name: str) -> None:
    storage = storage_at(place)
    for verb in (storage.read, storage.remove, lambda name: storage.create(name, b"1")):
        with pytest.raises(StoreError, match="cannot contain"):
            verb(name)


def test_an_object_named_after_a_folder_is_no_file_in_it(server: ObjectServer) -> None:
    storage = storage_at(f"s3://{HONEST}/console/run")
    for folder in ("", "labels/"):
        S3FileSystem().pipe_file(f"{HONEST}/console/run/{folder}", b"")
    assert storage.names("") == ["labels"]
    assert storage.names("labels") == []


def test_a_put_whose_answer_was_lost_is_no_lost_race(server: ObjectServer) -> None:
    storage = storage_at(f"s3://{HONEST}/lost/run")
    assert storage.create("run.json", b"{}")
    commit = Commit(kind=UNIT, sequence_id=UNIT_ID, number=0, state=CommitState.PART, tally=Tally(rollouts=1))
    server.lost_answers = 1
    assert publish(storage, commit)
    assert server.lost_answers == 0
    assert not publish(storage, Commit(kind=UNIT, sequence_id=UNIT_ID, number=0, state=CommitState.PART))
    assert record_sequence(storage, UNIT, UNIT_ID).commits == (commit,)


@pytest.mark.parametrize(
    ("settings", "bucket", "cause"),
    [
        ({}, "nowhere", "bucket does not exist"),
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:9"}, HONEST, "connect"),
        ({"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None}, HONEST, "credentials"),
    ],
    ids=["no such bucket", "no server", "no credentials"],
)
def test_a_store_that_cannot_be_used_is_reported(
    server: ObjectServer,
    new_clients: None,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    settings: dict[str, str | None],
    bucket: str,
    cause: str,
) -> None:
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    for name, value in settings.items():
        monkeypatch.delenv(name) if value is None else monkeypatch.setenv(name, value)
    with pytest.raises(Unreachable, match=rf"s3://{bucket}/run/.*{cause}.*; check that the bucket exists"):
        storage_at(f"s3://{bucket}/run").create("run.json", b"{}")


def test_a_store_that_is_away_is_no_damage(
    server: ObjectServer, new_clients: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = storage_at(f"s3://{HONEST}/away/run")
    claim(storage, {"seed": 1})
    file = f"rollouts/{shard_name('rollouts', UNIT_ID, '0' * 64)}"
    storage.create(file, b"rows")
    shard = ShardRecord(table="rollouts", file=file, sha256="0" * 64, rows=1)
    publish(storage, Commit(kind=UNIT, sequence_id=UNIT_ID, number=0, state=CommitState.PART, shards=(shard,)))
    found = record_sequence(storage, UNIT, UNIT_ID)
    assert damaged_files(storage, found) == [file]
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    S3FileSystem.clear_instance_cache()
    away = storage_at(storage.run_dir)
    with pytest.raises(Unreachable):
        damaged_files(away, found)
    with pytest.raises(Unreachable):
        claim(away, {"seed": 1})


@pytest.mark.parametrize(
    ("run_dir", "remedy"),
    [
        ("s3://", "SCHEME://BUCKET/NAME"),
        ("s3:///run", "SCHEME://BUCKET/NAME"),
        ("s3://bucket/../run", "SCHEME://BUCKET/NAME"),
        ("s3://key:secret@bucket/run", "SCHEME://BUCKET/NAME"),
        ("simplecache::s3://bucket/run", "SCHEME://BUCKET/NAME"),
        ("nothing://bucket/run", "use a folder, s3:// or gs://"),
    ],
)
def test_a_url_that_names_no_run_directory_is_refused(run_dir: str, remedy: str) -> None:
    with pytest.raises(UsageError, match=remedy):
        storage_at(run_dir)


def test_a_missing_client_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gcsfs", None)
    with pytest.raises(UsageError, match=r"pip install 'stepvalue\[gcs\]'"):
        storage_at("gs://bucket/run")


def test_a_file_url_is_a_folder(tmp_path: Path) -> None:
    assert storage_at(f"file://{tmp_path}/run").run_dir == str(tmp_path / "run")


def test_where_the_first_commit_wins_drivers_need_no_lock(server: ObjectServer) -> None:
    storage = storage_at(f"s3://{HONEST}/two/run")
    with hold_lock(storage, lock=True) as alone, hold_lock(storage_at(storage.run_dir), lock=True):
        assert not alone
        assert storage.names("") == []


def test_a_driver_that_may_not_be_alone_takes_no_directory_over(server: ObjectServer) -> None:
    storage = storage_at(f"s3://{HONEST}/claim/run")
    claim(storage, {"seed": 1}, alone=False)
    claim(storage, {"seed": 1}, alone=False)
    with pytest.raises(RunConflict, match="seed was 1, now 2"):
        claim(storage, {"seed": 2}, alone=False)
    claim(storage, {"seed": 2}, alone=True)
    assert recorded_identity(storage) == {"seed": 2}


@where_the_first_wins
def test_of_two_drivers_that_claim_at_once_for_different_runs_one_is_refused(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = storage_at(place), storage_at(place)
    look = second.names

    def look_too_early(folder: str) -> list[str]:
        monkeypatch.setattr(second, "names", look)
        try:
            return look(folder)
        finally:
            claim(first, {"seed": 1})

    monkeypatch.setattr(second, "names", look_too_early)
    with pytest.raises(RunConflict, match="seed was 1, now 2"):
        claim(second, {"seed": 2})
    assert recorded_identity(first) == {"seed": 1}


@where_nobody_is_refused
def test_where_nobody_is_refused_a_marker_keeps_a_second_driver_out(place: str) -> None:
    storage = storage_at(place)
    with driver_marker(storage, settle_seconds=0):
        assert storage.names("") == [MARKER]
        for again in (driver_marker(storage_at(place), settle_seconds=0), hold_lock(storage_at(place), lock=True)):
            with pytest.raises(RunConflict, match=rf"process \d+ on .*delete {place}/{MARKER}"), again:
                pass
        assert storage.names("") == [MARKER]
    assert storage.names("") == []
    with pytest.raises(KeyError), driver_marker(storage, settle_seconds=0):
        raise KeyError
    assert storage.names("") == []
    storage.replace(MARKER, b"[]")
    with pytest.raises(RunConflict, match="its owner is unknown"), driver_marker(storage, settle_seconds=0):
        pass
    with hold_lock(storage, lock=False) as alone:
        assert not alone


class Overtaken:
    """The storage of a driver that another driver overtakes between its check of the marker and its own write."""

    def __init__(self, storage: Storage, both: threading.Barrier) -> None:
        self._storage = storage
        self._both = both

    def __getattr__(self, name: str) -> object:
        return getattr(self._storage, name)

    def replace(self, name: str, data: bytes, *, private: bool = False) -> None:
        self._both.wait()
        self._storage.replace(name, data)
        self._both.wait()


def test_of_two_drivers_that_look_at_the_same_moment_one_goes_on() -> None:
    MemoryFileSystem.store.clear()
    storage, both = storage_at("memory://race/run"), threading.Barrier(2)

    def drive(_: int) -> str:
        try:
            with driver_marker(cast("Storage", Overtaken(storage, both)), settle_seconds=0):
                return "went on"
        except RunConflict:
            return "left"

    with ThreadPoolExecutor(2) as drivers:
        assert sorted(drivers.map(drive, range(2))) == ["left", "went on"]
    assert storage.names("") == []


def test_a_marker_that_another_driver_replaced_and_took_away_is_a_conflict(monkeypatch: pytest.MonkeyPatch) -> None:
    MemoryFileSystem.store.clear()
    storage = storage_at("memory://gone/run")
    monkeypatch.setattr(storage, "replace", lambda name, data: storage.remove(name))
    with pytest.raises(RunConflict, match="at the same moment"), driver_marker(storage, settle_seconds=0):
        pass


class NoLinks(OsDisk):
    def link(self, path: str, new_path: str) -> None:
        raise PermissionError(1, "Operation not permitted", path)


class LinksReplace(OsDisk):
    def link(self, path: str, new_path: str) -> None:
        Path(new_path).write_bytes(Path(path).read_bytes())


@pytest.mark.parametrize(
    ("disk", "fault"), [(NoLinks(), "has no hard links"), (LinksReplace(), "lets two files have the same name")]
)
def test_a_file_system_in_which_no_commit_could_win_is_refused(tmp_path: Path, disk: OsDisk, fault: str) -> None:
    storage = LocalStorage(tmp_path / "run", disk)
    with pytest.raises(StoreError, match=rf"{fault}: choose a run_dir on another"), hold_lock(storage, lock=True):
        pass
    assert storage.names("") == []
    with hold_lock(LocalStorage(tmp_path / "run"), lock=True) as alone:
        assert alone
