"""Verdicts for completions and chains: the checker as the event loop of a worker uses it."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from pipeline.core.records import Completion, Grade, Problem, Solution
from pipeline.graders.base import Checker
from pipeline.graders.question import grade_at_once, grade_in_time, outcome_of

QUEUE = 1_000
"""Completions that may wait for a child process. Where there are more, no further ones are taken from the engine, which then
has places that stand empty: the checker is what the run waits for, and `grader.processes` is too small."""

_Result = TypeVar("_Result")


class AsyncGrader:
    """What the checker knows at once it says at once; what needs a child process is waited for in one of `processes` threads.

    `seconds`: what verdicts have taken so far, those of all children together. `waiting`: completions that wait for one.
    """

    def __init__(self, checker: Checker, processes: int) -> None:
        self._checker = checker
        # Threads of their own: those of the event loop write the log meanwhile.
        self._threads = ThreadPoolExecutor(processes, thread_name_prefix="judge")
        self._places = asyncio.Semaphore(QUEUE)
        self.seconds = 0.0
        self.waiting = 0

    def at_once(self, problem: Problem, completion: Completion, stem: str) -> Grade | None:
        """The grade of `stem` + completion, or None when the checker has to ask a child."""
        began = time.perf_counter()
        grade = grade_at_once(self._checker, problem.golds, stem + completion.text, completion.finish)
        self.seconds += time.perf_counter() - began
        return grade

    async def place(self) -> None:
        """Wait for a place in the queue; `in_time` gives it back."""
        await self._places.acquire()
        self.waiting += 1

    async def in_time(self, problem: Problem, completion: Completion, stem: str) -> Grade:
        """The grade that `at_once` had none for, however long it takes, for who has a place."""
        text = stem + completion.text
        try:
            return await self._in_thread(lambda: grade_in_time(self._checker, problem.golds, text, completion.finish))
        finally:
            self.waiting -= 1
            self._places.release()

    async def grade(self, problem: Problem, completion: Completion, stem: str) -> Grade:
        """The grade of `stem` + completion, however long it takes."""
        grade = self.at_once(problem, completion, stem)
        if grade is not None:
            return grade
        await self.place()
        return await self.in_time(problem, completion, stem)

    async def outcome(self, problem: Problem, solution: Solution) -> tuple[str | None, bool | None]:
        """The answer a chain states itself, and whether it is right.

        (None, None) where it states none; (answer, None) where the answer cannot be graded.
        """
        answer = self._checker.stated_answer(solution.text, complete=solution.complete)
        if answer is None:
            return None, None
        grade = self._checker.quick_answer(problem.golds, answer)
        if grade is None:
            grade = await self._in_thread(lambda: self._checker.grade_answer(problem.golds, answer))
        return answer, outcome_of(grade)

    def close(self) -> None:
        """Begin no further verdict in a thread."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _in_thread(self, work: Callable[[], _Result]) -> _Result:
        def timed() -> tuple[_Result, float]:
            began = time.perf_counter()
            result = work()
            return result, time.perf_counter() - began

        result, seconds = await asyncio.get_running_loop().run_in_executor(self._threads, timed)
        self.seconds += seconds
        return result
