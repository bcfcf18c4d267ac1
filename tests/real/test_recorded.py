"""A run from recorded rollouts has their verdicts and tokens, and figures of it are right on known cases."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from pipeline.core.records import Finish, Verdict
from tests.conftest import SHARED_DATA, write_rows
from tests.real.figures import AgainstPeople, accuracy_of, auc_of, balanced_of, estimate, held_out, value_paths
from tests.real.rebuild import gsm8k_of, rebuild
from tests.real.recorded import LETTERS, RecordedRollouts, lines_of, read_recorded

PROCESSBENCH = SHARED_DATA / "processbench_dev.jsonl"
TOKENS = st.integers(1, 400)


@given(
    st.dictionaries(
        st.text("0123456789abcdef", min_size=20, max_size=20),
        st.lists(st.tuples(st.sampled_from(list(LETTERS)), st.booleans(), TOKENS), min_size=1, max_size=6),
        min_size=1,
        max_size=4,
    )
)
def test_recorded_rollouts_are_read_as_they_were_kept(
    tmp_path_factory: pytest.TempPathFactory, of_prefix: dict[str, list[tuple[Verdict, bool, int]]]
) -> None:
    rows = [
        {
            "prefix_id": prefix,
            "issue_index": issue,
            "verdict": verdict.value,
            "finish": (Finish.LENGTH if cut else Finish.STOP).value,
            "n_tokens": tokens,
        }
        for prefix, rollouts in of_prefix.items()
        for issue, (verdict, cut, tokens) in reversed(list(enumerate(rollouts)))
    ]
    path = tmp_path_factory.mktemp("recorded") / "rollouts.jsonl"
    path.write_text("\n".join(lines_of(rows)))
    found = read_recorded(path)
    assert found.keys() == of_prefix.keys()
    for prefix, rollouts in of_prefix.items():
        letters = [LETTERS[verdict].upper() if cut else LETTERS[verdict] for verdict, cut, _ in rollouts]
        assert found[prefix] == RecordedRollouts(letters="".join(letters), tokens=tuple(n for _, _, n in rollouts))


def test_a_verdict_that_has_no_letter_is_refused() -> None:
    row = {"prefix_id": "a", "issue_index": 0, "verdict": "timeout", "finish": "stop", "n_tokens": 3}
    with pytest.raises(ValueError, match="timeout"):
        lines_of([row])


@pytest.mark.skipif(not PROCESSBENCH.exists(), reason="the chains of ProcessBench are not there")
def test_a_rebuilt_run_has_the_recorded_verdicts_and_tokens(tmp_path: Path) -> None:
    whole = gsm8k_of(PROCESSBENCH, tmp_path / "gsm8k.jsonl").read_text().splitlines()
    assert len(whole) == 100
    # The chain with ungraded rollouts, and some others.
    chosen = [row for row in map(json.loads, whole) if row["id"] == "gsm8k-329"] + list(map(json.loads, whole[:5]))
    _, again = rebuild(write_rows(tmp_path / "some.jsonl", chosen), tmp_path / "run")
    assert again == 0
    rollouts = pl.read_parquet(tmp_path / "run" / "rollouts" / "*.parquet")
    kept = {row["prefix_id"]: row for row in map(json.loads, lines_of(rollouts.iter_rows(named=True)))}
    known = read_recorded()
    assert len(kept) > len(chosen)
    assert {name: (row["outcomes"], tuple(row["tokens"])) for name, row in kept.items()} == {
        name: (known[name].letters[:8], known[name].tokens[:8]) for name in kept
    }
    assert any("u" in row["outcomes"] for row in kept.values())


@given(st.floats(0, 1), st.floats(0.05, 0.95), st.integers(2, 9))
def test_the_error_against_held_out_rollouts_is_unbiased(value: float, truth: float, count: int) -> None:
    # The expectation over the number of successes, exactly.
    expected = 0.0
    for right in range(count + 1):
        others = {"p": RecordedRollouts(letters="c" * right + "i" * (count - right), tokens=())}
        found = held_out([[("p", value, None)]], others)
        expected += float(binom.pmf(right, count, truth)) * float(found.errors[0])
    assert expected == pytest.approx((value - truth) ** 2, abs=1e-9)


def test_values_that_do_not_change_have_correlation_one_and_no_change() -> None:
    random = np.random.default_rng(2)
    recorded = {}
    for chain in range(400):
        truth = random.random()
        for step in range(4):
            letters = "".join("c" if right else "i" for right in random.random(16) < truth)
            recorded[f"{chain}.{step}"] = RecordedRollouts(letters=letters, tokens=(1,) * 16)
    found = value_paths([[f"{chain}.{step}" for step in range(4)] for chain in range(400)], recorded)
    assert found.correlation == pytest.approx(1, abs=0.05)
    assert found.change**2 == pytest.approx(0, abs=0.003) or np.isnan(found.change)
    assert found.spread == pytest.approx(12**-0.5, abs=0.03)


def test_figures_count_chains_by_their_weight() -> None:
    found = AgainstPeople(
        first_errors=np.zeros((2, 4)),
        inner=np.array([[4.0, 3.0, 1.0, 1.0], [0.0, 0.0, 1.0, 0.0]]),
        judged=4,
        scores=np.array([0.9, 0.1, 0.2, 0.8]),
        goods=np.array([True, False, True, False]),
        of_chain=np.array([0, 0, 1, 1]),
    )
    assert auc_of(found, np.ones(2)) == 0.75
    assert auc_of(found, np.array([1.0, 0.0])) == 1
    assert auc_of(found, np.array([0.0, 3.0])) == 0
    assert accuracy_of(found, np.ones(2)) == pytest.approx(4 / 6)
    assert balanced_of(found, np.ones(2)) == pytest.approx((3 / 4 + 1 / 2) / 2)
    assert balanced_of(found, np.array([1.0, 0.0])) == pytest.approx((3 / 4 + 1) / 2)
    interval = estimate(lambda weights: auc_of(found, weights), 2)
    assert interval.low is not None
    assert interval.high is not None
    assert 0 <= interval.low < 0.75 < interval.high <= 1
