"""What the audit of a run of `search` adds.

The log has the ids, ends, counts and scores that it must have whatever the method. It is one that the method leads to, and
candidates and choices follow from it: the audit searches again, with the log in place of policy and scorer. It does not ask
whether a score or a verdict is right. Memory grows with the largest unit.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import pyarrow as pa

from pipeline.analysis.audit.findings import Check, Finding, Words
from pipeline.analysis.audit.walk import Run, RunAudit, Tables, Unit
from pipeline.config.recorded_settings import chosen_settings
from pipeline.config.search import SearchConfig
from pipeline.core.errors import UsageError
from pipeline.core.records import ChainText, Finish, Tally, Verdict
from pipeline.core.table import Table
from pipeline.core.tables import CANDIDATES, SAMPLES, SEARCHES, STEP_SCORES, SampleAnswer, ScoreAnswer
from pipeline.searches.base import WHOLE, Node, Search, sample_id
from pipeline.searches.log import FAILED_DRAW, failure, first_nodes, followed
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
            nodes = _known_nodes(problem, samples)
            depths = {node.prefix_id: node.depth for node in nodes.values() if node.depth}
            sampled = [(each.sample_id, _sample_faults(problem, each, nodes)) for each in samples]
            scored = [(each.prefix_id, _score_faults(each, depths, self._calibrated)) for each in scores]
            wrong = [
                *self.findings(unit, _named("sample", problem, sampled), Check.SAMPLES),
                *self.findings(unit, _named("the score of prefix", problem, scored), Check.STEP_SCORES),
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


_UNGRADED = (Finish.ENGINE_FAILED, Finish.ABORT)
"""How a sample ends whose text is not graded."""


def _known_nodes(problem: ChainText, samples: Sequence[SampleAnswer]) -> dict[str, Node]:
    """The nodes of the problem, its chain and its samples, by id."""
    first = first_nodes(problem)
    made = (node for _, nodes in followed(problem, first, samples) for node in nodes)
    return {node.node_id: node for node in (*first, *made)}


def _named(noun: str, problem: ChainText, found: Sequence[tuple[str, Iterator[str]]]) -> Iterator[str]:
    """The faults of samples or scores of a problem, given with their ids, of which each may be there once."""
    about = f"of problem {problem.problem_id}"
    for each, count in Counter(name for name, _ in found).items():
        if count > 1:
            yield f"{noun} {each} {about} is there {count} times"
    for each, faults in found:
        for fault in faults:
            yield f"{noun} {each} {about} {fault}"


def _sample_faults(problem: ChainText, sample: SampleAnswer, known: Mapping[str, Node]) -> Iterator[str]:
    """The faults of a sample, whose words may be none of their vocabularies."""
    if sample.finish not in list(Finish):
        yield f"ended by {sample.finish!r:.60}, which is no way to end"
    if sample.verdict is not None and sample.verdict not in list(Verdict):
        yield f"has the verdict {sample.verdict!r:.60}, which is none"
    if sample.draw == FAILED_DRAW:
        if sample.sample_id != failure(problem.problem_id, problem.row).sample_id:
            yield "says that the problem kills engines, but has another id"
        return
    follows = known.get(sample.node_id)
    if follows is None:
        yield "follows no known step"
    elif sample.sample_id != sample_id(sample.node_id, follows.prefix_id, sample.draw, sample.steps):
        yield "has not the id that follows from its node, its draw and its steps"
    elif follows.ended:
        yield "follows a chain that has ended"
    elif sample.number != follows.depth:
        yield f"has {follows.depth} steps before it, but says {sample.number}"
    yield from _end_faults(sample)
    yield from _answer_faults(problem, sample)
    if sample.seconds < 0 or sample.took < 0 or sample.n_prompt_tokens < 0:
        yield "has a negative time or number of tokens"


def _end_faults(sample: SampleAnswer) -> Iterator[str]:
    text, tokens = sample.text, sample.token_ids
    ends, token_ends, asked = sample.step_ends, sample.token_ends, sample.steps
    if len(ends) != len(token_ends):
        yield f"has {len(ends)} ends of steps in its text, but {len(token_ends)} in its tokens"
    if not _rises_to(ends, len(text)) or any(not text[begin:end].strip() for begin, end in pairwise((0, *ends))):
        yield "has ends of steps that do not cut its text into steps"
    if not ends and text.strip():
        yield "has a text without a step"
    if not _rises_to(token_ends, len(tokens)):
        yield "has ends of steps that do not cut its tokens into steps"
    if sample.n_tokens < len(tokens):
        yield f"keeps {len(tokens)} tokens, but only {sample.n_tokens} were generated"
    if asked != WHOLE and len(ends) > asked:
        yield f"has {len(ends)} steps, but {asked} were asked for"
    if not sample.ended and (asked == WHOLE or len(ends) < asked):
        yield "has fewer steps than were asked for, although its chain has not ended"


def _rises_to(ends: Sequence[int], last: int) -> bool:
    """Whether ends rise from above 0 to `last`; no ends do."""
    return not ends or (all(one < other for one, other in pairwise((0, *ends))) and ends[-1] == last)


def _answer_faults(problem: ChainText, sample: SampleAnswer) -> Iterator[str]:
    if not sample.ended:
        if sample.answer is not None or sample.verdict is not None:
            yield "has an answer or a verdict, although its chain has not ended"
        return
    if sample.verdict is not None and not problem.golds:
        yield "has a verdict, although the right answer is not known"
    if sample.verdict is None and problem.golds and sample.finish not in _UNGRADED:
        yield "ends a chain and has no verdict, although the right answer is known"


def _score_faults(score: ScoreAnswer, depths: Mapping[str, int], calibrated: bool) -> Iterator[str]:
    """`calibrated`: scores may differ from raw scores."""
    depth = depths.get(score.prefix_id)
    if depth is None:
        yield "is of no known beginning of a chain"
    elif score.step != depth:
        yield f"says step {score.step}, but the prefix has {depth}"
    values = [each for each in (score.score, score.raw_score, score.reliability) if each is not None]
    if any(not 0 <= value <= 1 for value in values):
        yield "has a score or a reliability that is not between 0 and 1"
    if (score.score is None) != (score.raw_score is None):
        yield "has only one of score and raw score"
    elif not calibrated and score.score != score.raw_score:
        yield f"is {score.score}, but the scorer gave {score.raw_score}, and there is no calibration"
    if score.fault is not None and score.score is not None:
        yield "has a reason for having none"
    if not 0 <= score.n_computed <= score.n_tokens:
        yield f"took {score.n_computed} computed tokens of {score.n_tokens}"
    if score.seconds < 0 or score.took < 0:
        yield "has a negative time"
