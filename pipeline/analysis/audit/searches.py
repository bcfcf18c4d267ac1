"""What the audit of a run of `search` adds.

The log is one that the method leads to, and candidates and choices follow from it. It searches again, with the log in place of
policy and scorer. It does not ask whether a score or a verdict is right. Memory grows with the largest unit.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from pipeline.analysis.audit.findings import Check, Finding, Words
from pipeline.analysis.audit.search_log import known_nodes, sample_faults, score_faults
from pipeline.analysis.audit.walk import Run, RunAudit, Tables, Unit
from pipeline.config.recorded_settings import chosen_settings
from pipeline.config.search import SearchConfig
from pipeline.core.errors import UsageError
from pipeline.core.records import ChainText, Tally
from pipeline.core.table import Table
from pipeline.core.tables import CANDIDATES, SAMPLES, SEARCHES, STEP_SCORES, SampleAnswer, ScoreAnswer
from pipeline.searches.base import Search
from pipeline.searches.problem import ProblemSearch, search_problems
from pipeline.searches.registry import SEARCHES as METHODS
from pipeline.searches.registry import search_for
from pipeline.searches.results import part_tally, search_tally, tables_of
from pipeline.storage.run_record import NAME, SEARCH

Row = Mapping[str, Any]
_SHOWN = 60
"""Characters of a value that a finding names."""


class SearchAudit(RunAudit):
    """Of a run of `search`. A method that cannot be used here is a finding."""

    words = Words(
        command=SEARCH,
        settings="search",
        rows=("problem", " to search, or rejected"),
        results={
            Check.SAMPLES: ("sample", ", each after a known step, with ids, ends and counts that fit its text"),
            Check.STEP_SCORES: ("score", ", each of a prefix that was sampled"),
            Check.SEARCHES: ("search", ", each made again from its log, with the same candidates and the same choice"),
        },
        totals="searches",
        sound="all problems are searched",
    )
    check = Check.SEARCHES
    done = "searched"
    elsewhere = "search again in another run_dir"
    source = "the tables have"
    input = "problems"

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self._separator = str(run.settings.get("data.separator", "\n"))
        self._calibrated = run.settings.get("calibration") is not None
        self._search: Search | None = None
        try:
            self._search = search_for(chosen_settings(run.settings, SearchConfig, METHODS))
        except (UsageError, ValueError, TypeError) as error:
            fault = f"names a method that cannot be used here ({error})"
            self.ledger.fault(Check.SETTINGS, NAME, fault, "install it, or restore the file")

    def tally(self, tables: Tables) -> Tally:
        if tables[SEARCHES.name]:
            return search_tally(pa.concat_tables(tables[SEARCHES.name]).unify_dictionaries())
        return part_tally(tables[SAMPLES.name], tables[STEP_SCORES.name])

    def faults(self, unit: Unit, tables: Tables) -> Iterator[Finding]:
        problems = search_problems(unit.rows, self._separator)
        rows = {each.name: _by_row(tables[each.name]) for each in (SAMPLES, STEP_SCORES, CANDIDATES, SEARCHES)}
        known = {problem.row for problem in problems}
        for name, found in rows.items():
            strangers = (row for row in found if row not in known)
            faults = (f"{name} has rows of problem number {row}, which is none of the unit's" for row in strangers)
            yield from self.findings(unit, faults, name if name in self.words.results else self.check)
        for problem in problems:
            of = {name: found.get(problem.row, []) for name, found in rows.items()}
            # Made of rows as they are: a word that is none of its vocabulary is a fault of its own.
            samples = [SampleAnswer(**row) for row in of[SAMPLES.name]]
            scores = [ScoreAnswer(**row) for row in of[STEP_SCORES.name]]
            nodes = known_nodes(problem, samples)
            scored = score_faults(problem, scores, nodes, calibrated=self._calibrated)
            wrong = [
                *self.findings(unit, sample_faults(problem, samples, nodes), Check.SAMPLES),
                *self.findings(unit, scored, Check.STEP_SCORES),
            ]
            yield from wrong
            if self._search is not None and not wrong:
                yield from self.findings(unit, _result_faults(problem, self._search, of))


def _result_faults(problem: ChainText, search: Search, rows: Mapping[str, Sequence[Row]]) -> Iterator[str]:
    """What differs from the results of a search with this log. `rows`: of the problem, by table."""
    about = f"problem {problem.problem_id}"
    models = {row["model"] for row in rows[CANDIDATES.name]}
    if len(models) > 1:
        yield f"the candidates of {about} name several scorers"
        return
    replayed = ProblemSearch(problem, search)
    try:
        replayed.replay(_answers(SAMPLES, rows), _answers(STEP_SCORES, rows))
        if replayed.found is None:
            yield f"the log of {about} lacks answers that the search asked for"
            return
    except ValueError as error:
        yield f"the log of {about} is not that of such a search: {error}"
        return
    for extra in sorted({row["prefix_id"] for row in rows[STEP_SCORES.name]} - replayed.scores.keys()):
        yield f"the log of {about} has a score of prefix {extra}, which this search did not ask for"
    again = tables_of([replayed], search.settings, next(iter(models), ""))
    for what, name in (("candidate", CANDIDATES.name), ("result", SEARCHES.name)):
        yield from _differences(what, about, rows[name], again[name].to_pylist())


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


def _answers(table: Table[Any], rows: Mapping[str, Sequence[Row]]) -> list[Any]:
    """The rows of a log table as its records. Raises ValueError for a value that none can have."""
    return table.from_table(pa.Table.from_pylist(rows[table.name], schema=table.schema))


def _by_row(tables: Sequence[pa.Table]) -> dict[int, list[Row]]:
    found: defaultdict[int, list[Row]] = defaultdict(list)
    for table in tables:
        for row in table.to_pylist():
            found[row["row"]].append(row)
    return dict(found)
