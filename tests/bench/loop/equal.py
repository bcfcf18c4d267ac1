"""What makes arms comparable: how much of a run a number of tokens pays for, and rows for a number of updates. Pure."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

Row = dict[str, Any]


class Part(NamedTuple):
    """Labels that a student learns from. `tokens` were generated for them. `more`: figures of them."""

    rows: Sequence[Row]
    tokens: int
    more: Mapping[str, int] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainDraw:
    """A chain that the policy wrote for a problem. `number`: which one of the problem, from 0 on. `prefixes`: those of it that
    rollouts may continue; none if the chain has no labels. Equal chains have the same `chain_id`."""

    problem: str
    number: int
    chain_id: str
    tokens: int
    prefixes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Paid:
    """`chains`: ids. `tokens`: of all draws of them and of the rollouts of their prefixes."""

    chains: frozenset[str]
    tokens: int


def paid(draws: Sequence[ChainDraw], rollout_tokens: Mapping[str, int], most: int) -> Paid:
    """The first of these draws that `most` tokens pay for. A draw costs its own tokens, a repeated one too, and those of the
    rollouts of each prefix that no draw before it has: `rollout_tokens`, prefix -> tokens.

    If each prefix has a fixed number of rollouts, a run of these draws alone would have cost as much and have the same labels.
    """
    chains: set[str] = set()
    known: set[str] = set()
    spent = 0
    for draw in draws:
        new = set(draw.prefixes) - known
        cost = draw.tokens + sum(rollout_tokens.get(prefix, 0) for prefix in new)
        if spent + cost > most:
            break
        spent += cost
        known |= new
        chains.add(draw.chain_id)
    return Paid(chains=frozenset(chains), tokens=spent)


def repeated_to(rows: Sequence[Row], count: int, seed: int) -> list[Row]:
    """`count` rows: all of them as often as fits, and some chosen at random once more. One pass over these has as many updates
    for any number of rows."""
    times, more = divmod(count, len(rows))
    return [*(row for _ in range(times) for row in rows), *random.Random(seed).sample(list(rows), more)]
