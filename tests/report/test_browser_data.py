"""The data in a page of chains: which chains, how much of their texts, and which rollouts of which steps."""

import base64
import gzip
import json
import math
import random
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.analysis.relabel import regrade
from pipeline.analysis.report.browser import build, data
from pipeline.analysis.report.browser.build import build_browser
from pipeline.analysis.report.browser.data import BLOCK, STRIP, strip
from pipeline.analysis.report.browser.views import (
    LIMITS,
    PER_PREFIX,
    TEXT_BYTES,
    RolloutExample,
    Row,
    Size,
    affordable,
    cut,
    drops,
    largest_drop,
    rollout_examples,
    sample,
    uncertainty,
)
from pipeline.config.changes import RegradeConfig
from pipeline.core.records import Finish, Verdict
from pipeline.display.document import Inset
from pipeline.storage.location import storage_at
from pipeline.storage.stored_run import stored_run
from tests.audit.runs import copied
from tests.library import Library
from tests.settings import GraderChange

VALUES = st.lists(st.none() | st.floats(0, 1), max_size=3 * STRIP)


def chain(name: str, values: list[float | None], sds: list[float] | None = None) -> Row:
    """`values` of the bare problem and the steps; prefixes are `name` and their number."""
    root_sd, *step_sds = sds or [0.1] * len(values)
    root, *prefixes = (f"{name}{at}" for at in range(len(values)))
    return {
        "root_prefix_id": root, "prefix_ids": prefixes, "root_value": values[0], "value": values[1:],
        "root_value_sd": root_sd, "value_sd": step_sds,
    }  # fmt: skip


def size(name: int, *lengths: int) -> Size:
    return Size(chain_id=str(name), characters=lengths, in_bytes=lengths)


def test_drops_skip_what_is_not_known_and_the_first_of_the_largest_counts() -> None:
    found = list(drops(chain("a", [0.75, None, 0.25, 1.0, 0.5, None])))
    assert [(drop.step, drop.size) for drop in found] == [(2, 0.5), (4, 0.5)]
    first = largest_drop(chain("a", [0.75, None, 0.25, 1.0, 0.5]))
    assert first is not None
    assert first.step == 2
    assert largest_drop(chain("a", [None, 0.5, 0.5, 1.0])) is None


def test_uncertainty_is_that_of_the_steps_not_of_the_problem() -> None:
    assert uncertainty(chain("a", [0.5, 0.5, 0.5], [9.0, 0.3, 0.1])) == pytest.approx(math.sqrt(0.05))
    assert uncertainty(chain("a", [0.5])) is None


@given(VALUES)
def test_a_strip_has_few_bars_and_hides_no_low(values: list[float | None]) -> None:
    bars = strip(values)
    assert len(bars) == min(STRIP, len(values))
    known = [value for value in values if value is not None]
    assert min((bar for bar in bars if bar is not None), default=None) == min(known, default=None)
    if len(values) <= STRIP:
        assert bars == values


@given(st.text(), st.integers(1, 10))
def test_a_cut_text_says_its_length(text: str, characters: int) -> None:
    shown = cut(text, characters)
    assert shown.startswith(text[:characters])
    assert (shown == text) == (len(text) <= characters)
    assert (f"({len(text):,} characters," in shown) or len(text) <= characters


