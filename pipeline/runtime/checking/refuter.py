"""Asks verifiers about chains before they are sampled: which is the first step that one of them refutes?"""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from pipeline.config.verify import VerifierConfig
from pipeline.core.records import ChainText, Problem, Refutation, Solution
from pipeline.data.steps import step_texts
from pipeline.runtime.checking.children import StepChecker
from pipeline.verifiers.base import StepVerdict


class Refuter:
    """Verifiers in one child process each, started when a chain comes. See `checking.children` for their limits: a step that is
    late, or that kills its process, is not refuted."""

    def __init__(self, verifiers: Sequence[VerifierConfig]) -> None:
        self._checkers = {settings.kind: StepChecker(settings, 1) for settings in verifiers}
        # Threads of its own, because the event loop's threads write the log at the same time.
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="refute")

    async def refutation(self, problem: Problem, solution: Solution) -> Refutation:
        """The first refuted step of a chain. Of verifiers that refute the same step, the first one counts.

        Raises PluginError where a plug-in fails, and PlaceError if no process starts."""
        chain = ChainText(
            chain_id=solution.chain_id,
            problem_id=solution.problem_id,
            problem=problem.text,
            steps=tuple(step_texts(solution.text, solution.ends)),
            prefix_ids=(),
        )
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._of, chain)

    def close(self) -> None:
        """End the processes."""
        for checker in self._checkers.values():
            checker.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _of(self, chain: ChainText) -> Refutation:
        found = Refutation(chain_id=chain.chain_id, problem_id=chain.problem_id)
        for name, checker in self._checkers.items():
            for number, step in enumerate(checker.checked(chain), start=1):
                refuted = step.finding.verdict is StepVerdict.REFUTED
                if refuted and not 0 < found.step <= number:
                    found = Refutation(
                        chain_id=chain.chain_id,
                        problem_id=chain.problem_id,
                        step=number,
                        verifier=name,
                        evidence=step.finding.evidence,
                    )
        return found
