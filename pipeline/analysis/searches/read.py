"""Reads runs of `search` for their analyses."""

from itertools import groupby
from typing import Any

import polars as pl

from pipeline.analysis.searches.figures import SearchFigures, SearchRun
from pipeline.core.table import Table
from pipeline.core.tables import CANDIDATES, SAMPLES, SEARCHES, STEP_SCORES
from pipeline.searches.base import WHOLE
from pipeline.storage.shards import verified_file
from pipeline.storage.stored_search import StoredSearch

_TEXT = "problem"
_OF_INPUT = ("row", "steps", "gold_answer", "gold_answers")
_SUMMED = ("candidates", "scored", "unscored", "policy_tokens", "scorer_tokens", "scorer_computed")
_CALIBRATION = "calibration"


def finished_searches(stored: StoredSearch) -> pl.DataFrame:
    """A row per search of a finished unit, in the order of the input: the columns of `searches` but for the problem's text.

    `known`: the answer is known, or the outcome of the choice is. `unreadable`: the grader cannot read the known answer, so it
    grades none of the chains. `given`: the input has a chain from which the search may start; nothing counts the tokens of
    that. `right`: whether the choice is, null where accuracy is not claimed. Raises StoreError for a missing or damaged
    file."""
    columns = [name for name in SEARCHES.schema.names if name != _TEXT]
    found = stored.frame(SEARCHES, columns).join(_of_input(stored), on="row", how="left", maintain_order="left")
    known = pl.col("gold_answer").is_not_null() | pl.col("outcome").is_not_null()
    right = pl.when(pl.col("chosen").is_not_null()).then("outcome").otherwise(statement=False)
    confidence = pl.col("confidence").fill_nan(None)
    return found.with_columns(confidence=confidence, known=known, right=pl.when(known).then(right))


def _of_input(stored: StoredSearch) -> pl.DataFrame:
    frames = [pl.DataFrame(schema={"row": pl.Int64, "given": pl.Boolean, "unreadable": pl.Boolean})]
    for shard, units in groupby(stored.units, key=lambda unit: unit.shard):
        groups = [unit.group for unit in units if unit.unit_id in stored.wholes]
        file = verified_file(stored.storage, shard)
        for group in groups:
            rows = pl.DataFrame(file.read_row_group(group, list(_OF_INPUT), use_threads=False))
            unreadable = pl.col("gold_answer").is_not_null() & (pl.col("gold_answers").list.len() == 0)
            frames.append(rows.select("row", given=pl.col("steps").list.len() > 0, unreadable=unreadable))
    return pl.concat(frames)


def search_run(stored: StoredSearch, name: str, searches: pl.DataFrame) -> SearchRun:
    """The finished searches of a run. `name`: what the run is called. Raises StoreError for a damaged file."""
    whole = stored.accept is None and _samples_are_whole_chains(stored)
    candidates = stored.frame(CANDIDATES, ["row", "score", "outcome", "prefix_ids"])
    ends = candidates.select("row", prefix_id=pl.col("prefix_ids").list.last())
    frames = stored.frames(STEP_SCORES, ["row", "prefix_id", "n_computed"]) if whole else ()
    computed = pl.concat([ends.head(0).with_columns(n_computed=pl.lit(0, pl.Int64)), *frames])
    texts = (
        ends.group_by("row", "prefix_id", maintain_order=True)
        .agg(texts=pl.len())
        .join(computed, on=["row", "prefix_id"], how="left", maintain_order="left")
        .group_by("row")
        .agg("texts", computed=pl.col("n_computed").fill_null(0))
    )
    chains = candidates.group_by("row").agg(scores="score", outcomes="outcome")
    return SearchRun(
        name=name,
        method=stored.method,
        n=stored.n,
        accept=stored.accept,
        calibrated=stored.identity.get(_CALIBRATION) is not None,
        independent=whole and not searches["given"].any(),
        settings=stored.identity,
        searches=searches.join(chains, on="row", how="left", maintain_order="left").join(
            texts, on="row", how="left", maintain_order="left"
        ),
    )


def _samples_are_whole_chains(stored: StoredSearch) -> bool:
    """Whether the run has samples, and each is a chain from its beginning to its end."""
    whole = (pl.col("number") == 0) & (pl.col("steps") == WHOLE)
    found = [frame.select(whole.all())[0, 0] for frame in stored.frames(SAMPLES, ["number", "steps"])]
    return bool(found) and all(found)


def search_figures(stored: StoredSearch, searches: pl.DataFrame) -> SearchFigures:
    """The figures of the finished searches. Raises StoreError for a damaged file."""
    ungraded = pl.col("outcome").is_null() & pl.col("chosen").is_not_null()
    graded, right = pl.col("known") & ~ungraded, pl.col("outcome").fill_null(value=False)
    graded_trusted = pl.col("trusted") & pl.col("outcome").is_not_null()
    found = searches.select(
        pl.col(_SUMMED).sum(),
        pl.col("known", "trusted").sum(),
        problems=pl.len(),
        unreadable=(pl.col("known") & ungraded & pl.col("unreadable")).sum(),
        graded=graded.sum(),
        right=(graded & right).sum(),
        chosen=pl.col("chosen").count(),
        graded_trusted=graded_trusted.sum(),
        right_trusted=(graded_trusted & right).sum(),
        highest=pl.col("confidence").max(),
    ).row(0, named=True)
    ends = stored.frames(CANDIDATES, ["chosen", "cut"])
    return SearchFigures(
        **{**found, "trusted": None if stored.accept is None else found["trusted"]},
        cut=sum(int((frame["chosen"] & frame["cut"]).sum()) for frame in ends),
        seconds_sampling=_seconds(stored, SAMPLES),
        seconds_scoring=_seconds(stored, STEP_SCORES),
    )


def _seconds(stored: StoredSearch, table: Table[Any]) -> float:
    return sum(float(frame["took"].sum()) for frame in stored.frames(table, ["took"]))
