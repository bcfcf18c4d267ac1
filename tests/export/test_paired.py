"""format=preference: pairs of a real run, and its chains without a pair."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipeline.export.example import LabelCounts
from pipeline.export.formats.preference import NO_PAIR, PairRows
from pipeline.export.registry import plan_of
from pipeline.export.result import LEFT_OUT
from pipeline.export.settings import DecontaminateConfig, FileType, NeutralSteps, PairReader, PairSpan, PreferenceConfig
from tests.export.encoders import Characters
from tests.export.rows import exported, label_row, lines
from tests.export.rows import settings as asked
from tests.library import Library

PREFERENCE = "preference"


@pytest.fixture(scope="module")
def run_dir(library: Library, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """30 problems with four chains of three steps, which differ from the second step on, in units of ten problems."""
    return library.copy("many", tmp_path_factory.mktemp("run"))


def test_pairs_of_a_run_are_steps_of_two_of_its_chains(run_dir: Path, tmp_path: Path) -> None:
    step = PreferenceConfig(reader=PairReader.step_dpo)
    done = exported(run_dir, tmp_path / "out", PREFERENCE, own=step, file=FileType.parquet)
    chains = {row["chain_id"]: row for row in pl.read_parquet(run_dir / "labels" / "*.parquet").iter_rows(named=True)}
    pairs = pl.read_parquet(tmp_path / "out/train.parquet").to_dicts()
    assert len(pairs) == done.files["train.parquet"].rows > 10
    for pair in pairs:
        good, bad = chains[pair["chosen_chain_id"]], chains[pair["rejected_chain_id"]]
        index = pair["step"] - 1
        assert (pair["prompt"], pair["answer"]) == (good["problem"], good["gold_answer"])
        assert pair["initial_reason_steps"] == "".join(f"{text}\n" for text in good["steps"][:index])
        assert good["steps"][:index] == bad["steps"][:index]
        assert (pair["chosen"], pair["rejected"]) == (good["steps"][index], bad["steps"][index])
        assert (good["label"][index], bad["label"][index]) == (1, 0)
        assert (pair["chosen_value"], pair["rejected_value"]) == (good["value"][index], bad["value"][index])
    in_pairs = {pair[name] for pair in pairs for name in ("chosen_chain_id", "rejected_chain_id")}
    gone = lines(tmp_path / "out" / LEFT_OUT)
    assert {left["chain_id"] for left in gone} == set(chains) - in_pairs
    assert (done.chains, done.steps) == (120, 360)


def test_a_chain_is_left_out_once_however_many_pairs_it_is_in(run_dir: Path, tmp_path: Path) -> None:
    listed = tmp_path / "listed.txt"
    listed.write_text("What is 3 + 3 + 1?\n")
    everything = PreferenceConfig(margin=0.01, span=PairSpan.step)
    exported(run_dir, tmp_path / "all", PREFERENCE, own=everything)
    done = exported(
        run_dir, tmp_path / "out", PREFERENCE, own=everything, decontaminate=DecontaminateConfig(paths=[str(listed)])
    )
    assert "What is 3 + 3 + 1?" in (tmp_path / "all/train.jsonl").read_text()
    assert "What is 3 + 3 + 1?" not in (tmp_path / "out/train.jsonl").read_text()
    gone = (tmp_path / "out" / LEFT_OUT).read_text().splitlines()
    assert len(set(gone)) == len(gone)
    assert 1 <= done.left_out["contaminated"].count <= 4


def maker(**changes: Any) -> PairRows:
    made = plan_of(asked(PREFERENCE, **changes), Characters()).make
    assert isinstance(made, PairRows)
    return made


def test_values_are_best_estimates_and_labels_those_of_the_threshold() -> None:
    good = label_row([1], chain_id="good", steps=["A"], value=[0.3], unbiased_value=[0.6])
    bad = label_row([1], chain_id="bad", steps=["B"], value=[0.1], unbiased_value=[0.2], outcome=False)
    assert [made.left_out for made in maker()([good, bad])] == [NO_PAIR, NO_PAIR]
    (made,) = maker(threshold=0.25)([good, bad])
    assert made.row is not None
    assert (made.row["chosen_value"], made.row["rejected_value"]) == (0.3, 0.1)
    assert made.labels == LabelCounts(good=1, bad=1)


def test_a_neutral_step_is_what_it_is_said_to_be() -> None:
    chains = [
        label_row([2], chain_id="n", steps=["A"], outcome=False),
        label_row([1], chain_id="g", steps=["B"], outcome=True),
    ]
    assert all(made.left_out for made in maker()(chains))
    (made,) = maker(neutral=NeutralSteps.negative)(chains)
    assert made.row is not None
    assert (made.row["chosen"], made.row["rejected"]) == ("B", "A")


def test_tokens_are_looked_at_where_the_prompt_is_the_whole_one() -> None:
    chains = [label_row([1], chain_id="g", steps=["A"]), label_row([0], chain_id="b", steps=["B"], outcome=False)]
    (made,) = maker(max_length=5)(chains)
    assert [offence.kind for offence in made.offences] == ["too_long", "too_long"]
    (made,) = maker(max_length=5, own=PreferenceConfig(reader=PairReader.step_dpo))(chains)
    assert not made.offences
