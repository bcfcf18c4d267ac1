"""Facts of rollouts -> counts per prefix."""

from collections.abc import Iterable, Mapping

from pipeline.records import UNGRADED, Counts, Fact, Finish, Verdict

NOTHING = Counts()


def counts_of(facts: Iterable[Fact]) -> Mapping[str, Counts]:
    """Counts by prefix id; a prefix without a fact has no entry."""
    by_prefix: dict[str, list[Fact]] = {}
    for fact in facts:
        by_prefix.setdefault(fact.prefix_id, []).append(fact)
    return {prefix_id: _counts(together) for prefix_id, together in by_prefix.items()}


def _counts(facts: list[Fact]) -> Counts:
    ungraded = sum(fact.verdict in UNGRADED for fact in facts)
    return Counts(
        correct=sum(fact.verdict is Verdict.CORRECT for fact in facts),
        graded=len(facts) - ungraded,
        ungraded=ungraded,
        truncated=sum(fact.finish is Finish.LENGTH for fact in facts),
        tokens=sum(fact.n_tokens for fact in facts),
    )
