"""The identity of a run with `policy=openai`, and the resources of its workers."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipeline.analysis.audit.run import audit
from pipeline.config.changes import AuditConfig
from pipeline.config.label import ClusterConfig
from pipeline.core.errors import ClusterError, UsageError
from pipeline.engines.openai import engine as engine_module
from pipeline.engines.openai import wire
from pipeline.engines.oracle import ByteTokenizer
from pipeline.engines.registry import policy_for
from pipeline.engines.settings import OpenAiConfig
from pipeline.runtime.placement import Share, share_of
from tests.engines.served import MODEL, Act, Server, served_beside
from tests.runtime.in_process import label_in_process
from tests.settings import compose_label, policy_settings


def policy(model: str = "m", tokenizer: str | None = None) -> Any:
    return policy_settings("openai", model=model, tokenizer=tokenizer, openai=OpenAiConfig(urls=["http://a/v1"]))


def test_a_local_tokenizer_is_part_of_what_a_run_is(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"does not contain tokenizer_config\.json"):
        policy_for(policy(tokenizer=str(tmp_path))).fingerprint()
    with pytest.raises(UsageError, match=r"the folder policy\.tokenizer=/none/such does not exist"):
        policy_for(policy("/none/such")).fingerprint()
    (tmp_path / "tokenizer_config.json").write_text("{}")
    first = policy_for(policy(tokenizer=str(tmp_path))).fingerprint()
    (tmp_path / "tokenizer_config.json").write_text("{ }")
    assert policy_for(policy(tokenizer=str(tmp_path))).fingerprint() != first
    assert policy_for(policy("Qwen/Qwen2.5-7B")).fingerprint() == ""


def test_workers_that_ask_servers_take_a_cpu_each_and_no_gpu() -> None:
    nodes = [{"CPU": 32.0, "GPU": 8.0}]

    def taken(workers: int | None) -> Share:
        return share_of(nodes, ClusterConfig(workers=workers), policy_for(policy()))

    assert taken(None) == Share(workers=1, cpus=1.0, gpus=0.0, tensor_parallel=1)
    assert taken(4) == Share(workers=4, cpus=1.0, gpus=0.0, tensor_parallel=1)
    with pytest.raises(ClusterError, match="do not fit"):
        taken(33)


def test_a_whole_run_on_servers_that_fail_now_and_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    key = "sk-Secret-0123456789"
    monkeypatch.setenv("OPENAI_API_KEY", key)
    monkeypatch.setattr(wire, "FIRST_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(engine_module, "load_tokenizer", lambda *_: ByteTokenizer())
    served_model = {"data": [{"id": MODEL, "max_model_len": 4096}]}
    run_dir = f"run_dir={tmp_path / 'run'}"
    settings = ["policy=openai", f"policy.model={MODEL}", "data=sample", "data.limit=4", "estimator=fixed", run_dir]
    with (
        served_beside(Server(key=key, models=served_model)) as first,
        served_beside(Server(models=served_model)) as second,
    ):
        second.misbehave([Act.SERVE, *[Act.DROP, Act.BUSY, Act.ERROR, Act.NOT_JSON, Act.OTHER_MODEL] * 3])
        config = compose_label([*settings, f"policy.openai.urls=[{first.url},{second.url}]"])
        done = label_in_process(config)
        asked = first.seen[Act.SERVE] + second.seen[Act.SERVE] - 2
    report = audit(AuditConfig(run_dir=str(tmp_path / "run")))
    assert report.sound, report.findings
    log = pl.read_parquet(tmp_path / "run" / "rollouts" / "*.parquet")
    assert done.totals.rollouts == log.height == log["rollout_id"].n_unique() == asked
    assert not second.acts
    assert set(log["finish"].cast(pl.String)) == {"stop"}
    shown = capfd.readouterr()
    assert key not in shown.out + shown.err
    assert not any(key.encode() in path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file())
