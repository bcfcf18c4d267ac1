"""Verdicts for completions and chains: the checker as the event loop of a worker uses it."""

import asyncio

from pipeline.grading.base import Checker
from pipeline.records import UNGRADED, Completion, Finish, Grade, Problem, Solution, Verdict

NO_COMPLETION = Grade(verdict=Verdict.CRASHED, answer="", ms=0.0)
"""Of a request that no engine answers: ungraded, like an answer that no checker survives."""


class Judge:
    """What the checker knows at once it says at once; what needs a child process is waited for in a thread."""

    def __init__(self, checker: Checker) -> None:
        self._checker = checker

    def at_once(self, problem: Problem, completion: Completion, stem: str) -> Grade | None:
        """The grade of `stem` + completion, or None when the checker has to ask a child."""
        if completion.finish is Finish.ENGINE_FAILED:
            return NO_COMPLETION
        return self._checker.quick(problem.golds, stem + completion.text, complete=completion.finish is Finish.STOP)

    async def grade(self, problem: Problem, completion: Completion, stem: str) -> Grade:
        """The grade of `stem` + completion, however long it takes."""
        grade = self.at_once(problem, completion, stem)
        if grade is not None:
            return grade
        text, complete = stem + completion.text, completion.finish is Finish.STOP
        return await asyncio.to_thread(self._checker.grade, problem.golds, text, complete=complete)

    async def outcome(self, problem: Problem, solution: Solution) -> tuple[str | None, bool | None]:
        """The answer a chain states itself, and whether it is right.

        (None, None) where it states none; (answer, None) where the answer cannot be graded.
        """
        answer = self._checker.stated_answer(solution.text, complete=solution.complete)
        if answer is None:
            return None, None
        grade = self._checker.quick_answer(problem.golds, answer)
        if grade is None:
            grade = await asyncio.to_thread(self._checker.grade_answer, problem.golds, answer)
        return answer, None if grade.verdict in UNGRADED else grade.verdict is Verdict.CORRECT
