"""Grades completions and chains from the event loop of a worker."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from pipeline.core.records import Completion, Grade, Problem, Solution
from pipeline.graders.base import Checker
from pipeline.graders.question import grade_at_once, grade_in_time, outcome_of

QUEUE = 1_000
"""Most completions that may wait for a grading process. If the queue is full, no further completions are taken from the engine,
so the engine may run partly empty. Grading is then the bottleneck of the run, and `grader.processes` is too small."""

_Result = TypeVar("_Result")


class AsyncGrader:
    """Gives fast verdicts at once, and waits for slow ones, which need a child process, in one of `processes` threads.

    `seconds`: time spent on verdicts so far, summed over all processes. `waiting`: completions that wait for a verdict.
    """

    def __init__(self, checker: Checker, processes: int) -> None:
        self._checker = checker
        # A separate pool of threads, because the event loop's threads write the log at the same time.
        self._threads = ThreadPoolExecutor(processes, thread_name_prefix="judge")
        self._capacity = asyncio.Semaphore(QUEUE)
        self.seconds = 0.0
        self.waiting = 0

    def at_once(self, problem: Problem, completion: Completion, stem: str) -> Grade | None:
        """The grade of `stem` + completion, or None if it needs a child process."""
        began = time.perf_counter()
        grade = grade_at_once(self._checker, problem.golds, stem + completion.text, completion.finish)
        self.seconds += time.perf_counter() - began
        return grade

    async def wait_for_capacity(self) -> None:
        """Wait until the queue can take one more completion. `in_time` makes its place free again."""
        await self._capacity.acquire()
        self.waiting += 1

    async def in_time(self, problem: Problem, completion: Completion, stem: str) -> Grade:
        """The grade of a completion for which `at_once` returned None. The caller has waited with `wait_for_capacity`."""
        text = stem + completion.text
        try:
            return await self._in_thread(lambda: grade_in_time(self._checker, problem.golds, text, completion.finish))
        finally:
            self.waiting -= 1
            self._capacity.release()

    async def grade(self, problem: Problem, completion: Completion, stem: str) -> Grade:
        """The grade of `stem` + completion, fast or slow."""
        grade = self.at_once(problem, completion, stem)
        if grade is not None:
            return grade
        await self.wait_for_capacity()
        return await self.in_time(problem, completion, stem)

    async def outcome(self, problem: Problem, solution: Solution, before: str) -> tuple[str | None, bool | None]:
        """The final answer of a chain, and whether it is correct. `before`: what stands before its steps.

        (None, None) if the chain states no answer; (answer, None) if the answer cannot be graded.
        """
        answer = self._checker.stated_answer(before + solution.text, complete=solution.complete)
        if answer is None:
            return None, None
        grade = self._checker.quick_answer(problem.golds, answer)
        if grade is None:
            grade = await self._in_thread(lambda: self._checker.grade_answer(problem.golds, answer))
        return answer, outcome_of(grade)

    def close(self) -> None:
        """Start no further verdicts in threads."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _in_thread(self, work: Callable[[], _Result]) -> _Result:
        def run_timed() -> tuple[_Result, float]:
            began = time.perf_counter()
            result = work()
            return result, time.perf_counter() - began

        result, seconds = await asyncio.get_running_loop().run_in_executor(self._threads, run_timed)
        self.seconds += seconds
        return result
