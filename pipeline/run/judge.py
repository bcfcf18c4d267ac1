"""Verdicts for completions and chains: the checker as the event loop of a worker uses it."""

import asyncio

from pipeline.grading.base import Checker
from pipeline.grading.completion import grade_at_once, grade_in_time, outcome_of
from pipeline.records import Completion, Grade, Problem, Solution


class Judge:
    """What the checker knows at once it says at once; what needs a child process is waited for in a thread."""

    def __init__(self, checker: Checker) -> None:
        self._checker = checker

    def at_once(self, problem: Problem, completion: Completion, stem: str) -> Grade | None:
        """The grade of `stem` + completion, or None when the checker has to ask a child."""
        return grade_at_once(self._checker, problem.golds, stem + completion.text, completion.finish)

    async def grade(self, problem: Problem, completion: Completion, stem: str) -> Grade:
        """The grade of `stem` + completion, however long it takes."""
        grade = self.at_once(problem, completion, stem)
        if grade is not None:
            return grade
        text = stem + completion.text
        return await asyncio.to_thread(grade_in_time, self._checker, problem.golds, text, completion.finish)

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
        return answer, outcome_of(grade)
