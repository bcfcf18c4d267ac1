"""The `audit` command: verifies everything in a run directory without an engine, and prints the result.

It checks settings, records, files, rows of the input, ids of rollouts, totals and labels. Only its list of file names grows
with the log in memory. It only reads, unless it prunes. A run in progress can be audited; it counts as unfinished.
It does not check whether verdicts and outcomes are correct; `regrade` does. It cannot see that the end of a record sequence is
cut off, because a shorter sequence looks the same.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from pipeline.analysis.audit.chain_runs import CheckAudit, JudgeAudit, ScoreAudit
from pipeline.analysis.audit.findings import AuditReport as AuditReport
from pipeline.analysis.audit.labels import LabelAudit
from pipeline.analysis.audit.searches import SearchAudit
from pipeline.analysis.audit.tasks import task_audits
from pipeline.analysis.audit.walk import RunAudit, audited
from pipeline.config.changes import AuditConfig
from pipeline.core.errors import StoreError, Unreachable, UsageError
from pipeline.storage.location import storage_at
from pipeline.storage.lock import hold_lock
from pipeline.storage.run_record import command_of, recorded_identity
from pipeline.storage.storage import Storage
from pipeline.storage.stored_run import refuse_no_run

KINDS: Mapping[str, type[RunAudit]] = {
    kind.words.command: kind for kind in (LabelAudit, JudgeAudit, CheckAudit, ScoreAudit, SearchAudit)
}
"""What audits the runs of a command."""


def audit(config: AuditConfig) -> AuditReport:
    """Verify a run directory. With `prune`, also remove its garbage if the run is finished and has no fault.

    Raises UsageError for a directory that is no run of this version, and for pruning where the storage has no lock; RunConflict
    if another job works on a directory that is to be pruned; Unreachable.
    """
    storage = storage_at(config.run_dir)
    refuse_no_run(storage, "`label`, `judge`, `check`, `score` or `search`")
    kinds = {**KINDS, **task_audits()}
    in_runs = {kind.among: kind for kind in kinds.values() if kind.among}
    folders = {where.folder: kind for where, kind in in_runs.items()}
    parts = [(where, where.at(storage, name)) for where in in_runs for name in where.names(storage)]
    with ExitStack() as locks:
        for each in (storage, *(part for _, part in parts)):
            locks.enter_context(_held(each, config))
        report = audited(storage, _kind(storage, kinds, folders), folders)
        of_parts: dict[str, tuple[AuditReport, ...]] = {where.noun: () for where in in_runs}
        for where, part in parts:
            of_parts[where.noun] += (audited(part, in_runs[where], folders),)
        return _pruned(replace(report, parts=of_parts), config)


def _kind(
    storage: Storage, kinds: Mapping[str, type[RunAudit]], folders: Mapping[str, type[RunAudit]]
) -> type[RunAudit]:
    """Whose run it is. A record that cannot be read is a finding. `folders`: of a run directory, with what audits the runs in
    it. Raises UsageError for a run of a plug-in that is not installed."""
    try:
        command = command_of(recorded_identity(storage))
    except Unreachable:
        raise
    except StoreError:
        above, _, own = storage.run_dir.rpartition("/")
        return folders.get(own) or folders.get(above.rpartition("/")[2], LabelAudit)
    if command not in kinds:
        raise UsageError(f"{storage.run_dir} is a run of `{command}`, which no installed plug-in has: install it")
    return kinds[command]


@contextmanager
def _held(storage: Storage, config: AuditConfig) -> Iterator[None]:
    """Hold the lock of a directory that is to be pruned."""
    with hold_lock(storage, lock=config.prune and config.lock) as alone:
        if config.prune and config.lock and not alone:
            raise UsageError(
                f"{storage.run_dir} supports no lock: make sure that no other job works on it, then prune it with lock=false"
            )
        yield


def _pruned(report: AuditReport, config: AuditConfig) -> AuditReport:
    """The report after its garbage was removed, and that of its parts, where that is asked for and nothing is wrong."""
    if not (config.prune and report.proved):
        return report
    storage = storage_at(report.run_dir)
    for name in report.orphans.garbage:
        storage.remove(name)
    return replace(
        report,
        pruned=len(report.orphans.garbage),
        orphans=replace(report.orphans, strays=()),
        parts={name: tuple(_pruned(part, config) for part in parts) for name, parts in report.parts.items()},
    )
