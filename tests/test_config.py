"""Every setting has a default that is in range, and every value out of range is refused by its dotted name."""

import dataclasses
import math
from collections.abc import Iterator
from enum import Enum
from typing import Any, get_args, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config.choices import PromptStyle, Splitter
from pipeline.config.grow import GrowConfig, PickerConfig
from pipeline.config.label import (
    ClusterConfig,
    DataConfig,
    EstimatorConfig,
    FewShotExample,
    GradeConfig,
    GraderConfig,
    LabelConfig,
    PolicyConfig,
    PromptConfig,
    RunConfig,
    SamplingConfig,
)
from pipeline.core.errors import UsageError
from pipeline.engines.settings import DeviceConfig, HfConfig, OpenAiConfig
from pipeline.estimators.settings import FirstSuccessConfig, FixedConfig, PooledConfig
from pipeline.graders.settings import CodeConfig, MathConfig
from pipeline.runtime.answer_ending import ending_for, stops_at_answer
from tests.settings import grader_settings, policy_settings


def setting_types(schema: type) -> Iterator[Any]:
    """The plain types that the settings of a schema have, sections left out."""
    kinds = get_type_hints(schema)
    for kind in (kinds[field.name] for field in dataclasses.fields(schema)):
        if dataclasses.is_dataclass(kind):
            assert isinstance(kind, type)
            yield from setting_types(kind)
        else:
            yield from get_args(kind) or (kind,)


def test_every_type_is_one_that_composition_knows() -> None:
    plain = {str, int, float, bool, type(None), FewShotExample, Any}
    for kind in [*setting_types(LabelConfig), *setting_types(GradeConfig)]:
        assert kind in plain or issubclass(kind, Enum)


