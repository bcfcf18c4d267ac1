"""A run of `check`: which chains are checked by which verifiers, what its workers do, and which settings make another check."""

import asyncio
import json
from collections.abc import Iterable, Mapping
from dataclasses import replace

from pipeline import __version__
from pipeline.config.check import CheckRunConfig
from pipeline.config.recorded_settings import RUN_RECORD
from pipeline.config.verify import VerifierConfig
from pipeline.core.errors import UsageError
from pipeline.core.ids import content_id
from pipeline.core.progress import ChainRun
from pipeline.core.tables import SCHEMA_VERSION
from pipeline.engines.base import OnDevices
from pipeline.runtime.chain_run.chains import ChainSource
from pipeline.runtime.chain_run.given import Given, GivenChains, chain_tables, given_identity
from pipeline.runtime.chain_run.run import ChainRunTask, Hiring, Running, run_over_chains
from pipeline.runtime.checking.worker import CheckTask, checking_worker
from pipeline.runtime.state import section_identity
from pipeline.runtime.stop import StopSignal
from pipeline.runtime.worker_handle import Watcher
from pipeline.runtime.workload import Workload
from pipeline.storage.location import storage_at
from pipeline.storage.run_record import CHECK, COMMAND, OTHER_RUN, PROVES, STAGED_INPUT
from pipeline.storage.stored_findings import check_storage
from pipeline.verifiers.registry import inputs_of, missing_for, named_verifiers, proves

_OTHER_CHECK = "has findings that were made otherwise: move that folder away to check again"


def check_run(
    config: CheckRunConfig, hiring: Hiring, watch: Watcher, stop: StopSignal, run: Running = asyncio.run
) -> Mapping[str, ChainRun]:
    """Check all chains by each verifier, into the folder `checks/VERIFIER` of `config.run_dir`. A later start continues with
    the units that are not done, and with chains that are new.

    Returns the runs by verifier; their totals are those of `stored_findings.finding_totals`. Raises as `run_over_chains` does,
    UsageError for a verifier that is not installed, or lacks something here, and a run without labels, and PluginError where a
    plug-in fails. What was checked before is kept.
    """
    config = replace(config, run_dir=storage_at(config.run_dir).run_dir)
    verifiers = checked_verifiers(config)
    for name, missing in missing_parts(verifiers).items():
        raise UsageError(f"checks=[{name}]: it {missing}")
    return {settings.kind: _by_verifier(config, settings, hiring, watch, stop, run) for settings in verifiers}


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


def _by_verifier(
    config: CheckRunConfig, verifier: VerifierConfig, hiring: Hiring, watch: Watcher, stop: StopSignal, run: Running
) -> ChainRun:
    storage = check_storage(storage_at(config.run_dir), verifier.kind)
    chains = _given(config)
    task = ChainRunTask(
        source=ChainSource(
            place=config.data.path or config.run_dir,
            tables=lambda left_out: chain_tables(chains, left_out),
            to_do="check",
            done="checked",
            results="findings",
            elsewhere="another run_dir",
        ),
        storage=storage,
        asked=lambda: identity(verifier, chains),
        run=config.run,
        workload=lambda: _workload(config, verifier, storage.run_dir),
        doing=f"checking by {verifier.kind}",
        counted="chains",
        count=lambda totals: totals.chains,
        names={OTHER_RUN: _OTHER_CHECK},
    )
    return run_over_chains(task, hiring, watch, stop, run)


def _given(config: CheckRunConfig) -> Given:
    return GivenChains(
        run_dir=None if config.data.path else config.run_dir,
        data=config.data,
        grader=config.grader,
        partial=config.partial,
    )


class _Processes(OnDevices):
    """What a verifier needs of devices: all processors, and no GPU."""

    loads_model = True

    def uses_gpus(self) -> bool:
        return False


def _workload(config: CheckRunConfig, verifier: VerifierConfig, run_dir: str) -> Workload:
    task = CheckTask(
        verifier=verifier, run_dir=run_dir, processes=config.processes, flush_seconds=config.run.flush_seconds
    )
    return Workload(
        model=_Processes(),
        settings=lambda _: task,
        make=checking_worker,
        run_dir=run_dir,
        units_in_flight=config.run.units_in_flight,
        cluster=config.cluster,
    )


def identity(verifier: VerifierConfig, chains: Given) -> dict[str, object]:
    """The identity of a check by one verifier: what determines its findings, as dotted key -> plain value.

    Raises InputError, UsageError and StoreError for chains that cannot be read.
    """
    fields: dict[str, object] = {
        COMMAND: CHECK,
        "schema": SCHEMA_VERSION,
        "verifier_version": f"stepvalue-{__version__}",
        **section_identity("verifier", verifier),
        **inputs_of(verifier),
        **({PROVES: True} if proves(verifier) else {}),
        **given_identity(chains),
    }
    return {**fields, STAGED_INPUT: content_id("chains", json.dumps(fields, sort_keys=True))}
