"""What the analyses of `search` begin with: a run, with a row for the search of each problem. Pure.

Accuracy is claimed only where the answer is known and the chosen answer is graded. A search that ends without a chain, or with
a chain without an answer, is wrong there.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from pipeline.analysis.searches.estimates import problem_means
from pipeline.core.statistics import Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SearchRun:
    """A finished run of `search`. `accept`: `search.accept`. `calibrated`: its scores are probabilities. `independent`: its
    candidates are chains that were sampled whole and without regard to each other, a fixed number for each problem. So a part
    of them is what a smaller run would have. `settings`: what determines it, by dotted key.

    `searches`: see `read.finished_searches`; a problem may have several, such as one for each chain that the input has. Of the
    candidates of each, lists: `scores`, and `outcomes`, null where one is not graded. `texts`: how many candidates have the
    same text of a whole chain, and `computed`: the tokens that the scorer computed for it, which it does once; 0 where that is
    not known."""

    name: str
    method: str
    n: int
    accept: float | None
    calibrated: bool
    independent: bool
    settings: Mapping[str, object]
    searches: pl.DataFrame

    @property
    def scored(self) -> bool:
        """Whether any candidate has a score."""
        return self.searches["scores"].explode().count() > 0

    @property
    def given(self) -> int:
        """Searches that begin with a chain of the input."""
        return int(self.searches["given"].sum())

    def means(self, *values: str | pl.Expr) -> Floats:
        """The means of values over the searches of each problem, see `problem_means`."""
        return means_of(self.searches, *values)


def means_of(searches: pl.DataFrame, *values: str | pl.Expr) -> Floats:
    """`SearchRun.means` of rows of `SearchRun.searches`."""
    columns = [pl.col(each) if isinstance(each, str) else each for each in values]
    found = searches.select(column.cast(pl.Float64).alias(str(at)) for at, column in enumerate(columns))
    return problem_means(searches["problem_id"].to_list(), found.to_numpy())
