"""Evidence as arrays: one block for all chains with the same number of steps and the same outcome. Pure.

Chains are ordered by their evidence, and equal votes are kept once. So what is computed does not depend on the order in which
chains are given.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from pipeline.consensus.evidence import ChainEvidence, PositionClaim, StepClaim, check, impossible_places
from pipeline.consensus.votes import Patterns, patterns_of
from pipeline.core.statistics import Floats, Ints

Flags = np.ndarray[Any, np.dtype[np.bool_]]
UNKNOWN = 2
"""The verdict on a step that is neither 1 nor 0."""


class Outcome(StrEnum):
    """Whether the final answer of a chain is correct."""

    WRONG = "wrong"
    RIGHT = "right"
    UNKNOWN = "unknown"


OUTCOMES = tuple(Outcome)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Heard:
    """Of which chains a witness speaks. `chains` (m,): their positions in the block, by what is said. `said` (m,): the number
    of the pattern of each of them, from 0 and in order. `begins` (U,): where each pattern begins in both."""

    chains: Ints
    said: Ints
    begins: Ints

    def by_pattern(self, numbers: Floats) -> Floats:
        """(U, columns): the sums of `numbers` (n, columns) over the chains with each pattern."""
        return np.asarray(np.add.reduceat(numbers[self.chains], self.begins, axis=0))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Votes:
    """What a witness that votes says of a block, see `votes`. There is at least one pattern."""

    patterns: Patterns
    heard: Heard


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Verdicts:
    """What a witness that checks steps says of a block. `steps` (U, K): 1, 0 or UNKNOWN. There is at least one pattern."""

    steps: Ints
    heard: Heard


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Block:
    """n chains of `steps` steps with this outcome. `number` (n,): their numbers in the sequence that was given. `places`
    (n, K + 1): what Monte Carlo says. `silent` (n,): P(it says nothing). `ruled_out` (n, K + 1): the places that proofs rule
    out."""

    steps: int
    outcome: Outcome
    number: Ints
    places: Floats
    silent: Floats
    ruled_out: Flags
    votes: Mapping[str, Votes]
    verdicts: Mapping[str, Verdicts]


def blocks_of(evidence: Sequence[ChainEvidence], most_cells: int | None = None) -> list[Block]:
    """The blocks, by number of steps and outcome. With `most_cells`, only as many chains that (K + 1)^2 adds up to about this:
    evenly spaced ones in the order of their evidence, the same share of each block.

    Raises ValueError for impossible evidence, and for a witness whose claims are of two kinds.
    """
    check(evidence)
    kinds = _kinds(evidence)
    groups: defaultdict[tuple[int, Outcome], list[int]] = defaultdict(list)
    for number, chain in enumerate(evidence):
        groups[chain.steps, _OUTCOME_OF[chain.outcome]].append(number)
    cells = sum(len(numbers) * (steps + 1) ** 2 for (steps, _), numbers in groups.items())
    share = 1.0 if most_cells is None else min(1.0, most_cells / max(cells, 1))
    return [_block(*key, groups[key], evidence, kinds, share) for key in sorted(groups)]


def _kinds(evidence: Sequence[ChainEvidence]) -> dict[str, type]:
    kinds: dict[str, type] = {}
    for chain in evidence:
        for name, claim in chain.witnesses.items():
            if kinds.setdefault(name, type(claim)) is not type(claim):
                raise ValueError(f"witness {name} claims places on some chains and steps on others")
    return dict(sorted(kinds.items()))


def _block(
    steps: int,
    outcome: Outcome,
    numbers: Sequence[int],
    evidence: Sequence[ChainEvidence],
    kinds: Mapping[str, type],
    share: float,
) -> Block:
    chains = [evidence[number] for number in numbers]
    nothing = (0.0,) * (steps + 1)
    places = np.array([nothing if chain.monte_carlo is None else chain.monte_carlo for chain in chains])
    columns = {name: _column(name, kind, chains, steps) for name, kind in kinds.items()}
    ruled_out = np.zeros((len(chains), steps + 1), dtype=np.bool_)
    for row, chain in enumerate(chains):
        ruled_out[row, list(impossible_places(chain))] = True
    order = np.lexsort([*ruled_out.T, *(column for table in columns.values() for column in table.T), *places.T])
    if share < 1:
        kept = max(1, round(share * len(order)))
        order = order[((np.arange(kept) + 0.5) * len(order) / kept).astype(np.int64)]
    votes, verdicts = {}, {}
    for name, kind in kinds.items():
        column = columns[name][order]
        speaks = np.flatnonzero((column != _SILENT[kind]).any(axis=1))
        if not len(speaks):
            continue
        found, pattern = np.unique(column[speaks], axis=0, return_inverse=True)
        by_pattern = np.argsort(pattern.reshape(-1), kind="stable")
        said = pattern.reshape(-1)[by_pattern]
        heard = Heard(chains=speaks[by_pattern], said=said, begins=np.searchsorted(said, np.arange(len(found))))
        if kind is PositionClaim:
            votes[name] = Votes(patterns=patterns_of(found), heard=heard)
        else:
            verdicts[name] = Verdicts(steps=found.astype(np.int64), heard=heard)
    return Block(
        steps=steps,
        outcome=outcome,
        number=np.array(numbers)[order],
        places=places[order],
        silent=np.maximum(1 - places[order].sum(axis=1), 0.0),
        ruled_out=ruled_out[order],
        votes=votes,
        verdicts=verdicts,
    )


_OUTCOME_OF = {False: Outcome.WRONG, True: Outcome.RIGHT, None: Outcome.UNKNOWN}
_SILENT = {PositionClaim: 0.0, StepClaim: float(UNKNOWN)}
"""What an entry is where the witness says nothing."""


def _column(name: str, kind: type, chains: Sequence[ChainEvidence], steps: int) -> Floats:
    width = steps + 1 if kind is PositionClaim else steps
    silent = (_SILENT[kind],) * width
    return np.array([_numbers(chain, name, silent) for chain in chains], dtype=np.float64)


def _numbers(chain: ChainEvidence, name: str, silent: tuple[float, ...]) -> Sequence[float]:
    claim = chain.witnesses.get(name)
    if claim is None:
        return silent
    if isinstance(claim, PositionClaim):
        return claim.votes
    return [UNKNOWN if step is None or at in claim.proved else step for at, step in enumerate(claim.steps)]
