"""Facts of rollouts -> trials per prefix, in the order of issue."""

from collections.abc import Iterable, Sequence
from itertools import groupby

from pipeline.core.records import UNGRADED, Counts, Fact, Finish, Trials, Verdict

NONE = Trials()


def trials_of(facts: Iterable[Fact]) -> dict[str, Trials]:
    """Trials by prefix id; a prefix without a fact has no entry.

    Only issues without a gap before them count: which rollouts behind a gap came in depends on how long they were, and so
    on whether they were right.
    """
    by_prefix: dict[str, list[Fact]] = {}
    for fact in facts:
        by_prefix.setdefault(fact.prefix_id, []).append(fact)
    return {prefix_id: _trials(_without_gap(together)) for prefix_id, together in by_prefix.items()}


def counts_of(outcomes: Sequence[bool | None]) -> Counts:
    """Counts of outcomes alone: nothing is known of tokens and finishes."""
    graded = [outcome for outcome in outcomes if outcome is not None]
    return Counts(correct=sum(graded), graded=len(graded), ungraded=len(outcomes) - len(graded))


def _without_gap(facts: list[Fact]) -> list[Fact]:
    facts.sort(key=lambda fact: fact.issue_index)
    return [fact for place, fact in enumerate(facts) if fact.issue_index == place]


def _trials(facts: Sequence[Fact]) -> Trials:
    verdicts = [fact.verdict for fact in facts]
    ungraded = sum(verdict in UNGRADED for verdict in verdicts)
    return Trials(
        outcomes=tuple(None if verdict in UNGRADED else verdict is Verdict.CORRECT for verdict in verdicts),
        rounds=tuple(len(list(together)) for _, together in groupby(fact.round for fact in facts)),
        reached=tuple(fact.reached_prefix_id for fact in facts),
        counts=Counts(
            correct=verdicts.count(Verdict.CORRECT),
            graded=len(facts) - ungraded,
            ungraded=ungraded,
            truncated=sum(fact.finish is Finish.LENGTH for fact in facts),
            tokens=sum(fact.n_tokens for fact in facts),
        ),
    )
