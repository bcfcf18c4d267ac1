"""`python -m tests.tiny.simulated short | long [RUNS]`: how far labels of a policy's chains are off where all is right.

Outcomes are drawn from the measured values, and the pooled estimator labels them as a run's first unit: the engine, the
tokeniser and the grader are left out, and with them rollouts that write the next step of their chain. Printed are quantiles of
what `compared.implausible` bounds, and what the labels cost beside the same rollouts of every prefix.
"""

import sys
from collections.abc import Sequence
from dataclasses import fields

import numpy as np

from pipeline.core.records import ChainShape, Trials
from pipeline.estimators.labelling import chain_values
from pipeline.estimators.pooled.kernel import PRIOR
from pipeline.estimators.pooled.learning import KernelLearner
from pipeline.estimators.registry import estimator_for
from pipeline.estimators.tree import tree_of
from tests.estimators.pooled import POOLED, played
from tests.tiny.compared import Extremes, Printed, Truth, extremes, truth
from tests.tiny.policy import POLICIES, TinyPolicy

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
    values = chain_values(chains, have, estimator_for(POOLED), KernelLearner().learn(PRIOR, trees, have))
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


def fewer(found: Sequence[Printed], known: Truth) -> float:
    """Tokens of c/n of equally many rollouts of every prefix over those of `found`, at the error of the latter."""
    error = np.mean([(each.mean - known.value) ** 2 for each in found])
    rollouts = (known.value * (1 - known.value)).mean() / error
    return float(rollouts * known.tokens.sum() / np.mean([each.tokens.sum() for each in found]))


def main(policy: TinyPolicy, runs: int) -> None:
    known = truth(policy)
    labellings = [simulated(known, seed) for seed in range(runs)]
    found = [extremes(each, known) for each in labellings]
    print(f"fewer tokens than fixed N at equal error, by a factor of {fewer(labellings, known):.2f}")
    print(f"{runs} labellings with outcomes drawn from the truth; quantiles {', '.join(map(str, QUANTILES))}")
    for part in fields(Extremes):
        of_all = [abs(getattr(each, part.name)) for each in found]
        print(f"  {part.name:<26}" + "".join(f"{at:>9.3f}" for at in np.quantile(of_all, QUANTILES)))


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3) or sys.argv[1] not in POLICIES:
        raise SystemExit(f"usage: python -m tests.tiny.simulated {' | '.join(POLICIES)} [RUNS]")
    main(POLICIES[sys.argv[1]], int(sys.argv[2]) if sys.argv[2:] else RUNS)
