"""Scorers that ask servers, against real vLLM servers on this machine: the scores are those that transformers computes."""

import math
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from pipeline.scorers.served_settings import OpenAiScorerConfig, ScorerServers, ServedApi
from pipeline.scorers.settings import OwnConfig, QwenConfig
from tests.faults.vllm_server import KEY, NAME, VllmServer, serving
from tests.scorers.loaded import chain, scored
from tests.scorers.prm_server import CHAINS, classes_folder, signs_offered
from tests.scorers.published import PROBLEM, STEPS, qwen_prm
from tests.scorers.test_served import words_by_transformers
from tests.tiny.policy import ASSET

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.model,
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore"),
]


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def served(server: VllmServer, extensions: bool = True, **own: Any) -> OpenAiScorerConfig:
    servers = ScorerServers(urls=[server.url], retries=1, extensions=extensions)
    return OpenAiScorerConfig(model=NAME, openai=servers, **own)


@pytest.mark.parametrize("api", [ServedApi.pooling, ServedApi.classify])
def test_classes_of_vllm_are_those_of_transformers(tmp_path: Path, api: ServedApi) -> None:
    folder = classes_folder(tmp_path / "prm")
    task = {ServedApi.pooling: "token_classify", ServedApi.classify: "classify"}[api]
    with serving(tmp_path / "log", folder, "--runner", "pooling", "--pooler-config.task", task) as server:
        config = served(server, tokenizer=str(folder), layout="own", api=api)
        found, again = scored(config, CHAINS), scored(config, CHAINS)
    for each, wanted in zip(found, scored(OwnConfig(model=str(folder)), CHAINS), strict=True):
        assert each.scores == pytest.approx(wanted.scores, abs=1e-3)
        assert each.positions == wanted.positions
    assert [each.scores for each in again] == [pytest.approx(each.scores, abs=1e-3) for each in found]


def test_words_of_vllm_are_those_of_transformers(tmp_path: Path) -> None:
    with serving(tmp_path / "log") as server, signs_offered() as signs:
        found, without = (
            scored(served(server, tokenizer=str(ASSET), layout=signs, extensions=extensions), CHAINS)
            for extensions in (True, False)
        )
    for each, other, wanted in zip(found, without, words_by_transformers(), strict=True):
        assert each.scores == pytest.approx(wanted, abs=1e-3)
        assert not any(score is not None and math.isnan(score) for score in other.scores)


def test_a_published_head_of_vllm_is_read_at_its_tags(tmp_path: Path) -> None:
    # vLLM's attention on a CPU needs heads of 32 numbers or more.
    folder = qwen_prm(tmp_path / "prm", scale=0.2, width=128)
    tag = AutoTokenizer.from_pretrained(folder).convert_tokens_to_ids(QwenConfig().tag)
    chains = [chain(0, PROBLEM, *STEPS), chain(1, PROBLEM, STEPS[0], "")]
    with serving(tmp_path / "log", folder, "--runner", "pooling", "--pooler-config.step_tag_id", str(tag)) as server:
        found = scored(served(server, tokenizer=str(folder), layout="qwen"), chains)
    for each, wanted in zip(found, scored(QwenConfig(model=str(folder)), chains), strict=True):
        assert each.scores == pytest.approx(wanted.scores, abs=1e-3)
        assert each.positions == wanted.positions
