"""vLLM's arguments per device, and the name of the policy."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.__main__ import compose_label
from pipeline.core.errors import UsageError
from pipeline.engines.vllm import loaded
from pipeline.engines.vllm.arguments import EMBEDDED, defaults_for, engine_arguments, policy_name, request_seed
from tests.settings import policy_settings

SEED = 7


@pytest.mark.parametrize(
    ("has_nvcc", "has_kernels", "own", "sampler"),
    [(False, False, None, "0"), (True, False, None, None), (False, True, None, None), (False, False, "1", "1")],
)
def test_flashinfer_does_not_sample_where_it_would_need_a_compiler_that_is_missing(
    has_nvcc: bool, has_kernels: bool, own: str | None, sampler: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loaded, "has_cuda_compiler", lambda: has_nvcc)
    monkeypatch.setattr(loaded, "find_spec", lambda name: object() if has_kernels else None)
    with pytest.MonkeyPatch.context() as environment:
        environment.setattr("os.environ", {} if own is None else {"VLLM_USE_FLASHINFER_SAMPLER": own})
        loaded.set_environment(1)
        assert os.environ.get("VLLM_USE_FLASHINFER_SAMPLER") == sampler


def arguments(device: str, **settings: object) -> dict[str, object]:
    config = policy_settings("hf", model="m", **settings)
    return engine_arguments(config, model="m", dtype="bfloat16", device=device, seed=SEED)


@pytest.mark.parametrize(
    ("device", "seqs", "tokens"),
    [
        ("NVIDIA H100 80GB HBM3", 1024, 16_384),
        ("NVIDIA H200", 1024, 16_384),
        ("NVIDIA GH200 480GB", 1024, 16_384),
        ("NVIDIA A100-SXM4-80GB", 256, 8192),
        ("NVIDIA L40S", 256, 8192),
        ("NVIDIA GeForce RTX 4090", 256, 8192),
        ("", 256, 8192),
        ("cpu", 128, 2048),
    ],
)
def test_each_device_has_its_own(device: str, seqs: int, tokens: int) -> None:
    asked = arguments(device)
    assert (asked["max_num_seqs"], asked["max_num_batched_tokens"]) == (seqs, tokens)
    assert asked["seed"] == SEED
    assert asked["kv_cache_dtype"] == "auto"
    assert asked["gpu_memory_utilization"] == 0.9
    assert asked["enforce_eager"] is (device == "cpu")
    assert asked.get("block_size") == (32 if device == "cpu" else None)


@given(st.floats(0.01, 1.0))
def test_an_engine_gets_its_share_of_the_memory_of_a_gpu(share: float) -> None:
    config = policy_settings("hf", model="m")
    asked = engine_arguments(config, model="m", dtype="bfloat16", device="", seed=SEED, gpu_share=share)
    assert asked["gpu_memory_utilization"] == pytest.approx(0.9 * share)
    stated = policy_settings("hf", model="m", memory_share=0.2)
    asked = engine_arguments(stated, model="m", dtype="bfloat16", device="", seed=SEED, gpu_share=share)
    assert asked["gpu_memory_utilization"] == 0.2, "who says so is believed"


@pytest.mark.parametrize("device", ["", "cpu", "NVIDIA H100 80GB HBM3"])
def test_an_engine_runs_no_code_of_a_model_and_no_setting_changes_that(device: str) -> None:
    assert arguments(device)["trust_remote_code"] is False
    with pytest.raises(UsageError, match="trust_remote_code"):
        compose_label(["policy=hf", "policy.model=m", "policy.trust_remote_code=true"])


def test_settings_come_before_the_device() -> None:
    settings = {"max_num_seqs": 7, "max_num_batched_tokens": 99, "kv_cache_dtype": "fp8", "enforce_eager": True}
    asked = arguments("NVIDIA H100 80GB HBM3", memory_share=0.5, **settings)
    assert {key: asked[key] for key in settings} == settings
    assert asked["gpu_memory_utilization"] == 0.5


def test_the_cache_of_a_cpu_may_have_a_fraction_of_a_gib() -> None:
    assert arguments("cpu", kv_cache_gib=2.5)["kv_cache_memory_bytes"] == 2.5 * 2**30
    assert "kv_cache_memory_bytes" not in arguments("NVIDIA L40S", kv_cache_gib=2.5)


@given(st.integers(0), st.text(), st.text())
def test_seeds_follow_from_the_number_and_the_request(number: int, one: str, other: str) -> None:
    seeds = [request_seed(number, one), request_seed(number, other)]
    assert (seeds[0] == seeds[1]) == (one == other)
    assert all(0 <= seed < 2**32 for seed in seeds)
    assert request_seed(number, one) == seeds[0] != request_seed(number + 1, one)


@given(st.text(), st.none() | st.integers(1, 100_000))
def test_a_pass_has_a_token_for_every_request(device: str, max_num_seqs: int | None) -> None:
    asked = arguments(device, max_num_seqs=max_num_seqs)
    running, tokens = asked["max_num_seqs"], asked["max_num_batched_tokens"]
    assert isinstance(running, int)
    assert isinstance(tokens, int)
    assert running == (max_num_seqs or defaults_for(device).max_num_seqs)
    assert tokens >= running


def test_guessing_ahead_is_off_unless_asked_for() -> None:
    assert "speculative_config" not in arguments("cpu")
    assert arguments("cpu", speculative_tokens=3)["speculative_config"] == {
        "method": "ngram",
        "num_speculative_tokens": 3,
    }
    assert arguments("cpu", speculative_tokens=3, speculative_model="small")["speculative_config"] == {
        "model": "small",
        "num_speculative_tokens": 3,
    }


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({}, "m@main:bfloat16:gpu"),
        ({"revision": "v2"}, "m@v2:bfloat16:gpu"),
        ({"quantization": "fp8"}, "m@main:bfloat16:gpu:quantization=fp8"),
        ({"kv_cache_dtype": "fp8"}, "m@main:bfloat16:gpu:kv_cache=fp8"),
        ({"speculative_tokens": 4}, "m@main:bfloat16:gpu:speculative=ngram-4"),
        ({"speculative_tokens": 4, "speculative_model": "s"}, "m@main:bfloat16:gpu:speculative=s-4"),
        ({"max_num_seqs": 4, "memory_share": 0.5, "max_num_batched_tokens": 64}, "m@main:bfloat16:gpu"),
    ],
)
def test_what_changes_the_policy_is_in_its_name(settings: dict[str, object], name: str) -> None:
    config = policy_settings("hf", model="m", **settings)
    assert policy_name("m", config, dtype="bfloat16", on_cpu=False, stops_at_answer=False) == name
    assert policy_name("m", config, dtype="bfloat16", on_cpu=False, stops_at_answer=True) == f"{name}:stop_at_answer"


def test_the_default_policy_has_a_name_of_its_own() -> None:
    name = policy_name(EMBEDDED, policy_settings("embedded"), dtype="float32", on_cpu=True, stops_at_answer=False)
    assert name == "SmolLM2-135M-Instruct@main:float32:cpu"
