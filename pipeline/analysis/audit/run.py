"""The `audit` command: verifies everything in a run directory without an engine, and prints the result.

It checks settings, records, files, rows of the input, ids of rollouts, totals and labels. Only its list of file names grows
with the log in memory. It only reads, unless it prunes. A run in progress can be audited; it counts as unfinished.
It does not check whether verdicts and outcomes are correct; `regrade` does. It cannot see that the end of a record sequence is
cut off, because a shorter sequence looks the same.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from pipeline.analysis.audit.checks import CheckAudit, ScoreAudit
from pipeline.analysis.audit.critiques import JudgeAudit
from pipeline.analysis.audit.findings import AuditReport as AuditReport
from pipeline.analysis.audit.labels import LabelAudit
from pipeline.analysis.audit.searches import SearchAudit
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
_IN_FOLDERS = {f"{kind.part}s": kind for kind in KINDS.values() if kind.part}
"""Folder of a run directory -> what audits the runs in it."""


def audit(config: AuditConfig) -> AuditReport:
    """Verify a run directory. With `prune`, also remove its garbage if the run is finished and has no fault.

    Raises UsageError for a directory that is no run of this version, and for pruning where the storage has no lock; RunConflict
    if another job works on a directory that is to be pruned; Unreachable.
    """
    storage = storage_at(config.run_dir)
    refuse_no_run(storage, "`label`, `judge`, `check`, `score` or `search`")
    parts = [(kind, part) for kind in _IN_FOLDERS.values() for part in kind.parts(storage)]
    with ExitStack() as locks:
        for each in (storage, *(part for _, part in parts)):
            locks.enter_context(_held(each, config))
        report = audited(storage, _kind(storage), _IN_FOLDERS)
        of_parts = {
            kind.part: tuple(audited(part, kind, _IN_FOLDERS) for of, part in parts if of is kind)
            for kind in _IN_FOLDERS.values()
        }
        return _pruned(replace(report, parts=of_parts), config)


def _kind(storage: Storage) -> type[RunAudit]:
    """Whose run it is. A record that cannot be read is a finding."""
    try:
        return KINDS.get(command_of(recorded_identity(storage)), LabelAudit)
    except Unreachable:
        raise
    except StoreError:
        return _IN_FOLDERS.get(storage.run_dir.rpartition("/")[0].rpartition("/")[2], LabelAudit)


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
