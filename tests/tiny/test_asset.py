"""The shipped policy and its measured values fit each other; nothing here loads a model."""

import json
import re
from math import prod
from typing import TypedDict

import pytest
from safetensors import safe_open
from tokenizers import Tokenizer

from pipeline.__main__ import compose_label
from pipeline.graders.settings import MathConfig
from tests.conftest import ROOT
from tests.tiny.policy import ASSET, OVERRIDES, PARAMETERS, TRUTH

ROLLOUTS = 2_000
MAX_ASSET_BYTES = 5_000_000
MAX_TRUTH_BYTES = 200_000
FILES = {"config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}


class Row(TypedDict):
    id: str
    problem: str
    answer: str
    steps: list[str]
    outcome: bool
    n: int
    correct: list[int]
    ungraded: list[int]
    tokens: list[float]


def rows() -> list[Row]:
    return [json.loads(line) for line in TRUTH.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.from_file(str(ASSET / "tokenizer.json"))


def worked_out(problem: str) -> int:
    value, *moves = re.findall(r"[-+*]?\d+", problem)
    result = int(value)
    for move in moves:
        result = result * int(move[1:]) if move[0] == "*" else result + int(move)
    return result


def test_the_asset_is_small_and_holds_data_alone() -> None:
    assert {path.name for path in ASSET.iterdir()} == FILES
    assert sum(path.stat().st_size for path in ASSET.iterdir()) < MAX_ASSET_BYTES
    assert TRUTH.stat().st_size < MAX_TRUTH_BYTES
    assert not [path.name for path in ASSET.glob("*.json") if "auto_map" in path.read_text(encoding="utf-8")]


def test_the_weights_have_the_stated_number_of_parameters() -> None:
    with safe_open(ASSET / "model.safetensors", framework="np") as weights:
        assert sum(prod(weights.get_slice(name).get_shape()) for name in weights.keys()) == PARAMETERS  # noqa: SIM118


def test_the_readme_of_the_trainer_states_that_number() -> None:
    text = (ROOT / "pipeline" / "train" / "README.md").read_text(encoding="utf-8")
    assert f"{PARAMETERS:,} parameters" in " ".join(text.split())


def test_the_model_and_its_tokenizer_agree_on_the_vocabulary_and_the_end(tokenizer: Tokenizer) -> None:
    config = json.loads((ASSET / "config.json").read_text())
    ending = json.loads((ASSET / "tokenizer_config.json").read_text())["eos_token"]
    assert config["vocab_size"] == tokenizer.get_vocab_size()
    assert config["eos_token_id"] == tokenizer.token_to_id(ending)
    assert json.loads((ASSET / "generation_config.json").read_text())["eos_token_id"] == config["eos_token_id"]


def test_the_tokenizer_gives_every_chain_back_a_token_a_character(tokenizer: Tokenizer) -> None:
    for row in rows():
        text = "\n".join([row["problem"], *row["steps"]])
        encoded = tokenizer.encode(text)
        assert len(encoded.ids) == len(text)
        assert "".join(encoded.tokens) == text == tokenizer.decode(encoded.ids)


def test_a_row_has_a_count_of_the_same_number_of_rollouts_for_every_prefix() -> None:
    for row in rows():
        assert row["n"] == ROLLOUTS
        assert len(row["correct"]) == len(row["ungraded"]) == len(row["tokens"]) == len(row["steps"]) + 1
        assert all(0 <= correct <= ROLLOUTS for correct in row["correct"])
        assert all(0 <= ungraded <= ROLLOUTS // 1_000 for ungraded in row["ungraded"])
        assert all(tokens > 1 for tokens in row["tokens"][:-1])
        assert (row["correct"][-1], row["tokens"][-1]) == (ROLLOUTS if row["outcome"] else 0, 0)


def test_a_row_is_an_exercise_with_its_answer_and_a_chain_that_states_one() -> None:
    measured = rows()
    assert len({row["problem"] for row in measured}) == len(measured)
    for row in measured:
        assert row["answer"] == str(worked_out(row["problem"]))
        assert row["outcome"] == (row["steps"][-1] == f"#{row['answer']}")
    assert {row["outcome"] for row in measured} == {True, False}


def test_values_spread_between_0_and_1_and_keep_their_mean_along_chains() -> None:
    """Over a policy's own chains V_k is a martingale: steps neither gain nor lose in the mean."""
    measured = rows()
    values = [[correct / row["n"] for correct in row["correct"]] for row in measured]
    roots = [path[0] for path in values]
    assert sum(0.05 < value < 0.95 for path in values for value in path[:-1]) > sum(map(len, values)) / 4
    assert max(roots) - min(roots) > 0.3
    changes = [(path[-1] - path[0]) for path in values]
    variance = sum(root * (1 - root) for root in roots)
    assert abs(sum(changes)) < 4 * variance**0.5


def test_the_settings_are_those_of_a_user() -> None:
    config = compose_label([*OVERRIDES, f"data.path={TRUTH}", "run_dir=x"])
    assert config.policy.kind == "hf"
    assert config.policy.prompt.template == "{problem}\n"
    assert isinstance(config.grader, MathConfig)
    assert config.grader.answer_pattern is not None
    assert re.findall(config.grader.answer_pattern, "1+1=2\n#2") == ["2"]
