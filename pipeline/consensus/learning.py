"""Learns from a run how much Monte Carlo and each witness are worth. Also how sure a consensus may be at most, whatever its
model says. Pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from pipeline.consensus.blocks import Outcome, blocks_of
from pipeline.consensus.cells import Cell, cells_of
from pipeline.consensus.confusion import Way
from pipeline.consensus.evidence import ChainEvidence
from pipeline.consensus.maximum import Data, maximum
from pipeline.consensus.model import Average, Model, Overview, loss_in, overview_of, voters_in
from pipeline.consensus.parameters import WITNESS, Parameters, priors_for

MOST_CELLS = 20_000 * 81
"""As many chains are learned from as have this sum of (K + 1)^2: 20,000 of 8 steps."""
STATED = (0.8, 0.95)
"""Bounds between the three bins of what is stated; each has a limit of its own."""
UNSURE = 0.5
"""Up to here a probability claims nothing, and is not limited."""
Limits = Sequence[Sequence[float]]
"""The largest claims of no error so far, of an error so far, and of the first error, for each bin of what is stated."""
UNLIMITED: Limits = ((1.0, 1.0, 1.0),) * 3
SHARED: Limits = ((0.5, 0.8, 0.85), (0.5, 0.6, 0.85), (0.5, 0.6, 0.65))
"""The limits where a witness may share Monte Carlo's errors. Where a judge repeats half to all errors of a policy that misses
the place of a third of its first errors, claims of each bin are right at least as often (`tests.bench consensus`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """What a run teaches. `parameters`, `overview`: of the model. `cells`: its confusions in plain shares. `chains`: of the
    run; `learned_from`: of them, those that were used. `limits`: of what may be claimed by it."""

    parameters: Parameters
    overview: Overview
    cells: tuple[Cell, ...]
    chains: int
    learned_from: int
    iterations: int
    converged: bool
    limits: Limits = UNLIMITED

    @property
    def model(self) -> Model:
        return Model(self.parameters, self.overview)

    @property
    def says_one_thing(self) -> Mapping[str, str]:
        """The witnesses that say the same of nearly all chains, and what: they cannot tell chains apart."""
        return self.overview.one_thing

    @property
    def witnesses(self) -> frozenset[str]:
        """The names of the witnesses that it knows."""
        return frozenset(key[1] for key in self.parameters.rows if key[0] == WITNESS)

    def as_dict(self) -> dict[str, Any]:
        """In the form of JSON."""
        return {
            "rows": [[*key, row.tolist()] for key, row in self.parameters.rows.items()],
            "concentrations": [[*key, value] for key, value in self.parameters.concentrations.items()],
            "averages": {str(outcome): asdict(average) for outcome, average in self.overview.averages.items()},
            "one_thing": dict(self.overview.one_thing),
            "cells": [asdict(cell) for cell in self.cells],
            "chains": self.chains,
            "learned_from": self.learned_from,
            "iterations": self.iterations,
            "converged": self.converged,
            "limits": self.limits,
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> "Learned":
        """What `as_dict` made, the same to the last digit. Raises KeyError, TypeError or ValueError for anything else."""
        averages = {
            Outcome(outcome): Average(**{**average, "parts": tuple(average["parts"])})
            for outcome, average in stored["averages"].items()
        }
        return cls(
            parameters=Parameters(
                rows={tuple(key): np.array(row) for *key, row in stored["rows"]},
                concentrations={tuple(key): float(value) for *key, value in stored["concentrations"]},
            ),
            overview=Overview(averages=averages, one_thing=dict(stored["one_thing"])),
            cells=tuple(
                Cell(**{**cell, "outcome": Outcome(cell["outcome"]), "way": Way(cell["way"])})
                for cell in stored["cells"]
            ),
            chains=int(stored["chains"]),
            learned_from=int(stored["learned_from"]),
            iterations=int(stored["iterations"]),
            converged=bool(stored["converged"]),
            limits=tuple(map(tuple, stored["limits"])),
        )


def learn(evidence: Sequence[ChainEvidence], most_cells: int = MOST_CELLS) -> Learned:
    """The parameters that are most probable, given the evidence. Deterministic, and the same in any order of the chains.
    Without chains they are those of the priors. Raises ValueError for impossible evidence."""
    blocks = blocks_of(evidence, most_cells)
    overview = overview_of(blocks)
    priors = priors_for(voters_in(blocks), sorted({name for block in blocks for name in block.verdicts}))
    data = Data(overview=overview, blocks=[(block, loss_in(block, overview)) for block in blocks], priors=priors)
    found = maximum(data)
    return Learned(
        parameters=priors.parameters(found.vector),
        overview=overview,
        cells=cells_of(data, found),
        chains=len(evidence),
        learned_from=data.chains,
        iterations=found.rounds,
        converged=found.converged,
    )
