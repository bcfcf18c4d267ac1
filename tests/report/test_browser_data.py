"""The data in a page of chains: which chains, how much of their texts, and which rollouts of which steps."""

import base64
import gzip
import itertools
import json
import math
import random
import re
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.analysis.browser import chains as of_labels
from pipeline.analysis.browser import parts
from pipeline.analysis.browser.chains import STRIP, build_browser, strip, uncertainty
from pipeline.analysis.browser.examples import (
    PER_PREFIX,
    RolloutExample,
    Row,
    affordable,
    drops,
    largest_drop,
    rollout_examples,
)
from pipeline.analysis.browser.parts import Blocks, Chosen
from pipeline.analysis.relabel import regrade
from pipeline.analysis.report.aggregates import COLUMNS, steps_of
from pipeline.config.changes import RegradeConfig
from pipeline.core.records import Finish, Verdict
from pipeline.core.tables import LABELS
from pipeline.display.document import Inset
from pipeline.storage.location import storage_at
from pipeline.storage.stored_run import stored_run
from tests.audit.runs import copied
from tests.conftest import write_rows
from tests.library import Library
from tests.runtime.in_process import label_in_process
from tests.settings import GraderChange, compose_label

VALUES = st.lists(st.none() | st.floats(0, 1), max_size=3 * STRIP)


def chain(name: str, values: list[float | None], sds: list[float] | None = None) -> Row:
    """`values` of the bare problem and the steps; prefixes are `name` and their number."""
    root_sd, *step_sds = sds or [0.1] * len(values)
    root, *prefixes = (f"{name}{at}" for at in range(len(values)))
    return {
        "root_prefix_id": root, "prefix_ids": prefixes, "root_value": values[0], "value": values[1:],
        "root_value_sd": root_sd, "value_sd": step_sds,
    }  # fmt: skip


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


@given(st.integers(0, 200), st.integers(1, 200))
def test_a_page_lists_the_same_entries_each_time_in_whatever_parts_they_come(total: int, most: int) -> None:
    places = Chosen(total, most).places
    assert places == sorted(set(places)) == Chosen(total, most).places
    assert len(places) == min(total, most)
    half = total // 2
    later = [half + place for place in Chosen(total, most).within(half, total - half)]
    assert [*Chosen(total, most).within(0, half), *later] == places


@given(st.lists(st.integers(0, 2_000), min_size=1, max_size=60), st.randoms(use_true_random=False))
def test_texts_fit_into_the_bytes_that_are_there(lengths: list[int], luck: random.Random) -> None:
    letters = [chr(code) for code in range(48, 123) if chr(code) not in "\\<"]
    texts = ["".join(luck.choices(letters, k=length)) for length in lengths]
    with patch.object(parts, "DATA_BYTES", 20_000), patch.object(parts, "BLOCK_BYTES", 1_000):
        data = Blocks(len(texts))
        for place, text in enumerate(texts):
            data.add({"ids": place}, [text], partial(beginning_of, text))
        packed = re.findall('id="browser-entries-[0-9]*">([^<]*)<', data.elements({}))
    found = [each for block in packed for each in json.loads(gzip.decompress(base64.b64decode(block)))]
    assert len(found) == len(texts)
    assert all(each is None or text.startswith(each) for each, text in zip(found, texts, strict=True))
    assert sum(map(len, packed)) <= 2 * 20_000


def beginning_of(text: str, limit: int) -> str:
    return json.dumps(text[:limit])


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
    run = stored_run(storage)
    found = build_browser(storage, run, steps_of(run.frame(LABELS, COLUMNS), 0), chains=chains)
    assert found is not None
    return found


def carried(browser: Inset, name: str) -> Any:
    (packed,) = re.findall(
        rf'<script type="application/octet-stream" id="browser-{name}">([^<]*)</script>', browser.data
    )
    return json.loads(gzip.decompress(base64.b64decode(packed)))


def test_a_page_carries_every_chain_as_it_is_stored(finished: Path) -> None:
    browser = of_run(finished)
    labels = pl.read_parquet(finished / "labels" / "*.parquet").rows_by_key("chain_id", named=True, unique=True)
    index, block, shown = (carried(browser, name) for name in ("index", "entries-0", "examples-0"))
    assert len(labels) == len(index["ids"])
    log = pl.read_parquet(finished / "rollouts" / "*.parquet")
    for at, (chain_id, found) in enumerate(zip(index["ids"], block, strict=True)):
        row = labels[chain_id]
        assert found["problem"] == row["problem"]
        (path,) = found["trees"]
        assert path["texts"][1:] == row["steps"]
        assert path["labels"][1:] == "".join({1: "+", 0: "-", 2: "o", None: "?"}[label] for label in row["label"])
        values = [row["root_value"], *row["value"]]
        assert path["values"] == [None if value is None else round(value, 3) for value in values]
        assert path["correct"] == [row["root_n_correct"], *row["n_correct"]]
        assert index["outcomes"][at] == {True: "r", False: "w", None: "o"}[row["outcome"]]
        for number, prefix in zip(path["prefixes"], [row["root_prefix_id"], *row["prefix_ids"]], strict=True):
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


def test_a_page_has_as_many_chains_as_fit_with_their_steps(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_labels, "_CHARACTERS", 500)
    browser = of_run(finished)
    listed = len(carried(browser, "index")["ids"])
    assert 1 <= listed < len(pl.read_parquet(finished / "labels" / "*.parquet"))
    assert f"This page has {listed:,} of the run's" in browser.html
    assert all(carried(browser, "entries-0"))


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
    assert carried(after, "entries-0") != carried(before, "entries-0")


def test_examples_are_left_out_where_texts_take_all_the_bytes(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert carried(of_run(finished), "examples-0")
    monkeypatch.setattr(parts, "DATA_BYTES", 1)
    browser = of_run(finished)
    assert carried(browser, "examples-0") == {}
    assert not any(carried(browser, "entries-0")), "nor do texts fit"
    assert "chosen by" not in browser.html


def test_blocks_hold_what_the_index_says(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = of_run(finished)
    monkeypatch.setattr(parts, "BLOCK_BYTES", 3_000)
    split = of_run(finished)
    starts = carried(split, "index")["starts"]
    assert len(starts) > 1
    blocks = [carried(split, f"entries-{number}") for number in range(len(starts))]
    assert starts == [sum(map(len, blocks[:number])) for number in range(len(blocks))]
    texts = [
        [found["trees"][0]["texts"] for found in chains]
        for chains in (itertools.chain(*blocks), carried(whole, "entries-0"))
    ]
    assert texts[0] == texts[1]
    assert carried(split, "index")["ids"] == carried(whole, "index")["ids"]


def test_a_row_without_an_id_is_named_by_its_place(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"problem": "What is 3 + 4?", "answer": "7", "steps": ["3 + 4 = 7.", "The answer is 7."]},
        {"id": "own", "problem": "What is 3 + 5?", "answer": "8", "steps": ["3 + 5 = 8.", "The answer is 8."]},
        {"problem": "What is 3 + 4?", "answer": "7", "steps": ["3 + 4 = 8.", "The answer is 8."]},
    ]
    path = write_rows(tmp_path / "sums.jsonl", rows)
    settings = ["policy=oracle", "sampling.rollouts=1", f"data.path={path}", f"run_dir={tmp_path / 'run'}"]
    label_in_process(compose_label(settings))
    assert sorted(carried(of_run(tmp_path / "run"), "index")["sources"]) == ["own", "sums.jsonl:1", "sums.jsonl:3"]
