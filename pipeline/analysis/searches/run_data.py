"""The data of the page of a run of `search`, read from its finished units."""

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from pipeline.analysis.searches.figures import RunFigures, SearchFigures, run_figures
from pipeline.analysis.searches.read import search_figures, search_run
from pipeline.analysis.searches.sentences import search_lines
from pipeline.config.recorded_settings import Settings
from pipeline.engines.registry import made_up_text
from pipeline.storage.starts import Start, read_starts
from pipeline.storage.storage import Storage
from pipeline.storage.stored_search import CANDIDATES, SEARCHES, StoredSearch, search_frames, search_input

_COLUMNS = (
    *("row", "gold_answer", "chosen", "final_answer", "outcome", "verdict", "confidence", "trusted", "stopped"),
    *("policy_tokens", "policy_prompt_tokens", "scorer_tokens", "scorer_computed", "seconds"),
)
_SEED = 0
"""Of the bootstrap. A page that is written again has the same figures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRunData:
    """`unfinished`: how many of the `units` are not finished; all else is about the others. `searches`: one row per problem,
    without its text; `unreadable` marks those with a known answer that the grader cannot read. `totals` and `figures`: None
    while no unit is finished. `scorer`: identity of the scorer, empty where no problem has a candidate. `damaged_starts`: names
    of unreadable files, which are not in `starts`. `made_up`: why the steps are no evidence; empty where they are."""

    run_dir: str
    identity: Settings
    units: int
    unfinished: int
    searches: pl.DataFrame
    totals: SearchFigures | None
    figures: RunFigures | None
    scorer: str
    starts: tuple[Start, ...]
    damaged_starts: tuple[str, ...]
    made_up: str


def load_search_data(storage: Storage, stored: StoredSearch) -> SearchRunData:
    """Raises StoreError for a missing or damaged file."""
    frames = list(search_frames(stored, SEARCHES, _COLUMNS))
    given = search_input(stored)
    unreadable = pl.col("row").is_in(sorted(given.unreadable)).alias("unreadable")
    starts = read_starts(storage)
    return SearchRunData(
        run_dir=storage.run_dir,
        identity=stored.run.identity,
        units=len(stored.run.units),
        unfinished=stored.run.unfinished,
        searches=pl.concat(frames).with_columns(unreadable) if frames else pl.DataFrame(),
        totals=search_figures(stored, given) if frames else None,
        figures=run_figures(search_run(stored, "this run", given), _SEED) if frames else None,
        scorer=_scorer(stored),
        starts=starts.starts,
        damaged_starts=starts.damaged,
        made_up=made_up_text(stored.run.identity, "steps") if frames else "",
    )


def _scorer(stored: StoredSearch) -> str:
    found = [str(model) for frame in search_frames(stored, CANDIDATES, ["model"]) for model in frame["model"].unique()]
    return ", ".join(dict.fromkeys(found))


def run_lines(found: SearchRunData) -> Iterator[str]:
    """The run in a few lines."""
    if found.made_up:
        yield f"policy    {found.made_up}"
    if found.totals is not None and found.figures is not None:
        yield from search_lines(found.totals, found.figures)
