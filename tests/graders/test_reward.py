"""The reward functions as their trainers call them: TRL with keyword arguments, verl by the path of the file."""

import functools
import importlib
import importlib.util
import math
import os
import subprocess
import sys
import threading
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline import graders
from pipeline.config.choices import Fallback
from pipeline.graders import Grade, Verdict, grade, reward
from pipeline.graders.reward import accuracy_reward, compute_score
from pipeline.graders.shared import shared_checker
from tests.conftest import ROOT
from tests.graders import light_child
from tests.ray_head import Cluster
from tests.settings import grader_settings

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


SLOW = grader_settings(deadline_seconds=20.0)


@pytest.mark.parametrize(
    ("gold", "prediction", "extracts", "verdict", "answer"),
    [
        ("72", "So \\boxed{72}.", True, "correct", "72"),
        ("72", "So \\boxed{71}.", True, "incorrect", "71"),
        (["7", "72"], "So \\boxed{72}.", True, "correct", "72"),
        (0.5, "#### 1/2", True, "correct", "1/2"),
        ("1/2", 0.5, False, "correct", "0.5"),
        ("72", "I do not know.", True, "no_answer", ""),
        ("72", "", True, "no_answer", ""),
        ("72", None, True, "no_answer", ""),
        ("72", None, False, "no_answer", ""),
        ("72", ["72"], False, "no_answer", ""),
        ("72", True, False, "no_answer", ""),
        ("", "72", False, "unparseable", ""),
        (None, None, True, "unparseable", ""),
        ([], "72", False, "unparseable", ""),
        ({"gold": 72}, "72", False, "unparseable", ""),
        ("\\frac{1}{", "2", False, "unparseable", "2"),
        ("\\sin 2x", "2\\sin x\\cos x", False, "correct", "2\\sin x\\cos x"),
    ],
)
def test_a_verdict_for_whatever_is_asked(gold: Any, prediction: Any, extracts: bool, verdict: str, answer: str) -> None:
    found = grade(gold, prediction, extracts=extracts, config=SLOW)
    assert (found.verdict, found.answer) == (verdict, answer)
    assert found.ms >= 0


def test_a_number_too_long_for_str_is_compared_up_to_a_limit() -> None:
    assert grade("72", 10**5000, extracts=False).verdict is Verdict.INCORRECT
    assert grade("1" + "0" * 5000, 10**5000, extracts=False).verdict is Verdict.CORRECT
    assert grade("72", 10**30_000, extracts=False).verdict is Verdict.OVER_LIMIT


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=5,
)


@given(gold=anything, prediction=anything.filter(lambda value: not isinstance(value, str)), extracts=st.booleans())
def test_no_type_raises(gold: Any, prediction: Any, extracts: bool) -> None:
    assert isinstance(grade(gold, prediction, extracts=extracts), Grade)


def test_settings_choose_the_checker_and_later_changes_to_them_do_not() -> None:
    strict = grader_settings(fallback=Fallback.none)
    assert grade("72", "It is 72", config=strict).verdict is Verdict.NO_ANSWER
    assert grade("72", "It is 72").verdict is Verdict.CORRECT
    checker = shared_checker(strict)
    assert shared_checker(grader_settings(fallback=Fallback.none)) is checker
    strict.fallback = grader_settings().fallback
    assert shared_checker(strict) is shared_checker() is not checker
    assert grade("72", "It is 73", config=grader_settings(fallback=Fallback.none)).verdict is Verdict.NO_ANSWER


def test_many_threads_share_one_checker() -> None:
    config = grader_settings(deadline_seconds=20.0, processes=2)
    found = []

    def work(number: int) -> None:
        found.append((shared_checker(config), grade(f"{number}x", f"x+{number - 1}x", extracts=False, config=config)))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2, 10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(checker) for checker, _ in found}) == 1
    assert [answered.verdict for _, answered in found] == [Verdict.CORRECT] * 8


PROCESSES = r"""
import multiprocessing
import os
import sys
from pipeline.graders import grade

ONE = r"\sin^2 x+\cos^2 x"

def in_process(prediction, answers):
    answers.put((os.getpid(), grade("1", prediction, extracts=False).verdict.value))

if __name__ == "__main__":
    assert grade("1", ONE, extracts=False).verdict == "correct"
    context = multiprocessing.get_context(sys.argv[1])
    answers = context.SimpleQueue()
    predictions = (ONE + "+0", ONE + "+10^{-20}")
    workers = [context.Process(target=in_process, args=(text, answers), daemon=True) for text in predictions]
    for worker in workers:
        worker.start()
    found = [answers.get() for _ in workers]
    for worker in workers:
        worker.join(30)
    assert sorted(verdict for _, verdict in found) == ["correct", "incorrect"], found
    assert len({pid for pid, _ in found} | {os.getpid()}) == 3
    assert grade("2", "1+" + ONE, extracts=False).verdict == "correct"
"""


@pytest.mark.parametrize(
    "method", ["fork", *(pytest.param(method, marks=pytest.mark.nightly) for method in ("spawn", "forkserver"))]
)
def test_other_processes_have_checkers_of_their_own(method: str, tmp_path: Path) -> None:
    (tmp_path / "processes.py").write_text(light_child.INSTEAD + PROCESSES)
    done = subprocess.run(
        [sys.executable, str(tmp_path / "processes.py"), method],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_the_children_end_with_the_process() -> None:
    code = light_child.INSTEAD + (
        "from pipeline.graders import grade\nfrom pipeline.graders.shared import shared_checker\n"
        "assert grade('\\\\sin 2x', '2\\\\sin x\\\\cos x', extracts=False).verdict == 'correct'\n"
        "print(shared_checker()._children[0].process.pid)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    with pytest.raises(ProcessLookupError):
        os.kill(int(done.stdout), 0)


def test_a_child_does_not_load_what_it_does_not_need() -> None:
    code = "import sys, pipeline.graders.math.child\nsys.exit('pipeline.graders.math.pool' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0


def test_the_package_offers_nothing_else() -> None:
    assert graders.__all__ == ["Grade", "Verdict", "grade"]
    with pytest.raises(AttributeError, match="no attribute 'grader'"):
        _ = graders.grader
