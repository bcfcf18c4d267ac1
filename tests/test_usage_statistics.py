"""Ray and vLLM count their users by default, over the network. A run asks them not to."""

import subprocess
import sys

import pytest

from tests.checkout import ROOT

ASKED = {
    "ray": """
import contextlib
from pipeline.config.label import ClusterConfig
from pipeline.runtime import connection
from ray._common.usage.usage_lib import usage_stats_enabled
connection._private_ray = contextlib.nullcontext
counted = usage_stats_enabled()
with connection.cluster(ClusterConfig()):
    print(counted, usage_stats_enabled())
""",
    "vllm": """
from pipeline.engines.vllm.loaded import set_environment
from vllm.usage import usage_lib
counted = usage_lib.is_usage_stats_enabled()
set_environment(cpus=1)
usage_lib._USAGE_STATS_ENABLED = None
print(counted, usage_lib.is_usage_stats_enabled())
""",
}


@pytest.mark.slow
@pytest.mark.parametrize("package", ["ray", pytest.param("vllm", marks=pytest.mark.nightly)])
def test_nobody_is_counted(package: str, monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    for name in ("RAY_USAGE_STATS_ENABLED", "VLLM_NO_USAGE_STATS", "VLLM_DO_NOT_TRACK", "DO_NOT_TRACK"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    code = ASKED[package]
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split()[-2:] == ["True", "False"]
