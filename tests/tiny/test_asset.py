"""The shipped policies and their measured values fit each other; nothing here loads a model."""

import json
import re
from dataclasses import replace
from itertools import pairwise
from math import prod
from typing import TypedDict

import numpy as np
import pytest
from safetensors import safe_open
from tokenizers import Tokenizer

from pipeline.graders.settings import MathConfig
from tests.conftest import ROOT
from tests.settings import compose_label
from tests.tiny.arithmetic import named_exercise, right_steps
from tests.tiny.compared import Floats, Printed, Truth, implausible, truth
from tests.tiny.policy import LONG, POLICIES, SHORT, TinyPolicy
from tests.tiny.simulated import simulated

ROLLOUTS = 2_000
MAX_ASSET_BYTES = 2_000_000
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


@pytest.fixture(params=list(POLICIES.values()), ids=list(POLICIES))
def policy(request: pytest.FixtureRequest) -> TinyPolicy:
    policy: TinyPolicy = request.param
    return policy


@pytest.fixture
def rows(policy: TinyPolicy) -> list[Row]:
    return [json.loads(line) for line in policy.truth.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def tokenizer(policy: TinyPolicy) -> Tokenizer:
    return Tokenizer.from_file(str(policy.asset / "tokenizer.json"))


def worked_out(problem: str, policy: TinyPolicy) -> int:
    value, *moves = re.findall(r"[-+*]?\d+", problem)
    result = int(value)
    for move in moves:
        result = result * int(move[1:]) if move[0] == "*" else result + int(move)
    return result % 100 if policy is LONG else result


def test_the_asset_is_small_and_holds_data_alone(policy: TinyPolicy) -> None:
    assert {path.name for path in policy.asset.iterdir()} == FILES
    assert sum(path.stat().st_size for path in policy.asset.iterdir()) < MAX_ASSET_BYTES
    assert policy.truth.stat().st_size < MAX_TRUTH_BYTES
    assert not [path.name for path in policy.asset.glob("*.json") if "auto_map" in path.read_text(encoding="utf-8")]


def test_the_weights_have_the_stated_number_of_parameters(policy: TinyPolicy) -> None:
    with safe_open(policy.asset / "model.safetensors", framework="np") as weights:
        found = sum(prod(weights.get_slice(name).get_shape()) for name in weights.keys())  # noqa: SIM118
    assert found == policy.parameters


def test_the_readme_of_the_trainer_states_that_number() -> None:
    text = (ROOT / "pipeline" / "train" / "README.md").read_text(encoding="utf-8")
    assert f"{SHORT.parameters:,} parameters" in " ".join(text.split())


def test_the_model_and_its_tokenizer_agree_on_vocabulary_end_and_context(
    policy: TinyPolicy, tokenizer: Tokenizer
) -> None:
    config = json.loads((policy.asset / "config.json").read_text())
    settings = json.loads((policy.asset / "tokenizer_config.json").read_text())
    assert config["vocab_size"] == tokenizer.get_vocab_size()
    assert config["eos_token_id"] == tokenizer.token_to_id(settings["eos_token"])
    assert json.loads((policy.asset / "generation_config.json").read_text())["eos_token_id"] == config["eos_token_id"]
    assert config["max_position_embeddings"] == settings["model_max_length"] == policy.context


def test_the_tokenizer_gives_every_chain_back_a_token_a_character(rows: list[Row], tokenizer: Tokenizer) -> None:
    for row in rows:
        text = "\n".join([row["problem"], *row["steps"]])
        encoded = tokenizer.encode(text)
        assert len(encoded.ids) == len(text)
        assert "".join(encoded.tokens) == text == tokenizer.decode(encoded.ids)


def test_a_row_has_a_count_of_the_same_number_of_rollouts_for_every_prefix(rows: list[Row]) -> None:
    for row in rows:
        assert row["n"] == ROLLOUTS
        assert len(row["correct"]) == len(row["ungraded"]) == len(row["tokens"]) == len(row["steps"]) + 1
        assert all(0 <= correct <= ROLLOUTS for correct in row["correct"])
        assert all(0 <= ungraded <= ROLLOUTS // 1_000 for ungraded in row["ungraded"])
        assert all(tokens > 1 for tokens in row["tokens"][:-1])
        assert (row["correct"][-1], row["tokens"][-1]) == (ROLLOUTS if row["outcome"] else 0, 0)


def test_a_row_is_an_exercise_with_its_answer_and_a_chain_that_states_one(rows: list[Row], policy: TinyPolicy) -> None:
    assert len({row["problem"] for row in rows}) == len(rows)
    for row in rows:
        assert row["answer"] == str(worked_out(row["problem"], policy))
        assert row["outcome"] == (row["steps"][-1] == f"#{row['answer']}")
        assert len(row["steps"]) <= policy.max_steps
    assert {row["outcome"] for row in rows} == {True, False}


def test_values_spread_between_0_and_1_and_keep_their_mean_along_chains(rows: list[Row]) -> None:
    """Over a policy's own chains V_k is a martingale: steps neither gain nor lose in the mean."""
    values = [[correct / row["n"] for correct in row["correct"]] for row in rows]
    roots = [path[0] for path in values]
    assert sum(0.05 < value < 0.95 for path in values for value in path[:-1]) > sum(map(len, values)) / 4
    assert max(roots) - min(roots) > 0.3
    changes = [(path[-1] - path[0]) for path in values]
    variance = sum(root * (1 - root) for root in roots)
    assert abs(sum(changes)) < 4 * variance**0.5


def long_chains() -> list[tuple[Row, list[bool]]]:
    """With whether each step is right by arithmetic."""
    rows: list[Row] = [json.loads(line) for line in LONG.truth.read_text(encoding="utf-8").splitlines()]
    return [(row, right_steps(row["steps"], named_exercise(row["problem"]))) for row in rows]


def test_long_chains_are_long_and_some_come_back_from_errors() -> None:
    chains = long_chains()
    assert min(len(row["steps"]) for row, _ in chains) >= 8
    assert max(len(row["steps"]) for row, _ in chains) == LONG.max_steps
    assert sum(any(not step and after for step, after in pairwise(right)) for _, right in chains) >= 3


def test_values_of_long_chains_fall_where_arithmetic_finds_an_error() -> None:
    """At the first one of each chain, and in the mean."""
    changes = []
    for row, right in long_chains():
        if not all(right):
            at = right.index(False)
            changes.append((row["correct"][at + 1] - row["correct"][at]) / row["n"])
    assert len(changes) >= 5
    assert sum(changes) / len(changes) < -0.2


def test_the_settings_are_those_of_a_user(policy: TinyPolicy) -> None:
    config = compose_label([*policy.overrides, f"data.path={policy.truth}", "run_dir=x"])
    assert config.policy.kind == "hf"
    assert config.policy.prompt.template == "{problem}\n"
    assert isinstance(config.grader, MathConfig)
    assert config.grader.answer_pattern is not None
    assert re.findall(config.grader.answer_pattern, "1+1=2\n#2") == ["2"]


SEEDS = range(5)


@pytest.fixture(scope="module", params=list(POLICIES.values()), ids=list(POLICIES))
def known(request: pytest.FixtureRequest) -> Truth:
    return truth(request.param)


@pytest.fixture(scope="module")
def right(known: Truth) -> list[Printed]:
    return [simulated(known, seed) for seed in SEEDS]


def backwards(values: Floats, known: Truth) -> Floats:
    """Every chain's values from its end to its beginning."""
    return np.concatenate([values[known.chain == chain][::-1] for chain in range(len(known.ids))])


def test_outcomes_drawn_from_the_truth_are_plausible(right: list[Printed], known: Truth) -> None:
    assert [implausible(found, known) for found in right] == [[] for _ in SEEDS]


@pytest.mark.parametrize("shift", [0.1, -0.1])
def test_values_that_are_shifted_are_not(right: list[Printed], known: Truth, shift: float) -> None:
    assert all(implausible(replace(found, mean=found.mean + shift), known) for found in right)


def test_values_in_the_wrong_order_are_not(right: list[Printed], known: Truth) -> None:
    assert all(implausible(replace(found, mean=backwards(found.mean, known)), known) for found in right)
    assert all(implausible(replace(found, mean=np.roll(found.mean, 1)), known) for found in right)


def test_rollouts_that_are_judged_right_too_often_are_not(right: list[Printed], known: Truth) -> None:
    """One wrong answer in five, while values are as before."""
    rng = np.random.default_rng(3)
    for found in right:
        wrongly = rng.binomial(found.graded - found.correct, 0.2)
        assert implausible(replace(found, correct=found.correct + wrongly), known)
