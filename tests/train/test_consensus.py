"""`train` on labels by consensus: chains that are left out are not trained on, and P(no error so far) can be the target."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from transformers import AutoTokenizer

from pipeline.config.choices import ValueColumn
from pipeline.core.errors import UsageError
from pipeline.train.data import BY_CONSENSUS, StepDataset
from pipeline.train.settings import TrainConfig, TrainTarget
from tests.consensus_labels import PROBLEMS
from tests.library import Library
from tests.tiny.policy import ASSET


@pytest.fixture(scope="module")
def runs(library: Library, tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Path]:
    names = {False: "consensus", True: "consensus-soft"}
    return {soft: library.copy(name, tmp_path_factory.mktemp(name)) for soft, name in names.items()}


def dataset(run_dir: Path, **settings: Any) -> StepDataset:
    tokenizer = AutoTokenizer.from_pretrained(ASSET)
    return StepDataset.of_run(TrainConfig(run_dir=str(run_dir), **settings), tokenizer, max_length=1000)


def test_chains_that_are_left_out_are_counted_and_not_trained_on(runs: dict[bool, Path]) -> None:
    labels = pl.read_parquet(runs[False] / "labels" / "*.parquet")
    kept = labels.filter(pl.col("left_out").is_null())
    found = dataset(runs[False])
    assert {item.chain_id for item in found.items} == set(kept["chain_id"])
    assert found.left_out == {BY_CONSENSUS: labels.height - kept.height}
    assert dataset(runs[False], target=TrainTarget.outcome).chains == 2 * PROBLEMS


def test_the_probability_of_no_error_is_a_target(runs: dict[bool, Path]) -> None:
    labels = pl.read_parquet(runs[True] / "labels" / "*.parquet").filter(pl.col("left_out").is_null())
    wanted = dict(labels.select("chain_id", "p_error_free").iter_rows())
    found = dataset(runs[True], soft=ValueColumn.p_error_free)
    assert {item.chain_id: [target.value for target in item.targets] for item in found.items} == wanted


def test_labels_without_it_are_refused(runs: dict[bool, Path]) -> None:
    with pytest.raises(UsageError, match=r"soft=p_error_free: the labels of .* have none"):
        dataset(runs[False], soft=ValueColumn.p_error_free)
