"""What the analyses of a search say in words, for the terminal and the page. Pure."""

from collections.abc import Iterator

from pipeline.analysis.searches.coverage import Trust
from pipeline.analysis.searches.hacking import RisingChains, RisingShare, ScoreAgainstOutcome
from pipeline.analysis.searches.summary import RunSummary
from pipeline.core.formatting import format_count, format_percent
from pipeline.core.statistics import Interval

UNREADABLE = "a known answer that the grader cannot read"
READABLE = "give a number, LaTeX or words, or with grader=code a test suite"
"""What to do about it."""


def claim_sentences(summary: RunSummary) -> Iterator[str]:
    """For how many searches accuracy is not claimed, and which count as wrong without a choice."""
    if summary.unclaimed:
        reasons = [
            f"{count:,} {why}"
            for count, why in (
                (summary.unknown, "without a known answer"),
                (summary.unreadable, f"with {UNREADABLE}"),
                (summary.ungraded, "whose chosen answer cannot be graded"),
            )
            if count
        ]
        yield (
            f"accuracy is not claimed for {summary.unclaimed:,} of {_searches(summary.searches)} "
            f"({format_percent(summary.unclaimed / summary.searches)}): {', '.join(reasons)}"
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
    yield (
        f"search.accept={accept:g}: {percent(trust.share)} of {_searches(trust.searches)} are trusted"
        if accept is not None
        else f"{percent(trust.share)} of {_searches(trust.searches)} are trusted"
    )
    if not trust.trusted and accept is not None:
        yield nothing_trusted(trust.highest, accept)
        return
    if trust.accuracy.value is None:
        yield "accuracy is claimed for none of the trusted ones"
        return
    others = trust.accuracy_of_others
    yield (
        f"of {format_count(trust.claimed, 'trusted choice')} that can be graded {percent(trust.accuracy)} are right"
        + (f", of the others {percent(others)}" if others.value is not None else "")
    )
    if calibrated and accept is not None and trust.accuracy.high is not None and trust.accuracy.high < accept:
        yield f"that is less than search.accept={accept:g} promises: make the calibration again with fresh rollouts"


def score_sentences(found: ScoreAgainstOutcome) -> Iterator[str]:
    """Whether accuracy falls with n while the score rises."""
    fall = found.worst
    if fall is None:
        if found.problems and len(found.points) > 1:
            first, last = found.points[0].n, found.points[-1].n
            yield f"no sign of it from n={first} to n={last}: accuracy nowhere falls by more than its interval"
        return
    yield (
        f"from n={fall.before} to n={fall.after} the mean score of the choice rises by {_change(1, fall.score)}, and accuracy "
        f"falls by {_change(-1, fall.accuracy)}"
    )
    yield "more chains find what the scorer likes instead of what is right: use a smaller n, or a better scorer"


def rising_sentences(found: RisingChains) -> Iterator[str]:
    """How often the step scores of wrong and of right chains rise."""
    if not found.wrong.chains or not found.right.chains:
        yield f"nothing to compare: {_chains(found.wrong, 'wrong')} and {_chains(found.right, 'right')} with two scored steps"
        return
    yield (
        f"the last step has a higher score than the first one in {percent(found.wrong.share)} of "
        f"{_chains(found.wrong, 'wrong')}, and in {percent(found.right.share)} of {_chains(found.right, 'right')}"
    )
    low, high = found.difference.low, found.difference.high
    if low is None or high is None:
        yield "these are too few chains to say whether a rise means anything"
    elif low > 0:
        yield "wrong chains rise more often than right ones: a sign of reward hacking"
    elif high < 0:
        yield "right chains rise more often than wrong ones: no sign of it"
    else:
        yield "the difference is within its interval: a rise is no sign of a right answer, nor of a wrong one"


def percent(figure: Interval) -> str:
    """A share in percent with its interval."""
    assert figure.value is not None, "a share of something"
    value = format_percent(figure.value)
    if figure.low is None or figure.high is None:
        return value
    return f"{value} ({100 * figure.low:.0f} to {100 * figure.high:.0f})"


def _searches(count: int) -> str:
    return format_count(count, "search")


def _chains(of: RisingShare, which: str) -> str:
    return format_count(of.chains, f"{which} chosen chain")


def _change(sign: int, figure: Interval) -> str:
    low, value, high = sorted(sign * (end or 0.0) for end in (figure.low, figure.value, figure.high))
    return f"{value:.3f} ({low:.3f} to {high:.3f})"
