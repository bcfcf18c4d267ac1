"""The error line of a policy that cannot be loaded. The printed texts are those of vLLM 0.32 and transformers 5.19."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.errors import PlaceError, PolicyError, named
from pipeline.engines.vllm.load_errors import check_context, load_error
from pipeline.scorers.served_settings import NAMES

OUTER = "Engine core initialization failed. See root cause above. Failed core proc(s): {}"


@pytest.mark.parametrize(
    ("printed", "cause", "remedy"),
    [
        (
            "ValueError: Available memory on node 0 (12.51/16.21 GiB) on kv cache allocation is less than requested memory for "
            "kv (1000.0 GiB).",
            "12.51/16.21 GiB",
            "policy.kv_cache_gib",
        ),
        (
            "pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig\n"
            "ValueError: User-specified max_model_len (100000) is greater than the derived max_model_len "
            "(max_position_embeddings=8192.0)",
            "User-specified max_model_len (100000)",
            "lower policy.max_model_len",
        ),
        (
            "ValueError: Free memory on device cuda:0 (3.12/79.11 GiB) on startup is less than desired GPU memory utilization "
            "(0.9, 71.2 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.",
            "Free memory on device cuda:0 (3.12/79.11 GiB)",
            "the GPU is full or too small: end other processes on it (see nvidia-smi)",
        ),
        (
            "ValueError: To serve at least one request with the model's max seq len (131072), (16.0 GiB KV cache is needed, "
            "which is larger than the available KV cache memory (2.0 GiB). Based on the available memory, the estimated "
            "maximum model length is 16384. Try increasing `gpu_memory_utilization` (which also controls CPU memory on the "
            "CPU backend) or decreasing `max_model_len` when initializing the engine. See https://docs.vllm.ai for more.",
            "the estimated maximum model length is 16384",
            "lower policy.max_model_len, give the KV cache more memory with policy.memory_share (GPU) or policy.kv_cache_gib",
        ),
        (
            "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing "
            "the engine (this flag also controls CPU memory reservation on the CPU backend, despite its name). See "
            "https://docs.vllm.ai/en/latest/configuration/conserving_memory/ for more details.",
            "No available memory for the cache blocks",
            "give the KV cache more memory",
        ),
        (
            "ValueError: max_num_batched_tokens (64) must be greater than or equal to max_num_seqs (128).",
            "max_num_batched_tokens (64)",
            "change policy.max_num_batched_tokens",
        ),
        (
            "NotImplementedError: FP8 KV cache on CPU requires x86 with AVX-512 or AMX.",
            "FP8 KV cache on CPU",
            "check policy.kv_cache_dtype",
        ),
        (
            "OSError: We couldn't connect to 'the hub' to load the files, and couldn't find them in the cached files.",
            "couldn't connect",
            "local folder",
        ),
        (
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 14.00 GiB.",
            "CUDA out of memory",
            "lower policy.memory_share, or raise policy.tensor_parallel",
        ),
        ("RuntimeError: No CUDA GPUs are available", "No CUDA GPUs", "policy.tensor_parallel"),
        ("RuntimeError: Cannot find any model weights with `/models/x`", "/models/x", "complete on every node"),
        (
            "TypeError: AsyncEngineArgs.__init__() got an unexpected keyword argument 'max_sequences'",
            "'max_sequences'",
            "the same versions of stepvalue and vLLM",
        ),
    ],
)
def test_the_cause_and_the_remedy_are_reported(printed: str, cause: str, remedy: str) -> None:
    line = str(load_error("some/model", OUTER, f"(EngineCore pid=1) {printed}\nRuntimeError: {OUTER}\n"))
    assert line.startswith("the policy some/model cannot be loaded: ")
    assert cause in line
    assert remedy in line


def test_what_was_survived_before_the_failure_is_not_the_cause() -> None:
    printed = (
        "(EngineCore pid=1) WARNING Failed to import x: ImportError: libfoo.so.1: cannot open\n"
        "(EngineCore pid=1) ERROR EngineCore failed to start.\n"
        "(EngineCore pid=1) ERROR torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered\n"
    )
    error = load_error("m", OUTER, printed, "; its output is in x.log")
    assert "uncorrectable ECC" in str(error)
    assert str(error).endswith("; its output is in x.log")
    assert type(error) is PlaceError


@pytest.mark.parametrize(
    ("printed", "cause"),
    [
        ("(EngineCore pid=1) INFO loading weights\n", "its processes printed no error"),
        ("Fatal Python error: Segmentation fault\n", "Fatal Python error: Segmentation fault"),
        (
            "terminate called after throwing an instance of 'c10::Error'\n  what():  CUDA error: unknown\n",
            "CUDA error: unknown",
        ),
    ],
)
def test_processes_that_die_at_the_start_are_no_fault_of_a_setting(printed: str, cause: str) -> None:
    error = load_error("m", OUTER, printed)
    assert cause in str(error)
    assert "dmesg" in str(error)
    assert "policy.model" not in str(error)
    assert type(error) is PlaceError


def test_an_access_token_is_in_no_error() -> None:
    assert "hf_abcdefgh" not in str(load_error("m", "401 for https://hub/x?token=hf_abcdefghijkl", ""))


def test_an_error_that_prints_nothing_speaks_for_itself() -> None:
    line = str(load_error("m", "User-specified max_model_len (100000) is greater than 8192", ""))
    assert line.endswith("greater than 8192; lower policy.max_model_len")


def test_a_scorer_is_named_as_such_and_so_are_its_settings() -> None:
    with pytest.raises(PolicyError) as caught, named(NAMES):
        raise load_error("my-policy.v2", "max_model_len (9) of the policy.max_model_len is greater than 8", "")
    assert str(caught.value) == (
        "the scorer my-policy.v2 cannot be loaded: max_model_len (9) of the policy.max_model_len is greater than 8; lower "
        "scorer.max_length"
    )


def test_a_context_that_holds_no_prompt_beside_a_completion_is_reported_before_any_row_is_read() -> None:
    check_context("m", context=81, max_tokens=80)
    with pytest.raises(
        PolicyError, match=r"m has a context of 80 tokens, .*sampling\.max_tokens=80.* policy\.max_model_len"
    ):
        check_context("m", context=80, max_tokens=80)


@given(st.text(), st.text(), st.text())
def test_it_is_always_one_line_of_bounded_length(model: str, error: str, printed: str) -> None:
    line = str(load_error(model, error, printed))
    assert len(line) < 600 + len(model)
    assert "\n" not in line.removeprefix(f"the policy {model}")


def test_weights_that_could_run_code_get_our_remedy_and_not_torchs_advice() -> None:
    said = (
        "_pickle.UnpicklingError: Weights only load failed. In PyTorch 2.6, we changed the default value of the `weights_only` "
        "argument in `torch.load` from `False` to `True`. Re-running `torch.load` with `weights_only` set to `False` will "
        "likely succeed, but it can result in arbitrary code execution."
    )
    for error, printed in ((OUTER, f"(EngineCore pid=1) ERROR EngineCore failed to start.\n{said}\n"), (said, "")):
        found = load_error("m", error, printed)
        assert "its weights are a pickle that holds more than tensors" in str(found)
        assert "choose a model whose weights are safetensors" in str(found)
        assert "weights_only" not in str(found)
        assert not isinstance(found, PlaceError), "the same on every machine"