@given(st.integers(0, 60), st.integers(1, 60), st.randoms(use_true_random=False))
def test_a_sample_is_the_same_chains_in_whatever_order_they_come(count: int, most: int, luck: random.Random) -> None:
    sizes = [size(name, 10) for name in range(count)]
    chosen = {sizes[position].chain_id for position in sample(sizes, most).positions}
    assert len(chosen) == min(count, most)
    luck.shuffle(sizes)
    again = sample(sizes, most)
    assert {sizes[position].chain_id for position in again.positions} == chosen
    assert list(again.positions) == sorted(again.positions)
    assert [*again.within(0, count // 2), *again.within(count // 2, count)] == list(again.positions)


@given(st.lists(st.lists(st.integers(0, 2_000_000), min_size=1, max_size=40), max_size=60))
def test_texts_fit_into_the_bytes_that_are_there(lengths: list[list[int]]) -> None:
    sizes = [size(name, *found) for name, found in enumerate(lengths)]
    chosen = sample(sizes, 10_000)
    assert sum(sizes[position].cut(chosen.characters) for position in chosen.positions) <= TEXT_BYTES
    assert len(chosen.positions) == len(sizes)


def test_long_texts_are_cut_more_and_then_chains_are_left_out() -> None:
    assert sample([size(0, 10**9)], 10).characters == LIMITS[0]
    assert sample([size(name, 10_000) for name in range(10_000)], 10_000).characters == 1_000
    many = sample([size(name, *[1_000] * 100) for name in range(2_000)], 2_000)
    assert many.characters == LIMITS[-1]
    assert 500 < len(many.positions) < 2_000


def rollouts(*found: tuple[str, Verdict, Finish]) -> pl.DataFrame:
    return pl.DataFrame(
        [
            {
                "rollout_id": f"{prefix}-{at}",
                "prefix_id": prefix,
                "issue_index": at,
                "text": f"{at} {'x' * 1_000}",
                "finish": finish.value,
                "n_tokens": at,
                "answer": "7",
                "verdict": verdict.value,
            }
            for at, (prefix, verdict, finish) in enumerate(found)
        ]
    )


def test_examples_are_one_of_each_kind_first_with_the_verdicts_that_count() -> None:
    log = rollouts(
        ("a", Verdict.CORRECT, Finish.STOP),
        ("a", Verdict.CORRECT, Finish.STOP),
        ("a", Verdict.INCORRECT, Finish.STOP),
        ("a", Verdict.NO_ANSWER, Finish.LENGTH),
        ("b", Verdict.TIMEOUT, Finish.STOP),
        ("b", Verdict.CORRECT, Finish.STOP),
        ("b", Verdict.CORRECT, Finish.STOP),
        ("b", Verdict.CORRECT, Finish.STOP),
        ("c", Verdict.CORRECT, Finish.STOP),
    )
    found = rollout_examples(log, None, {"a", "b"})
    assert {prefix: [example.n_tokens for example in shown] for prefix, shown in found.items()} == {
        "a": [0, 2, 3],
        "b": [5, 4, 6],
    }
    assert found["a"][0].text.endswith(" (1,002 characters, full text in rollouts/*.parquet)")
    later = log.select("rollout_id", answer=pl.lit("8"), verdict=pl.lit("incorrect")).reverse()
    (first, *_) = rollout_examples(log, later, ["c"])["c"]
    assert (first.verdict, first.answer) == ("incorrect", "8")


def test_examples_go_to_the_step_that_lost_the_most_and_the_one_before_it_first() -> None:
    one = RolloutExample(text="x" * 100, finish="stop", n_tokens=1, answer="7", verdict="correct")
    chains = [
        chain("a", [0.9, 0.8, 0.7], [0.1, 0.1, 0.4]),
        chain("b", [0.9, 0.9, 0.1], [0.1, 0.2, 0.1]),
        chain("c", [0.1], [0.3]),
    ]
    of = {f"{name}{at}": (one,) for name, count in (("a", 3), ("b", 3), ("c", 1)) for at in range(count)}
    order = ["b2", "b1", "a1", "a0", "a2", "c0", "b0"]
    for count in range(len(order) + 1):
        assert set(affordable(chains, of, (count + 0.5) * one.size)) == set(order[:count])


@pytest.fixture(scope="module")
def finished(library: Library, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return library.copy("mixed", tmp_path_factory.mktemp("browsed"))


def of_run(run_dir: Path, chains: int = 10_000) -> Inset:
    storage = storage_at(str(run_dir))
    found = build_browser(storage, stored_run(storage), chains=chains)
    assert found is not None
    return found


def carried(browser: Inset, name: str) -> dict[str, Any]:
    (packed,) = re.findall(
        rf'<script type="application/octet-stream" id="chains-{name}">([^<]*)</script>', browser.data
    )
    found = json.loads(gzip.decompress(base64.b64decode(packed)))
    assert isinstance(found, dict)
    return found


def test_a_page_carries_every_chain_as_it_is_stored(finished: Path) -> None:
    browser = of_run(finished)
    labels = pl.read_parquet(finished / "labels" / "*.parquet").rows_by_key("chain_id", named=True, unique=True)
    index, block, shown = (carried(browser, name) for name in ("index", "texts-0", "examples-0"))
    assert len(labels) == len(index["ids"]) <= BLOCK
    log = pl.read_parquet(finished / "rollouts" / "*.parquet")
    for at, (chain_id, found) in enumerate(zip(index["ids"], block["chains"], strict=True)):
        row = labels[chain_id]
        assert block["problems"][found["problem"]] == row["problem"]
        assert [found["texts"], found["labels"]] == [row["steps"], row["label"]]
        values = [row["root_value"], *row["value"]]
        assert found["values"] == [None if value is None else round(value, 3) for value in values]
        assert found["correct"] == [row["root_n_correct"], *row["n_correct"]]
        assert index["outcomes"][at] == {True: "r", False: "w", None: "o"}[row["outcome"]]
        for number, prefix in zip(found["prefixes"], [row["root_prefix_id"], *row["prefix_ids"]], strict=True):
            sampled = log.filter(pl.col("prefix_id") == prefix)
            listed = shown.get(str(number), [])
            assert len(listed) == min(PER_PREFIX, len(sampled))
            assert {text for *_, text in listed} <= set(sampled["text"])
    assert of_run(finished) == browser


def test_fewer_chains_than_the_run_has_are_reported(finished: Path) -> None:
    browser, whole = of_run(finished, 2), of_run(finished)
    assert len(carried(browser, "index")["ids"]) == 2
    assert f"2 of the run's {len(carried(whole, 'index')['ids'])} chains" in browser.html
    assert "chosen by" not in whole.html


def test_verdicts_and_labels_are_those_of_the_current_edition(finished: Path, tmp_path: Path) -> None:
    run_dir = copied(finished, tmp_path)
    before = of_run(run_dir)
    # Every completion of the oracle says that "the work is done" before it states its answer.
    regrade(RegradeConfig(run_dir=str(run_dir), grader=GraderChange(answer_pattern="work (is)")))
    after = of_run(run_dir)
    own, later = (
        [verdict for found in carried(browser, "examples-0").values() for verdict, *_ in found]
        for browser in (before, after)
    )
    assert "correct" in own
    assert "correct" not in later
    assert carried(after, "texts-0") != carried(before, "texts-0")


def test_examples_are_left_out_where_texts_take_all_the_bytes(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "DATA_BYTES", 1)
    browser = of_run(finished)
    assert carried(browser, "examples-0") == {}
    assert "chosen by" not in browser.html


def test_blocks_hold_what_the_index_says(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = of_run(finished)
    for module in (build, data):
        monkeypatch.setattr(module, "BLOCK", 2)
    parts = of_run(finished)
    count = -(-len(carried(parts, "index")["ids"]) // carried(parts, "index")["block"])
    assert count > 1
    chains = [shown for block in range(count) for shown in carried(parts, f"texts-{block}")["chains"]]
    assert [shown["texts"] for shown in chains] == [shown["texts"] for shown in carried(whole, "texts-0")["chains"]]
    assert carried(parts, "index")["ids"] == carried(whole, "index")["ids"]
