"""Our estimators on the drawn rollouts, through the functions that the worker calls.

Chains come in units, as in a run of one worker. IN_FLIGHT units begin at once, with what is known then, and the rounds of a
unit go on until nothing is owed. A run takes over what was learned from the most chains, and of equals the first: so units that
begin later know what the first of the units before them has learned. In the end all is learned again, from all units.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np

from pipeline.config.label import EstimatorConfig, RunConfig
from pipeline.core.records import ChainValues, Counts, StepValue, Trials
from pipeline.estimators.labelling import chain_values
from pipeline.estimators.registry import estimator_for
from pipeline.estimators.tree import Tree, tree_of
from tests.synthetic.chains import Chains, shapes
from tests.synthetic.draw import Integers
from tests.synthetic.measured import Measured, carried
from tests.synthetic.policy import Floats
from tests.synthetic.rollouts import RIGHT, UNGRADED, WRONG, Rollouts

UNIT = 32
"""Problems, as by default in a run."""
IN_FLIGHT = RunConfig().units_in_flight
_SAID = {RIGHT: True, WRONG: False, UNGRADED: None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """What an estimator made of chains; arrays (C, K), one entry per prefix before the last, NaN where it says nothing.
    `p_no_drop`: the first entry, of the bare problem, is NaN.

    `decision_seconds`: CPU time of all decisions.
    """

    unbiased: Floats
    mean: Floats
    sd: Floats
    low: Floats
    high: Floats
    rollouts: Integers
    tokens: Integers
    p_no_drop: Floats
    labels: tuple[tuple[int | None, ...], ...]
    decision_seconds: float

    @property
    def by_mean(self) -> Measured:
        return Measured(values=carried(self.mean), rollouts=self.rollouts, tokens=self.tokens)


@dataclass(slots=True, kw_only=True)
class Ledger:
    """What was asked for so far, and what the estimator sees of it."""

    drawn: Rollouts
    trials: dict[str, Trials] = field(default_factory=dict)

    def issue(self, owed: Mapping[str, int]) -> None:
        for prefix, more in owed.items():
            before = self.trials.get(prefix, Trials())
            self.trials[prefix] = self._trials(prefix, len(before.outcomes) + more, (*before.rounds, more))

    def _trials(self, prefix: str, count: int, rounds: tuple[int, ...]) -> Trials:
        chain, step = map(int, prefix.split("."))
        block = self.drawn.first(count)
        outcomes = block.outcomes[chain, step, :count].tolist()
        ungraded = outcomes.count(UNGRADED)
        return Trials(
            outcomes=tuple(map(_SAID.__getitem__, outcomes)),
            rounds=rounds,
            reached=tuple(
                f"{chain}.{step + steps}" if steps else None for steps in block.reached[chain, step, :count].tolist()
            ),
            counts=Counts(
                correct=outcomes.count(RIGHT),
                graded=count - ungraded,
                ungraded=ungraded,
                tokens=int(block.tokens[chain, step, :count].sum()),
            ),
        )


def replay(chains: Chains, drawn: Rollouts, config: EstimatorConfig, *, rollouts: int, unit: int = UNIT) -> Replayed:
    """Labels all chains. `rollouts`: as `sampling.rollouts`, a ceiling."""
    estimator, ledger = estimator_for(config), Ledger(drawn=drawn)
    learner = estimator.learner
    seconds, every = 0.0, shapes(chains)
    units = [[tree_of([chain]) for chain in every[start : start + unit]] for start in range(0, len(every), unit)]
    known = learner.initial() if learner else None
    for start in range(0, len(units), IN_FLIGHT):
        at_once = units[start : start + IN_FLIGHT]
        seconds += sum(decide(trees, ledger, config, rollouts=rollouts, state=known) for trees in at_once)
        known = learner.learn(known, at_once[0], ledger.trials) if learner else None
    if learner:
        known = reduce(lambda state, trees: learner.learn(state, trees, ledger.trials), units, learner.initial())
    together = (every[start : start + unit] for start in range(0, len(every), unit))
    values = [each for chosen in together for each in chain_values(chosen, ledger.trials, estimator, known)]
    counts = [[ledger.trials.get(prefix, Trials()) for prefix in chain.prefix_ids[:-1]] for chain in every]
    return Replayed(
        unbiased=_column(values, "unbiased_value"),
        mean=_column(values, "value"),
        sd=_column(values, "value_sd"),
        low=_column(values, "low"),
        high=_column(values, "high"),
        p_no_drop=_column(values, "p_no_drop"),
        rollouts=np.array([[len(trials.outcomes) for trials in chain] for chain in counts]),
        tokens=np.array([[trials.counts.tokens for trials in chain] for chain in counts]),
        labels=tuple(chain.labels for chain in values),
        decision_seconds=seconds,
    )


def decide(trees: Sequence[Tree], ledger: Ledger, config: EstimatorConfig, *, rollouts: int, state: Any) -> float:
    """Samples a unit until nothing is owed; the seconds of CPU time. A problem that is done is not asked about again."""
    seconds = 0.0
    open_trees = list(trees)
    while open_trees:
        began = time.process_time()
        owed = estimator_for(config).next_rollouts(open_trees, ledger.trials, rollouts, state)
        seconds += time.process_time() - began
        for problem in owed:
            ledger.issue(problem)
        open_trees = [tree for tree, problem in zip(open_trees, owed, strict=True) if problem]
    return seconds


def _column(chains: Sequence[ChainValues], name: str) -> Floats:
    def entry(value: StepValue) -> float:
        found = getattr(value, name)
        return np.nan if found is None else float(found)

    return np.array([[entry(value) for value in (chain.root, *chain.steps[:-1])] for chain in chains])
