"""Proves a run of `search`: its settings, records and files, that its log is one that the method leads to, that candidates and
choices follow from the log, and the totals.

It searches again, with the log in place of policy and scorer. It does not ask whether a score or a verdict is right. Memory
grows with the largest unit.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from pipeline.analysis.audit.findings import Check, FileVerifier, Ledger
from pipeline.analysis.audit.result import AuditReport
from pipeline.analysis.audit.search_log import Row, sample_faults, score_faults
from pipeline.analysis.audit.sequences import content_checked, whole_unit
from pipeline.analysis.audit.staged_chains import Prove, again_remedy, audited_chain_run
from pipeline.config.recorded_settings import Settings, chosen_settings
from pipeline.config.search import SearchConfig
from pipeline.core.errors import UsageError
from pipeline.core.records import ChainText, Totals
from pipeline.core.table import TABLES
from pipeline.searches.base import Search
from pipeline.searches.problem import ProblemSearch, search_problems
from pipeline.searches.registry import SEARCHES as METHODS
from pipeline.searches.registry import search_for
from pipeline.searches.results import part_totals, search_totals, tables_of
from pipeline.storage.commits import Commit, RecordSequence, commit_name
from pipeline.storage.run_record import NAME, SEARCH
from pipeline.storage.shards import ShardRecord
from pipeline.storage.storage import Storage
from pipeline.storage.stored_search import CANDIDATES, SAMPLES, SEARCHES, STEP_SCORES

_TABLES = (SAMPLES, STEP_SCORES, CANDIDATES, SEARCHES)
_CHECKS = {SAMPLES: Check.SAMPLES, STEP_SCORES: Check.STEP_SCORES, SEARCHES: Check.SEARCHES}
_SHOWN = 60
"""Characters of a value that a finding names."""


def audited_search(storage: Storage) -> AuditReport:
    """The audit of the run directory of a search. A method that cannot be used here is a finding."""

    def proof(settings: Settings, verifier: FileVerifier, ledger: Ledger) -> Prove:
        search = _search(settings, ledger)
        return lambda sequence, problems, _: _Unit(sequence, settings, search, verifier, ledger).prove(problems)

    return audited_chain_run(storage, SEARCH, proof)


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
        sequence: RecordSequence,
        settings: Settings,
        search: Search | None,
        verifier: FileVerifier,
        ledger: Ledger,
    ) -> None:
        self._sequence = sequence
        self._separator = str(settings.get("data.separator", "\n"))
        self._calibrated = settings.get("calibration") is not None
        self._search = search
        self._verifier = verifier
        self._ledger = ledger
        self._remedy = again_remedy(sequence, SEARCH)

    def prove(self, chains: pa.Table) -> None:
        """Find the faults of the unit. `chains`: its problems."""
        found = whole_unit(self._sequence, self._verifier, self._ledger, self._prove_part)
        if found is None:
            return
        whole, tables = found
        named = {name: [tables[shard] for shard in whole.shards if shard.table == name] for name in _TABLES}
        with content_checked(self._ledger, Check.SEARCHES, commit_name(whole), self._remedy):
            self._prove_log(chains, named, whole)

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
        problem: ChainText,
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
            replayed.replay(_answers(SAMPLES, samples), _answers(STEP_SCORES, scores))
            if replayed.found is None:
                yield f"the log of {about} lacks answers that the search asked for"
                return
        except ValueError as error:
            yield f"the log of {about} is not that of such a search: {error}"
            return
        for extra in sorted({row["prefix_id"] for row in scores} - replayed.scores.keys()):
            yield f"the log of {about} has a score of prefix {extra}, which this search did not ask for"
        again = tables_of([replayed], search.settings, next(iter(models), ""))
        yield from _differences("candidate", about, candidates, again.candidates.to_pylist())
        yield from _differences("result", about, searches, again.searches.to_pylist())

    def _prove_part(self, commit: Commit, tables: Mapping[ShardRecord, pa.Table]) -> None:
        samples, scores = (
            [tables[shard] for shard in tables if shard.table == name] for name in (SAMPLES, STEP_SCORES)
        )
        self._prove_totals(part_totals(samples, scores), commit)

    def _prove_totals(self, counted: Totals, commit: Commit) -> None:
        self._ledger.compare_totals(commit, counted, "the tables have", self._remedy)


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


def _answers(name: str, rows: Sequence[Row]) -> list[Any]:
    """The rows of a log table as its records. Raises ValueError for a value that none can have."""
    table = TABLES[name]
    return table.from_table(pa.Table.from_pylist(rows, schema=table.schema))


def _by_row(tables: Sequence[pa.Table]) -> dict[int, list[Row]]:
    found: defaultdict[int, list[Row]] = defaultdict(list)
    for table in tables:
        for row in table.to_pylist():
            found[row["row"]].append(row)
    return dict(found)
