"""vLLM takes our arguments on a GPU, as far as that can be known without one."""

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.checkout import ROOT
from tests.tiny.policy import ASSET

pytestmark = pytest.mark.slow


def made(device: str, *settings: dict[str, Any]) -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.engines.pretended_cuda", device, str(ASSET), *map(json.dumps, settings)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


@pytest.mark.nightly
def test_an_h100_runs_more_sequences_than_vllm_captures_graphs_for_unless_a_setting_says_so() -> None:
    usual, captured, fewer, other = made(
        "NVIDIA H100 80GB HBM3",
        {},
        {"max_cudagraph_capture_size": 1024},
        {"max_num_seqs": 512},
        {"kv_cache_dtype": "fp8", "memory_share": 0.45, "tensor_parallel": 2},
    )
    assert (usual["max_num_seqs"], usual["max_num_batched_tokens"], usual["captured"]) == (1024, 16_384, 512)
    assert (usual["async_scheduling"], usual["prefix_caching"], usual["devices"]) == (True, True, 1)
    assert (captured["max_num_seqs"], captured["captured"]) == (1024, 1024)
    assert (fewer["max_num_seqs"], fewer["captured"]) == (512, 512)
    assert (other["kv_cache_dtype"], other["memory_share"], other["devices"], other["backend"]) == (
        "fp8",
        0.45,
        2,
        "mp",
    )


@pytest.mark.nightly
def test_a_small_gpu_captures_graphs_for_all_its_sequences() -> None:
    (usual,) = made("NVIDIA L40S", {})
    assert usual["captured"] == 512 >= usual["max_num_seqs"] == 256
