"""The reward functions as their trainers call them: TRL with keyword arguments, verl by the path of the file."""

import functools
import importlib
import importlib.util
import math
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from pipeline.graders import reward
from pipeline.graders.reward import accuracy_reward, compute_score
from tests.conftest import ROOT
from tests.graders import light_child
from tests.ray_head import Cluster

pytestmark = pytest.mark.slow

RIGHT, WRONG, NONE = "So \\boxed{0.5}.", "So \\boxed{2}.", "I do not know."
TOO_LARGE = "So \\boxed{9^{9^{9^9}}}."


def as_trl_calls(reward_func: Any, completions: list[Any], **columns: list[Any]) -> list[float | None]:
    """How GRPOTrainer calls a reward function: keywords only, columns repeated per completion, its own extras."""
    found = reward_func(
        prompts=["What is half of 1?"] * len(completions),
        completions=completions,
        completion_ids=[[1, 2, 3]] * len(completions),
        trainer_state=SimpleNamespace(global_step=1),
        log_extra=lambda column, values: None,
        log_metric=lambda name, value: None,
        **columns,
    )
    assert isinstance(found, list)
    assert len(found) == len(completions)
    # The trainer turns None into NaN, and the list into a tensor of floats.
    assert all(isinstance(math.nan if reward is None else reward, float) for reward in found)
    return found


def message(content: Any, role: str = "assistant") -> dict[str, Any]:
    return {"role": role, "content": content}


def test_trl_texts() -> None:
    found = as_trl_calls(accuracy_reward, [RIGHT, WRONG, NONE, ""], answer=["1/2"] * 4, id=[1, 2, 3, 4])
    assert found == [1.0, 0.0, 0.0, 0.0]
    assert accuracy_reward([], []) == []


def test_trl_conversations() -> None:
    completions = [
        [message(RIGHT)],
        [message(WRONG)],
        [{"content": RIGHT}],
        [message([{"type": "text", "text": "So "}, {"type": "image"}, {"type": "text", "text": "\\boxed{0.5}"}])],
        [message(WRONG), message("0.5", "tool"), message(RIGHT)],
        [message(WRONG), message(RIGHT, "tool")],
        [message(RIGHT), message(None)],
        [],
    ]
    assert as_trl_calls(accuracy_reward, completions, answer=["1/2"] * 8) == [1, 0, 1, 1, 1, 0, 0, 0]


def test_trl_golds_of_any_kind_and_column() -> None:
    golds = ["1/2", 0.5, ["7", "1/2"], "Half of 1 is 1/2.\n#### 1/2", "It is \\boxed{\\frac12}."]
    for column in ("answer", "ground_truth", "solution"):
        assert as_trl_calls(accuracy_reward, [RIGHT] * 5, **{column: golds}) == [1.0] * 5
        assert as_trl_calls(accuracy_reward, [WRONG] * 5, **{column: golds}) == [0.0] * 5
    assert as_trl_calls(accuracy_reward, [RIGHT], answer=["1/2"], solution=["\\boxed{2}"]) == [1.0]


def test_trl_leaves_out_what_cannot_be_graded() -> None:
    found = as_trl_calls(accuracy_reward, [TOO_LARGE, RIGHT, RIGHT], answer=["9^{9^{9^{9^9}}}", None, ""])
    assert found == [None] * 3


def test_what_nobody_can_read_is_wrong_because_a_policy_could_choose_it() -> None:
    unread = [TOO_LARGE, "\\boxed{@@}", "\\boxed{x+}", "\\boxed{\\log x}"]
    assert as_trl_calls(accuracy_reward, unread, answer=["7"] * 4) == [0.0] * 4
    assert as_trl_calls(accuracy_reward, unread[1:2], answer=["\\frac{1}{"]) == [None]


def test_trl_logs_show_the_verdicts() -> None:
    logged: dict[str, Any] = {}
    accuracy_reward([RIGHT, TOO_LARGE], ["1/2", "9^{9^9}"], log_extra=logged.__setitem__, log_metric=logged.__setitem__)
    assert logged == {"verdict": ["correct", "over_limit"], "extracted_answer": ["0.5", "9^{9^{9^9}}"], "ungraded": 0.5}


def test_a_data_set_that_does_not_fit_is_reported() -> None:
    with pytest.raises(ValueError, match="column `answer`, `ground_truth` or `solution`"):
        accuracy_reward([RIGHT], problem=["?"])
    with pytest.raises(ValueError, match="2 completions, but 1 known answers"):
        accuracy_reward([RIGHT, WRONG], ["1/2"])


