"""What a worker of `check` does with chains: it asks a verifier about their steps, in as many processes as it has cores, and
stores findings."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa

from pipeline.config.verify import VerifierConfig
from pipeline.core.progress import EngineWork, Load
from pipeline.core.records import ChainText, Totals
from pipeline.core.tables import FINDINGS, StepFinding
from pipeline.engines.base import Surroundings
from pipeline.runtime.chain_run.worker import ChainWorker, OneResultEach
from pipeline.runtime.checking.children import StepChecker
from pipeline.runtime.worker import Snapshot
from pipeline.storage.location import storage_at
from pipeline.storage.stored_findings import TABLE, finding_totals
from pipeline.verifiers.base import CheckedStep, Fault

CHAINS_PER_PROCESS = 16
"""Chains that wait for each process: many, because most take milliseconds."""
Steps = Sequence[CheckedStep]
"""What is said of the steps of a chain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckTask:
    """What a worker of `check` needs to know. `run_dir`: that of the findings. `processes`: None for one on each core."""

    verifier: VerifierConfig
    run_dir: str
    processes: int | None
    flush_seconds: float


class Checking(OneResultEach[Steps]):
    """See the module."""

    table = TABLE
    votes = 1

    def __init__(self, verifier: VerifierConfig, processes: int) -> None:
        self._name = verifier.kind
        self._processes = processes
        self._checker = StepChecker(verifier, processes)
        # Threads of its own, because the event loop's threads write the log at the same time.
        self._threads = ThreadPoolExecutor(processes, thread_name_prefix="check")
        self._chains = self._running = 0

    @property
    def model(self) -> str:
        return self._name

    @property
    def capacity(self) -> int:
        return self._processes * CHAINS_PER_PROCESS

    async def fetch(self) -> None:
        return

    async def start(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._threads, self._checker.start)

    async def results(self, chains: Mapping[int, ChainText]) -> AsyncGenerator[Mapping[int, Steps], None]:
        tasks = [asyncio.create_task(self._of_row(row, chain)) for row, chain in chains.items()]
        try:
            for arriving in asyncio.as_completed(tasks):
                row, steps = await arriving
                yield {row: steps}
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def failed(self, chain: ChainText) -> Steps:
        return [CheckedStep(fault=Fault.LOST)] * len(chain.steps)

    def rows(self, chains: pa.Table, results: Sequence[Steps]) -> pa.Table:
        return findings_table(chains, results, verifier=self._name)

    def totals(self, rows: pa.Table) -> Totals:
        return finding_totals(rows)

    def snapshot(self) -> Snapshot:
        # Steps count as generated, so that a worker with one long chain is seen to go on.
        return Snapshot(
            rollouts=self._chains, work=EngineWork(generated=self._checker.steps), load=Load(running=self._running)
        )

    async def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        await asyncio.to_thread(self._checker.close)

    async def _of_row(self, row: int, chain: ChainText) -> tuple[int, Steps]:
        self._running += 1
        try:
            loop = asyncio.get_running_loop()
            steps = await loop.run_in_executor(self._threads, self._checker.checked, chain)
        finally:
            self._running -= 1
        self._chains += 1
        return row, steps


def checking_worker(task: CheckTask, around: Surroundings) -> ChainWorker[Steps]:
    """A worker of `check` in its own process."""
    work = Checking(task.verifier, task.processes or around.cpus)
    return ChainWorker(work, storage_at(task.run_dir), task.flush_seconds)


def findings_table(chains: pa.Table, checked: Sequence[Sequence[CheckedStep]], *, verifier: str) -> pa.Table:
    """The rows of checked chains, one for each step. `chains`: of the table CHAINS, in the order of `checked`."""
    known = [chains[name].to_pylist() for name in ("row", "chain_id", "problem_id")]
    found = [
        StepFinding(
            row=row,
            chain_id=chain_id,
            problem_id=problem_id,
            step_index=index,
            verifier=verifier,
            verdict=step.finding.verdict,
            covers=step.finding.covers,
            evidence=step.finding.evidence,
            fault=step.fault,
        )
        for row, chain_id, problem_id, steps in zip(*known, checked, strict=True)
        for index, step in enumerate(steps, start=1)
    ]
    return FINDINGS.to_table(found)
