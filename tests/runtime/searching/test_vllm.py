"""Searches of the tiny policy in vLLM, with a random PRM on its trunk: steps end where vLLM stops, on tokens that it wrote."""

import asyncio
from pathlib import Path

import polars as pl
import pytest

from pipeline.cli.compose import compose
from pipeline.cli.search import SEARCH
from pipeline.config.search import SearchRunConfig
from pipeline.engines.hugging_face import HfTokenizer
from tests.conftest import write_rows
from tests.runtime.searching.starts import started
from tests.runtime.searching.tables import CANDIDATES, SAMPLES, SEARCHES, STEP_SCORES, assert_alike, tables
from tests.runtime.searching.test_search_run import is_sound
from tests.scorers.readers import own_prm
from tests.searches.runs import Row
from tests.tiny.policy import ASSET, OVERRIDES

pytestmark = [pytest.mark.nightly, pytest.mark.model, pytest.mark.filterwarnings("ignore")]

ROWS: list[Row] = [
    {"problem": "21+5*2-38", "answer": "14"},
    {"problem": "4+6+16+36", "answer": "62"},
    {"problem": "9*3-7+2"},
]
N = 4


def test_a_real_policy_and_a_real_scorer_share_a_search(tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    (folder := tmp_path / "prm").mkdir()
    data = write_rows(tmp_path / "rows.jsonl", ROWS)
    words = [
        f"data.path={data}", f"run_dir={tmp_path / 'run'}", *OVERRIDES, "search=beam", f"search.n={N}", "search.width=2",
        "scorer=own", f"scorer.model={own_prm(folder)}", "scorer.dtype=float32", "scorer.max_num_seqs=32",
    ]  # fmt: skip
    config = compose(SEARCH, words).settings()
    assert isinstance(config, SearchRunConfig)
    started(config, run=asyncio.run)
    found = tables(tmp_path / "run")
    assert found[SEARCHES].height == len(ROWS)
    samples, tokenizer = found[SAMPLES], HfTokenizer(AutoTokenizer.from_pretrained(ASSET))
    for row in samples.filter(pl.col("text") != "").iter_rows(named=True):
        assert tokenizer.decode(row["token_ids"]) == row["text"]
        assert row["text"].strip()
        assert row["text"].count("\n") == (1 if row["text"].endswith("\n") else 0), "one line is one step"
    # The tiny model writes a character per token: vLLM stopped at the end of the line.
    going_on = samples.filter(~pl.col("ended"))
    assert going_on["n_tokens"].to_list() == [len(text) for text in going_on["text"]]
    scores = found[STEP_SCORES]
    assert scores["score"].null_count() == 0
    assert scores["score"].is_between(0, 1).all()
    assert 0 < sum(scores["n_computed"].to_list()) <= sum(scores["n_tokens"].to_list())
    assert found[CANDIDATES]["verdict"].null_count() == found[CANDIDATES].filter(pl.col("row") == 2).height
    assert is_sound(tmp_path / "run")
    before = tables(tmp_path / "run")
    assert started(config, run=asyncio.run).units_done_now == 0
    assert_alike(tables(tmp_path / "run"), before)
