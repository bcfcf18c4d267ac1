"""Why a policy cannot be loaded, who is to blame, and why an engine died. The texts are those of vLLM and its libraries."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.errors import PlaceError, PolicyError, named
from pipeline.engines.vllm.death import MAX_CAUSE_CHARACTERS, death_cause
from pipeline.engines.vllm.load_errors import blames_model, check_context, load_error
from pipeline.scorers.served_settings import NAMES

OUTER = "Engine core initialization failed. See root cause above. Failed core proc(s): {}"
KILLED = "Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore_DP0': -9}"

PLACE = [
    "Free memory on device cuda:0 (3.12/79.11 GiB) on startup is less than desired GPU memory utilization (0.9, 71.2 GiB). "
    "Decrease GPU memory utilization or reduce GPU memory used by other processes.",
    "CUDA out of memory. Tried to allocate 14.00 GiB. GPU 0 has a total capacity of 79.11 GiB of which 2.31 GiB is free.",
    "Error in memory profiling. Initial free memory 40.1 GiB, current free memory 44.0 GiB. This happens when other processes "
    "sharing the same container release GPU memory while vLLM is profiling during initialization.",
    "To serve at least one request with the model's max seq len (131072), (16.0 GiB KV cache is needed, which is larger than "
    "the available KV cache memory (2.0 GiB). Based on the available memory, the estimated maximum model length is 16384. Try "
    "increasing `gpu_memory_utilization` (which also controls CPU memory on the CPU backend) or decreasing `max_model_len`. "
    "See https://docs.vllm.ai for more.",
    "No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine",
    "Available memory on node 0 (12.51/16.21 GiB) on kv cache allocation is less than requested memory for kv (1000.0 GiB).",
    "CUDA error: uncorrectable ECC error encountered",
    "CUDA error: an illegal memory access was encountered\nCUDA kernel errors might be asynchronously reported",
    "Unexpected error from cudaGetDeviceCount(). CUDA error: system not yet initialized",
    "CUDA driver initialization failed, you might not have a CUDA gpu.",
    "The NVIDIA driver on your system is too old (found version 12080). Please update your GPU driver",
    "No CUDA GPUs are available",
    "NCCL error: unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
    "NCCL error: unhandled system error (run with NCCL_DEBUG=INFO for details)",
    "The quantization method fp8 is not supported for the current GPU. Minimum capability: 89. Current capability: 80.",
    "max_num_seqs (1024) exceeds available Mamba cache blocks (512). Each decode sequence requires one Mamba cache block",
    "Model architectures ['Qwen2ForCausalLM'] failed to be inspected. Please check the logs for more details.",
    "World size (2) is larger than the number of available GPUs (1) in this node.",
    "[Errno 28] No space left on device",
    "We couldn't connect to 'https://huggingface.co' to load the files, and couldn't find them in the cached files.",
    "('Connection aborted.', ConnectionResetError(104, 'Connection reset by peer'))",
]
OF_ONE_NODE = [
    "Cannot find any model weights with `/models/x`",
    "/models/x does not appear to have a file named config.json. Checkout 'https://huggingface.co//models/x/tree/main'",
    "No model weights found in: `/models/x`",
    "Can't load tokenizer for '/models/x'. Make sure '/models/x' is the correct path to a directory containing all relevant "
    "files for a Qwen2TokenizerFast tokenizer.",
    "AsyncEngineArgs.__init__() got an unexpected keyword argument 'max_sequences'",
]
"""A folder that was copied to a node in part, and another version of a library there."""
UNKNOWN = [
    "Bfloat16 is only supported on GPUs with compute capability of at least 8.0. Your Tesla T4 GPU has compute capability 7.5.",
    "FP8 KV cache on CPU requires x86 with AVX-512 or AMX.",
    KILLED,
    "",
    "a text that nobody has written yet",
]
MODEL = [
    "Model architectures ['GlmOcrNewForCausalLM'] are not supported for now. Supported architectures: dict_keys(['Afmoe'])",
    "The checkpoint you are trying to load has model type `qwen9` but Transformers does not recognize this architecture.",
    "Unrecognized model in /models/x. Should have a `model_type` key in its config.json.",
    "org/nme is not a local folder and is not a valid model identifier listed on 'https://huggingface.co/models'",
    "Repo id must be in the form 'repo_name' or 'namespace/repo_name': '/models/one/two'. Use `repo_type` argument if needed.",
    "401 Client Error. (Request ID: Root=1-66)\n\nCannot access gated repo for url https://huggingface.co/meta-llama/x",
    "404 Client Error. (Request ID: Root=1-66)\n\nRepository Not Found for url: https://huggingface.co/api/models/org/nme.",
    "User-specified max_model_len (100000) is greater than the derived max_model_len (max_position_embeddings=8192.0)",
    "max_num_batched_tokens (64) must be greater than or equal to max_num_seqs (128).",
    "Unknown quantization method: fp5. Must be one of ['awq', 'fp8'].",
    "Total number of attention heads (14) must be divisible by tensor parallel size (4).",
    "1 validation error for ModelConfig\n  Value error, dtype must be one of: 'half', 'float16'",
    "The repository org/name contains custom code which must be executed to correctly load the model. Please pass the argument "
    "`trust_remote_code=True`",
]
REMEDIES = {
    "Free memory on device cuda:0 (3.12/79.11 GiB)": "the GPU is full or too small: end other processes on it (see nvidia-smi)",
    "CUDA out of memory": "lower policy.memory_share, or raise policy.tensor_parallel",
    "the estimated maximum model length is 16384": (
        "lower policy.max_model_len, give the KV cache more memory with policy.memory_share (GPU) or policy.kv_cache_gib"
    ),
    "No available memory for the cache blocks": "give the KV cache more memory",
    "12.51/16.21 GiB": "policy.kv_cache_gib",
    "No CUDA GPUs": "policy.tensor_parallel",
    "We couldn't connect": "local folder",
    "Cannot find any model weights with `/models/x`": "complete on every node",
    "'max_sequences'": "the same versions of stepvalue and vLLM",
    "FP8 KV cache on CPU": "check policy.kv_cache_dtype",
    "User-specified max_model_len (100000)": "lower policy.max_model_len",
    "max_num_batched_tokens (64)": "change policy.max_num_batched_tokens",
}
"""What is said of a cause that holds a text."""


@given(
    st.sampled_from(MODEL),
    st.sampled_from([str.upper, str.lower, str.title]),
    st.sampled_from([" ", "\n", "\t ", "\r\n"]),
)
def test_case_and_line_breaks_do_not_matter(cause: str, changed: object, blank: str) -> None:
    assert callable(changed)
    assert blames_model(changed(blank.join(cause.split())))


@given(st.sampled_from(PLACE), st.sampled_from(MODEL))
def test_a_sign_of_the_place_outweighs_a_hint_at_a_setting(place: str, model: str) -> None:
    """Messages about full devices advise to change settings."""
    assert not blames_model(f"{place} {model}")
    assert not blames_model(f"{model} {place}")


@pytest.mark.parametrize(
    "refused", ["404 Client Error. Entry Not Found for url: x", "401 Client Error. x", "Repository Not Found"]
)
def test_a_file_that_the_hub_refuses_is_missing_for_every_node(refused: str) -> None:
    assert blames_model(f"org/name does not appear to have a file named config.json. {refused}")


@given(st.text())
def test_any_text_has_an_answer_and_what_says_nothing_blames_nobody(text: str) -> None:
    assert blames_model(text) in (True, False)
    assert not blames_model("".join(each for each in text if not each.isalpha() and not each.isdigit()))


@pytest.mark.parametrize(
    ("cause", "of_the_place"),
    [*((one, True) for one in (*PLACE, *OF_ONE_NODE, *UNKNOWN)), *((one, False) for one in MODEL)],
)
def test_the_error_that_the_engine_raises_says_who_is_to_blame(cause: str, of_the_place: bool) -> None:
    in_a_child = f"(EngineCore pid=1) ERROR [core.py:708] ValueError: {cause}\nRuntimeError: {OUTER}\n"
    ours, childs = load_error("some/model", cause, ""), load_error("some/model", OUTER, in_a_child)
    assert isinstance(ours, PlaceError) == of_the_place
    assert str(ours).startswith("the policy some/model cannot be loaded: ")
    for part, remedy in REMEDIES.items():
        assert part not in cause or (part in str(childs) and remedy in str(childs))
    if not cause.startswith("1 validation error"):  # vLLM checks settings before it starts a child
        assert isinstance(childs, PlaceError) == of_the_place


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


def test_the_name_of_the_check_that_a_setting_failed_is_not_the_cause() -> None:
    printed = "pydantic_core.ValidationError: 1 validation error for ModelConfig\nValueError: User-specified max_model_len (9)"
    assert "loaded: User-specified max_model_len (9); lower policy.max_model_len" in str(
        load_error("m", OUTER, printed)
    )


def test_an_access_token_is_in_no_error() -> None:
    assert "hf_abcdefgh" not in str(load_error("m", "401 for https://hub/x?token=hf_abcdefghijkl", ""))


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


FATAL = "(EngineCore pid=7) ERROR 11-23 19:24:42 [core.py:1512] "
WORKER = "(Worker_TP1 pid=9) ERROR 11-23 19:24:41 [multiproc_executor.py:1063] "


@pytest.mark.parametrize(
    ("printed", "cause"),
    [
        (
            f"{WORKER}WorkerProc hit an exception.\n{WORKER}Traceback (most recent call last):\n"
            f"{WORKER}torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
            f"{FATAL}EngineCore encountered a fatal error.\n{FATAL}Traceback (most recent call last):\n"
            f"{FATAL}RuntimeError: Worker failed with error 'CUDA out of memory', please check the stack trace above\n",
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
        ),
        (
            f"{FATAL}EngineCore encountered a fatal error.\n{FATAL}OSError: the disk is full\n\n"
            f"{FATAL}During handling of the above exception, another exception occurred:\n{FATAL}KeyError: 'x'\n",
            "OSError: the disk is full",
        ),
        (
            "ValueError: a request was refused, and the engine went on\n"
            f"{FATAL}EngineCore encountered a fatal error.\n{FATAL}KeyError: 'block 7'\n",
            "KeyError: 'block 7'",
        ),
        (
            f"{WORKER}WorkerProc hit an exception.\n{WORKER}Traceback (most recent call last):\n"
            f'{WORKER}  File "/x/vllm/v1/worker.py", line 7, in step\n{WORKER}    self.run()\n'
            f'{WORKER}  File "/x/vllm/attention.py", line 31, in forward\n{WORKER}    assert out is not None\n'
            f"{WORKER}AssertionError\n"
            f"{FATAL}EngineCore encountered a fatal error.\n{FATAL}TimeoutError: RPC call to execute_model timed out.\n",
            "AssertionError in forward (attention.py, line 31)",
        ),
        (
            f"\x1b[0;36m{FATAL}\x1b[0;0mEngineCore encountered a fatal error.\n"
            f"\x1b[0;36m{FATAL}\x1b[0;0mKeyError: 'block 7'\n",
            "KeyError: 'block 7'",
        ),
        (
            f"{FATAL}EngineCore failed to start.\n/x/python: symbol lookup error: /x/_C.so: undefined symbol: _ZN3c10\n",
            "symbol lookup error: /x/_C.so: undefined symbol: _ZN3c10",
        ),
        (
            f"{FATAL}EngineCore encountered a fatal error.\n{WORKER}asyncio.exceptions.CancelledError\n"
            f"{FATAL}RuntimeError: CUDA error: operation was cancelled by the driver\n",
            "RuntimeError: CUDA error: operation was cancelled by the driver",
        ),
        (
            f"{FATAL}EngineCore encountered a fatal error.\n{FATAL}RuntimeError: Worker failed with error 'CUDA OOM'\n",
            "RuntimeError: Worker failed with error 'CUDA OOM'",
        ),
        (
            "terminate called after throwing an instance of 'c10::AcceleratorError'\n"
            "  what():  CUDA error: an illegal memory access was encountered\n",
            "CUDA error: an illegal memory access was encountered",
        ),
        ("Fatal Python error: Segmentation fault\n\nThread 0x1", "Fatal Python error: Segmentation fault"),
        (
            f"{FATAL}Worker proc VllmWorker-0 died unexpectedly (exit code: -11), shutting down executor.\n"
            f"{FATAL}EngineCore encountered a fatal error.\n{FATAL}RuntimeError: cancelled\n",
            "its process VllmWorker-0 was killed by SIGSEGV, and printed no error",
        ),
        (
            f"{FATAL}EngineCore encountered a fatal error.\n"
            f"{FATAL}OSError: 401 for https://hub/x with hf_abcdefghijklmnop\x1b[31m\n",
            "OSError: 401 for https://hub/x with hf_***",
        ),
    ],
)
def test_the_first_error_of_the_death_is_the_cause(printed: str, cause: str) -> None:
    assert death_cause(f"(EngineCore pid=7) INFO loading took 3 s\n{printed}", {}).startswith(cause)


@pytest.mark.parametrize(
    ("ended", "cause"),
    [
        ({"EngineCore": -9}, "its process EngineCore was killed by SIGKILL (the kernel does this when memory is full"),
        ({"Other": 0, "EngineCore": 3}, "its process EngineCore ended with exit code 3"),
        ({"EngineCore": -99}, "its process EngineCore was killed by signal 99"),
        ({}, "its processes printed no error"),
    ],
)
def test_without_an_error_the_end_of_a_process_is_the_cause(ended: dict[str, int], cause: str) -> None:
    assert death_cause("(EngineCore pid=7) INFO all is well\n", ended).startswith(cause)


def test_without_a_known_error_the_last_line_is_quoted() -> None:
    printed = (
        "(EngineCore pid=7) INFO loading\nlibfoo: device 3 has fallen off\n(EngineCore pid=7) INFO 11-23 bye\n"
        "(MainProcess pid=9) ERROR 11-23 23:51:50 [async_llm.py:906] raise self._format_exception(outputs) from None\n"
        "ERROR 11-23 23:51:50 [core_client.py:605] Engine core proc EngineCore died, shutting down client.\n"
    )
    assert death_cause(printed, {"EngineCore": 134}) == (
        "its process EngineCore ended with exit code 134, and printed last: libfoo: device 3 has fallen off"
    )


@given(st.text(), st.dictionaries(st.text(), st.integers(-130, 255)))
def test_it_is_one_printable_line_of_bounded_length(error: str, ended: dict[str, int]) -> None:
    cause = death_cause(f"{FATAL}EngineCore encountered a fatal error.\n{FATAL}RuntimeError: {error}\n", ended)
    assert cause.isprintable()
    assert len(cause) <= MAX_CAUSE_CHARACTERS + 4