OUT_OF_RANGE: list[tuple[type, str, str, list[Any]]] = [
    (DataConfig, "data", "limit", [0, -1]),
    (DataConfig, "data", "max_chars", [0]),
    (DataConfig, "data", "max_steps", [0, 10_001]),
    (OpenAiConfig, "policy.openai", "connections", [0, 10_001]),
    (OpenAiConfig, "policy.openai", "choices", [0, 129]),
    (OpenAiConfig, "policy.openai", "timeout_seconds", [0.0, 86_401.0, math.nan]),
    (OpenAiConfig, "policy.openai", "retries", [-1, 1001]),
    (OpenAiConfig, "policy.openai", "patience_seconds", [0.0, 86_401.0, math.nan]),
    (HfConfig, "policy", "tensor_parallel", [0]),
    (DeviceConfig, "policy.device", "bandwidth", [0.0, -1.0, math.nan, math.inf]),
    (DeviceConfig, "policy.device", "flops", [0.0, -1.0, math.nan, math.inf]),
    (DeviceConfig, "policy.device", "memory", [0.0, -1.0, math.nan, math.inf]),
    (HfConfig, "policy", "memory_share", [0.0, 1.01, math.nan]),
    (HfConfig, "policy", "kv_cache_gib", [0.0, -1.0, math.nan]),
    (HfConfig, "policy", "max_num_seqs", [0]),
    (HfConfig, "policy", "max_cudagraph_capture_size", [0]),
    (HfConfig, "policy", "request_seed", [-1]),
    (HfConfig, "policy", "max_num_batched_tokens", [0]),
    (HfConfig, "policy", "speculative_tokens", [0]),
    (PolicyConfig, "policy", "max_model_len", [15, 0, -1]),
    (PromptConfig, "policy.prompt", "template", ["", "no place for it", "{Problem}"]),
    (SamplingConfig, "sampling", "rollouts", [0, -3, 100_000]),
    (SamplingConfig, "sampling", "temperature", [-0.1, math.nan]),
    (SamplingConfig, "sampling", "top_p", [0.0, 1.1, math.nan]),
    (SamplingConfig, "sampling", "top_k", [-1]),
    (SamplingConfig, "sampling", "min_p", [-0.1, 1.1]),
    (SamplingConfig, "sampling", "max_tokens", [0]),
    (SamplingConfig, "sampling", "solutions", [0, 1001]),
    (EstimatorConfig, "estimator", "confidence", [0.0, 1.0, 95.0, math.nan]),
    (EstimatorConfig, "estimator", "threshold", [-0.1, 1.0, math.nan]),
    (EstimatorConfig, "estimator", "certainty", [0.5, 1.0, math.nan]),
    (EstimatorConfig, "estimator", "miss_rate", [-0.1, 1.0, math.nan]),
    (EstimatorConfig, "estimator", "neutral", [-0.1, 1.1, math.nan]),
    (FirstSuccessConfig, "estimator", "successes", [0, 1001]),
    (FirstSuccessConfig, "estimator", "batch", [0, 1001]),
    (PooledConfig, "estimator", "target_sd", [0.0, 0.51, math.nan]),
    (PooledConfig, "estimator", "budget", [0, -1]),
    (PooledConfig, "estimator", "run_budget", [0, -1]),
    (MathConfig, "grader", "relative_tolerance", [-0.1, 0.1, math.nan]),
    (GraderConfig, "grader", "deadline_seconds", [0.0, 601.0, math.nan]),
    (GraderConfig, "grader", "memory_mib", [511]),
    (CodeConfig, "grader", "cpu_seconds", [0.0, 601.0, math.nan]),
    (CodeConfig, "grader", "suite_seconds", [0.0, 3601.0, math.nan]),
    (GraderConfig, "grader", "processes", [0, 257]),
    (MathConfig, "grader", "answer_pattern", ["no group", ""]),
    (RunConfig, "run", "unit_problems", [0, 10_001]),
    (RunConfig, "run", "units_in_flight", [0, 1001]),
    (RunConfig, "run", "attempts", [0]),
    (RunConfig, "run", "max_failures", [0]),
    (RunConfig, "run", "flush_seconds", [0.0, -1.0, 86_401.0]),
    (RunConfig, "run", "download_timeout_seconds", [0.0, math.nan]),
    (RunConfig, "run", "start_timeout_seconds", [0.0, math.nan]),
    (RunConfig, "run", "stall_seconds", [0.0, -1.0]),
    (RunConfig, "run", "progress_seconds", [0.0]),
    (RunConfig, "run", "show_chains", [-1]),
    (ClusterConfig, "cluster", "workers", [0]),
    (ClusterConfig, "cluster", "cpus_per_worker", [0.0, math.nan]),
    (ClusterConfig, "cluster", "gpus_per_worker", [-1.0, 1.5]),
    (ClusterConfig, "cluster", "wait_seconds", [0.0, math.nan]),
]


@pytest.mark.parametrize(
    ("schema", "key", "name", "value"),
    [
        pytest.param(schema, f"{section}.{name}", name, value, id=f"{section}.{name}={value}")
        for schema, section, name, values in OUT_OF_RANGE
        for value in values
    ],
)
def test_a_value_out_of_range_is_refused_by_name(schema: type, key: str, name: str, value: object) -> None:
    with pytest.raises(ValueError, match="out of range: it must be ") as caught:
        schema(**{name: value})
    assert str(caught.value).startswith(f"{key}={value!r}" if isinstance(value, str) else f"{key}={value} ")


@pytest.mark.parametrize(
    ("section", "schema"),
    [
        ("data", DataConfig),
        ("policy", HfConfig),
        ("policy.device", DeviceConfig),
        ("policy.openai", OpenAiConfig),
        ("sampling", SamplingConfig),
        ("estimator", FirstSuccessConfig),
        ("estimator", PooledConfig),
        ("grader", MathConfig),
        ("grader", CodeConfig),
        ("run", RunConfig),
        ("cluster", ClusterConfig),
    ],
)
def test_every_number_has_a_range(section: str, schema: type) -> None:
    """A new number has to be given a range and its place in the table above."""
    numbers = {
        f"{section}.{name}" for name, kind in get_type_hints(schema).items() if {int, float} & {kind, *get_args(kind)}
    }
    assert numbers <= {f"{where}.{name}" for _, where, name, _ in OUT_OF_RANGE}


