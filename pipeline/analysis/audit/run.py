"""The `audit` command: verifies everything in a run directory without an engine, and prints the result.

It checks settings, records, files, rows of the input, ids of rollouts, totals and labels. Only its list of file names grows
with the log in memory. It only reads, unless it prunes. A run in progress can be audited; it counts as unfinished.
It does not check whether verdicts and outcomes are correct; `regrade` does. It cannot see that the end of a record sequence is
cut off, because a shorter sequence looks the same.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

import pyarrow as pa

from pipeline.analysis.audit.checks import audited_check, audited_score
from pipeline.analysis.audit.consensus import MAKE_AGAIN, ConsensusProof
from pipeline.analysis.audit.critiques import audited_judge
from pipeline.analysis.audit.findings import (
    Check,
    FileVerifier,
    Ledger,
    audited_settings,
    check_sequence,
    find_orphans,
    remedy_for,
)
from pipeline.analysis.audit.result import AuditReport as AuditReport
from pipeline.analysis.audit.result import audit_lines as audit_lines
from pipeline.analysis.audit.result import report_of
from pipeline.analysis.audit.searches import audited_search
from pipeline.analysis.audit.sequences import InputHistory, check_superseded, staged_record
from pipeline.analysis.audit.unit import Basis, CurrentEdition, prove_unit
from pipeline.analysis.consensus import TABLE as RELIABILITIES
from pipeline.config.changes import AuditConfig
from pipeline.config.consensus import is_consensus
from pipeline.config.label import EstimatorConfig, SamplingConfig
from pipeline.config.recorded_settings import Settings, chosen_settings, settings_section
from pipeline.core.errors import StoreError, Unreachable, UsageError
from pipeline.core.records import InputRow
from pipeline.core.tables import INPUTS
from pipeline.estimators.registry import ESTIMATORS, estimator_for
from pipeline.storage.commits import (
    EDITION,
    FOLDER,
    GROWTH,
    INPUT,
    UNIT,
    Commit,
    RecordSequence,
    commit_name,
    record_sequences,
    resolve,
)
from pipeline.storage.editions import (
    LABELS,
    VERDICTS,
    current_edition,
    current_files,
    current_shards,
    current_states,
    edition_sequence,
    edition_settings,
)
from pipeline.storage.growths import growth_sequence, growths_needed, growths_of
from pipeline.storage.location import storage_at
from pipeline.storage.lock import hold_lock
from pipeline.storage.run_record import (
    CHECK,
    JUDGE,
    LABEL,
    NAME,
    SCORE,
    SEARCH,
    STAGED_INPUT,
    command_of,
    recorded_identity,
)
from pipeline.storage.shards import ShardRecord
from pipeline.storage.storage import Storage
from pipeline.storage.stored_critiques import FOLDER as JUDGES
from pipeline.storage.stored_critiques import judge_names, judge_storage
from pipeline.storage.stored_findings import FOLDER as CHECKS
from pipeline.storage.stored_findings import check_names, check_storage
from pipeline.storage.stored_run import refuse_no_run
from pipeline.storage.units import TABLE, UNITS, again_of, noted_rows, unit_id_of

_RESUME = "start `label` with the same settings again"
_MOVE_AWAY = f"move it away and {_RESUME}"
_OTHERS = {JUDGE: audited_judge, CHECK: audited_check, SCORE: audited_score, SEARCH: audited_search}
"""What proves the runs of other commands."""
_IN_FOLDERS = {JUDGES: JUDGE, CHECKS: CHECK}
"""Folder of a run directory -> the command whose runs are in it."""


def audit(config: AuditConfig) -> AuditReport:
    """Verify a run directory. With `prune`, also remove its garbage if the run is finished and has no fault.

    Raises UsageError for a directory that is no run of this version, and for pruning where the storage has no lock; RunConflict
    if another job works on a directory that is to be pruned; Unreachable.
    """
    storage = storage_at(config.run_dir)
    refuse_no_run(storage, "`label`, `judge`, `check`, `score` or `search`")
    command = _command(storage)
    if command in _OTHERS:
        with _held(storage, config):
            return _pruned(_OTHERS[command](storage), config)
    judges = [judge_storage(storage, name) for name in judge_names(storage)]
    checks = [check_storage(storage, name) for name in check_names(storage)]
    with ExitStack() as locks:
        for each in (storage, *judges, *checks):
            locks.enter_context(_held(each, config))
        report = _Audit(storage).report()
        report = replace(report, judges=tuple(map(audited_judge, judges)), checks=tuple(map(audited_check, checks)))
        return _pruned(report, config)


def _command(storage: Storage) -> str:
    """Whose run it is. A record that cannot be read is a finding."""
    try:
        return command_of(recorded_identity(storage))
    except Unreachable:
        raise
    except StoreError:
        return _IN_FOLDERS.get(storage.run_dir.rpartition("/")[0].rpartition("/")[2], LABEL)


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
        judges=tuple(_pruned(part, config) for part in report.judges),
        checks=tuple(_pruned(part, config) for part in report.checks),
    )


class _Audit:
    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._ledger = Ledger()
        self._verifier = FileVerifier(storage, self._ledger)
        self._units = 0

    def report(self) -> AuditReport:
        storage, ledger = self._storage, self._ledger
        settings = audited_settings(storage, ledger)
        units = {found.sequence_id: found for found in record_sequences(storage, UNIT)}
        wholes = {unit_id: whole for unit_id, found in units.items() if (whole := resolve(found).whole)}
        editions = edition_sequence(storage)
        check_sequence(storage, ledger, editions)
        edition = current_edition(editions, wholes)
        growths = self._growths(wholes)
        staged = None
        if settings is not None and (basis := self._basis(settings, wholes, edition)):
            staged = self._prove_units(str(settings.get(STAGED_INPUT)), units, basis)
            if edition and basis.edition and basis.edition.consensus:
                self._ledger.faults(Check.LABELS, commit_name(edition), basis.edition.consensus.faults(), MAKE_AGAIN)
        self._look_at_editions(editions, edition, wholes)
        current = current_files((staged, *growths, *wholes.values()), edition) if staged else None
        return report_of(storage, ledger, self._units, find_orphans(storage, ledger, self._verifier, current))

    def _growths(self, wholes: Mapping[str, Commit]) -> tuple[Commit, ...]:
        """The growths, checked. A unit that owes one is unfinished."""
        growths = growth_sequence(self._storage)
        check_sequence(self._storage, self._ledger, growths)
        found = growths_of(growths)
        for commit in found:
            for shard in commit.shards:
                self._verifier.content(shard, remedy_for(GROWTH))
        needed = growths_needed(found)
        self._ledger.owed += [unit for unit, whole in wholes.items() if whole.unit_target.growths < needed]
        return found

    def _basis(self, settings: Settings, wholes: Mapping[str, Commit], edition: Commit | None) -> Basis | None:
        try:
            estimator = estimator_for(chosen_settings(settings, EstimatorConfig, ESTIMATORS))
            solutions = settings_section(settings, "sampling", SamplingConfig).solutions
        except (ValueError, TypeError, UsageError) as error:
            _refuse_without_plugin(settings, error)
            self._ledger.fault(Check.SETTINGS, NAME, f"holds invalid settings ({error})", "restore it from a backup")
            return None
        current = self._current(edition, wholes) if edition else None
        return Basis(estimator=estimator, solutions=solutions, edition=current)

    def _current(self, edition: Commit, wholes: Mapping[str, Commit]) -> CurrentEdition | None:
        name, settings = commit_name(edition), edition_settings(edition)
        consensus = None
        try:
            estimator = estimator_for(chosen_settings(settings, EstimatorConfig, ESTIMATORS))
            if is_consensus(settings):
                consensus = ConsensusProof(self._storage, settings, self._learned(edition))
                estimator = consensus.estimator
        except (ValueError, TypeError, UsageError) as error:
            _refuse_without_plugin(settings, error)
            fault = f"holds invalid settings ({error})"
            self._ledger.fault(Check.RECORDS, name, fault, remedy_for(EDITION))
            return None
        return CurrentEdition(
            name=name,
            estimator=estimator,
            labels=current_shards(wholes, edition, LABELS),
            states=current_states(wholes, edition),
            verdicts=current_shards(wholes, edition, VERDICTS),
            consensus=consensus,
        )

    def _learned(self, edition: Commit) -> pa.Table | None:
        """What the consensus of an edition learned. None: it learned nothing, or the file is damaged, which is a finding."""
        shards = [shard for shard in edition.shards if shard.table == RELIABILITIES]
        return self._verifier.table(shards[0], remedy_for(EDITION)) if shards else None

    def _prove_units(self, staged_id: str, units: dict[str, RecordSequence], basis: Basis) -> Commit | None:
        """Find the faults of all units. Returns the record of the input."""
        staged = staged_record(self._storage, self._ledger, self._verifier, staged_id)
        if staged is None:
            self._ledger.fault(Check.ROWS, "inputs/", "the staged input is missing or damaged", _RESUME)
        inputs = {found.sequence_id: found for found in record_sequences(self._storage, INPUT)}
        history = InputHistory(inputs.get(staged_id) or RecordSequence(kind=INPUT, sequence_id=staged_id))
        for where, fault in history.record_faults():
            self._ledger.fault(Check.ROWS, where, fault, _MOVE_AWAY)
        intact = staged is not None
        for unit in self._input(staged, history) if staged else ():
            intact = intact and unit is not None
            if unit is not None:
                self._units += 1
                sequence = units.pop(unit.unit_id, RecordSequence(kind=UNIT, sequence_id=unit.unit_id))
                check_sequence(self._storage, self._ledger, sequence)
                prove_unit(unit.unit_id, unit.rows, sequence, basis, self._verifier, self._ledger)
        for unit_id, sequence in units.items():
            check_sequence(self._storage, self._ledger, sequence)
            prove_unit(unit_id, None, sequence, basis, self._verifier, self._ledger)
            if intact:
                where = f"{FOLDER}/{UNIT}-{unit_id}-*"
                self._ledger.fault(Check.ROWS, where, "belongs to no unit of the input", "move these records away")
        return staged

    def _input(self, staged: Commit, history: InputHistory) -> Iterator["_Unit | None"]:
        """The units of the input, with None for a damaged file. Counts their rows and the rejects."""
        used = rejected = 0
        intact = True
        for shard in staged.shards:
            content = self._verifier.content(shard, remedy_for(INPUT))
            intact = intact and content is not None
            if content is None:
                yield None
            elif shard.table != TABLE:
                rejected += sum(group.num_rows for group in content.groups)
            else:
                for unit_id, group in zip(json.loads(content.notes[UNITS]), content.groups, strict=True):
                    used += group.num_rows
                    rows = noted_rows(INPUTS.from_table(group), again_of(content.notes))
                    self._ledger.faults(Check.ROWS, shard.file, history.unit_faults(rows), _MOVE_AWAY)
                    yield self._unit(unit_id, rows, shard)
        self._ledger.count(Check.ROWS, used + rejected)
        counted = replace(staged.totals, rows=used + rejected, used=used, rejected=rejected)
        if intact and counted != staged.totals:
            fault = f"records {staged.totals}, but its files hold {counted}"
            self._ledger.fault(Check.ROWS, commit_name(staged), fault, _MOVE_AWAY)

    def _unit(self, unit_id: str, rows: Sequence[InputRow], shard: ShardRecord) -> "_Unit":
        if unit_id_of(rows) != unit_id:
            fault = f"its rows of unit {unit_id} are those of another unit"
            self._ledger.fault(Check.ROWS, shard.file, fault, "start a new run in another run_dir")
        return _Unit(unit_id=unit_id, rows=rows)

    def _look_at_editions(self, editions: RecordSequence, current: Commit | None, wholes: Mapping[str, Commit]) -> None:
        """Check the files of editions that are not current, and the files of the current one that no unit has checked yet."""
        by_unit = [current_shards(wholes, current, name) for name in (LABELS, VERDICTS)]
        of_units = {
            shard for named in (*by_unit, current_states(wholes, current)) for each in named.values() for shard in each
        }
        for commit in editions.commits:
            for shard in commit.shards:
                if commit is not current:
                    check_superseded(self._verifier, shard, editions)
                elif shard.file not in self._verifier.needed:
                    self._verifier.content(shard, remedy_for(EDITION))
                if commit is current and shard not in of_units and shard.table != RELIABILITIES:
                    fault = f"names {shard.file}, which belongs to no unit"
                    self._ledger.fault(Check.RECORDS, commit_name(commit), fault, remedy_for(EDITION))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Unit:
    unit_id: str
    rows: Sequence[InputRow]


def _refuse_without_plugin(settings: Settings, error: Exception) -> None:
    """Raise the error if the run needs a plug-in that is not installed: such a run cannot be audited, but is not damaged."""
    if isinstance(error, UsageError) and settings.get("estimator.plugin"):
        raise error
