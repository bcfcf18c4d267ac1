"""The task `check`: a verifier proves or refutes the steps of chains."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pyarrow as pa

from pipeline import __version__
from pipeline.config.check import CheckRunConfig
from pipeline.config.recorded_settings import RUN_RECORD
from pipeline.config.verify import VerifierConfig
from pipeline.core.errors import UsageError
from pipeline.core.progress import EngineWork, Summary
from pipeline.core.records import ChainText, Tally
from pipeline.core.tables import FINDINGS, StepFinding
from pipeline.engines.base import Surroundings
from pipeline.runtime.chain_run.given import GivenTask
from pipeline.runtime.chain_run.run import Hiring, run_task
from pipeline.runtime.chain_run.worker import ChainWork, side_by_side
from pipeline.runtime.checking.children import StepChecker
from pipeline.runtime.state import section_identity
from pipeline.runtime.stop import StopSignal
from pipeline.runtime.worker import Snapshot
from pipeline.runtime.worker_handle import Watcher
from pipeline.storage.location import storage_at
from pipeline.storage.run_record import CHECK, OTHER_RUN, PROVES
from pipeline.storage.storage import Storage
from pipeline.storage.stored_findings import CHECK_RUNS, finding_tally
from pipeline.verifiers.base import CheckedStep, Fault
from pipeline.verifiers.registry import inputs_of, missing_for, named_verifiers, proves

CHAINS_PER_PROCESS = 16
"""Chains that wait for each process: many, because most take milliseconds."""
Steps = Sequence[CheckedStep]
"""What is said of the steps of a chain."""


def check_run(config: CheckRunConfig, hiring: Hiring, watch: Watcher, stop: StopSignal) -> Mapping[str, Summary]:
    """Check all chains by each verifier. What was checked before is kept.

    Returns the runs by verifier. Raises as `run_task` does, UsageError for a verifier that is not installed, or lacks something
    here, and a run without labels, and PluginError where a plug-in fails.
    """
    verifiers = checked_verifiers(config)
    for name, missing in missing_parts(verifiers).items():
        raise UsageError(f"checks=[{name}]: it {missing}")
    return {each.kind: run_task(CheckTask(replace(config, verifier=each)), hiring, watch, stop) for each in verifiers}


def checked_verifiers(config: CheckRunConfig) -> list[VerifierConfig]:
    """The settings of the verifiers. Raises UsageError for one that is not installed or cannot be used, and for rows whose
    findings would go to the directory of a run."""
    found = named_verifiers(config.names, config.verifier)
    if config.data.path and RUN_RECORD in storage_at(config.run_dir).names(""):
        raise UsageError(
            f"{config.run_dir} is a run: leave data.path out to check its chains, or give another run_dir for the findings on "
            f"{config.data.path}"
        )
    return found


def missing_parts(verifiers: Iterable[VerifierConfig]) -> dict[str, str]:
    """The verifiers that lack something on this machine, by name, and what."""
    found = {settings.kind: missing_for(settings) for settings in verifiers}
    return {name: missing for name, missing in found.items() if missing}


class CheckTask(GivenTask[CheckRunConfig]):
    """Checks all chains by `verifier`, into the folder `checks/VERIFIER` of `run_dir`. The counts are those of
    `stored_findings.finding_tally`."""

    name = CHECK
    to_do, done, results = "check", "checked", "findings"

    def __init__(self, config: CheckRunConfig) -> None:
        super().__init__(replace(config, run_dir=storage_at(config.run_dir).run_dir))
        self.doing = f"checking by {config.verifier.kind}"

    def storage(self) -> Storage:
        return CHECK_RUNS.at(storage_at(self.config.run_dir), self.config.verifier.kind)

    @property
    def names(self) -> Mapping[str, str]:
        return {OTHER_RUN: "has findings that were made otherwise: move that folder away to check again"}

    def determines(self) -> dict[str, object]:
        verifier = self.config.verifier
        return {
            "verifier_version": f"stepvalue-{__version__}",
            **section_identity("verifier", verifier),
            **inputs_of(verifier),
            **({PROVES: True} if proves(verifier) else {}),
        }

    def work(self, around: Surroundings) -> "Checking":
        return Checking(self.config.verifier, self.config.processes or around.cpus)


class Checking(ChainWork[Steps]):
    """What a worker does: it asks a verifier about the steps of chains, in as many processes as it has cores."""

    table = FINDINGS

    def __init__(self, verifier: VerifierConfig, processes: int) -> None:
        self._name = verifier.kind
        self._processes = processes
        self._checker = StepChecker(verifier, processes)
        # Threads of its own, because the event loop's threads write the log at the same time.
        self._threads = ThreadPoolExecutor(processes, thread_name_prefix="check")

    async def load(self) -> tuple[str, int]:
        await asyncio.get_running_loop().run_in_executor(self._threads, self._checker.start)
        return self._name, self._processes * CHAINS_PER_PROCESS

    def results(self, chains: Mapping[int, ChainText]) -> AsyncGenerator[Mapping[int, Steps], None]:
        return side_by_side(chains, self._checked)

    def failed(self, chain: ChainText) -> Steps:
        return [CheckedStep(fault=Fault.LOST)] * len(chain.steps)

    def rows(self, chains: pa.Table, results: Sequence[Steps]) -> pa.Table:
        return findings_table(chains, results, verifier=self._name)

    def tally(self, rows: pa.Table) -> Tally:
        return finding_tally(rows)

    def counted(self) -> Snapshot:
        # Steps count as generated, so that a worker with one long chain is seen to go on.
        return replace(super().counted(), work=EngineWork(generated=self._checker.steps))

    async def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        await asyncio.to_thread(self._checker.close)

    async def _checked(self, _row: int, chain: ChainText) -> Steps:
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._checker.checked, chain)


def findings_table(chains: pa.Table, checked: Sequence[Sequence[CheckedStep]], *, verifier: str) -> pa.Table:
    """The rows of checked chains, one for each step. `chains`: of the schema CHAINS, in the order of `checked`."""
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