@pytest.mark.parametrize(
    ("schema", "settings"),
    [
        (DataConfig, {"limit": 1, "max_chars": 1, "max_steps": 10_000}),
        (OpenAiConfig, {"connections": 10_000, "choices": 128, "retries": 0, "timeout_seconds": 86_400.0}),
        (HfConfig, {"memory_share": 1.0, "max_model_len": 16, "max_num_seqs": 1, "speculative_tokens": 1}),
        (SamplingConfig, {"rollouts": 99_999, "temperature": 0.0, "top_p": 1.0, "min_p": 1.0, "solutions": 1000}),
        (EstimatorConfig, {"threshold": 0.0, "confidence": 0.999}),
        (FirstSuccessConfig, {"neutral": 1.0, "successes": 1000, "batch": 1000}),
        (PooledConfig, {"target_sd": 0.5, "budget": 1}),
        (MathConfig, {"relative_tolerance": 0.0, "deadline_seconds": 600.0, "memory_mib": 512, "processes": 256}),
        (MathConfig, {"answer_pattern": "A: (.*)"}),
        (RunConfig, {"unit_problems": 10_000, "units_in_flight": 1000, "attempts": 1, "show_chains": 0}),
        (ClusterConfig, {"workers": 1, "gpus_per_worker": 0.0, "cpus_per_worker": 0.5}),
    ],
)
def test_the_bounds_themselves_are_allowed(schema: type, settings: dict[str, object]) -> None:
    made = schema(**settings)
    assert {name: getattr(made, name) for name in settings} == settings


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        (None, "data.splitter=regex needs data.pattern"),
        ("", "data.splitter=regex needs data.pattern"),
        ("(", "data.pattern is not a regular expression"),
    ],
)
def test_a_regex_splitter_needs_a_regex(pattern: str | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DataConfig(splitter=Splitter.regex, pattern=pattern)
    assert DataConfig(splitter=Splitter.newline, pattern=pattern).pattern == pattern


def test_a_device_is_known_or_described() -> None:
    with pytest.raises(ValueError, match=r"policy\.device\.name=B200 is unknown: choose H200 NVL, H200 SXM, "):
        DeviceConfig(name="B200", bandwidth=8e12)
    assert DeviceConfig(name="B200", bandwidth=8e12, flops=2.25e15).name == "B200"
    assert DeviceConfig(name="H100 PCIe").name == "H100 PCIe"


def test_what_is_no_base_url_is_refused_without_showing_it() -> None:
    for url in (
        "127.0.0.1:8000", "ftp://h/v1", "http://", "http://me:secret@h/v1", "https://h/v1?key=secret", "http://h/v1#secret",
        "http://h:0/v1", "http://h:65536/v1", "http://h /v1", "http://h/v1\nsecret", "http://h/%2e%2e",
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"^policy\.openai\.urls has an entry that is not a base URL") as shown:
            OpenAiConfig(urls=["http://good/v1", url])
        assert "secret" not in str(shown.value)
    for url in ("http://h", "https://api.h.org/v1/", "http://[::1]:8000/v1", "http://10.0.0.1:65535/a/b"):
        assert OpenAiConfig(urls=[url]).urls == [url]
    with pytest.raises(ValueError, match="URLs that differ"):
        OpenAiConfig(urls=["http://h/v1", "http://h/v1/"])


def test_a_key_in_place_of_its_variables_name_is_refused_without_showing_it() -> None:
    for name in ("sk-proj-abc", "abcdef0123456789", "", "A B", "A" * 65):
        with pytest.raises(ValueError, match=r"^policy\.openai\.api_key_env is not the name") as shown:
            OpenAiConfig(api_key_env=name)
        assert not name or name not in str(shown.value)


def served_policy() -> Any:
    prompt, openai = PromptConfig(style=PromptStyle.plain), OpenAiConfig(urls=["http://h/v1"])
    return policy_settings("openai", model="m", prompt=prompt, openai=openai)


def plain_policy() -> Any:
    return policy_settings("hf", model="m", prompt=PromptConfig(style=PromptStyle.plain))


@pytest.mark.parametrize(
    ("stops", "policy", "grader", "asked"),
    [
        (False, policy_settings("embedded"), grader_settings(), None),
        (True, policy_settings("embedded"), grader_settings(), True),
        (True, plain_policy(), grader_settings(), None),
        (False, plain_policy(), grader_settings(), False),
        (False, plain_policy(), grader_settings(answer_pattern="#(.*)"), None),
        (True, plain_policy(), grader_settings(answer_pattern="#(.*)"), True),
        (False, plain_policy(), grader_settings("code"), None),
        (False, served_policy(), grader_settings(), None),
    ],
)
def test_completions_of_base_models_end_at_their_answer_unless_reported(
    stops: bool, policy: PolicyConfig, grader: Any, asked: bool | None
) -> None:
    config = LabelConfig(policy=policy, grader=grader, sampling=SamplingConfig(stop_at_answer=asked))
    assert stops_at_answer(config) is stops
    found: Any = ending_for(config)
    assert (found is not None) is stops
    assert found is None or (found.pattern and found.pattern.pattern) == grader.answer_pattern


def test_programs_do_not_end_at_an_answer() -> None:
    config = LabelConfig(grader=grader_settings("code"), sampling=SamplingConfig(stop_at_answer=True))
    with pytest.raises(UsageError, match=r"sampling\.stop_at_answer=true: grader=code takes the last program"):
        stops_at_answer(config)


def test_servers_cannot_end_a_completion_at_its_answer() -> None:
    with pytest.raises(UsageError, match=r"sampling\.stop_at_answer=true needs vLLM in this process"):
        stops_at_answer(LabelConfig(policy=served_policy(), sampling=SamplingConfig(stop_at_answer=True)))
    assert not stops_at_answer(LabelConfig(policy=served_policy(), sampling=SamplingConfig(stop_at_answer=False)))


def test_guessing_ahead_is_asked_for_whole_and_with_sampling_that_vllm_has() -> None:
    with pytest.raises(
        ValueError, match=r"policy\.speculative_model has no effect without .*policy\.speculative_tokens"
    ):
        LabelConfig(policy=policy_settings("embedded", speculative_model="small"))
    policy = policy_settings("embedded", speculative_tokens=3, speculative_model="small")
    with pytest.raises(ValueError, match=r"sampling\.min_p=0\.1 and policy\.speculative_tokens exclude"):
        LabelConfig(policy=policy, sampling=SamplingConfig(min_p=0.1))
    assert LabelConfig(policy=policy).policy is policy


def test_a_run_of_greedy_decoding_grows_by_one_rollout_of_a_prefix() -> None:
    greedy: Any = {"sampling": SamplingConfig(temperature=0, rollouts=1), "estimator": FixedConfig()}
    with pytest.raises(ValueError, match=r"^grow\.rollouts=8 with sampling\.temperature=0 are equal rollouts: .*=1$"):
        GrowConfig(**greedy)
    assert GrowConfig(grow=PickerConfig(rollouts=1), **greedy).grow.rollouts == 1


@given(st.text() | st.tuples(st.text(), st.text()).map("{problem}".join))
def test_any_template_is_taken_or_refused_by_name(template: str) -> None:
    if "{problem}" in template:
        assert PromptConfig(template=template).template == template
    else:
        with pytest.raises(ValueError, match=r"^policy\.prompt\.template="):
            PromptConfig(template=template)
