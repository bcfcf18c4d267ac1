"""`python -m tests.tiny.simulated [RUNS]`: how far labels of the tiny policy's chains are off where all is right.

Outcomes are drawn from the measured values, and the pooled estimator labels them as a run's first unit: the engine, the
tokeniser and the grader are left out. Printed are quantiles of what `comparison.implausible` bounds.
"""

import sys
from dataclasses import fields

import numpy as np

from pipeline.core.records import ChainShape, Trials
from pipeline.estimators.labelling import chain_values
from pipeline.estimators.pooled.kernel import PRIOR
from pipeline.estimators.pooled.learning import learn_kernel
from pipeline.estimators.registry import estimator_for
from pipeline.estimators.tree import tree_of
from tests.estimators.pooled import POOLED, played
from tests.tiny.compared import Extremes, Printed, Truth, extremes, truth

RUNS = 4_000
QUANTILES = (0.5, 0.99, 0.999, 1.0)


def simulated(known: Truth, seed: int) -> Printed:
    """One labelling of all chains."""
    rng = np.random.default_rng(seed)
    names = [f"{chain}.{place}" for place, chain in enumerate(known.chain.tolist())]
    place = {name: number for number, name in enumerate(names)}
    chains = []
    for chain, outcome in enumerate(known.outcomes):
        here = np.flatnonzero(known.chain == chain).tolist()
        ids = (*(names[at] for at in here), f"{chain} whole")
        chains.append(ChainShape(prefix_ids=ids, outcome=outcome, prices=(*known.tokens[here].tolist(), 1.0)))

    def engine(prefix: str, _: int) -> tuple[bool, int]:
        at = place[prefix]
        return bool(rng.random() < known.value[at]), round(known.tokens[at])

    trees = [tree_of([chain]) for chain in chains]
    have = played(trees, engine, POOLED, PRIOR)
    values = chain_values(chains, have, estimator_for(POOLED), learn_kernel(PRIOR, trees, have))
    steps = [step for chain in values for step in (chain.root, *chain.steps[:-1])]
    counts = [have.get(name, Trials()).counts for name in names]
    return Printed(
        unbiased=np.array([step.unbiased_value for step in steps], dtype=float),
        unbiased_rollouts=np.array([step.unbiased_rollouts for step in steps]),
        mean=np.array([step.value for step in steps], dtype=float),
        sd=np.array([step.value_sd for step in steps], dtype=float),
        low=np.array([step.low for step in steps], dtype=float),
        high=np.array([step.high for step in steps], dtype=float),
        correct=np.array([count.correct for count in counts]),
        graded=np.array([count.graded for count in counts]),
        tokens=np.bincount(known.chain, [count.tokens for count in counts]).astype(int),
    )


def main() -> None:
    runs = int(sys.argv[1]) if sys.argv[1:] else RUNS
    known = truth()
    found = [extremes(simulated(known, seed), known) for seed in range(runs)]
    print(f"{runs} labellings with outcomes drawn from the truth; quantiles {', '.join(map(str, QUANTILES))}")
    for part in fields(Extremes):
        of_all = [abs(getattr(each, part.name)) for each in found]
        print(f"  {part.name:<26}" + "".join(f"{at:>9.3f}" for at in np.quantile(of_all, QUANTILES)))


if __name__ == "__main__":
    main()
