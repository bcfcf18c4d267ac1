"""The line a user reads when a policy cannot be loaded. The printed texts are vLLM 0.32's and transformers 5.19's own."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.engine.blame import load_failure

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
            "1 validation error",
            "policy",
        ),
        (
            "OSError: We couldn't connect to 'the hub' to load the files, and couldn't find them in the cached files.",
            "couldn't connect",
            "local folder",
        ),
        (
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 14.00 GiB.",
            "CUDA out of memory",
            "policy.memory_share",
        ),
        ("RuntimeError: No CUDA GPUs are available", "No CUDA GPUs", "policy.tensor_parallel"),
        ("", "initialization failed", "policy.model"),
    ],
)
def test_the_cause_and_the_remedy_are_told(printed: str, cause: str, remedy: str) -> None:
    line = load_failure("some/model", OUTER, f"(EngineCore pid=1) {printed}\nRuntimeError: {OUTER}\n")
    assert line.startswith("the policy some/model cannot be loaded: ")
    assert cause in line
    assert remedy in line


def test_an_error_that_prints_nothing_speaks_for_itself() -> None:
    line = load_failure("m", "User-specified max_model_len (100000) is greater than 8192", "")
    assert line.endswith("greater than 8192; lower policy.max_model_len")


@given(st.text(), st.text(), st.text())
def test_it_is_always_one_line_of_bounded_length(model: str, error: str, printed: str) -> None:
    line = load_failure(model, error, printed)
    assert len(line) < 600 + len(model)
    assert "\n" not in line.removeprefix(f"the policy {model}")
