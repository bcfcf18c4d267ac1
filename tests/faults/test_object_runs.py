"""Runs in an object store, started as a user starts them: killed in the middle, twice at once, and where nobody is refused."""

import io
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import psutil
import pytest

from pipeline.storage.commits import UNIT, record_sequences, resolve
from pipeline.storage.location import storage_at
from pipeline.storage.lock import MARKER, driver_marker
from pipeline.storage.shards import intact_bytes
from pipeline.storage.starts import FOLDER as STARTS
from pipeline.storage.storage import Storage
from tests.checkout import stepvalue
from tests.conftest import run_stepvalue, write_rows
from tests.deadlines import until
from tests.object_store import DEAF, HONEST, ObjectServer, object_server
from tests.runtime.growing import chains

pytestmark = [pytest.mark.nightly, pytest.mark.ray]

PROBLEMS = 50
SETTINGS = (
    "policy=lab",
    "estimator=fixed",
    "run.unit_problems=10",
    "run.progress_seconds=0.5",
    "run.flush_seconds=0.5",
    "run.report=false",
)
SLOW = "policy.lab.tokens_per_second=2000"
SECONDS = 200


@pytest.fixture(scope="module")
def server() -> Iterator[ObjectServer]:
    with object_server() as server, pytest.MonkeyPatch.context() as patch:
        for name, value in server.environment.items():
            patch.setenv(name, value)
        yield server


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = [row for n in range(PROBLEMS) for last in (1, 3) for row in chains(n, last=last)]
    return write_rows(tmp_path_factory.mktemp("data") / "rows.jsonl", rows)


@pytest.fixture(scope="module")
def undisturbed(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Storage:
    run_dir = str(tmp_path_factory.mktemp("local") / "run")
    done = run_stepvalue(["label", f"data.path={data}", f"run_dir={run_dir}", *SETTINGS])
    assert done.returncode == 0, done.stderr
    return storage_at(run_dir)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """What all drivers print."""
    return tmp_path / "log"


def started(data: Path, run_dir: str, log: Path) -> "subprocess.Popen[bytes]":
    return stepvalue(log, "label", f"data.path={data}", f"run_dir={run_dir}", *SETTINGS, SLOW)


def unit_records(storage: Storage) -> list[str]:
    return [name for name in storage.names("commits") if name.startswith("commits/unit-")]


def labels(storage: Storage) -> pl.DataFrame:
    files = [pl.read_parquet(io.BytesIO(storage.read(name))) for name in storage.names("labels")]
    return pl.concat(files).sort("chain_id")


def rollouts(storage: Storage) -> "Counter[str]":
    """How often each rollout is in the log of its unit, every file of which is checked against its record."""
    files = [
        shard for found in record_sequences(storage, UNIT) for shard in resolve(found).log if shard.table == "rollouts"
    ]
    read = [pl.read_parquet(io.BytesIO(intact_bytes(storage, shard))) for shard in files]
    return Counter(pl.concat(read)["rollout_id"])


def written_twice(server: ObjectServer, run_dir: str) -> list[str]:
    """Files of the run, but for the reports on its starts."""
    folder = run_dir.removeprefix("s3:/")
    written = Counter(path.removeprefix(f"{folder}/") for path in server.written if path.startswith(f"{folder}/"))
    passing = (MARKER, ".probe-", f"{STARTS}/")
    return [name for name, times in written.items() if times > 1 and not name.startswith(passing)]


def assert_as_undisturbed(storage: Storage, undisturbed: Storage, server: ObjectServer) -> None:
    """Nothing lost, nothing twice, nothing changed."""
    assert rollouts(storage) == rollouts(undisturbed)
    assert labels(storage).equals(labels(undisturbed))
    assert written_twice(server, storage.run_dir) == []
    assert not [path for path in server.deleted if f"{storage.run_dir.removeprefix('s3:/')}/commits/" in path]
    assert MARKER not in storage.names("")


def test_a_run_that_is_killed_goes_on_where_it_was(
    server: ObjectServer, data: Path, undisturbed: Storage, log: Path
) -> None:
    storage = storage_at(f"s3://{HONEST}/killed/run")
    driver = started(data, storage.run_dir, log)
    until(lambda: driver.poll() is not None or len(unit_records(storage)) >= 5, SECONDS)
    assert driver.poll() is None, log.read_text()
    tree = [*psutil.Process(driver.pid).children(recursive=True), psutil.Process(driver.pid)]
    for process in tree:
        process.kill()
    driver.wait()
    psutil.wait_procs(tree, timeout=20)
    committed = {name: storage.read(name) for name in unit_records(storage)}
    assert sum(rollouts(storage).values()) < sum(rollouts(undisturbed).values())

    assert started(data, storage.run_dir, log).wait(SECONDS) == 0, log.read_text()
    assert f"{2 * PROBLEMS} read = {2 * PROBLEMS} used + 0 rejected" in log.read_text()
    assert_as_undisturbed(storage, undisturbed, server)
    assert {name: storage.read(name) for name in committed} == committed


def test_two_drivers_at_once_lose_nothing_and_double_nothing(
    server: ObjectServer, data: Path, undisturbed: Storage, log: Path
) -> None:
    storage = storage_at(f"s3://{HONEST}/two/run")
    drivers = [started(data, storage.run_dir, log) for _ in range(2)]
    assert [driver.wait(SECONDS) for driver in drivers] == [0, 0], log.read_text()
    assert_as_undisturbed(storage, undisturbed, server)
    assert any(path.startswith(f"/{HONEST}/two/run/commits/unit-") for path in server.refused), "they never met"


def test_where_the_store_refuses_nobody_a_second_driver_is_refused(
    server: ObjectServer, data: Path, undisturbed: Storage
) -> None:
    storage = storage_at(f"s3://{DEAF}/one/run")
    settings = ["label", f"data.path={data}", f"run_dir={storage.run_dir}", *SETTINGS]
    with driver_marker(storage, settle_seconds=0):
        refused = run_stepvalue(settings)
        assert storage.names("") == [MARKER]
    assert refused.returncode == 2
    assert f"delete {storage.run_dir}/{MARKER}" in refused.stderr
    assert len(refused.stderr.strip().splitlines()) == 1
    alone = run_stepvalue(settings)
    assert alone.returncode == 0, alone.stderr
    assert_as_undisturbed(storage, undisturbed, server)
