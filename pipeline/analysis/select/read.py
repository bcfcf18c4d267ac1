"""Reads score files, or a run of `search`, into the candidates of every problem, and picks the best chain of each problem."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from pipeline.analysis.searches.read import finished_searches
from pipeline.analysis.settings import SelectConfig
from pipeline.config.recorded_settings import RUN_RECORD
from pipeline.core.errors import InputError, UsageError
from pipeline.core.tables import CANDIDATES, SEARCHES, SOLUTIONS
from pipeline.storage.location import storage_at
from pipeline.storage.run_record import SEARCH, command_of, recorded_identity
from pipeline.storage.score_files import read_scores_of
from pipeline.storage.stored_run import refuse_unfinished
from pipeline.storage.stored_search import StoredSearch, stored_search

SCORE = "score"
LAST = "score_last"
_OUTCOME_SCORE = "outcome_score"
_STEPS_OF_DRAW = "step_ends"
_KEYS = ("chain_id", "problem_id")
_JUDGED = ("gold_answer", "final_answer", "outcome")
_CHOSEN = ("source_id", "problem", "steps")
_EMPTY, _SEARCH_CHOSE = "empty", "chosen"
_COLUMNS = ["problem_id", "source_id", "problem", "gold_answer", "chain_id", "steps", "final_answer", "outcome", SCORE]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredChains:
    """The rows of a score file. Column `score` is the one that `aggregation` selects, null where a score is missing; `empty`
    marks problems for which a search found no chain. Of a run of `search`, column `chosen` marks its choices, and `search` says
    what it is; None for other scores. `unreadable`: its problems with a known answer that the grader cannot read, which is no
    `gold_answer` here."""

    frame: pl.DataFrame
    model: str
    search: str | None = None
    unreadable: frozenset[str] = frozenset()

    @property
    def has_answers(self) -> bool:
        """Whether any row has a known answer."""
        return self.frame["gold_answer"].null_count() < self.frame.height


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownAnswers:
    """The candidates of problems with a known answer, as `select.methods` compares them, and counts of what is missing.

    `unknown`: problems without a known answer; `unreadable`: those whose answer the grader cannot read. `unjudged`: candidates
    without an outcome; `empty`: draws of the run without a step; both count as wrong. `unscored` and `outcome_unscored`:
    candidates without a score, which rank last. `absent`: problems that have chains in the run but none in the scores.
    """

    candidates: pl.DataFrame
    unknown: int
    unreadable: int
    absent: int
    unjudged: int
    empty: int
    unscored: int
    outcome_unscored: int

    @property
    def counts(self) -> list[int]:
        """The number of candidates of each problem."""
        return self.candidates.group_by("problem_id", maintain_order=True).len()["len"].to_list()


def read_scores(config: SelectConfig) -> ScoredChains:
    """Read the candidates. Raises InputError if neither `score` nor `search` wrote them, UsageError for an unfinished run, and
    StoreError for a damaged one."""
    column = SCORE if config.aggregation is None else f"{SCORE}_{config.aggregation.value}"
    columns = [*_KEYS, *_JUDGED, *_CHOSEN, column, "model"]
    path = Path(config.scores or "")
    search = _search_in(path)
    unreadable: frozenset[str] = frozenset()
    if search is None:
        frame = read_scores_of("scores", path, columns).with_columns(pl.lit(False).alias(_EMPTY))
    else:
        unread = pl.col("row").is_in(finished_searches(search).filter("unreadable")["row"].implode())
        frame = _candidates(search, columns)
        unreadable = frozenset(frame.filter(unread)["problem_id"])
        # No chain of these is graded, so they are left out like problems without a known answer.
        frame = frame.with_columns(pl.when(unread).then(None).otherwise("gold_answer").alias("gold_answer"))
    return ScoredChains(
        frame=frame.with_columns(pl.col(column).fill_nan(None).alias(SCORE)),
        model=", ".join(frame["model"].drop_nulls().unique().sort()),
        search=None if search is None else f"{search.method}, n={search.n}",
        unreadable=unreadable,
    )


def _search_in(path: Path) -> StoredSearch | None:
    """The finished run of `search` in a folder; None for a path without one."""
    if not (path / RUN_RECORD).is_file():
        return None
    storage = storage_at(str(path))
    return stored_search(storage) if command_of(recorded_identity(storage)) == SEARCH else None


def _candidates(search: StoredSearch, columns: Sequence[str]) -> pl.DataFrame:
    """The candidates of a run, and a row for each problem without one."""
    keys = ["row", "problem_id", "source_id", "problem", "gold_answer"]
    found = search.frame(CANDIDATES, [*columns, "row", _SEARCH_CHOSE])
    without = search.frame(SEARCHES, keys).join(found, on="row", how="anti")
    rows = [
        found.with_columns(pl.lit(False).alias(_EMPTY)),
        without.with_columns(pl.lit(True).alias(_EMPTY), pl.col("problem_id").alias("chain_id")),
    ]
    return (
        pl.concat(rows, how="diagonal")
        .sort("row", maintain_order=True)
        .with_columns(pl.col(_SEARCH_CHOSE).fill_null(False))
    )


def match_answers(candidates: ScoredChains, config: SelectConfig) -> KnownAnswers:
    """The problems that can be compared. Raises InputError if no answer is known or files do not fit each other, UsageError if
    `run_dir` is not the run of these chains, and the errors of `refuse_unfinished`."""
    frame, absent = candidates.frame.select(*_KEYS, *_JUDGED, SCORE, _EMPTY), 0
    if not candidates.has_answers:
        raise InputError(
            f"scores={config.scores}: no problem has a known answer, so no candidate is known to be correct; give answers to "
            "`score`, or give only best=FILE to choose without a comparison"
        )
    if config.run_dir is not None:
        draws = _draws(config.run_dir)
        _check_same_run(frame, draws, config)
        frame, absent = repeat_drawn(frame, draws)
    # A run samples chains only for problems with a known answer, so this also holds for empty draws.
    answered = frame.filter((pl.col("gold_answer").is_not_null().any() | pl.col(_EMPTY).all()).over("problem_id"))
    left_out = set(frame["problem_id"]) - set(answered["problem_id"])
    scores = None if config.outcome_scores is None else _outcome_scores(config.outcome_scores, answered)
    found = (
        answered.with_columns(pl.lit(None, pl.Float64).alias(_OUTCOME_SCORE))
        if scores is None
        else answered.join(scores, on="chain_id", how="left")
    )
    missing = found.filter(~pl.col(_EMPTY)).null_count().row(0, named=True)
    return KnownAnswers(
        candidates=found,
        unknown=len(left_out - candidates.unreadable),
        unreadable=len(left_out & candidates.unreadable),
        absent=absent,
        unjudged=missing["outcome"],
        empty=int(answered[_EMPTY].sum()),
        unscored=missing[SCORE],
        outcome_unscored=0 if scores is None else missing[_OUTCOME_SCORE],
    )


def best_chain_lines(candidates: ScoredChains) -> list[bytes]:
    """JSON lines with the best chain of each problem, in the order of the file. Ties go to the smallest chain_id. Of a run of
    `search`, the chain that each search chose, if any."""
    if candidates.search is not None:
        best = candidates.frame.filter(_SEARCH_CHOSE)
    else:
        best = (
            candidates.frame.with_row_index("position")
            .with_columns(pl.col("position").min().over("problem_id"))
            .sort("position", SCORE, "chain_id", descending=[False, True, False], nulls_last=True)
            .unique("problem_id", keep="first", maintain_order=True)
        )
    return [f"{json.dumps(row, ensure_ascii=False)}\n".encode() for row in best.select(_COLUMNS).iter_rows(named=True)]


def _draws(run_dir: str) -> pl.DataFrame:
    """The chain and problem of every draw, and whether it has no step."""
    storage = storage_at(run_dir)
    run = refuse_unfinished(storage)
    tables = list(run.frames(SOLUTIONS, [*_KEYS, _STEPS_OF_DRAW]))
    if not tables:
        raise UsageError(f"run_dir={run_dir} sampled no chains: its input contains them all; leave run_dir out")
    return pl.concat(tables).select(*_KEYS, (pl.col(_STEPS_OF_DRAW).list.len() == 0).alias(_EMPTY))


def _check_same_run(frame: pl.DataFrame, draws: pl.DataFrame, config: SelectConfig) -> None:
    strange = frame.join(draws, on="chain_id", how="anti").height
    if strange:
        raise UsageError(
            f"run_dir={config.run_dir} did not sample {strange:,} of the {frame.height:,} chains of scores={config.scores}: "
            "name the run that was scored, or leave run_dir out"
        )
    of_scored = draws.filter(~pl.col(_EMPTY)).join(frame, on="problem_id", how="semi")
    lacking = of_scored.join(frame, on="chain_id", how="anti")["chain_id"].n_unique()
    if lacking:
        raise InputError(
            f"scores={config.scores} lacks {lacking:,} of the {of_scored['chain_id'].n_unique():,} chains that "
            f"run_dir={config.run_dir} sampled for its problems: score the whole run, or leave run_dir out"
        )


def repeat_drawn(frame: pl.DataFrame, draws: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """One row per draw, and the number of problems that are left out because a chain of theirs is missing in `frame`.

    Draws without a step have neither answer nor score. A problem that has only such draws is kept.
    """
    unscored = draws.filter(~pl.col(_EMPTY)).join(frame, on="chain_id", how="anti")
    kept = draws.join(unscored, on="problem_id", how="anti")
    chains = frame.unique("chain_id").drop("problem_id", _EMPTY)
    return kept.join(chains, on="chain_id", how="left"), unscored["problem_id"].n_unique()


def _outcome_scores(name: str, candidates: pl.DataFrame) -> pl.DataFrame:
    found = read_scores_of("outcome_scores", Path(name), ["chain_id", LAST]).unique("chain_id")
    if not found.join(candidates, on="chain_id", how="semi").height:
        raise InputError(
            f"outcome_scores={name} has none of the chains of scores=...: score the same run or file with both models"
        )
    return found.select("chain_id", pl.col(LAST).fill_nan(None).alias(_OUTCOME_SCORE))
