"""The run directory of a search in Python: its tables as frames, the trees of its problems, and what was found."""

from typing import TYPE_CHECKING

import polars as pl

from pipeline.core.errors import UsageError
from pipeline.core.suggestions import choice_hint
from pipeline.core.tables import CANDIDATES, REJECTS, SAMPLES, SEARCHES, STEP_SCORES
from pipeline.python.directory import RunDirectory
from pipeline.python.solved import Solved, solved_of
from pipeline.storage.shards import read_shard
from pipeline.storage.stored_search import StoredSearch, stored_search

if TYPE_CHECKING:
    from pipeline.analysis.searches.trees import ProblemTree


class SearchRun(RunDirectory):
    """A run directory that `search` has written. Each call reads the directory again. A shell or a notebook shows the important
    lines of it.

    Every method raises UsageError where there is no such run, and StoreError where a file of it is missing or damaged. The
    tables are those of units that are finished.
    """

    @property
    def settings(self) -> dict[str, object]:
        """What makes the run what it is, by dotted key: its settings, and the identity of its input, models and versions."""
        return dict(self._stored().identity)

    @property
    def finished(self) -> bool:
        """Whether all problems are searched. `search` with the same `run_dir` continues an unfinished run."""
        return not self._stored().unfinished

    def searches(self) -> pl.DataFrame:
        """One row per problem, in the order of the input: what was chosen, how sure the method is of it, and what it cost; see
        pipeline/storage/README.md for the columns."""
        return self._stored().frame(SEARCHES)

    def candidates(self) -> pl.DataFrame:
        """One row per chain that a search chose from, with the scores of its steps."""
        return self._stored().frame(CANDIDATES)

    def samples(self) -> pl.DataFrame:
        """The log of the policy: one row per sample, which is one or more steps."""
        return self._stored().frame(SAMPLES)

    def step_scores(self) -> pl.DataFrame:
        """The log of the scorer: one row per beginning of a chain that it was asked about."""
        return self._stored().frame(STEP_SCORES)

    def rejects(self) -> pl.DataFrame:
        """Rows of the input that could not be used, each with a reason. Empty where all could."""
        shards = [shard for shard in self._stored().planned[0].shards if shard.table == REJECTS.name]
        frames = [pl.DataFrame(read_shard(self._storage, shard)) for shard in shards]
        return pl.concat(frames) if frames else pl.DataFrame(REJECTS.schema.empty_table())

    def solved(self, problem: str | None = None) -> "list[Solved]":
        """What was found, one object per search, in the order of the input. `problem`: of one problem alone, by its
        `problem_id` or your own id of its row. Raises UsageError for a problem that is not there."""
        stored = self._stored()
        searches = stored.frame(SEARCHES)
        if problem is not None:
            searches = _of(searches, problem)
        candidates = stored.frame(CANDIDATES).filter(pl.col("row").is_in(searches["row"].implode()))
        by_row = {row: frame.to_dicts() for (row,), frame in candidates.group_by("row", maintain_order=True)}
        least = stored.identity.get("search.reliability")
        reliability = None if least is None else float(str(least))
        return [
            solved_of(row, by_row.get(row["row"], []), stored.accept, reliability)
            for row in searches.iter_rows(named=True)
        ]

    def tree(self, problem: str) -> "ProblemTree":
        """The tree of the search of one problem, by its `problem_id` or your own id of its row. Raises UsageError for a problem
        that is not there."""
        from pipeline.analysis.searches.trees import searched_problems

        stored = self._stored()
        row = _of(stored.frame(SEARCHES, ["row", "problem_id", "source_id"]), problem)["row"][0]
        searched = (each for found in searched_problems(stored) for each in found)
        return next(each.tree for each in searched if each.search["row"] == row)

    def _outline(self) -> tuple[int, int, list[str]]:
        from pipeline.analysis.searches.page import load_search_data

        found = load_search_data(self._stored())
        return found.stored.unfinished, len(found.stored.units), list(found.lines())

    def _stored(self) -> StoredSearch:
        return stored_search(self._storage, partial=True)


def _of(searches: pl.DataFrame, problem: str) -> pl.DataFrame:
    """The rows of a problem; several where the method goes on with chains of the input. Raises UsageError without any."""
    found = searches.filter((pl.col("problem_id") == problem) | (pl.col("source_id") == problem))
    if found.is_empty():
        known = [row["source_id"] or row["problem_id"] for row in searches.to_dicts()]
        hint = choice_hint(str(problem), known) if known else "and no other search is finished"
        raise UsageError(f"no finished search is of the problem {problem!r}, {hint}")
    return found
