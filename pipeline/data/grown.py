"""The chains and prefixes of a run that has grown: what `grow` promoted, as chains like any other. Pure.

A promoted chain begins with the steps of a chain that the run has, up to a prefix that is measured, and goes on with a
rollout's own tokens. Only its last prefix is measured for it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from pipeline.core.ids import content_id
from pipeline.core.records import Chain, Prefix, Promotion, RolloutOutcome, Solution
from pipeline.data.prompts import stem


def grown_prefixes(base: Prefix, promotion: Promotion) -> list[Prefix]:
    """The prefixes after each step of a promotion. `base`: the prefix that it continues."""
    return [
        Prefix(
            prefix_id=grown_id(promotion, number),
            step_index=base.step_index + number,
            text=base.text + promotion.text[:end],
            prompt_ids=base.prompt_ids + promotion.token_ids[:token_end],
        )
        for number, (end, token_end) in enumerate(zip(promotion.ends, promotion.token_ends, strict=True), start=1)
    ]


def grown_id(promotion: Promotion, number: int) -> str:
    """Id of the prefix after the first `number` steps of a promotion. It follows from the prefix before these steps and their
    tokens."""
    tokens = ",".join(map(str, promotion.token_ids[: promotion.token_ends[number - 1]]))
    return content_id("prefix", promotion.problem_id, "grown", promotion.prefix_id, tokens)


def grown_solution(base: Solution, steps: int, promotion: Promotion) -> Solution:
    """The chain up to a promoted prefix: the first steps of a chain (`steps`), as its rollout continued them, and those of the
    promotion."""
    text = stem(base, steps)
    return Solution(
        chain_id=promotion.chain_id,
        problem_id=promotion.problem_id,
        source_id=base.source_id,
        text=text + promotion.text,
        ends=(
            *base.ends[: max(0, steps - 1)],
            *((len(text),) if steps else ()),
            *(len(text) + end for end in promotion.ends),
        ),
        complete=False,
        as_written=True,
    )


def in_rounds(promotions: Iterable[Promotion]) -> list[Promotion]:
    """The promotions of a unit in their order: those of earlier rounds first."""
    return sorted(promotions, key=lambda each: (each.growth, each.round, each.problem_id, each.place))


def with_passed(
    outcomes: Mapping[str, RolloutOutcome], promotions: Sequence[Promotion]
) -> Mapping[str, RolloutOutcome]:
    """The outcomes by rollout id, where rollouts that had passed through a promoted prefix have reproduced it. Promotions look
    at outcomes, so a posterior of these prefixes is only right if it knows what the picker knew."""
    reached = {rollout: grown_id(each, len(each.ends)) for each in promotions for rollout in each.passed}
    changed = {key: outcomes[key]._replace(reached_prefix_id=reached[key]) for key in reached.keys() & outcomes.keys()}
    return {**outcomes, **changed}


def grown_chains(chains: Sequence[Chain], promotions: Iterable[Promotion]) -> list[Chain]:
    """The chains of a unit that grows: its own ones, marked as not grown, and those of the promotions. A promotion may continue
    an earlier one. One whose prefix no chain has is left out."""
    found = [replace(chain, grown=False) for chain in chains]
    through: dict[str, tuple[Chain, int]] = {}
    for chain in found:
        _add_prefixes(through, chain)
    for each in promotions:
        if each.prefix_id in through:
            base, steps = through[each.prefix_id]
            chain = replace(
                base,
                solution=grown_solution(base.solution, steps, each),
                prefix_ids=(
                    *base.prefix_ids[:steps],
                    *(grown_id(each, number) for number in range(1, len(each.ends) + 1)),
                ),
                final_answer=None,
                outcome=None,
                grown=True,
            )
            found.append(chain)
            _add_prefixes(through, chain)
    return found


def _add_prefixes(through: dict[str, tuple[Chain, int]], chain: Chain) -> None:
    """Note the chain at its prefixes that no earlier chain has."""
    for steps, prefix_id in enumerate((chain.root_prefix_id, *chain.prefix_ids)):
        through.setdefault(prefix_id, (chain, steps))
