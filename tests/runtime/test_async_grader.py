"""Slow verdicts delay neither the engine nor the log, and the queue of slow verdicts is bounded."""

import asyncio
import threading
import time
from pathlib import Path
from unittest.mock import patch

import pytest

from pipeline.config.fields import as_type
from pipeline.config.label import GraderConfig
from pipeline.core.progress import Status
from pipeline.core.records import Completion, Finish, Grade, Prefix, Problem, Request, Verdict
from pipeline.graders.base import Checker
from pipeline.graders.math.pool import MathChecker
from pipeline.graders.settings import MathConfig
from pipeline.runtime import async_grader as judging
from pipeline.runtime import labelling
from pipeline.runtime.async_grader import AsyncGrader
from tests.runtime.adaptive import labels, proved, settings, sums
from tests.runtime.in_process import label_in_process
from tests.settings import grader_settings

QUEUE = 5


class SlowChecker(MathChecker):
    """Gives no verdict at once."""

    def quick(self, golds: tuple[str, ...], text: str, *, complete: bool = True) -> Grade | None:
        return None

    def grade(self, golds: tuple[str, ...], text: str, *, complete: bool = True) -> Grade:
        time.sleep(0.001)
        return super().grade(golds, text, complete=complete)


def slow_checker(config: GraderConfig) -> Checker:
    return SlowChecker(as_type(config, MathConfig))


def completion() -> Completion:
    prefix = Prefix(prefix_id="p", step_index=0, text="", prompt_ids=(1,))
    problem = Problem(problem_id="q", text="1?", golds=("1",))
    request = Request(request_id="p-0", issue_index=0, problem=problem, prefix=prefix)
    return Completion(request=request, text="The answer is 1.", finish=Finish.STOP, n_tokens=4)


def test_a_run_whose_checker_is_slow_says_so_and_bounds_what_waits(tmp_path: Path) -> None:
    seen: list[Status] = []
    config = settings(tmp_path, sums(10), "estimator=fixed", "sampling.rollouts=8", "run.progress_seconds=0.01")
    with patch.object(judging, "QUEUE", QUEUE), patch.object(labelling, "checker_for", slow_checker):
        summary = label_in_process(config, watch=seen.append)
    assert 0 < max(status.load.grading for status in seen) <= QUEUE
    assert summary.totals.rollouts == summary.totals.correct + summary.totals.incorrect
    assert labels(tmp_path).height == 20
    proved(tmp_path)


@pytest.mark.parametrize("processes", [1, 3])
async def test_verdicts_in_time_take_threads_of_their_own(processes: int) -> None:
    at_work, may_end = threading.Semaphore(0), threading.Event()

    class WaitingChecker(SlowChecker):
        def grade(self, golds: tuple[str, ...], text: str, *, complete: bool = True) -> Grade:
            at_work.release()
            assert may_end.wait(60)
            return Grade(verdict=Verdict.CORRECT, answer="1", ms=200)

    judge = AsyncGrader(WaitingChecker(grader_settings()), processes)
    asked, problem = completion(), completion().request.problem
    grading = [asyncio.create_task(judge.grade(problem, asked, "")) for _ in range(processes + 2)]
    for _ in range(processes):
        assert await asyncio.to_thread(at_work.acquire, timeout=60)
    assert not await asyncio.to_thread(at_work.acquire, timeout=0.05), "more are at work than there are processes"
    assert judge.waiting == processes + 2
    # What the event loop writes meanwhile finds a thread.
    assert await asyncio.wait_for(asyncio.to_thread(lambda: "written"), 60) == "written"
    may_end.set()
    assert {grade.verdict for grade in await asyncio.gather(*grading)} == {Verdict.CORRECT}
    judge.close()
    assert judge.seconds > 0
