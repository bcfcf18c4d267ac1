"""kill -9 of a scoring with its private Ray, of the driver or of a worker, again and again: no score is lost, doubled or
changed, and what was committed is not scored again."""

import subprocess
from pathlib import Path

import polars as pl
import pytest

from pipeline.storage.location import storage_at
from pipeline.storage.stored_scores import score_shards
from tests.checkout import ROOT
from tests.conftest import write_rows
from tests.faults.ray_kills import SECONDS, command, kills_until_done

pytestmark = [pytest.mark.nightly, pytest.mark.ray, pytest.mark.timeout(280)]

CHAINS = 400
SETTINGS = ("scorer=oracle", "scorer.oracle.auc=0.8", "run.unit_problems=20", "run.flush_seconds=0.1")


@pytest.mark.parametrize("victim", ["driver", "worker"])
def test_a_killed_scoring_goes_on_where_it_was(victim: str, tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"problem": f"{n}+1", "answer": str(n + 1), "steps": [f"{n}+1", f"={n + 1}"]} for n in range(CHAINS)
    ]
    data, out, calm = write_rows(tmp_path / "rows.jsonl", rows), tmp_path / "out", tmp_path / "calm.parquet"
    words = ["score", f"data.path={data}", *SETTINGS]
    subprocess.run(command(*words, f"out={calm}"), cwd=ROOT, check=True, timeout=SECONDS)
    slow = [*words, f"out={out}", "scorer.oracle.chains_per_second=300"]
    assert kills_until_done(slow, out, victim, most=4, apart=8) >= 2
    found = pl.concat([pl.read_parquet(out / shard.file) for shard in score_shards(storage_at(str(out)))])
    assert found.equals(pl.read_parquet(calm))
