"""The cause of an engine's death. The printed texts are those of vLLM 0.32, torch 2.13 and CPython 3.11."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.engines.vllm.death import MAX_CAUSE_CHARACTERS, death_cause

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
