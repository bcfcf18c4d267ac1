"""Proves a run of `search`: its settings, records and files, that its log is one that the method leads to, that candidates and
choices follow from the log, and the totals.

It searches again, with the log in place of policy and scorer. It does not ask whether a score or a verdict is right. Memory
grows with the largest unit.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.analysis.audit.findings import (
    Check,
    FileVerifier,
    Ledger,
    audited_settings,
    check_sequence,
    find_orphans,
    remedy_for,
)
from pipeline.analysis.audit.result import AuditReport
from pipeline.analysis.audit.search_log import Row, sample_faults, score_faults
from pipeline.analysis.audit.staged_chains import StagedChains
from pipeline.config.recorded_settings import Settings, chosen_settings
from pipeline.config.search import SearchConfig
from pipeline.core.errors import UsageError
from pipeline.core.records import Totals
from pipeline.searches.base import Search
from pipeline.searches.log import sample_answer, score_answer
from pipeline.searches.problem import ProblemSearch, SearchProblem, search_problems
from pipeline.searches.registry import SEARCHES as METHODS
from pipeline.searches.registry import search_for
from pipeline.searches.results import tables_of
from pipeline.searches.totals import search_totals
from pipeline.storage.commits import (
    EDITION,
    FOLDER,
    UNIT,
    Commit,
    CommitState,
    RecordSequence,
    commit_name,
    record_sequences,
    resolve,
    shards_in_use,
)
from pipeline.storage.run_record import NAME, SEARCH, STAGED_INPUT
from pipeline.storage.shards import ShardRecord
from pipeline.storage.storage import Storage
from pipeline.storage.stored_search import CANDIDATES, SAMPLES, SEARCHES, STEP_SCORES

_TABLES = (SAMPLES, STEP_SCORES, CANDIDATES, SEARCHES)
_CHECKS = {SAMPLES: Check.SAMPLES, STEP_SCORES: Check.STEP_SCORES, SEARCHES: Check.SEARCHES}
_SHOWN = 60
"""Characters of a value that a finding names."""


def audited_search(storage: Storage) -> AuditReport:
    """The audit of the run directory of a search. A method that cannot be used here is a finding."""
    ledger = Ledger(command=SEARCH)
    verifier = FileVerifier(storage, ledger)
    settings = audited_settings(storage, ledger)
    units = {found.sequence_id: found for found in record_sequences(storage, UNIT)}
    for found in record_sequences(storage, EDITION):
        ledger.fault(
            Check.RECORDS, f"{FOLDER}/{EDITION}-{found.sequence_id}-*", "is no record of a search", "move it away"
        )
    count = 0
    if settings is not None:
        search = _search(settings, ledger)
        chains = StagedChains(
            storage,
            ledger,
            verifier,
            str(settings.get(STAGED_INPUT)),
            done="searched",
            elsewhere="search again in another run_dir",
        )
        for unit_id, of_unit in chains.units():
            count += 1
            sequence = units.pop(unit_id, RecordSequence(kind=UNIT, sequence_id=unit_id))
            check_sequence(storage, ledger, sequence)
            _Unit(unit_id, sequence, settings, search, verifier, ledger).prove(of_unit)
        for unit_id, sequence in units.items():
            check_sequence(storage, ledger, sequence)
            where = f"{FOLDER}/{UNIT}-{unit_id}-*"
            ledger.fault(Check.ROWS, where, "belongs to no unit of the problems", "move these records away")
    return AuditReport(
        run_dir=storage.run_dir,
        looked_at=ledger.looked_at,
        findings=ledger.findings,
        units=count,
        owed=len(ledger.owed),
        orphans=find_orphans(storage, verifier.needed, ()),
        command=SEARCH,
    )


def _search(settings: Settings, ledger: Ledger) -> Search | None:
    try:
        return search_for(chosen_settings(settings, SearchConfig, METHODS))
    except (UsageError, ValueError, TypeError) as error:
        fault = f"names a method that cannot be used here ({error})"
        ledger.fault(Check.SETTINGS, NAME, fault, "install it, or restore the file")
        return None


class _Unit:
    """The proof of one unit. `search`: None where the method cannot be used here."""

    def __init__(
        self,
        unit_id: str,
        sequence: RecordSequence,
        settings: Settings,
        search: Search | None,
        verifier: FileVerifier,
        ledger: Ledger,
    ) -> None:
        self._unit_id = unit_id
        self._sequence = sequence
        self._separator = str(settings.get("data.separator", "\n"))
        self._calibrated = settings.get("calibration") is not None
        self._search = search
        self._verifier = verifier
        self._ledger = ledger
        self._remedy = (
            f"move {FOLDER}/{UNIT}-{unit_id}-* away and start `{SEARCH}` with the same settings again, which searches the unit "
            "again"
        )

    def prove(self, chains: pa.Table) -> None:
        """Find the faults of the unit. `chains`: its problems."""
        tables = self._tables()
        whole = resolve(self._sequence).whole
        if whole is None:
            self._ledger.owed.append(self._unit_id)
            return
        if any(shard not in tables for shard in shards_in_use(self._sequence)):
            return
        named = {
            name: [tables[shard] for shard in whole.shards if shard.table == name and shard in tables]
            for name in _TABLES
        }
        try:
            self._prove_log(chains, named, whole)
        except (KeyError, ValueError, TypeError, IndexError) as error:
            # Only a forged checksum lets such content through, and it can break anything.
            self._ledger.fault(
                Check.SEARCHES, commit_name(whole), f"names files with invalid content ({error!r})", self._remedy
            )

    def _tables(self) -> dict[ShardRecord, pa.Table]:
        """The intact files in use, results included. Also checks superseded files, and the totals of each part record."""
        whole = resolve(self._sequence).whole
        used = dict.fromkeys([*shards_in_use(self._sequence), *(whole.shards if whole else ())])
        tables = {}
        for shard in used:
            if (table := self._verifier.table(shard, remedy_for(UNIT, SEARCH))) is not None:
                tables[shard] = table
        void = {name for commit in self._sequence.commits for name in commit.void}
        for commit in self._sequence.commits:
            own = [shard for shard in commit.shards if shard.file not in void]
            found = [
                tables.get(shard) if shard.file in self._verifier.needed else self._verifier.superseded_table(shard)
                for shard in own
            ]
            present = {shard.table: table for shard, table in zip(own, found, strict=True) if table is not None}
            if commit.state is CommitState.PART and len(present) == len(commit.shards):
                self._prove_totals(_part_totals(present), commit)
        return tables

    def _prove_log(self, chains: pa.Table, named: Mapping[str, Sequence[pa.Table]], whole: Commit) -> None:
        problems = search_problems(chains, self._separator)
        rows = {name: _by_row(tables) for name, tables in named.items()}
        known = {problem.row for problem in problems}
        where = commit_name(whole)
        for name, check in _CHECKS.items():
            self._ledger.count(check, sum(map(len, rows[name].values())))
        for name, found in rows.items():
            strangers = [row for row in found if row not in known]
            faults = [f"{name} has rows of problem number {row}, which is none of the unit's" for row in strangers]
            self._ledger.faults(_CHECKS.get(name, Check.SEARCHES), where, faults, self._remedy)
        for problem in problems:
            samples, scores = rows[SAMPLES].get(problem.row, []), rows[STEP_SCORES].get(problem.row, [])
            scored = score_faults(problem, samples, scores, calibrated=self._calibrated)
            wrong = self._ledger.faults(Check.SAMPLES, where, sample_faults(problem, samples), self._remedy)
            wrong |= self._ledger.faults(Check.STEP_SCORES, where, scored, self._remedy)
            if self._search is not None and not wrong:
                candidates, searches = rows[CANDIDATES].get(problem.row, []), rows[SEARCHES].get(problem.row, [])
                faults = list(self._result_faults(problem, self._search, samples, scores, candidates, searches))
                self._ledger.faults(Check.SEARCHES, where, faults, self._remedy)
        self._ledger.count(Check.TOTALS)
        if named[SEARCHES]:
            self._prove_totals(search_totals(pa.concat_tables(named[SEARCHES]).unify_dictionaries()), whole)

    def _result_faults(
        self,
        problem: SearchProblem,
        search: Search,
        samples: Sequence[Row],
        scores: Sequence[Row],
        candidates: Sequence[Row],
        searches: Sequence[Row],
    ) -> Iterator[str]:
        """What differs from the results of a search with this log."""
        about = f"problem {problem.problem_id}"
        models = {row["model"] for row in candidates}
        if len(models) > 1:
            yield f"the candidates of {about} name several scorers"
            return
        replayed = ProblemSearch(problem, search)
        try:
            replayed.replay(map(sample_answer, samples), map(score_answer, scores))
            if replayed.found is None:
                yield f"the log of {about} lacks answers that the search asked for"
                return
        except ValueError as error:
            yield f"the log of {about} is not that of such a search: {error}"
            return
        for extra in sorted({row["prefix_id"] for row in scores} - replayed.scores.keys()):
            yield f"the log of {about} has a score of prefix {extra}, which this search did not ask for"
        again = tables_of([replayed], search.settings, next(iter(models), ""))
        yield from _differences("candidate", about, candidates, again[CANDIDATES].to_pylist())
        yield from _differences("result", about, searches, again[SEARCHES].to_pylist())

    def _prove_totals(self, counted: Totals, commit: Commit) -> None:
        if counted != commit.totals:
            differing = [
                f"{part.name} is {getattr(commit.totals, part.name)}, but the tables have {getattr(counted, part.name)}"
                for part in fields(Totals)
                if getattr(commit.totals, part.name) != getattr(counted, part.name)
            ]
            fault = f"its totals are wrong: {'; '.join(differing)}"
            self._ledger.fault(Check.TOTALS, commit_name(commit), fault, self._remedy)


def _differences(what: str, about: str, stored: Sequence[Row], again: Sequence[Row]) -> Iterator[str]:
    """Rows that are not those that the log leads to, in their order."""
    if len(stored) != len(again):
        yield f"{about} has {len(stored)} rows of {what}s, but its log leads to {len(again)}"
        return
    for number, (one, other) in enumerate(zip(stored, again, strict=True)):
        for column, value in other.items():
            if one[column] != value:
                name = f"{what} {number}" if what == "candidate" else f"the {what}"
                yield f"{name} of {about} has {column} {_short(one[column])}, but its log leads to {_short(value)}"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _by_row(tables: Sequence[pa.Table]) -> dict[int, list[Row]]:
    found: defaultdict[int, list[Row]] = defaultdict(list)
    for table in tables:
        for row in table.to_pylist():
            found[row["row"]].append(row)
    return dict(found)


def _part_totals(tables: Mapping[str, pa.Table]) -> Totals:
    """Those of `searches.totals.part_totals`."""

    def total(table: str, column: str) -> int:
        return int(pc.sum(tables[table][column]).as_py() or 0) if table in tables else 0

    return Totals(tokens=total(SAMPLES, "n_tokens"), solution_tokens=total(STEP_SCORES, "n_computed"))
