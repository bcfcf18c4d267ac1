"""A run of `search` in a few lines, as `report` prints them."""

from collections.abc import Iterator

from pipeline.analysis.searches.comparison import RunFigures
from pipeline.analysis.searches.figures import SearchFigures
from pipeline.analysis.searches.sentences import (
    claim_sentences,
    percent,
    rising_sentences,
    score_sentences,
    start_sentences,
    trust_sentences,
)
from pipeline.core.formatting import format_count, format_number, format_percent, unscored_text


def search_lines(totals: SearchFigures, figures: RunFigures) -> Iterator[str]:
    """The lines: problems, accuracy, trust, tokens, and what is found of reward hacking."""
    summary = figures.summary
    yield f"problems  {totals.problems:,}, by {summary.method} with n={summary.n:,}; {totals.chosen:,} with a chosen chain"
    yield f"          of {format_number(totals.candidates / max(1, totals.problems), 1)} chains on average"
    if summary.accuracy.value is not None:
        claimed = summary.searches - summary.unclaimed
        yield f"right     {percent(summary.accuracy)} of {format_count(claimed, 'choice')} that can be graded"
    yield from _named("", claim_sentences(summary))
    yield from _named("", start_sentences(summary))
    trust = figures.coverage.trust
    if trust is not None:
        yield from _named("trust", trust_sentences(trust, figures.accept, calibrated=figures.calibrated))
    yield f"tokens    {totals.policy_tokens:,} of the policy{_scorer(totals)}"
    yield f"          {totals.tokens_per_problem:,.0f} together for a problem"
    if words := unscored_text(scored=totals.scored, unscored=totals.unscored):
        yield f"scores    {words}"
    if figures.hacking.by_n is not None:
        yield from _named("hacking", score_sentences(figures.hacking.by_n))
    if figures.hacking.rising is not None:
        yield from _named("hacking", rising_sentences(figures.hacking.rising))


def _scorer(totals: SearchFigures) -> str:
    if not totals.scorer_tokens:
        return ""
    cached = format_percent(1 - totals.scorer_computed / totals.scorer_tokens)
    return f"; the scorer computed {totals.scorer_computed:,} of {totals.scorer_tokens:,} that it read ({cached} from caches)"


def _named(name: str, sentences: Iterator[str]) -> Iterator[str]:
    for sentence in sentences:
        yield f"{name:<10}{sentence}"
        name = ""
