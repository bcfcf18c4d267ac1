"""Every method of `search` at several n, with one PRM or several, as tables of accuracy at equal tokens."""

import time
from collections.abc import Callable, Iterator, Sequence

import polars as pl

from pipeline.analysis.searches.figures import SearchRun
from pipeline.analysis.searches.read import finished_searches, search_run
from pipeline.analysis.select.read import match_answers, read_scores
from pipeline.analysis.settings import SelectConfig
from pipeline.storage.location import storage_at
from pipeline.storage.stored_search import stored_search
from tests.bench.loop.search_table import exact_lines, line_of, lines, pooled, scorer_auc
from tests.bench.loop.searching import Searches
from tests.bench.loop.tables import mean_of

METHODS = ("best_of_n", "majority", "weighted", "beam", "dvts", "particle", "mcts", "regenerate")
SIZES = (4, 16, 64)
CHAINS = 128
"""Of the largest best-of-n that others are compared with: some take more tokens than best-of-64."""
MINUTE = 60


def searched_lines(runs: Sequence[Searches], show: Callable[[str], None]) -> Iterator[str]:
    """Lines with all figures. `runs`: each with other problems. `show` gets a line about every search that is done."""
    began = time.monotonic()

    def found(method: str, n: int) -> list[SearchRun]:
        stored = [stored_search(storage_at(str(run.run(method, n)))) for run in runs]
        names = (run.run_dir(method, n).name for run in runs)
        read = [search_run(each, name, finished_searches(each)) for each, name in zip(stored, names, strict=True)]
        show(f"{(time.monotonic() - began) / MINUTE:5.1f} minutes  {method} {n}")
        return read

    chains = {n: found("best_of_n", n) for n in (*SIZES, CHAINS)}
    against = [pooled(of) for of in chains.values()]
    yield from lines([line_of(found(method, n), against) for n in SIZES for method in METHODS])
    yield f"expected of n of {CHAINS} chains"
    candidates = pl.concat(map(_candidates, runs))
    yield from exact_lines(candidates, (1, *SIZES, CHAINS))
    yield auc_line("last scores against outcomes", [scorer_auc(run) for run in chains[CHAINS]])


def auc_line(text: str, values: Sequence[float]) -> str:
    """A line about areas under the curve, one of each run."""
    mean = mean_of(values)
    spread = f" +- {mean.error:.3f} over {len(values)} runs" if len(values) > 1 else ""
    return f"AUC of {text}: {mean.value:.3f}{spread}"


def _candidates(run: Searches) -> pl.DataFrame:
    config = SelectConfig(scores=str(run.run_dir("best_of_n", CHAINS)))
    return match_answers(read_scores(config), config).candidates
