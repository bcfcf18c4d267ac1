"""A run of `search` in words, for the terminal and the page. Pure."""

from collections.abc import Iterable, Iterator

from pipeline.analysis.searches.figures import RunFigures, RunSummary, SearchFigures, Trust
from pipeline.core.formatting import format_count, format_number, format_percent, unscored_text
from pipeline.display.numbers import percents

UNREADABLE = "a known answer that the grader cannot read"
READABLE = "give a number, LaTeX or words, or with grader=code a test suite"
"""What to do about it."""


def search_lines(totals: SearchFigures, figures: RunFigures) -> Iterator[str]:
    """A run in a few lines, as `report` prints them: problems, accuracy, trust and tokens."""
    summary = figures.summary
    yield f"problems  {totals.problems:,}, by {summary.method} with n={summary.n:,}; {totals.chosen:,} with a chosen chain"
    yield f"          of {format_number(totals.candidates / max(1, totals.problems), 1)} chains on average"
    if summary.accuracy.value is not None:
        claimed = summary.searches - summary.unclaimed
        yield f"right     {percents(summary.accuracy)} of {format_count(claimed, 'choice')} that can be graded"
    yield from _named("", (*claim_sentences(summary), *start_sentences(summary)))
    trust = figures.coverage.trust
    if trust is not None:
        yield from _named("trust", trust_sentences(trust, figures.accept, calibrated=figures.calibrated))
    scorer = ""
    if totals.scorer_tokens:
        cached = format_percent(1 - totals.scorer_computed / totals.scorer_tokens)
        read = f"{totals.scorer_computed:,} of {totals.scorer_tokens:,} that it read"
        scorer = f"; the scorer computed {read} ({cached} from caches)"
    yield f"tokens    {totals.policy_tokens:,} of the policy{scorer}"
    yield f"          {totals.tokens_per_problem:,.0f} together for a problem"
    if words := unscored_text(scored=totals.scored, unscored=totals.unscored):
        yield f"scores    {words}"


def _named(name: str, sentences: Iterable[str]) -> Iterator[str]:
    for sentence in sentences:
        yield f"{name:<10}{sentence}"
        name = ""


def claim_sentences(summary: RunSummary) -> Iterator[str]:
    """For how many searches accuracy is not claimed, and which count as wrong without a choice."""
    if summary.unclaimed:
        reasons = (
            (summary.unknown, "without a known answer"),
            (summary.unreadable, f"with {UNREADABLE}"),
            (summary.ungraded, "whose chosen answer cannot be graded"),
        )
        yield (
            f"accuracy is not claimed for {summary.unclaimed:,} of {_searches(summary.searches)} "
            f"({format_percent(summary.unclaimed / summary.searches)}): "
            f"{', '.join(f'{count:,} {why}' for count, why in reasons if count)}"
        )
    if summary.unreadable:
        yield f"known answers that cannot be read: {READABLE}"
    if summary.without_choice:
        yield f"{_searches(summary.without_choice)} without a chain, counted as wrong"


def nothing_trusted(highest: float | None, accept: float) -> str:
    """Why no choice is trusted. `highest`: the highest confidence, if any is stated."""
    if highest is None:
        return "nothing is trusted: no choice has a confidence, because the scorer gave no score"
    if highest < accept:
        return f"nothing is trusted: the highest confidence is {highest:.3f}, below search.accept={accept:g}"
    return (
        "nothing is trusted: the choices that reach search.accept were cut, state no answer, or lack the reliability that "
        "search.reliability asks for; leave that setting out where the scorer states none"
    )


def start_sentences(summary: RunSummary) -> Iterator[str]:
    """How searches count of which a problem has several, and what is not known of those that begin with a chain."""
    if summary.searches > summary.problems:
        yield f"{_searches(summary.searches)} of {format_count(summary.problems, 'problem')}: a problem counts with their mean"
    if summary.given:
        yield (
            f"{_searches(summary.given)} begin with a chain of the input, whose tokens nobody counted: for a comparison at "
            "equal tokens, search rows without chains"
        )


def trust_sentences(trust: Trust, accept: float | None, *, calibrated: bool) -> Iterator[str]:
    """What `search.accept` is worth. `calibrated`: then `accept` is the share of right answers that it promises at least."""
    setting = "" if accept is None else f"search.accept={accept:g}: "
    yield f"{setting}{percents(trust.share)} of {_searches(trust.searches)} are trusted"
    if not trust.trusted and accept is not None:
        yield nothing_trusted(trust.highest, accept)
        return
    if trust.accuracy.value is None:
        yield "accuracy is claimed for none of the trusted ones"
        return
    others = trust.accuracy_of_others
    yield (
        f"of {format_count(trust.claimed, 'trusted choice')} that can be graded {percents(trust.accuracy)} are right"
        + (f", of the others {percents(others)}" if others.value is not None else "")
    )
    if calibrated and accept is not None and trust.accuracy.high is not None and trust.accuracy.high < accept:
        yield f"that is less than search.accept={accept:g} promises: make the calibration again with fresh rollouts"


def _searches(count: int) -> str:
    return format_count(count, "search")
