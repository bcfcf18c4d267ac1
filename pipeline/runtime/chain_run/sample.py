"""Counts the chains of a run over chains, and draws a sample of them: what an estimate of the cost begins with.

The time of all chains is that of the sample times the ratio of their numbers of characters: what a model computes grows with
the length of its input.
"""

from dataclasses import dataclass
from heapq import heappush, heapreplace

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.runtime.chain_run.chains import ChainSource, LeftOutRows, values


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainSample:
    """`chains`, `steps`: of the whole input. `drawn`: the sample, in the order of the input. `weight`: characters of all chains
    for one of the sample."""

    chains: int
    steps: int
    left_out: LeftOutRows
    drawn: pa.Table
    weight: float


def sampled_chains(source: ChainSource, size: int) -> ChainSample:
    """A sample of `size` chains: those with the smallest ids. Ids are hashes, so it is random, and the same each time.

    Raises InputError if there is no chain, and what the source raises.
    """
    left_out = LeftOutRows()
    chains = steps = characters = 0
    sample: list[tuple[int, int, pa.Table]] = []
    for table in source.tables(left_out):
        first = chains
        chains += table.num_rows
        steps += int(pc.sum(pc.list_value_length(table["steps"])).as_py() or 0)
        characters += _characters(table)
        for chain_id, row in zip(values(table, "chain_id"), values(table, "row"), strict=True):
            # Negative, so that the largest of the smallest ids is the one that leaves the heap.
            rank = -int(chain_id, 16)
            if len(sample) < size:
                heappush(sample, (rank, row, table.slice(row - first, 1)))
            elif rank > sample[0][0]:
                heapreplace(sample, (rank, row, table.slice(row - first, 1)))
    source.refuse_none(chains, left_out)
    drawn = pa.concat_tables([table for _, _, table in sorted(sample, key=lambda each: each[1])])
    return ChainSample(
        chains=chains,
        steps=steps,
        left_out=left_out,
        drawn=drawn,
        weight=characters / max(1, _characters(drawn)),
    )


def _characters(table: pa.Table) -> int:
    texts = [*values(table, "problem"), *(step for steps in values(table, "steps") for step in steps)]
    return sum(map(len, texts))
