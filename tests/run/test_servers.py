"""What a run with `policy=openai` is, and what its workers take of a cluster."""

from pathlib import Path
from typing import Any

import pytest

from pipeline.choices import PolicyKind
from pipeline.config import ClusterConfig, LabelConfig, PolicyConfig
from pipeline.engine.fingerprint import policy_fingerprint
from pipeline.engine.openai.engine import OpenAiEngine
from pipeline.engine_settings import OpenAiConfig
from pipeline.errors import ClusterError, PolicyError
from pipeline.run.placement import Share, share_of
from pipeline.run.plan import identity
from pipeline.run.worker import engine_for


def policy(model: str = "m", tokenizer: str | None = None, **servers: Any) -> PolicyConfig:
    asked = OpenAiConfig(**{"urls": ["http://a/v1"], **servers})
    return PolicyConfig(kind=PolicyKind.openai, model=model, tokenizer=tokenizer, openai=asked)


def test_where_and_how_servers_are_asked_is_no_part_of_what_a_run_is() -> None:
    def facts(made: PolicyConfig) -> dict[str, object]:
        return identity(LabelConfig(policy=made), "digest")

    usual = facts(policy())
    for change in (
        {"urls": ["http://b/v1", "http://c/v1"]},
        {"connections": 3, "choices": 2, "retries": 1},
        {"timeout_seconds": 3.0, "patience_seconds": 3.0},
        {"api_key_env": "TEAM_KEY"},
    ):
        assert facts(policy(**change)) == usual
    assert facts(policy("other")) != usual
    assert facts(policy(tokenizer="t")) != usual
    assert facts(policy(extensions=False)) != usual
    assert not any(key.startswith("policy.openai.") for key in identity(LabelConfig(), "digest"))


def test_a_local_tokenizer_is_part_of_what_a_run_is(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=r"holds no tokenizer_config\.json"):
        policy_fingerprint(policy(tokenizer=str(tmp_path)))
    with pytest.raises(PolicyError, match=r"no folder policy\.tokenizer=/none/such"):
        policy_fingerprint(policy("/none/such"))
    (tmp_path / "tokenizer_config.json").write_text("{}")
    first = policy_fingerprint(policy(tokenizer=str(tmp_path)))
    (tmp_path / "tokenizer_config.json").write_text("{ }")
    assert policy_fingerprint(policy(tokenizer=str(tmp_path))) != first
    assert policy_fingerprint(policy("Qwen/Qwen2.5-7B")) == ""


def test_workers_that_ask_servers_take_a_cpu_each_and_no_gpu() -> None:
    nodes = [{"CPU": 32.0, "GPU": 8.0}]

    def taken(workers: int | None) -> Share:
        return share_of(nodes, ClusterConfig(workers=workers), policy(), lambda: None)

    assert taken(None) == Share(workers=1, cpus=1.0, gpus=0.0, tensor_parallel=1)
    assert taken(4) == Share(workers=4, cpus=1.0, gpus=0.0, tensor_parallel=1)
    with pytest.raises(ClusterError, match="do not fit"):
        taken(33)


def test_the_policy_chooses_its_engine() -> None:
    assert isinstance(engine_for(LabelConfig(policy=policy()), cpus=1, attempt=1), OpenAiEngine)
