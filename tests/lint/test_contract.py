"""Does vLLM have what we use? Judged by the Python of the installed one, and of GPU wheels that `make contract` fetched."""

import importlib.util
import re
from collections.abc import Callable
from functools import reduce
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.contract.__main__ import VERSIONS
from tests.contract.judge import complaints
from tests.contract.source import Source
from tests.contract.uses import (
    ARGUMENTS,
    ASYNC_LLM,
    ENGINE,
    ENGINE_ARGUMENTS,
    LOADED,
    METER,
    POOLING,
    SAMPLING,
    Use,
    our_files,
    recipes,
    uses,
    variables,
)
from tests.contract.wheel import cached

Change = Callable[[str], str]
Sown = list[tuple[str, str, str, str]]
"""File, pattern, what stands in its place, and what is said of it."""


def installed() -> Path:
    """The folder that vLLM's package is in; it is not imported."""
    found = importlib.util.find_spec("vllm")
    if found is None or found.origin is None:
        pytest.skip("vLLM is not installed here")
    return Path(found.origin).parents[1]


@pytest.fixture(scope="module")
def used() -> list[Use]:
    return uses(our_files())


def judged(folder: Path, changed: dict[str, Change] | None = None, ours: dict[str, Change] | None = None) -> list[str]:
    files = {name: (ours or {}).get(name, str)(text) for name, text in our_files().items()}
    return complaints(Source(folder, changed or {}), uses(files), variables({**files, **recipes()}))


def replaced(old: str, new: str) -> Change:
    def change(text: str) -> str:
        assert re.search(old, text), f"no {old} to sow a bug in"
        return re.sub(old, new, text)

    return change


def test_the_installed_vllm_has_all_that_we_use() -> None:
    assert judged(installed()) == []


@pytest.mark.parametrize("version", VERSIONS)
def test_the_gpu_wheel_has_all_that_we_use(version: str) -> None:
    folder = cached(version)
    if folder is None:
        pytest.skip(f"the Python of vllm {version} was not fetched: make contract")
    assert judged(folder) == []


def test_the_pinned_version_is_judged() -> None:
    assert f"vllm=={VERSIONS[0]}" in (ROOT / "pyproject.toml").read_text("utf-8")


def test_the_uses_are_those_of_our_source(used: list[Use]) -> None:
    """A few of each kind: what is derived must not become empty in silence."""
    by_root = {(use.root, use.path): use for use in used}
    arguments = next(use for use in used if use.root == ENGINE_ARGUMENTS and use.where.startswith(ARGUMENTS))
    assert {"max_num_seqs", "gpu_memory_utilization", "speculative_config", "block_size"} <= (
        arguments.keywords or set()
    )
    sampling = next(use for use in used if use.root == SAMPLING and use.where.startswith(f"{ENGINE}:"))
    assert {"temperature", "include_stop_str_in_output", "output_kind"} <= (sampling.keywords or set())
    assert by_root[ASYNC_LLM, ("from_engine_args",)].keywords == frozenset({"stat_loggers"})
    assert (ASYNC_LLM, ("vllm_config", "scheduler_config", "max_num_seqs")) in by_root
    assert by_root[ASYNC_LLM, ("generate",)].positional == 3
    assert (ASYNC_LLM, ("logger_manager",)) in by_root
    names = {each.name for each in variables({**our_files(), **recipes()})}
    assert {"VLLM_CPU_KVCACHE_SPACE", "VLLM_WORKER_MULTIPROC_METHOD", "VLLM_CACHE_ROOT"} <= names


CHANGED_BY_VLLM: Sown = [
    ("vllm/engine/arg_utils.py", r"\bmax_num_seqs:", "max_sequences:", "takes no max_num_seqs"),
    ("vllm/sampling_params.py", r"\bmin_p: float", "least_p: float", "takes no min_p"),
    ("vllm/sampling_params.py", r"\bFINAL_ONLY\b", "LAST_ONLY", "has no FINAL_ONLY"),
    ("vllm/v1/engine/async_llm.py", r"\bstat_loggers:", "loggers:", "takes no stat_loggers"),
    ("vllm/v1/engine/async_llm.py", r"async def abort\(", "async def cancel(", "has no abort"),
    ("vllm/config/scheduler.py", r"\bmax_num_seqs:", "max_sequences:", "scheduler_config has no max_num_seqs"),
    ("vllm/outputs.py", r"\bfinish_reason\b", "reason", "has no finish_reason"),
    ("vllm/v1/metrics/stats.py", r"\bnum_waiting_reqs\b", "waiting", "has no num_waiting_reqs"),
    ("vllm/v1/metrics/loggers.py", r"scheduler_stats: SchedulerStats", "stats: SchedulerStats", "TokenMeter.record"),
    ("vllm/v1/engine/detokenizer.py", r"stop_terminated: bool", "stopped: bool", "StoppingDetokenizer.update"),
    ("vllm/v1/engine/output_processor.py", r"self\.request_states\b", "self.states", "has no request_states"),
    ("vllm/v1/engine/__init__.py", r'"length", ', "", "finish reason 'length'"),
    ("vllm/envs.py", r'"VLLM_CACHE_ROOT"', '"VLLM_CACHE"', "knows no variable VLLM_CACHE_ROOT"),
]
MISTAKEN_BY_US: Sown = [
    (ARGUMENTS, '"gpu_memory_utilization"', '"memory_share"', "takes no memory_share"),
    (ENGINE, r"include_stop_str_in_output=", "include_stop=", "takes no include_stop"),
    (LOADED, r"self\.engine\.errored", "self.engine.has_died", "has no has_died"),
    (POOLING, r"pooled\.num_cached_tokens", "pooled.num_cached", "has no num_cached"),
    (METER, r"prompts\.computed", "prompts.calculated", "has no calculated"),
    (LOADED, '"VLLM_NO_USAGE_STATS"', '"VLLM_NO_USAGE"', "knows no variable VLLM_NO_USAGE"),
]


def all_of(sown: Sown) -> dict[str, Change]:
    """The changes by file, those of a file one after the other."""

    def in_turn(file: str) -> Change:
        return lambda text: reduce(lambda so_far, row: replaced(row[1], row[2])(so_far), of[file], text)

    of = {file: [row for row in sown if row[0] == file] for file, *_ in sown}
    return {file: in_turn(file) for file in of}


def test_names_that_vllm_changed_are_reported() -> None:
    found = judged(installed(), changed=all_of(CHANGED_BY_VLLM))
    assert [row for row in CHANGED_BY_VLLM if not any(row[-1] in line for line in found)] == [], found


def test_names_that_we_mistake_are_reported() -> None:
    found = judged(installed(), ours=all_of(MISTAKEN_BY_US))
    assert [row for row in MISTAKEN_BY_US if not any(row[-1] in line for line in found)] == [], found


def test_a_table_entry_that_our_source_has_no_more_is_reported() -> None:
    with pytest.raises(LookupError, match="ROOTS"):
        uses({ENGINE: our_files()[ENGINE].replace("sample", "drawn")})
    with pytest.raises(LookupError, match="DICTIONARIES"):
        uses({ARGUMENTS: our_files()[ARGUMENTS].replace("def engine_arguments", "def arguments_of")})
