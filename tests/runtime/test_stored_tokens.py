"""A run stores the tokens of its rollouts where the user asks for it: they are those of the texts, and change nothing else."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from pipeline.core.errors import RunConflict
from pipeline.core.tables import ROLLOUTS, TOKEN_IDS
from pipeline.engines.oracle import ByteTokenizer
from pipeline.python.run import Run
from tests.audit.forger import Forger, first
from tests.conftest import run_stepvalue
from tests.runtime.growing import Row, assert_sound, audited, bare, chains, files, label

pytestmark = pytest.mark.slow

STORED = "sampling.store_tokens=true"
TREE = "policy.oracle.world=tree"
"""Its completions are as many tokens as they have bytes."""


def rows() -> list[Row]:
    return [*chains(1, 2), *bare(3)]


@pytest.mark.parametrize("estimator", ["fixed", "pooled"])
def test_the_tokens_are_those_of_the_texts_and_labels_do_not_depend_on_them(estimator: str, tmp_path: Path) -> None:
    own = (TREE, f"estimator={estimator}")
    label(tmp_path / "with", rows(), STORED, *own)
    label(tmp_path / "without", rows(), *own)
    rollouts = Run(tmp_path / "with" / "run").rollouts()
    assert rollouts.columns == ROLLOUTS.with_extra(TOKEN_IDS).schema.names
    tokenizer = ByteTokenizer()
    for text, ids, count in rollouts.select("text", "token_ids", "n_tokens").iter_rows():
        assert tokenizer.decode(ids) == text
        assert len(ids) == count > 0
    without = Run(tmp_path / "without" / "run").rollouts()
    assert without.columns == ROLLOUTS.schema.names
    key = "rollout_id"
    assert rollouts.drop("token_ids").sort(key).equals(without.sort(key))
    assert files(tmp_path / "with", "labels") == files(tmp_path / "without", "labels")
    assert_sound(tmp_path / "with")


def test_a_run_goes_on_with_the_tokens_that_it_stores(tmp_path: Path) -> None:
    label(tmp_path, rows(), STORED, TREE)
    label(tmp_path, [*rows(), *chains(4)], STORED, TREE, "sampling.rollouts=5")
    (schema,) = {tuple(pq.read_schema(file).names) for file in sorted((tmp_path / "run" / "rollouts").iterdir())}
    assert schema == tuple(ROLLOUTS.with_extra(TOKEN_IDS).schema.names)
    assert Run(tmp_path / "run").rollouts()["token_ids"].list.len().min() != 0
    assert_sound(tmp_path)
    with pytest.raises(RunConflict, match="store_tokens"):
        label(tmp_path, rows(), TREE)


def test_tokens_that_are_not_all_there_are_found(tmp_path: Path) -> None:
    label(tmp_path, rows(), STORED, TREE)
    Forger(tmp_path / "run").change("unit", "rollouts", first(token_ids=[1, 2]))
    (finding,) = audited(tmp_path).findings
    assert "tokens, but 2 are stored" in finding.fault


def test_a_search_that_always_stores_tokens_refuses_the_setting() -> None:
    found = run_stepvalue(["search", "search=majority", "policy=oracle", "data=sample", "run_dir=run", STORED])
    assert found.returncode == 2
    assert "sampling.store_tokens has no effect in `search`: all tokens are stored" in found.stderr