def by_path() -> ModuleType:
    """As verl's `custom_reward_function.path` is loaded: from its file, under a name of its own, kept nowhere."""
    assert reward.__file__ is not None
    spec = importlib.util.spec_from_file_location("custom_module_17", reward.__file__)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert "custom_module_17" not in sys.modules
    return module


def test_verl_finds_the_function_by_path_and_by_package() -> None:
    for module in (by_path(), importlib.import_module("pipeline.graders.reward")):
        score = functools.partial(_with_extra, module.compute_score, {})
        for text, wanted in ((RIGHT, 1.0), (WRONG, 0.0), (NONE, 0.0), (TOO_LARGE, 0.0)):
            found = score(
                data_source="openai/gsm8k", solution_str=text, ground_truth="1/2", extra_info={"num_turns": 2}
            )
            assert isinstance(found, float)
            assert found == wanted


def _with_extra(raw_fn: Any, extra: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
    """As verl merges `reward_kwargs` into a call."""
    return raw_fn(*args, **{**kwargs, **extra})


def test_verl_may_leave_out_and_may_add_arguments() -> None:
    assert compute_score("math", RIGHT, "1/2") == 1.0
    assert compute_score("math", RIGHT, ["2", "1/2"], None) == 1.0
    assert (
        compute_score("math", RIGHT, 0.5, extra_info={}, reward_router_address="host:1", reward_model_tokenizer=None)
        == 1.0
    )
    assert compute_score("math", RIGHT, None) == 0.0


def test_a_mapping_as_ground_truth_is_a_mistake_of_the_data_set() -> None:
    with pytest.raises(ValueError, match="not a mapping with target"):
        compute_score("nq", "\\boxed{5}", {"target": ["5"]})


def test_verl_calls_from_the_threads_of_an_executor() -> None:
    with ThreadPoolExecutor(8) as threads:
        calls = [
            threads.submit(compute_score, "math", f"\\boxed{{{n}\\sin^2 x+{n}\\cos^2 x}}", str(n)) for n in range(2, 30)
        ]
        assert [call.result(100) for call in calls] == [1.0] * 28


LOADER = """
import multiprocessing
import sys
from pipeline.graders.reward import accuracy_reward, compute_score

def score_in(queue):
    queue.put(accuracy_reward(["\\\\boxed{2\\\\sin x\\\\cos x}", "\\\\boxed{7}"], ["\\\\sin 2x", "\\\\sin 2x"]))

if __name__ == "__main__":
    assert compute_score("math", "\\\\boxed{2\\\\sin x\\\\cos x}", "\\\\sin 2x") == 1.0
    context = multiprocessing.get_context(sys.argv[1])
    queue = context.SimpleQueue()
    workers = [context.Process(target=score_in, args=(queue,), daemon=True) for _ in range(2)]
    for worker in workers:
        worker.start()
    print([queue.get() for _ in workers])
    for worker in workers:
        worker.join(30)
    sys.exit(any(worker.exitcode for worker in workers))
"""


@pytest.mark.parametrize("method", [pytest.param("fork", marks=pytest.mark.nightly), "spawn"])
def test_workers_of_a_data_loader(method: str, tmp_path: Path) -> None:
    (tmp_path / "loader.py").write_text(light_child.INSTEAD + LOADER)
    done = subprocess.run(
        [sys.executable, str(tmp_path / "loader.py"), method],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[[1.0, 0.0], [1.0, 0.0]]"


ACTOR = """
import asyncio
import sys
import ray
from pipeline.config.label import ClusterConfig
from pipeline.runtime.connection import cluster

@ray.remote(num_cpus=0)
class RewardLoop:
    async def score(self, text):
        from pipeline.graders.reward import compute_score
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(None, lambda: compute_score("math", text, "\\\\sin 2x"))

@ray.remote(num_cpus=0)
class Plain:
    def score(self, texts):
        from pipeline.graders.reward import accuracy_reward
        return accuracy_reward(texts, ["\\\\sin 2x"] * len(texts))

with cluster(ClusterConfig(address=sys.argv[1])):
    loop, plain = RewardLoop.remote(), Plain.remote()
    texts = ["\\\\boxed{2\\\\sin x\\\\cos x}", "\\\\boxed{x-1}", "no"]
    scores = [loop.score.remote(text) for text in texts], plain.score.remote(texts)
    print(*(ray.get(each, timeout=120) for each in scores))
"""


@pytest.mark.nightly
@pytest.mark.ray
def test_ray_actors(ray_cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "score.py").write_text(ACTOR)
    done = subprocess.run(
        [sys.executable, str(tmp_path / "score.py"), ray_cluster.address],
        env={**os.environ, **ray_cluster.environment, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[1.0, 0.0, 0.0] [1.0, 0.0, 0.0]"
