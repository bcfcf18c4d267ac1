"""A judge whose model runs on a server of its own, with the faults that servers have."""

import asyncio
import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pipeline.__main__ import main
from pipeline.config.judge import JudgeRunConfig
from pipeline.config.label import ClusterConfig
from pipeline.core.errors import PolicyError
from pipeline.core.records import ReadingKind
from pipeline.engines.settings import OpenAiConfig, OpenAiPolicyConfig
from pipeline.judges.settings import ModelJudgeConfig
from tests.engines.conftest import quick_openai as quick_openai
from tests.engines.served import CONTEXT, MODEL, Server, served_beside
from tests.runtime.judging import runs
from tests.runtime.judging.runs import QUICK, frame, labelled

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick_openai")]

CHAINS, VOTES = 6, 2

judged = partial(runs.judged, run=asyncio.run)


class Reviewer(Server):
    """A chat model with a fixed critique."""

    critique = "The first paragraph is wrong. \\boxed{0}"

    def _choice(self, index: int, act: Any, body: dict[str, Any]) -> dict[str, Any]:
        return {**super()._choice(index, act, body), "text": self.critique, "token_ids": list(self.critique.encode())}


def reviewer(critique: str = Reviewer.critique, context: int = 40 * CONTEXT) -> Reviewer:
    server = Reviewer(models={"data": [{"id": MODEL, "max_model_len": context}]})
    server.critique = critique
    return server


def settings(run_dir: Path, url: str, **own: Any) -> JudgeRunConfig:
    judge = {"name": "served", "votes": VOTES, "max_tokens": 64, **own}
    return JudgeRunConfig(
        run_dir=str(run_dir),
        judge=ModelJudgeConfig(**judge),
        policy=OpenAiPolicyConfig(model=MODEL, openai=OpenAiConfig(urls=[url], retries=1)),
        run=QUICK,
        cluster=ClusterConfig(workers=1),
    )


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    return labelled(tmp_path, CHAINS)


def test_critiques_of_a_server_are_read_and_proved(run_dir: Path) -> None:
    with served_beside(reviewer()) as server:
        found = judged(settings(run_dir, server.url))
        bodies = [body for body in server.bodies if body.get("max_tokens") == 64]
    assert (found.tally["critiques"], found.tally["error"]) == (CHAINS * VOTES, CHAINS * VOTES)
    got = frame(run_dir, "served")
    assert got["first_error"].to_list() == [1] * CHAINS * VOTES
    assert set(got["text"]) == {Reviewer.critique}
    assert got["n_tokens"].to_list() == [len(Reviewer.critique)] * CHAINS * VOTES
    assert (got["n_prompt_tokens"] > 0).all()
    assert got["model"].unique().to_list() == [f"{MODEL}:openai:process_bench"]
    asked = json.dumps([bytes(body["prompt"]).decode() for body in bodies])
    assert "step 0 of 0" in asked
    assert main(["audit", f"run_dir={run_dir}"]) == 0
    # With votes on the server's own sampling, other answers of the same server are no other judge.
    with served_beside(reviewer("\\boxed{-1}")) as server:
        assert judged(settings(run_dir, server.url)).added["critiques"] == 0


def test_a_chain_beyond_the_context_of_the_judge_is_not_sent(run_dir: Path) -> None:
    with served_beside(reviewer(context=CONTEXT)) as server:
        found = judged(settings(run_dir, server.url))
        assert not [body for body in server.bodies if body.get("max_tokens") == 64]
    assert found.tally["too_long"] == CHAINS * VOTES
    assert set(frame(run_dir, "served")["reading"]) == {ReadingKind.TOO_LONG.value}


def test_a_server_without_the_model_is_reported(run_dir: Path) -> None:
    with served_beside(reviewer()) as server:
        config = settings(run_dir, server.url)
        other = OpenAiPolicyConfig(model="other", openai=OpenAiConfig(urls=[server.url], retries=1))
        with pytest.raises(PolicyError, match=r"does not serve policy\.model=other"):
            judged(replace(config, policy=other))
